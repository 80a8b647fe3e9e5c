#!/usr/bin/env python3
"""The worker of the harmed programs (harm.py): trains in a few short steps with checkpoints, and scores what was trained. It notes in a
file of its lab when it begins and ends, and whether another of its task is alive at the same time."""

import fcntl
import hashlib
import json
import os
import sys
import time

STEPS = 6


def digest(data):
    return hashlib.sha256(data).hexdigest()


def note(params, task, word):
    with open(params["log"], "ab", buffering=0) as f:
        f.write(f"{word} {task['cell']['name']}/{task['stage']} {task['attempt']}\n".encode())


def alone(params, task):
    """A lock for as long as this process lives; whoever cannot have it runs beside another attempt of its task."""
    name = os.path.join(params["log"] + ".locks", digest(f"{task['cell']['name']}/{task['stage']}".encode())[:16])
    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        note(params, task, "doubled")


def write(path, data):
    with open(path + ".part", "wb") as f:
        f.write(data)
    os.replace(path + ".part", path)


def say(**event):
    with open(os.environ["PREREG_EVENTS"], "ab", buffering=0) as f:
        f.write(json.dumps(event).encode() + b"\n")


def resumed(task):
    """(steps done, state) of the newest whole checkpoint, or the beginning."""
    for folder in task["resume"]:
        for step in range(STEPS, 0, -1):
            try:
                place = os.path.join(folder, f"checkpoint/step-{step:06}")
                with open(os.path.join(place, "manifest.json"), "rb") as f:
                    wanted = json.load(f)["state"]
                with open(os.path.join(place, "state"), "rb") as f:
                    state = f.read()
            except (OSError, ValueError, LookupError):
                continue
            if digest(state) == wanted:
                say(type="resumed", step=step)
                return step, state
    return 0, json.dumps(task["cell"]["factors"], sort_keys=True).encode()


def is_broken(path, cell):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read() == cell
    except FileNotFoundError:
        return False


def train(task):
    done, state = resumed(task)
    say(type="section", name="step")
    while done < STEPS:
        time.sleep(task["params"]["step_seconds"])
        done, state = done + 1, digest(state).encode()
        say(type="progress", done=done, total=STEPS, unit="step")
        if done % 2 == 0:
            folder = f"checkpoint/step-{done:06}"
            os.makedirs(folder)
            write(f"{folder}/state", state)
            write(f"{folder}/manifest.json", json.dumps({"state": digest(state)}).encode())
            say(type="checkpoint", step=done, path=folder, seconds=0.0)
    write("model", state)
    return {"loss": {"value": int(state[:4], 16) / 65536}}, [{"path": "model", "sha256": digest(state), "bytes": len(state)}]


def score(task):
    with open(os.path.join(task["inputs"]["train"], "model"), "rb") as f:
        model = f.read()
    time.sleep(task["params"]["step_seconds"])
    return {"acc": {"value": 0.55 + int(digest(model)[:4], 16) / 655360, "n": 100}}, []


def main():
    with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
        task = json.load(f)
    params = task["params"]
    alone(params, task)
    note(params, task, "begins")
    if is_broken(params["log"] + ".broken", task["cell"]["name"]):
        sys.exit(65)
    while os.path.exists(params["log"] + ".hold"):
        time.sleep(0.02)
    metrics, artifacts = (train if task["stage"] == "train" else score)(task)
    result = {"protocol": 1, "attempt": task["attempt"], "metrics": metrics, "facts": {"threads": 1, "step_seconds": 1.0},
              "read": {}, "artifacts": artifacts}
    write("result.json", json.dumps(result).encode())
    note(params, task, "ends")


if "--describe" in sys.argv:
    print(json.dumps({"protocol": 1, "metrics": ["loss"] if "train" in sys.argv[-1] else ["loss", "acc"], "seconds": 1}))
    sys.exit(0)
main()
