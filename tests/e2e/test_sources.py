#!/usr/bin/env python3
"""A loss by source, from real training on several sources to the connector's sentence in the report: what the worker measured
of each source is what the instrument decomposes, and the whole is the mix of its parts."""

import json
import math
import os
import statistics

from lib import lab
from lib.lab import INVALID, OK, equal, expect

MIX = {"tales": 0.75, "sums": 0.25}
GRID = """[program]
name = "sources"
schema = 1
question = "Where does the gap lie?"
[[factor]]
name = "arch"
levels = ["narrow", "wide"]
[[factor]]
name = "seed"
levels = [1, 2, 3]
replicate = true
[data]
tales = "tales.jsonl"
sums = "sums.jsonl"
[stage.train]
command = ["prereg-train"]
threads = 1
[stage.train.params]
layers = 1
heads = 2
context = 64
batch_tokens = 128
tokenizer = "bytes"
mix = { tales = 0.75, sums = 0.25 }
horizon = { contract = "fixed", tokens = 12_800 }
lr = 3e-3
seed = "$seed"
[stage.train.when.arch]
narrow = { width = 16, ffn = 32 }
wide = { width = 32, ffn = 64 }
[measure]
loss = { metric = "train.val_loss", better = "lower", counted = false }
tales = { metric = "train.val_loss:tales", better = "lower", counted = false }
sums = { metric = "train.val_loss:sums", better = "lower" }
[contrast]
arch = { between = { arch = ["narrow", "wide"] } }
[[input]]
name = "ahead"
levels = [["wide", "contrast.arch[sums].mean > 0"], ["narrow", "otherwise"]]
[table]
inputs = ["ahead"]
rows = [["wide", "wide"], ["narrow", "narrow"]]
[outcome]
wide = { prior = 0.6, title = "Wide is ahead" }
narrow = { prior = 0.3, title = "Narrow is ahead" }
[instrument.connector]
loss = "loss"
contrast = "arch"
sources = { tales = "tales", sums = "sums" }
[forecast]
agree = { condition = "instrument.connector.sources_agree", confidence = 0.7 }
[run]
slots = 2
"""


def near(got, wanted, what):
    expect(got is not None and math.isclose(got, wanted, rel_tol=1e-9, abs_tol=1e-12), f"{what}: {got}, not {wanted}")


def texts(place):
    """Two sources that are hard to different degrees."""
    tales = [f"The {a} {b} gave the {c} to the {d}." for a in ("old", "red", "small", "tall") for b in ("fox", "owl", "hen")
             for c in ("key", "cup", "map", "bell") for d in ("king", "smith", "child", "cook", "guard")]
    sums = [" ".join(f"{i}+{k}={i + k};" for k in range(10)) for i in range(120)]
    for name, lines in (("tales", tales), ("sums", sums)):
        place.write(f"{name}.jsonl", "".join(json.dumps({"text": line}) + "\n" for line in lines))


def metrics(folder):
    """(arch, seed) -> the metrics of its training, as the worker wrote them."""
    found = {}
    for arch in ("narrow", "wide"):
        for seed in (1, 2, 3):
            path = os.path.join(folder, "cells", f"arch={arch},seed={seed}", "train", "result.json")
            with open(path, encoding="utf-8") as f:
                found[arch, seed] = {n: m["value"] for n, m in json.load(f)["metrics"].items()}
    return found


def gap(found, metric):
    """narrow - wide, seed by seed: its mean and standard error."""
    d = [found["narrow", seed][metric] - found["wide", seed][metric] for seed in (1, 2, 3)]
    return statistics.fmean(d), statistics.stdev(d) / math.sqrt(3)


def test_gap_by_source(place):
    texts(place)
    grid = place.write("grid.toml", GRID)
    place.ctl("lock", grid)
    place.must(OK, "preregd", "submit", grid, "--wait")
    folder = place.program_folder()
    found = metrics(folder)
    for cell, m in found.items():
        near(m["val_loss"], sum(share * m[f"val_loss:{name}"] for name, share in MIX.items()), f"{cell}: the whole is the mix")
    with open(os.path.join(folder, "report", "instruments.json"), encoding="utf-8") as f:
        told = json.load(f)
    (connector,) = [i for i in told["instruments"] if i["name"] == "connector"]
    whole = gap(found, "val_loss")
    near(connector["loss"]["gap"], whole[0], "the whole gap")
    near(connector["loss"]["se"], whole[1], "its standard error")
    near(connector["loss"]["inflation"], math.expm1(whole[0]), "perplexity")
    equal([s["source"] for s in connector["sources"]], list(MIX), "sources, as declared")
    for source in connector["sources"]:
        wanted = gap(found, f"val_loss:{source['source']}")
        near(source["gap"], wanted[0], f"gap of {source['source']}")
        near(source["se"], wanted[1], f"standard error of {source['source']}")
    near(sum(MIX[s["source"]] * s["gap"] for s in connector["sources"]), whole[0], "the gaps add up, by their shares")
    agree = all((s["gap"] > 0) == (whole[0] > 0) for s in connector["sources"])
    equal(connector["sources_agree"], agree, "whether the sources agree in sign")
    equal(connector["limit"] is None, agree, "the limit is printed unless they do")
    equal(told["forecasts"][0]["outcome"], agree, "the forecast of it")
    with open(os.path.join(folder, "report", "report.json"), encoding="utf-8") as f:
        report = json.load(f)
    (gaps,) = [b for s in report["sections"] for b in s["blocks"] if (b["kind"], b.get("id")) == ("table", "connector-gaps")]
    shown = {row["cells"][0]["text"]: row["cells"][1]["value"] for row in gaps["rows"]}
    for name in MIX:
        near(shown[name], gap(found, f"val_loss:{name}")[0], f"the report's gap of {name}")


def test_text_of_its_own(place):
    """The text's loss is the metric, its bytes are pinned, and a source that is trained on has no loss of its own."""
    texts(place)
    place.write("unseen.txt", "A book that no model has read.\n" * 40)
    own = GRID.replace("mix = { tales", 'validation = "unseen"\nmix = { tales').replace(
        'sums = "sums.jsonl"\n', 'sums = "sums.jsonl"\nunseen = "unseen.txt"\n')
    refused = place.ctl("check", place.write("grid.toml", own), wanted=INVALID)
    expect('no metric "val_loss:tales"' in refused.stderr, f"the missing metric is named: {refused.stderr}")
    own = own[:own.index("[instrument.connector]")] + own[own.index("[run]"):]
    own = own.replace('tales = { metric = "train.val_loss:tales", better = "lower", counted = false }\n', "").replace(
        "train.val_loss:sums", "train.val_loss:unseen").replace('levels = [1, 2, 3]', 'levels = [1]')
    grid = place.write("grid.toml", own)
    place.ctl("lock", grid)
    place.must(OK, "preregd", "submit", grid, "--wait")
    cell = os.path.join(place.program_folder(), "cells", "arch=wide,seed=1", "train", "result.json")
    with open(cell, encoding="utf-8") as f:
        result = json.load(f)
    near(result["metrics"]["val_loss"]["value"], result["metrics"]["val_loss:unseen"]["value"], "the whole is the text")
    equal(sorted(result["read"]), ["sums", "tales", "unseen"], "what was read")
    with open(grid + ".lock", encoding="utf-8") as f:
        expect("unseen" in json.dumps(json.load(f)), "the text is pinned")


lab.main(test_gap_by_source, test_text_of_its_own)
