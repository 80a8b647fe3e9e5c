#!/usr/bin/env python3
"""A horizon in pieces: a program that stops at a fraction of it, and a later one that goes on from what the first left, to the
bytes of a program that made all steps."""

import json
import os
import random

from lib import lab
from lib.lab import OK, equal, expect

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
    said = place.ctl("check", grid, wanted=5).stderr
    expect("the earlier run has 0.002, this one 0.004" in said, said)
    grid = write(place, "early", stop=", stop = 0.01")
    said = place.ctl("check", grid, wanted=5).stderr
    expect("grid.toml:21:49: error" in said and "0.01 of 40 steps is less than one step" in said, said)


lab.main(test_stop_and_continue, test_refused_at_its_line)
