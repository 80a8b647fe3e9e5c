#!/usr/bin/env python3
"""Workers in Python under the daemon: the example to its verdict, killed and not; what the lock holds of scripts; lm_eval as a stage."""

import glob
import json
import os
import shutil
import signal
import subprocess
import sys

from lib import lab
from lib.lab import LOCK, OK, equal, expect
from lib.workers import finish_killing, workers

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(lab.TOP, "worker/python"))
from preregd import results  # noqa: E402

FAKE = os.path.join(lab.TOP, "tests/unit/worker/python/fake_lm_eval.py")

def example(place, steps=1000):
    grid = place.prepare("python_worker")
    place.edit(grid, "steps = 600", f"steps = {steps}")
    place.ctl("lock", grid)
    return grid


def events_of(place, kind):
    """Events of that type, of all attempts at all tasks."""
    found = []
    for folder, _, names in os.walk(os.path.join(place.program_folder(), "cells")):
        if "events.jsonl" in names:
            with open(os.path.join(folder, "events.jsonl"), encoding="utf-8") as f:
                found += [e for e in map(json.loads, (line for line in f if line.endswith("\n"))) if e["type"] == kind]
    return found


def exit_codes(place):
    """Of all attempts that have ended, sorted; the greatest first."""
    codes = []
    for folder, _, names in os.walk(os.path.join(place.program_folder(), "cells")):
        if "exit.json" in names:
            with open(os.path.join(folder, "exit.json"), encoding="utf-8") as f:
                codes.append(json.load(f)["code"])
    return sorted(codes, reverse=True)


def rows_of(table):
    """A table of preregd.results, with pandas installed or without."""
    return table.to_dict("records") if hasattr(table, "to_dict") else table


def check_results(place, calm):
    """preregd.results gives what is in the files: records, means, verdict, and a curve without what attempts repeated."""
    for name in ("python_worker", place.program_folder()):
        p = results.Program(name, preregctl=os.path.join(place.bin, "preregctl"), state=place.state)
        found = {(row["cell"], row["metric"]): (row["reach"], row["seed"], row["value"], row["n"]) for row in rows_of(p.records())}
        wanted = {}
        for task, (metrics, *_) in calm.items():
            cell, stage = task.split("/")
            reach, seed = (int(part.split("=")[1]) for part in cell.split(","))
            wanted.update({(cell, f"{stage}.{m}"): (reach, seed, v["value"], v["n"]) for m, v in metrics.items()
                           if m in ("acc", "val_loss")})
        equal(found, wanted, "records")
        equal((len(rows_of(p.means())), p.verdict["coverage"]["tasks"]["done"]), (4, 8), "means, and tasks of the verdict")
    return [(row["cell"], row["reach"], row["stage"], row["step"], row["value"]) for row in rows_of(p.curves("loss"))]


def test_example(place):
    """To its verdict; then killed again and again: the same metrics, models, items and verdict."""
    grid = example(place)
    place.serve()
    place.must(OK, "preregd", "submit", grid, "--wait")
    calm, verdict = lab.results(place.program_folder()), place.verdict_bytes()
    equal(len(calm), 8, "tasks with a result")
    equal(json.loads(verdict)["coverage"]["tasks"]["done"], 8, "tasks done")
    equal(events_of(place, "resumed"), [], "resumed attempts without a kill")
    equal([e["threads"] for e in events_of(place, "environment")], [1] * 8, "what each attempt says it computes with")
    curves = check_results(place, calm)
    expect(len(curves) == 4 * 20 and {row[2] for row in curves} == {"train"}, f"{len(curves)} points of curves")
    place.end_all()
    place.state = place.path("state-killed")
    place.env["PREREGD_STATE"] = place.state
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    killed = finish_killing(place, 300, 20261121)
    print(f"  killed {sum(killed.values())} workers of {len(killed)} tasks; {len(events_of(place, 'resumed'))} went on", flush=True)
    expect(killed and events_of(place, "resumed"), "nobody was killed and went on")
    again = lab.results(place.program_folder())
    for task in calm:
        equal(again[task], calm[task], f"metrics, model and items of {task}")
    equal(place.verdict_bytes(), verdict, "verdict.json")
    equal(check_results(place, again), curves, "curves of killed trainings")


def test_terminated(place):
    """SIGTERM: a checkpoint, exit 75, which is no crash; the next attempts go on."""
    grid = example(place, steps=2000)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    started = os.path.join(place.program_folder(), "cells/*/train/*/checkpoint/step-*/manifest.json")
    place.wait_for(lambda: len({path.split("/checkpoint/")[0] for path in glob.glob(started)}) == 2, 60, "two have a checkpoint")
    place.ctl("pause")
    stopped = workers(place)
    for pid, _ in stopped:
        os.kill(pid, signal.SIGTERM)
    place.wait_for(lambda: len(exit_codes(place)) == len(stopped), 30, "the workers end and their shims say how")
    equal(exit_codes(place), [75] * len(stopped), "exit codes")
    for name in ("python_worker", place.program_folder()):
        try:
            results.Program(name, preregctl=os.path.join(place.bin, "preregctl"), state=place.state)
            raise lab.Failed(f"{name} was opened before it has a verdict")
        except results.Sealed as error:
            expect("has no verdict yet" in str(error), str(error))
    place.ctl("resume")
    place.wait_finished(240)
    expect(events_of(place, "resumed"), "nobody went on")
    equal([code for code in exit_codes(place) if code != 0], [75] * len(stopped), "exit codes of all attempts but the last")


def test_lock_holds_scripts(place):
    """One changed byte of script or module, and submit refuses and names it; the interpreter's copy is pinned, too."""
    grid = example(place)
    with open(grid + ".lock", encoding="utf-8") as f:
        files = json.load(f)["locked"]["files"]
    equal(sorted(files), ["chars.py", "prereg-python", "quiz.py", "train.py"], "what is pinned")
    for name in ("chars.py", "train.py"):
        path = os.path.join(os.path.dirname(grid), name)
        with open(path, encoding="utf-8") as f:
            before = f.read()
        place.write(path, before + "# changed\n")
        run = place.must(LOCK, "preregd", "submit", grid)
        expect(f"files.{name}" in run.stderr + run.stdout, f"{name} is not named: {run.stderr}")
        place.write(path, before)
    with open(os.path.join(place.bin, "prereg-python"), "a", encoding="utf-8") as f:
        f.write("# changed\n")
    place.must(LOCK, "preregd", "submit", grid)


def test_plain_interpreter(place):
    """command = [a Python, a packed script]: both pinned, and what runs are the copies."""
    grid = place.prepare("python_worker")
    if not lab.LONG:
        place.edit(grid, "steps = 600", "steps = 100")
    folder = os.path.dirname(grid)
    for name in ("train", "quiz"):
        with open(os.path.join(folder, f"{name}.py"), encoding="utf-8") as f:
            own = f.read().replace("import chars\n", "").replace("chars.", "")
        place.write(os.path.join(folder, "own.py"), own)
        subprocess.run(["sh", os.path.join(lab.TOP, "worker/python/pack"), f"{name}_packed.py", "chars.py", "own.py"], cwd=folder,
                       check=True)
        place.edit(grid, f'["prereg-python", "{name}.py", "--module", "chars", "chars.py"]',
                   f'["{os.path.realpath(sys.executable)}", "{name}_packed.py"]')
    place.ctl("lock", grid)
    with open(grid + ".lock", encoding="utf-8") as f:
        equal(len(json.load(f)["locked"]["files"]), 3, "pinned files")
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.write(os.path.join(folder, "quiz_packed.py"), "raise SystemExit('not what was locked')\n")
    place.wait_finished(120)
    equal({task["state"] for task in place.tasks().values()}, {"done"}, "states")


LM_EVAL = """
[stage.harness]
after   = ["train"]
command = ["prereg-lm-eval", "lm_eval", "--prereg-train", "{bin}/prereg-train"]
params  = {{ tasks = "quiz", metrics = ["acc", "acc:a"] }}
env     = {{ FAKE_PAUSE = "0.015", PATH = "{path}" }}
[measure]
harness = {{ metric = "harness.acc", items = 20, chance = 0.25, floor = 0.30, counted = false }}
"""


def test_lm_eval(place):
    """A stage whose command is lm_eval's name, on models of ours, killed on the way: every item once, and asked once."""
    grid = place.prepare_small()
    shutil.copy2(FAKE, os.path.join(os.path.dirname(grid), "lm_eval"))
    place.edit(grid, "\n[measure]\n", LM_EVAL.format(bin=place.bin, path=os.path.dirname(sys.executable) + ":/usr/bin:/bin"))
    place.ctl("lock", grid)
    with open(grid + ".lock", encoding="utf-8") as f:
        expect({"lm_eval", "prereg-lm-eval"} <= set(json.load(f)["locked"]["files"]), "the harness's command is not pinned")
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    killed = finish_killing(place, 300, 7)
    found = {task: result for task, result in lab.results(place.program_folder()).items() if task.endswith("/harness")}
    equal(len(found), 6, "results of the stage")
    expect(any(task.endswith("/harness") for task in killed), f"no such task was killed: {killed}")
    for task, (metrics, artifacts, _, items) in found.items():
        equal((metrics["acc"]["n"], metrics["acc:a"]["n"]), (20, 12), f"items of {task}")
        equal(items.count(b"\n"), 21, f"lines of {task}")
        equal(len(artifacts), 3, f"artifacts of {task}")
    equal({task["state"] for task in place.tasks().values()}, {"done"}, "states")


lab.main(test_example, test_terminated, test_lock_holds_scripts, test_plain_interpreter, test_lm_eval)
