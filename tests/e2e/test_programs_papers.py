#!/usr/bin/env python3
"""The papers' designs at full size say of themselves what the papers say; text that cannot feed them is refused."""

import json
import os
import shutil
import subprocess

from lib import lab
from lib.lab import OK, expect, equal
from lib.programs import check_and_lock, lock


def real_data():
    if not os.path.isdir(os.path.join(lab.SHARED, "data", "tinystories")):
        lab.skip(f"no real data in {lab.SHARED}")


def described(place, grid):
    """What the trainer says of each condition, without the levels of `seed`: {condition: facts}, and the lock's plan."""
    if not os.path.exists(grid + ".lock"):
        lock(place, grid)
    with open(grid + ".lock", encoding="utf-8") as f:
        locked = json.load(f)
    return {condition: stages["train"]["facts"] for condition, stages in locked["describe"].items() if "=" in condition}, locked["locked"]["plan"]


def hold(facts, **published):
    for key, value in published.items():
        equal(facts[key], value, f"{key} of {facts}")


def test_below_the_floor_is_the_papers(place):
    real_data()
    grid = check_and_lock(place, "below_the_floor")
    facts, plan = described(place, grid)
    text = place.ctl("check", grid).stdout
    for figure in ("12 cells", "60 tasks", "34,611,712", "62,956,032", "34,644,480", "5.47"):
        expect(figure in text or figure.replace(",", "") in text, f"check does not print {figure}:\n{text}")
    equal(len(facts), 4, "conditions")
    for condition, f in facts.items():
        hold(f, tokens=10_240_000, steps=5000, active_ffn=768)
        if "dense" in condition:
            hold(f, params_total=34_611_712, params_active=34_611_712)
        else:
            hold(f, params_total=62_956_032, params_active=34_644_480)
    moe = plan["stage"]["train"]["when"]["arch"]["moe"]
    equal(10_240_000 * moe["top_k"] // moe["experts"], 2_560_000, "tokens per expert")
    equal({k: plan["measure"][k]["items"] for k in ("mmlu", "hellaswag", "winogrande", "gsm8k")},
          {"mmlu": 14042, "hellaswag": 10042, "winogrande": 1267, "gsm8k": 1319}, "items")


def test_active_vs_total_is_the_papers(place):
    """The paper prints four experts, top-2, three seeds, under 25M parameters, and no counts; its matching is what must hold."""
    real_data()
    facts, plan = described(place, check_and_lock(place, "active_vs_total"))
    dense, moe, large = (facts[f"arm={arm}"] for arm in ("dense_active", "moe", "dense_total"))
    equal([len(f["levels"]) for f in plan["factor"] if f["name"] == "seed"], [3], "seeds")
    moe_params = plan["stage"]["train"]["when"]["arm"]["moe"]
    equal((moe_params["experts"], moe_params["top_k"]), (4, 2), "experts and top-k")
    for f in facts.values():
        expect(f["params_total"] < 25_000_000, f"under 25M parameters: {f}")
        hold(f, tokens=40_960_000, steps=2500)
    expect(abs(dense["params_active"] / moe["params_active"] - 1) < 0.005, f"active parameters: {dense} and {moe}")
    expect(abs(large["params_total"] / moe["params_total"] - 1) < 0.005, f"total parameters: {large} and {moe}")
    expect(large["params_total"] > 1.3 * dense["params_total"], "the two matchings are two")


def prepared(place, wanted, *arguments, corpus=None):
    """What `prepare` says."""
    env = {k: v for k, v in place.env.items() if k != "PREREGD_CORPUS"}
    if corpus:
        env["PREREGD_CORPUS"] = corpus
    run = subprocess.run([os.path.join(lab.TOP, "ops/programs/prepare"), *arguments], env=env, capture_output=True, text=True)
    equal(run.returncode, wanted, f"prepare {arguments}: {run.stdout}{run.stderr}")
    return run.stdout + run.stderr


def check_shards(place):
    """Text of one's own, packed: shards in GPT-2's vocabulary, enough of them, and nothing else."""
    vocabulary = os.path.join(lab.SHARED, "data", "tokenizers", "gpt2", "tokenizer.json")
    text = place.write("stories.jsonl", "".join(json.dumps({"text": f"Story {i}. " + "Once upon a time. " * 20}) + "\n" for i in range(50)))
    place.must(OK, "prereg-data", "pack", "--tokenizer", vocabulary, "--out", place.path("shards"), text)
    place.must(OK, "prereg-data", "pack", "--out", place.path("bytes"), text)
    shutil.copytree(place.path("shards"), place.path("mixed"))
    shutil.copy(text, place.path("mixed"))
    os.mkdir(place.path("empty"))
    folder = place.path("own")

    def said(wanted, shards, name="holding_fixed"):
        return prepared(place, wanted, name, folder, "--shards", place.path(shards))

    for shards, why in (("nowhere", "is not a folder"), ("empty", "is empty"), ("bytes", "is in another vocabulary"),
                        ("mixed", "stories.jsonl is not a shard")):
        expect(why in said(1, shards), f"{shards}: {why}")
        expect(not os.path.exists(os.path.join(folder, "data/text")), f"{shards} were taken")
    expect("brings its own text" in said(1, "shards", "first_light"), "a program with text")
    prepared(place, 2, "holding_fixed", folder, "--shards")
    expect("at most 50" in said(1, "shards"), "shards that are too short")
    grid = os.path.join(folder, "grid.toml")
    equal(place.ctl_json("check", "--no-run", grid)["ok"], True, "check with shards")
    os.mkdir(place.path("enough"))
    shutil.copy(place.path("shards/stories.shard"), place.path("enough"))
    with open(place.path("enough/stories.shard"), "r+b") as f:  # 1.6 billion tokens, nearly all of them a hole in the file
        f.seek(16)
        f.write((1_600_000_000).to_bytes(8, "little"))
        f.truncate(192 + 50 * 24 + 2 * 1_600_000_000)
    expect("holds other text" in said(1, "enough"), "other shards over those that are there")
    shutil.rmtree(os.path.join(folder, "data/text"))
    equal(said(0, "enough").strip(), grid, "enough shards")
    equal(os.listdir(os.path.join(folder, "data/text")), ["stories.shard"], "the shards")


def test_holding_fixed_is_the_papers(place):
    """Every published count, step and horizon; and text that cannot feed them is refused. One lab for all of it: the benches of CORE are
    read once."""
    real_data()
    folder = place.path("holding_fixed")
    expect("PREREGD_CORPUS" in prepared(place, 1, "holding_fixed", folder), "prepare asks for a corpus")
    said = prepared(place, 1, "holding_fixed", folder, corpus=os.path.join(lab.SHARED, "data", "tinystories", "train.jsonl"))
    expect("74,429,497,344 tokens" in said and "at most 50" in said, said)
    grid = os.path.join(folder, "grid.toml")
    facts, plan = described(place, grid)
    with open(os.path.join(lab.SHARED, "vectors", "params.json"), encoding="utf-8") as f:
        vectors = json.load(f)
    horizons = vectors["horizons"]
    counts = {c["name"]: c for c in vectors["cases"]}
    for model, name in (("dense", "nmoe dense"), ("moe64", "nmoe MoE-64"), ("moe256", "nmoe MoE-256")):
        active, total = (facts[f"model={model},contract={c}"] for c in ("active", "total"))
        for f in (active, total):
            hold(f, params_total=counts[name]["total"], params_active=counts[name]["active"], active_ffn=3072)
        hold(active, steps=horizons["dense_steps"], tokens=4_999_610_368)
        hold(total, steps=horizons["total_steps"][model], tokens=horizons["total_steps"][model] * horizons["batch_tokens"])
        equal(round(active["tokens"] / active["params_total"], 2), horizons["tokens_per_total"][model], f"tokens per parameter, {model}")
        equal(round(active["tokens"] / active["params_active"], 2), horizons["tokens_per_active"][model], f"tokens per active, {model}")
    train = plan["stage"]["train"]["params"]
    equal([plan["stage"][s]["params"].get("at") for s in ("core_20", "core_40", "core_60", "core_80", "core")], train["snapshots"] + [None],
          "the models that CORE scores")
    equal(train["marks"], train["snapshots"] + [1], "marks")
    equal([stop % train["eval_every"] for stop in (8320, 5760, 4864, 6272)], [0] * 4, "published stops are steps that are evaluated")
    check_shards(place)


lab.main(test_holding_fixed_is_the_papers, test_below_the_floor_is_the_papers, test_active_vs_total_is_the_papers)
