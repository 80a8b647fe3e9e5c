#!/usr/bin/env python3
"""One cell again: the same comes out and is a level, something else is named, drift and failing workers and signals leave nothing."""

import json
import os
import shutil
import signal
import subprocess

from lib import lab
from lib.lab import ANY, LOCK, OK, equal, expect
from lib.two_arms import DESIGN, READING

GRID = """[program]
name = "again"
schema = 1
question = "Does the same come out again?"
""" + DESIGN + """[data]
words = "words.txt"
[stage.train]
command = ["./rerun_worker.py"]
params = {{ gates = "{gates}", word = "one", arm = "$arm", seed = "$seed" }}
[stage.score]
after = ["train"]
command = ["./rerun_worker.py"]
env = {{ PREREG_CPU = "locked" }}
params = {{ gates = "{gates}", word = "two" }}
""" + READING + """[exclusion]
budget = 0.9
"""
CELL = "arm=a,seed=2"


def gate(place, name):
    place.write(f"again/{name}", "")


def close(place, name):
    os.remove(place.path("again", name))


def submitted(place):
    folder = place.path("again")
    place.write("again/words.txt", "Once upon a time.\n")
    shutil.copy2(os.path.join(lab.LIB, "rerun_worker.py"), folder)
    grid = place.write("again/grid.toml", GRID.format(gates=folder))
    place.ctl("lock", grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    return grid


def finished(place):
    grid = submitted(place)
    gate(place, "train.go")
    gate(place, "score.go")
    place.wait_finished(60)
    return grid


def reruns(place):
    folder = os.path.join(place.program_folder(), "reruns")
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def test_the_same(place):
    """Also without a daemon; the counted data are not touched, and the receipt carries the claim."""
    finished(place)
    folder = place.program_folder()
    place.ctl("stop")
    place.wait_for(lambda: "preregd" not in place.processes().values(), 20, "the daemon stops")
    before = lab.results(folder)
    answer = place.ctl_json("rerun", CELL)
    equal((answer["level"], answer["same"], answer["left_out"]), ("re-executed", True, []), "answer")
    equal([(s["stage"], s["same"], len(s["metrics"]), len(s["artifacts"])) for s in answer["stages"]],
          [("train", True, 2, 1), ("score", True, 2, 1)], "stages")
    equal(lab.results(folder), before, "the accepted results")
    equal(reruns(place), [os.path.basename(answer["file"])], "what is left in reruns/")
    part = place.ctl("rerun", CELL, "--stage", "train", "--keep", "--out", place.path("mine")).stdout
    expect('not "re-executed" without score' in part, part)
    kept = [n for n in os.listdir(place.path("mine")) if not n.endswith(".json")]
    expect(len(kept) == 1 and os.path.exists(place.path("mine", kept[0], "train", "weights")), f"kept: {kept}")
    equal(len(reruns(place)), 1, "files in the program's reruns/")
    receipt = place.ctl_json("export", "-o", place.path("out"))
    told = place.ctl_json("verify", receipt["folder"])
    equal((told["level"], [(r["cell"], r["claims"]) for r in told["reruns"]]), ("self-consistent", [(CELL, "re-executed")]), "verify")


def test_elsewhere(place):
    """The same on another instruction set is a level of its own, in the answer, the receipt and what verify prints."""
    place.write("again/set", "avx512")
    finished(place)
    place.write("again/set", "avx2")
    answer = place.ctl_json("rerun", CELL)
    equal((answer["level"], [s["environment"]["differs"] for s in answer["stages"]]),
          ("re-executed on another processor", [["instructions"]] * 2), "answer")
    gate(place, "asked")
    said = place.must(OK, "preregctl", "rerun", CELL, env={**place.env, "PREREG_CPU": "avx2", "PREREG_OTHER": "x"}).stdout
    with open(place.path("again/asked"), encoding="utf-8") as f:
        equal(f.read().split("\n"), ["train PREREG_CPU=avx2", "score PREREG_CPU=locked", ""], "what the workers were asked")
    expect("re-executed on another processor  every stage of this cell gave the same again, by other instructions of the same "
           "processor\n" in said and "another instruction set\n    accepted  \"avx512\"\n    again     \"avx2\"\n" in said, said)
    receipt = place.ctl_json("export", "-o", place.path("out"))
    told = place.ctl_json("verify", receipt["folder"])
    equal([r["claims"] for r in told["reruns"]], ["re-executed on another processor"] * 2, "verify --json")
    said = place.ctl("verify", receipt["folder"]).stdout
    expect("the same came out in every stage (re-executed on another processor)" in said, said)
    with open(os.path.join(receipt["folder"], "environment.jsonl"), encoding="utf-8") as f:
        equal({(e["arithmetic"], e["instructions"]) for e in map(json.loads, f)}, {(2, "avx512")}, "environment.jsonl")


def test_instruction_sets(place):
    """Shipped workers follow PREREG_CPU of a rerun, and give the same bytes."""
    with open("/proc/cpuinfo", encoding="ascii") as f:
        flags = set(next((line for line in f if line.startswith("flags")), "").split())
    if not {"avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl"} <= flags:
        lab.skip("the processor has one fast instruction set only")
    grid = place.prepare_small(6_000)
    place.ctl("lock", grid)
    place.must(OK, "preregd", "submit", grid, "--wait")
    equal([stated_sets(place, cpu) for cpu in ("avx512", "avx2", "avx2!")],
          [("re-executed", ["avx512"] * 3), ("re-executed on another processor", ["avx2"] * 3), None], "by PREREG_CPU")


def stated_sets(place, cpu):
    """The level, and by which instruction set each stage ran; None when a worker refuses the name."""
    run = place.run("preregctl", "rerun", "arch=moe,seed=2", "--json", env={**place.env, "PREREG_CPU": cpu})
    if run.returncode == ANY:
        expect(f"PREREG_CPU={cpu}: expected baseline" in run.stderr, run.stderr)
        return None
    equal(run.returncode, OK, f"exit: {run.stderr}")
    answer = json.loads(run.stdout)
    return answer["level"], [s["environment"]["rerun"]["instructions"] for s in answer["stages"]]


def test_differs(place):
    """What differs is named with both values, exit 3, and the receipt tells it too."""
    finished(place)
    gate(place, "chance")
    said = place.ctl("rerun", CELL, wanted=LOCK).stdout
    expect("DIFFERS  train: 1 of 3 metrics, 0 of 1 artifact" in said and "\n  weights\n" in said, said)
    expect("turn???" in said and not set("\u202e\u009b") & set(said), f"a terminal would obey: {said!r}")
    expect('not "re-executed": something else came out' in said, said)
    receipt = place.ctl_json("export", "-o", place.path("out"))
    told = place.ctl_json("verify", receipt["folder"])
    equal([(r["claims"], r["differs"]) for r in told["reruns"]], [(None, ["train", "score"])], "verify")
    expect("something else came out, first in train" in told["claimed"][0], str(told["claimed"]))


def refused(place, wanted, words, *arguments):
    before = reruns(place)
    said = place.ctl("rerun", *arguments, wanted=wanted).stderr
    expect(words in said, f"{words!r} is not in {said!r}")
    equal(reruns(place), before, "what is left in reruns/")


def test_drift(place):
    """Nothing runs when the data, the worker's copy or an accepted result are not what they were."""
    finished(place)
    words = place.path("again/words.txt")
    place.edit(words, "Once", "Twice")
    refused(place, LOCK, "words", CELL)
    place.edit(words, "Twice", "Once")
    place.edit(place.path("again/rerun_worker.py"), "urandom(8)", "urandom(9)")  # the copy in objects is what runs
    place.ctl("rerun", CELL)
    objects = os.path.join(place.state, "objects")
    for name in os.listdir(objects):
        path = os.path.join(objects, name)
        os.chmod(path, 0o755)
        place.edit(path, "urandom(8)", "urandom(9)")
    refused(place, LOCK, "rerun_worker.py", CELL)
    for name in os.listdir(objects):
        place.edit(os.path.join(objects, name), "urandom(9)", "urandom(8)")
    result = os.path.realpath(os.path.join(place.program_folder(), "cells", CELL, "score", "result.json"))
    os.chmod(result, 0o644)
    place.edit(result, '"n": 100', '"n": 101')
    refused(place, LOCK, "was changed after it had been accepted", CELL)
    place.ctl("rerun", CELL.replace("2", "1"))


def test_refused(place):
    """Sealed scores, names that are none, programs that were imported."""
    submitted(place)
    gate(place, "train.go")
    place.wait_for(lambda: place.tasks()[f"{CELL}/train"]["state"] == "done", 30, "training")
    refused(place, ANY, "are sealed", CELL)
    gate(place, "score.go")
    place.wait_finished(60)
    refused(place, ANY, 'did you mean "arm=a,seed=2"?', "arm=a,sed=2")
    refused(place, ANY, 'did you mean "score"?', CELL, "--stage", "scores")
    refused(place, ANY, "was imported", CELL, "--program", imported(place))
    gate(place, "broken")
    refused(place, ANY, "train ended with code 1: no such device: /dev/brain", CELL)


def imported(place):
    place.write("imported/imported.json", json.dumps({"schema": 1}))
    return place.path("imported")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def run_slowly(place):
    """preregctl at work, and the number of its worker."""
    run = subprocess.Popen([os.path.join(place.bin, "preregctl"), "rerun", CELL], env=place.env, cwd=place.folder,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    note = place.path("again/slow.pid")
    place.wait_for(lambda: os.path.exists(note), 30, "the worker runs")
    with open(note, encoding="utf-8") as f:
        pid = int(f.read())
    os.remove(note)
    return run, pid


def test_signals(place):
    """Told to stop, the worker ends and nothing is left; killed outright, the worker dies with it."""
    finished(place)
    gate(place, "slow")
    for sig in (signal.SIGINT, signal.SIGTERM):
        run, pid = run_slowly(place)
        run.send_signal(sig)
        said = run.communicate(timeout=120)[1]
        equal(run.returncode, ANY, f"exit after signal {sig}")
        expect("stopped by signal" in said, said)
        expect(not alive(pid), "the worker lives on")
        equal(reruns(place), [], "what is left in reruns/")
    run, pid = run_slowly(place)
    run.kill()
    run.communicate(timeout=120)
    place.wait_for(lambda: not alive(pid), 10, "the worker dies too")
    close(place, "slow")
    place.ctl("rerun", CELL)


def test_amended(place):
    """Each stage runs by the plan that its accepted attempt was given."""
    grid = submitted(place)
    place.ctl("pause")
    gate(place, "train.go")
    place.wait_for(lambda: "running" not in {t["state"] for t in place.tasks().values()}, 30, "what runs ends")
    place.edit(grid, 'word = "two"', 'word = "three"')
    place.ctl("amend", grid, "--reason", "another word")
    gate(place, "score.go")
    place.ctl("resume")
    place.wait_finished(60)
    done_before = next(name.split("/")[0] for name, t in sorted(place.tasks().items()) if name.endswith("/train"))
    answer = place.ctl_json("rerun", done_before)
    heads = [s["head"] for s in answer["stages"]]
    equal((answer["level"], heads[0]), ("re-executed", answer["root"]), "level and the first stage's head")
    expect(heads[1] != answer["root"], "the second stage ran by the root's plan")
    receipt = place.ctl_json("export", "-o", place.path("out"))
    equal([r["claims"] for r in place.ctl_json("verify", receipt["folder"])["reruns"]], ["re-executed"], "verify")


lab.main(test_the_same, test_elsewhere, test_instruction_sets, test_differs, test_drift, test_refused, test_signals, test_amended)
