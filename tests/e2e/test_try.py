#!/usr/bin/env python3
"""A little of a program before it is locked: what it takes and what fails is shown, scores never are, and nothing is left."""

import json
import os
import re
import shutil
import signal
import subprocess

from lib import lab
from lib.lab import ANY, OK, equal, expect

SECONDS = 120  # a limit against hanging
WORKER = """#!/usr/bin/env python3
import json, os, sys, time
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
if "--describe" in sys.argv:
    sys.exit(64)
with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
    task = json.load(f)
print("score 0.77731931")
mode = task["params"].get("mode")
if mode == "fail":
    sys.exit("no module named torch")
if mode == "loud" and not task["sealed"]:
    sys.exit("score 0.77731931")
if mode == "killed":
    print("score 0.77731931", file=sys.stderr, flush=True)
    os.kill(os.getpid(), 9)
if mode == "cannot":
    sys.exit(69)
if mode == "nothing":
    sys.exit(0)
if mode == "hang":
    with open(task["params"]["mark"], "w") as f:
        f.write(str(os.getpid()))
    time.sleep(600)
result = {"protocol": 1, "attempt": task["attempt"], "metrics": {"acc": {"value": 0.77731931, "n": 100}, "val_loss": {"value": 0.77731931}}}
if mode == "no_id":
    result["attempt"] = ""
if mode == "lacks":
    result["metrics"] = {"other": 0.77731931}
if mode == "text":
    result["metrics"]["acc"] = "0.77731931"
if mode == "artifact":
    result["artifacts"] = [{"path": "weights.bin", "sha256": 64 * "0"}]
if mode == "stranger":
    result["inputs"] = {"giving": 64 * "0"}
if mode == "reads":
    result["inputs"] = {"train": 64 * "0"}
if mode in ("heeds", "true"):
    with open("weights.bin", "wb") as f:
        f.write(b"")
    result["artifacts"] = [{"path": "weights.bin", "sha256": EMPTY, "bytes": 0}]
if mode == "heeds" and "train" in task["inputs"] and os.path.exists(os.path.join(task["inputs"]["train"], "weights.bin")):
    result["inputs"] = {"train": EMPTY}
if mode == "heeds":
    result["try"] = {"done": task["try"]["items"], "of": 1000 * task["try"]["items"], "seconds": 3.5}
if mode == "lies":
    result["try"] = {"done": 1e-300, "of": 1e300, "seconds": 1e300}
if task["inputs"] and not os.path.exists(os.path.join(task["inputs"]["train"], "result.json")):
    sys.exit(1)
with open("result.json", "w", encoding="utf-8") as f:
    text = json.dumps(result)
    if mode == "broken_number":
        text = text.replace("0.77731931", "0.77731931.5", 1)
    f.write("loss 0.77731931" if mode == "no_json" else text)
"""
REFUSED = (  # what a worker of that mode writes, and why the daemon would refuse it
    ("no_json", "grammar: failed: result.json is not valid: line 1, column 1: "),
    ("broken_number", "grammar: failed: result.json is not valid: line 1, column "),
    ("no_id", "grammar: failed: result.json has no attempt id"),
    ("lacks", 'grammar: failed: the plan names metric "acc", which is missing'),
    ("text", 'grammar: failed: metric "acc" has no value that is a number or null'),
    ("artifact", "grammar: failed: artifact weights.bin is not a file"),
    ("stranger", "grammar: failed: inputs.giving: the stage does not come after it"),
    ("reads", "whose accepted result has no such artifact"),
)


def program(place, train="whole", score="heeds"):
    shutil.rmtree(place.path("micro"), ignore_errors=True)
    grid = place.prepare("micro")
    place.write("micro/w.py", WORKER, 0o755)
    with open(grid, encoding="utf-8") as f:
        text = f.read()
    head, rest = text.split("[stage.train]", 1)
    tail = rest[rest.index("[stage.grammar]"):]
    start, end = tail.index("[stage.grammar]"), tail.index("[measure]")
    mark = place.path("mark")
    stages = (f'[stage.train]\ncommand = ["./w.py"]\nparams = {{ mode = "{train}", mark = "{mark}", arch = "$arch", seed = "$seed" }}\n'
              f'[stage.grammar]\nafter = ["train"]\ncommand = ["./w.py"]\nparams = {{ mode = "{score}", mark = "{mark}" }}\n'
              f'[stage.giving]\nafter = ["train"]\ncommand = ["./w.py"]\nparams = {{ mode = "heeds" }}\n')
    text = head + stages + tail[:start] + tail[end:]
    place.write("micro/grid.toml", text.split("[validity]")[0] + "[run]\nslots = 2\n")
    return grid


def tried(place, *arguments, wanted=OK):
    """(the answer of --json, what the text says); nothing is left of either."""
    os.makedirs(place.path("tmp"), exist_ok=True)
    env = {**place.env, "TMPDIR": place.path("tmp")}
    answer = json.loads(place.must(wanted, "preregctl", "try", *arguments, "--json", env=env).stdout)
    run = place.must(wanted, "preregctl", "try", *arguments, env=env)
    for text in (json.dumps(answer), run.stdout, run.stderr):
        expect("0.77731931" not in text and "score " not in text, f"a score is shown: {text}")
    left(place)
    return answer, run.stdout


def left(place):
    equal(os.listdir(place.path("tmp")), [], "what is left in TMPDIR")
    expect(not os.path.exists(os.path.join(place.state, "programs")), "the state folder holds a program")
    expect(not any(name.endswith(".lock") for name in os.listdir(place.path("micro"))), "there is a lock")


def states(answer):
    return {f"{row['cell']}/{row['stage']}": row["state"] for row in answer["tried"]}


def test_ours(place):
    grid = place.prepare("micro")
    copied = place.path("locked")
    shutil.copytree(place.path("micro"), copied)
    place.ctl("lock", os.path.join(copied, "grid.toml"))
    with open(os.path.join(copied, "grid.toml.lock"), encoding="utf-8") as f:
        facts_of = json.load(f)["describe"]
    answer, text = tried(place, grid, "--steps", "3", "--items", "4")
    equal(set(states(answer).values()), {"done"}, "states")
    equal(len(answer["tried"]), 6, "stages of one cell per arm")
    for row in answer["tried"]:
        expect(not row["ran_whole"], f"{row['stage']} ran whole")
        expect(row["whole_seconds"] >= row["seconds"] >= 0 and row["peak_bytes"] > 1 << 20, f"{row}")
        expect(row["whole_peak_bytes"] >= row["peak_bytes"] and row["whole_disk_bytes"] > row["disk_bytes"], f"{row}")
        facts = facts_of[row["cell"].split(",seed")[0]][row["stage"]]["facts"]
        equal(row["whole_peak_bytes"], max(row["peak_bytes"], facts["memory_bytes"]), "memory of the whole")
        expect(facts["memory_least_bytes"] < row["peak_bytes"] or row["stage"] == "train", f"{row}: {facts}")
        if row["stage"] == "train":  # a try writes one checkpoint beside its steps, a run several: the trainer's own word counts, too
            expect(row["whole_disk_bytes"] >= facts["disk_bytes"], f"{row}: {facts}")
            expect(row["disk_bytes"] >= 16 * facts["params_total"], f"no checkpoint beside the model: {row}: {facts}")
    equal(answer["whole_peak_bytes"], max(row["whole_peak_bytes"] for row in answer["tried"]), "memory of the largest task")
    equal(answer["tasks"], 18, "tasks")
    expect(answer["whole_seconds"] >= sum(row["whole_seconds"] for row in answer["tried"]), "the whole is less than its part")
    for word in ("acc", "loss"):
        expect(word not in text, f"{word} is shown: {text}")
    expect("preregctl try" in place.ctl("check", grid).stdout, "check does not offer it")
    answer, text = tried(place, grid, "arch=moe,seed=2")
    equal({row["cell"] for row in answer["tried"]}, {"arch=moe,seed=2"}, "the cell that was named")
    place.must(ANY, "preregctl", "try", grid, "arch=none")


def test_foreign(place):
    grid = program(place)
    answer, text = tried(place, grid)
    equal({row["stage"]: row["ran_whole"] for row in answer["tried"]}, {"train": True, "grammar": False, "giving": False}, "who ran whole")
    for row in answer["tried"]:
        if row["stage"] == "giving":
            expect(abs(row["whole_seconds"] - row["seconds"] - 3.5 * 999) < 1, f"{row}")
        equal(row["whole_peak_bytes"], row["peak_bytes"], "memory of a worker that says nothing of it")
    expect("ran whole" in text, text)
    answer, _ = tried(place, program(place, "lies"))
    expect(all(row["whole_seconds"] is None for row in answer["tried"] if row["stage"] == "train"), "an absurd time is believed")
    equal(answer["whole_seconds"], None, "the whole of what is not known")


def test_python(place):
    """The helper for workers in Python heeds the limits."""
    grid = place.prepare("python_worker", place.path("micro"))
    answer, text = tried(place, grid, "--steps", "2", "--items", "2")
    equal(set(states(answer).values()), {"done"}, text)
    for row in answer["tried"]:
        expect(not row["ran_whole"], f"{row['stage']} ran whole")


def test_failing(place):
    answer, text = tried(place, program(place, "fail"), wanted=ANY)
    equal({row["stage"]: row["state"] for row in answer["tried"]}, {"train": "failed", "grammar": "left_out", "giving": "left_out"}, "states")
    expect("no module named torch" in text, text)
    expect("left out" in text and "left_out" not in text, f"words, not the states of --json: {text}")
    headings = re.split(" {2,}", next(line for line in text.splitlines() if line.startswith("cell ")).strip())
    equal(len(set(headings)), 8, f"headings, each once: {headings}")
    answer, text = tried(place, program(place, score="nothing"), wanted=ANY)
    expect("wrote no result.json" in text, text)
    answer, text = tried(place, program(place, score="cannot"), "--steps", "1", "--items", "1")
    expect("cannot be measured" in text and "cannot_be" not in text and "at most 1 step and 1 item a stage" in text, text)
    equal({row["stage"]: row["state"] for row in answer["tried"]}, {"train": "done", "grammar": "cannot_be_measured", "giving": "done"}, "states")


def test_refused(place):
    """A result that the daemon would refuse at every attempt fails here too."""
    for mode, why in REFUSED:
        answer, text = tried(place, program(place, score=mode), wanted=ANY)
        equal({row["stage"]: row["state"] for row in answer["tried"]}, {"train": "done", "grammar": "failed", "giving": "done"}, f"states, {mode}")
        expect(why in text, f"{mode}: {text}")
    answer, text = tried(place, program(place, train="true"))
    equal(set(states(answer).values()), {"done"}, f"an artifact of this try as an input: {text}")


def test_logs(place):
    """A score in a log is not shown: workers know their stage as sealed, and what a signal ended has no last words."""
    answer, _ = tried(place, program(place, "loud", "loud"))
    equal({row["state"] for row in answer["tried"]}, {"done"}, "states of a worker that is told to show nothing")
    answer, text = tried(place, program(place, "killed"), wanted=ANY)
    expect("ended by signal 9" in text, text)


def test_interrupted(place):
    grid = program(place, "hang")
    os.makedirs(place.path("tmp"), exist_ok=True)
    for sig in (signal.SIGINT, signal.SIGTERM):
        child = subprocess.Popen([os.path.join(place.bin, "preregctl"), "try", grid], env={**place.env, "TMPDIR": place.path("tmp")},
                                 cwd=place.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        place.wait_for(lambda: os.path.exists(place.path("mark")) and os.path.getsize(place.path("mark")) > 0, SECONDS, "the worker works")
        with open(place.path("mark"), encoding="utf-8") as f:
            worker = int(f.read())
        child.send_signal(sig)
        said = child.communicate(timeout=SECONDS)[1]
        equal(child.returncode, ANY, f"exit code after signal {sig}: {said}")
        expect("nothing of it is kept" in said, said)
        expect(not os.path.exists(f"/proc/{worker}"), "the worker lives")
        left(place)
        os.remove(place.path("mark"))


lab.main(test_ours, test_foreign, test_python, test_failing, test_refused, test_logs, test_interrupted)
