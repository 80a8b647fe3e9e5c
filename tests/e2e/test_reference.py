#!/usr/bin/env python3
"""An apparatus check with the real evaluator and a real trained model: stories260K must score on COPA, WinoGrande or
ARC-Easy what was written down, or nothing counted starts. PREREGD_LONG=1 checks all three before any of twelve evaluations."""

import json
import os
import shutil
import signal

from lib import lab
from lib.lab import OK, equal, expect

HEAD = """[program]
name = "referred"
schema = 1
question = "Does the evaluator score a known model as it is known to score?"
[[factor]]
name = "arch"
levels = ["narrow", "wide"]
[[factor]]
name = "seed"
levels = [1, 2]
replicate = true
[data]
stories = "data/stories.jsonl"
[stage.train]
command = ["prereg-train"]
[stage.train.params]
layers = 1
width = 32
heads = 2
context = 448
batch_tokens = 896
tokenizer = "bytes"
data = "stories"
horizon = { contract = "fixed", tokens = 8_960 }
lr = 2e-3
seed = "$seed"
[stage.train.when.arch]
narrow = { ffn = 64 }
wide = { ffn = 96 }
"""
TAIL = """[contrast]
arch = { between = { arch = ["wide", "narrow"] }, over = "counted" }
[[input]]
name = "ahead"
levels = [["wide", "contrast.arch.mean > 0"], ["narrow", "otherwise"]]
[table]
inputs = ["ahead"]
rows = [["wide", "wide"], ["narrow", "narrow"]]
[outcome]
wide = { prior = 0.5, title = "Wide" }
narrow = { prior = 0.4, title = "Narrow" }
[run]
slots = 2
"""
CORE = "core/eval_data"
# task -> its data, its items, and how many of them stories260K has right
TASKS = {"copa": (f"{CORE}/commonsense_reasoning/copa.jsonl", 100, 65), "winogrande": ("winogrande/dev.jsonl", 1267, 644),
         "arc_easy": (f"{CORE}/world_knowledge/arc_easy.jsonl", 2376, 596)}


def grid_of(tasks, off=0):
    text = HEAD.replace("[data]\n", "[data]\n" + "".join(f'{t} = "data/{t}.jsonl"\n' for t in tasks))
    measures = "[measure]\n"
    for task in tasks:
        text += f'[stage.{task}]\nafter = ["train"]\ncommand = ["prereg-eval"]\nparams = {{ task = "{task}", data = "{task}" }}\n'
        measures += f'{task} = {{ metric = "{task}.acc", items = {TASKS[task][1]}, chance = 0.25 }}\n'
    for task in tasks:
        _, items, right = TASKS[task]
        measures += (f'[apparatus.{task}]\nstage = "{task}"\nmodel = "data/reference"\n'
                     f'expect = {{ metric = "{task}.acc", value = {right / items + off:.4f}, within = 0.0008 }}\n')
    return text + measures + TAIL


def submitted(place, tasks, off=0, model=None):
    shared = os.path.join(lab.SHARED, "data")
    if not os.path.isdir(os.path.join(shared, "models", "stories260K")):
        lab.skip(f"no models/stories260K in {shared}")
    grid = place.write("referred/grid.toml", grid_of(tasks, off))
    data = place.path("referred", "data")
    os.makedirs(data)
    for task in tasks:
        shutil.copyfile(os.path.join(shared, TASKS[task][0]), os.path.join(data, f"{task}.jsonl"))
    with open(os.path.join(shared, "tinystories", "valid.txt"), encoding="utf-8") as f:
        text = f.read(200_000)
    with open(os.path.join(data, "stories.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(json.dumps({"text": text[i:i + 1000]}) + "\n" for i in range(0, len(text), 1000))
    if model is None:
        shutil.copytree(os.path.join(shared, "models", "stories260K"), os.path.join(data, "reference"))
    else:
        place.write("referred/data/reference/notes.md", model)
    place.ctl("lock", grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    return grid


def journal(place):
    with open(os.path.join(place.program_folder(), "journal.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def started(place):
    """Names of evaluations of the grid that were ever started."""
    return [r["task"]["cell"] for r in journal(place) if r["event"] == "attempt_started" and r["task"].get("cell")
            and r["task"]["stage"] != "train"]


def check_order(place, tasks):
    held = set()
    for row in journal(place):
        task = row.get("task", {})
        if "apparatus" in task and task["state"] == "done":
            held.add(task["apparatus"])
        if row["event"] == "attempt_started" and "cell" in task and task["stage"] != "train":
            equal(held, set(tasks), "checks that held when the first evaluation began")
    equal(len(started(place)), 4 * len(tasks), "evaluations that were started")


def check_value(place, task):
    said = place.ctl_json("explain", f"apparatus/{task}")["apparatus"]
    _, items, right = TASKS[task]
    equal((said["holds"], round(said["value"] * items)), (True, right), f"what {task} came to")


def paused_why(place):
    place.wait_for(lambda: place.status()[0]["paused_by"] == "apparatus", 60, "the program is paused")
    return place.status()[0]["paused_why"]


def check_time(grid):
    """The time of a plan has both runs of a check, by the size of its own model."""
    with open(grid + ".lock", encoding="utf-8") as f:
        lock = json.load(f)
    check = lock["describe"].pop("apparatus")["copa"]["seconds"]
    stages = [stage["seconds"] for condition in lock["describe"].values() for stage in condition.values()]
    equal(len(stages), 4, "stages of two conditions")
    expect(check > 1.5 * lock["describe"]["arch=narrow"]["copa"]["seconds"], f"a model of 260,000 parameters takes {check} s, as the cells' do")
    whole = lock["proof"]["plan"]["seconds"]
    expect(abs(whole - 2 * sum(stages) - 2 * check) < 1e-6 * whole, f"the plan takes {whole} s: {stages}, {check}")


def test_holds(place):
    check_time(submitted(place, ["copa"]))
    place.wait_finished(120)
    check_order(place, ["copa"])
    check_value(place, "copa")


def test_is_off(place):
    """The value that was written down is not what the model scores: nothing counted starts until that is amended."""
    grid = submitted(place, ["copa"], off=0.01)
    why = paused_why(place)
    for part in ("apparatus.copa", "copa.acc", "expected 0.66 within 0.0008", "got 0.65"):
        expect(part in why, f"the reason does not name {part}: {why}")
    trained = lambda: all(t["state"] == "done" for n, t in place.tasks().items() if n.endswith("/train"))
    if not trained():  # the pause came first
        place.kill_daemon()
        place.serve()
        equal(place.status()[0]["paused_why"], why, "the reason after a restart")
    equal(started(place), [], "evaluations that were started")
    refused = place.run("preregctl", "retry", "apparatus/copa")
    expect(refused.returncode != OK and "resume" in refused.stderr, f"retry while it is paused: {refused.stderr}")
    place.ctl("resume", "referred")
    place.wait_for(lambda: place.ctl_json("explain", "apparatus/copa")["attempts"] == 2, 60, "it is made again")
    equal(paused_why(place), why, "the reason the second time: the same model, the same score")
    equal(started(place), [], "evaluations that were started")
    place.edit(grid, "value = 0.6600", "value = 0.6500")
    place.ctl("amend", grid, "--reason", "a slip of the pen")
    place.wait_finished(120)
    check_order(place, ["copa"])


def test_no_model(place):
    """What can never be measured says so, at once and by name."""
    submitted(place, ["copa"], model="The weights are on the other disk.\n")
    why = paused_why(place)
    expect("apparatus.copa could not be made (bad_input)" in why and "no model" in why, f"why it is paused: {why}")
    said = place.ctl_json("explain", "apparatus/copa")
    equal((said["state"], said["apparatus"]["holds"], said["attempts"]), ("blocked", None, 1), "the check")
    equal(place.ctl_json("cells")["apparatus"][0]["cause"], "bad_input", "what cells says of it")
    expect("apparatus/copa" in place.ctl("cells").stdout, "cells has no line of it")
    for words in (place.ctl("explain", "apparatus/copa").stdout, place.ctl("status", "referred").stdout):
        for part in ("could not be measured (bad_input)", "expected 0.65 within 0.0008", "no model"):
            expect(part in words, f"what people are told has no {part}: {words}")
    equal(started(place), [], "evaluations that were started")


def ended(place):
    return [r for r in journal(place) if r["event"] == "attempt_ended" and "apparatus" in r["task"]]


def test_interrupted(place):
    """SIGTERM in the middle of a check, then the daemon killed in the next attempt: the score is the same."""
    submitted(place, ["arc_easy"])
    folder = os.path.join(place.program_folder(), "apparatus", "arc_easy")

    def answered():
        texts = [os.path.join(folder, n, "events.jsonl") for n in os.listdir(folder)] if os.path.isdir(folder) else []
        for text in filter(os.path.exists, texts):
            with open(text, encoding="utf-8") as f:
                return any(json.loads(line).get("done", 0) > 0 for line in f if line.endswith("}\n"))
        return False

    place.wait_for(answered, 60, "the check has answered something")
    (attempt,) = os.listdir(folder)
    with open(os.path.join(folder, attempt, "start.json"), encoding="utf-8") as f:
        os.kill(json.load(f)["worker_pid"], signal.SIGTERM)
    place.wait_for(lambda: len(ended(place)) >= 1, 60, "the attempt ends")
    first = ended(place)[0]
    equal((first["attempt"]["cause"], first["attempt"]["code"], first["task"]["crashes"]), ("preempted", 75, 0), "how it ended")
    place.wait_for(lambda: sum(bool({"start.json", "exit.json"} & set(os.listdir(os.path.join(folder, n))))
                               for n in os.listdir(folder)) >= 2, 60, "it is tried again")
    place.kill_daemon()
    place.serve()
    place.wait_finished(240)
    check_order(place, ["arc_easy"])
    check_value(place, "arc_easy")
    with open(os.path.join(place.program_folder(), "report", "provenance.json"), encoding="utf-8") as f:
        attempts = json.load(f)["apparatus"][0]["attempts"]
    for attempt in attempts:  # the one that left no result, too
        for key in ("host", "kernel", "cpu", "blas", "core", "threads", "worker", "arithmetic", "instructions"):
            expect(attempt[key], f"where attempt {attempt['no']} ran: no {key} in {attempt}")
    last = [row for row in ended(place) if row["task"]["apparatus"] == "arc_easy"][-1]
    expect(last["attempt"]["resumed_from"] > 0, f"it began again at the beginning: {last}")


def test_long(place):
    if not lab.LONG:
        lab.skip("all three benchmarks: ops/check --long (PREREGD_LONG=1)")
    submitted(place, list(TASKS))
    place.wait_finished(900)
    check_order(place, list(TASKS))
    for task in TASKS:
        check_value(place, task)


lab.main(test_holds, test_is_off, test_no_model, test_interrupted, test_long)
