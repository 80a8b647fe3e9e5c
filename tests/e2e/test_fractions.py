#!/usr/bin/env python3
"""Fractions of a horizon: a program that stops at one, and a later one that goes on from what the first left, to the bytes of a
program that made all steps; models at fractions that later stages score; targets whose resolution differs."""

import json
import os
import random

from lib import lab
from lib.lab import INVALID, OK, equal, expect

GRID = """[program]
name = "{name}"
schema = 1
question = "Which rate?"
[[factor]]
name = "lr"
levels = [0.002, 0.004]
[data]
text = "text.jsonl"
{data}
[stage.train]
command = ["prereg-train"]
[stage.train.params]
layers = 1
width = 32
heads = 2
ffn = 48
context = 64
batch_tokens = 512
data = "text"
horizon = {{ contract = "fixed", tokens = 20480{stop} }}
lr = "$lr"
seed = 3
val_tokens = 1024
{params}
[measure]
loss = {{ metric = "train.val_loss", better = "lower" }}
[contrast]
rate = {{ between = {{ lr = [0.004, 0.002] }} }}
[[input]]
name = "rate"
levels = [["slow", "contrast.rate[loss].mean > 0"], ["fast", "otherwise"]]
[table]
inputs = ["rate"]
rows = [["slow", "slow"], ["fast", "fast"]]
[outcome]
slow = {{ prior = 0.4, title = "The lower rate" }}
fast = {{ prior = 0.5, title = "The higher rate" }}
"""
CELLS = ("lr=0.002", "lr=0.004")


def corpus(place):
    draw = random.Random(5)
    parts = (("the cat", "a dog", "my aunt"), ("sees", "likes", "paints"), ("a red ball.", "two birds.", "nothing."))
    return "".join(json.dumps({"text": " ".join(draw.choice(p) for _ in range(6) for p in parts)}) + "\n" for _ in range(200))


def write(place, name, stop="", data="", params=""):
    place.write(f"{name}/text.jsonl", corpus(place))
    return place.write(f"{name}/grid.toml", GRID.format(name=name, stop=stop, data=data, params=params))


def attempts(place, name):
    """Of each cell the folder of the attempt that was accepted."""
    programs = os.path.join(place.state, "programs")
    folder = next(os.path.join(programs, d) for d in os.listdir(programs) if d.startswith(name + "-"))
    return {c: os.path.dirname(os.path.realpath(os.path.join(folder, "cells", c, "train", "result.json"))) for c in CELLS}


def run(place, grid):
    place.ctl("lock", grid)
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: all(p["state"] == "finished" for p in place.status()), 120, "the program is finished")


def outcome(folder):
    with open(os.path.join(folder, "result.json"), encoding="utf-8") as f:
        result = json.load(f)
    with open(os.path.join(folder, "model/model.bin"), "rb") as f:
        return result["metrics"], f.read()


def test_stop_and_continue(place):
    place.serve()
    run(place, write(place, "whole"))
    run(place, write(place, "cut", stop=", stop = 0.25"))
    cut = attempts(place, "cut")
    equal(json.load(open(os.path.join(cut[CELLS[0]], "result.json"), encoding="utf-8"))["facts"]["steps"], 10, "steps of the first piece")
    data = "".join(f'run_{i} = "{os.path.join(cut[c], "run")}"\n' for i, c in enumerate(CELLS))
    begin = "".join(f'[stage.train.when.lr."{c[3:]}"]\ninit = {{ run = "run_{i}" }}\n' for i, c in enumerate(CELLS))
    later = write(place, "later", data=data, params=begin)
    said = place.ctl("check", later).stdout
    expect("40" in said, said)
    run(place, later)
    whole, later = attempts(place, "whole"), attempts(place, "later")
    for c in CELLS:
        equal(outcome(later[c]), outcome(whole[c]), f"metrics and weights of {c}")
        expect(outcome(cut[c]) != outcome(whole[c]), "a run that stopped at a quarter has the weights of the whole")


def test_refused_at_its_line(place):
    place.serve()
    run(place, write(place, "cut", stop=", stop = 0.25"))
    cut = attempts(place, "cut")[CELLS[0]]
    grid = write(place, "later", data=f'run = "{os.path.join(cut, "run")}"\n', params='init = { run = "run" }')
    said = place.ctl("check", grid, wanted=INVALID).stderr
    expect("the earlier run has 0.002, this one 0.004" in said, said)
    grid = write(place, "early", stop=", stop = 0.01")
    said = place.ctl("check", grid, wanted=INVALID).stderr
    expect("grid.toml:21:49: error" in said and "0.01 of 40 steps is less than one step" in said, said)


SCORES = """[stage.early]
after = ["train"]
command = ["prereg-eval"]
params = {{ task = "choices", data = "items", at = {at} }}
[stage.end]
after = ["train"]
command = ["prereg-eval"]
params = {{ task = "choices", data = "items", at = 1.0 }}
[stage.last]
after = ["train"]
command = ["prereg-eval"]
params = {{ task = "choices", data = "items" }}
[measure]
early = {{ metric = "early.acc", items = 20 }}
end = {{ metric = "end.acc", items = 20 }}
last = {{ metric = "last.acc", items = 20 }}
source = {{ metric = "train.val_loss:text@0.25", better = "lower" }}
bits = {{ metric = "train.val_bits_per_byte@0.25", better = "lower" }}
best = {{ metric = "train.best_val_loss", better = "lower" }}
"""


def write_scored(place, at):
    grid = write(place, "scored", data='items = "items.jsonl"\n', params="snapshots = [0.25, 1.0]")
    draw = random.Random(6)
    things = ["a red ball.", "two birds.", "nothing."]
    place.write("scored/items.jsonl", "".join(
        json.dumps({"query": f"my aunt {draw.choice(('sees', 'likes'))}", "choices": things, "gold": draw.randrange(3)}) + "\n" for _ in range(20)))
    place.edit(grid, "[measure]\n", SCORES.format(at=at))
    return grid


def test_scored_at_a_fraction(place):
    place.serve()
    run(place, write_scored(place, 0.25))
    for cell in CELLS:
        trained = attempts(place, "scored")[cell]
        models = {}
        for stage in ("early", "end", "last"):
            with open(os.path.join(os.path.dirname(os.path.dirname(trained)), stage, "result.json"), encoding="utf-8") as f:
                models[stage] = json.load(f)["inputs"]["train"]
        with open(os.path.join(trained, "result.json"), encoding="utf-8") as f:
            left = {a["path"]: a["sha256"] for a in json.load(f)["artifacts"]}
        equal(models, {"early": left["snapshot/0.25/model.bin"], "end": left["model/model.bin"], "last": left["model/model.bin"]}, "models")
        expect(models["early"] != models["last"], "the model at a quarter is the last one")
    receipt = place.ctl("export", "--out", place.path("out")).stdout.splitlines()[0]
    expect(place.ctl_json("verify", receipt)["holds"], "the receipt does not hold")


def test_no_such_fraction(place):
    said = place.ctl("check", write_scored(place, 0.3), wanted=INVALID).stderr
    expect('stage.early: reads snapshot/0.3/model.bin of stage "train", which does not leave it; add to its snapshots: 0.3 (at ' in said, said)
    grid = write_scored(place, 0.25)
    place.edit(grid, "[stage.train.params]", "[stage.train.params]\ndropout = 0.1")
    said = place.ctl("check", grid, wanted=INVALID).stderr
    expect("dropout: not supported: " in said and "does not leave it" not in said, said)


def test_resolution(place):
    """A target that is looked for too seldom, and not as often in both arms."""
    grid = write(place, "target", params='target_loss = 3.0\n[stage.train.when.lr."0.002"]\neval_every = 4\n[stage.train.when.lr."0.004"]\neval_every = 5')
    place.edit(grid, "[contrast]", 'target = { metric = "train.target_step", better = "lower" }\n[contrast]')
    said = place.ctl("check", grid).stderr
    expect("target_step is known to 4 steps, 10 % of the horizon" in said, said)
    expect('contrast.rate: stage "train" looks for its target every 5 steps at lr=0.004 and every 4 at lr=0.002' in said, said)
    place.edit(grid, "eval_every = 5", "eval_every = 4")
    said = place.ctl("check", grid).stderr
    expect("looks for its target" not in said, said)


lab.main(test_stop_and_continue, test_refused_at_its_line, test_scored_at_a_fraction, test_no_such_fraction, test_resolution)
