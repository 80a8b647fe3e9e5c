#!/usr/bin/python3
"""A worker that misbehaves as its parameter `mode` says. Every mode names what the daemon must make of it (test_rogue.py)."""

import hashlib
import json
import os
import sys
import time

MIB = 1 << 20


def say(**event):
    with open(os.environ["PREREG_EVENTS"], "ab", buffering=0) as f:
        f.write(json.dumps(event).encode() + b"\n")


def finish(task, metrics, raw=None):
    result = {"protocol": 1, "attempt": task["attempt"], "metrics": metrics, "facts": {}, "read": {}, "artifacts": []}
    text = raw if raw is not None else json.dumps(result)
    with open("result.json.part", "w", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    os.rename("result.json.part", "result.json")


def wait_until(task):
    while not os.path.exists(task["params"]["until"]):
        time.sleep(0.1)


def good(task):
    finish(task, {"score": {"value": 0.75, "n": 100}})


def needs(task):
    """Stands for a script whose first line cannot be executed until something was installed."""
    if not os.path.exists(task["params"]["until"]):
        raise ModuleNotFoundError("No module named 'nowhere'")
    finish(task, {})


def needs_or_sticks(task):
    """The same, but in the cell "null" the attempt that cannot go on fails only once it is told to."""
    if task["params"]["which"] == "null" and not os.path.exists(task["params"]["until"]):
        while not os.path.exists(task["params"]["until"] + ".fail"):
            time.sleep(0.1)
        raise ModuleNotFoundError("No module named 'nowhere'")
    needs(task)


def garbage(task):
    """A few lines that are no events: counted, and no harm."""
    with open(os.environ["PREREG_EVENTS"], "ab", buffering=0) as f:
        for _ in range(5):
            f.write(b"this is not JSON\n")
    good(task)


def flood(task):
    """More than a hundred of them."""
    with open(os.environ["PREREG_EVENTS"], "ab", buffering=0) as f:
        for _ in range(150):
            f.write(b"\xff\xfe neither text nor JSON\n")
    good(task)


def sparse(task):
    """Says nothing for gigabytes: more than 32 bits count, more than a disk should hold."""
    os.truncate(os.environ["PREREG_EVENTS"], task["params"]["sparse_gib"] << 30)
    good(task)


def far(task):
    """A first step of more than there will ever be time for; done when the file that `until` names is there."""
    say(type="section", name="step")
    say(type="progress", done=1, total=2**53 - 1, unit="step")
    wait_until(task)
    good(task)


def no_result(_task):
    pass


def torn_result(task):
    finish(task, {}, raw='{"protocol":1,"attempt":"' + task["attempt"] + '","metrics":{"sc')


def wrong_attempt(task):
    finish({**task, "attempt": "00000000-0000-4000-8000-000000000000"}, {"score": {"value": 0.75, "n": 100}})


def missing_metric(task):
    finish(task, {"other": {"value": 0.5, "n": 100}})


def nan(task):
    """NaN is no JSON: written as Python writes it."""
    finish(task, {}, raw='{"protocol":1,"attempt":"%s","metrics":{"score":{"value":NaN,"n":100}},"facts":{},"read":{},'
                         '"artifacts":[]}' % task["attempt"])


def huge(task):
    """A loss that ran away: finite, and past what an integer can be."""
    finish(task, {"score": {"value": 1e20, "n": 100}})


def null(task):
    """What a worker says that found NaN itself: null with a reason."""
    finish(task, {"score": {"value": None, "n": 100, "why": "not finite"}})


def crash(_task):
    os.abort()


def bad_parameters(_task):
    print("layers: 0 is under 1", file=sys.stderr)
    sys.exit(64)


def bad_data(_task):
    sys.exit(65)


def cannot(_task):
    sys.exit(69)


def checkpointed_once(task):
    """Exit 75 on the first attempt, done on the second."""
    say(type="section", name="step")
    say(type="progress", done=task["attempt_no"], total=2, unit="step")
    if task["attempt_no"] == 1:
        sys.exit(75)
    good(task)


def crash_once(task):
    if task["attempt_no"] == 1:
        os.abort()
    good(task)


def wait(task):
    """Done when the file that `until` names is there."""
    say(type="section", name="step")
    done = 0
    while not os.path.exists(task["params"]["until"]):
        done += 1
        say(type="progress", done=done, total=100000, unit="look")
        time.sleep(0.1)
    good(task)


wait_too = wait


def fail_later(task):
    """Fails when the file that `until` names is there, and says a score on its way out."""
    wait_until(task)
    print("the score so far is 0.4321", file=sys.stderr)
    sys.exit(64)


def hang(_task):
    say(type="section", name="step")
    time.sleep(3600)


def never_reports(_task):
    time.sleep(3600)


def memory(_task):
    """Far over its limit; must not take the machine along."""
    hoard = []
    while True:
        hoard.append(bytearray(32 * MIB))
        for page in range(0, 32 * MIB, 4096):
            hoard[-1][page] = 1


def orphans(task):
    """Leaves children that hold on to everything; the task is not over while they live, and they must not live long."""
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            time.sleep(3600)
            os._exit(0)
    good(task)


def hoard(task):
    """Checkpoints of which one holds an artifact; the first attempt is preempted behind the second."""
    say(type="section", name="step")
    for step in (1, 2, 3) if task["attempt_no"] > 1 else (1, 2):
        folder = f"checkpoint/step-{step:06d}"
        os.makedirs(folder)
        for name in ("weights", "manifest.json"):
            with open(f"{folder}/{name}", "wb") as f:
                f.write(b"x" * 65536)
        say(type="checkpoint", step=step, path=folder, seconds=0.1)
        say(type="progress", done=step, total=3, unit="step")
    if task["attempt_no"] == 1:
        sys.exit(75)
    first = next(name for name in os.listdir("..") if name.startswith("attempt-01-"))
    with open("../seen", "w", encoding="utf-8") as f:
        f.write(" ".join(sorted(os.listdir(f"../{first}/checkpoint"))))
    os.makedirs("checkpoint/best")
    with open("model.bin", "wb") as f:
        f.write(b"y" * 65536)
    artifacts = [{"path": path, "sha256": hashlib.sha256(byte * 65536).hexdigest(), "bytes": 65536}
                 for path, byte in (("checkpoint/step-000002/weights", b"x"), ("model.bin", b"y"))]
    finish(task, {}, raw=json.dumps({"protocol": 1, "attempt": task["attempt"], "metrics": {"score": {"value": 0.75, "n": 100}},
                                     "facts": {}, "read": {}, "artifacts": artifacts}))


def foreign_write(task):
    """Its scores on standard output are no scores."""
    print(json.dumps({"score": 0.99}))
    good(task)


def main():
    with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
        task = json.load(f)
    modes = {name: f for name, f in globals().items() if callable(f) and name not in ("main", "say", "finish", "wait_until")}
    modes[task["params"]["mode"]](task)


if "--describe" in sys.argv:
    sys.exit(64)
main()
