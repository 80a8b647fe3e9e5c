#!/usr/bin/env python3
"""One program, one digest: prereg-train and prereg-eval under every instruction set that the processor has, several
numbers of threads, both precisions, with and without bfloat16 instructions. Timings and what names the machine are
left out; weights, items, metrics and curves are not.

    test_same_bytes.py BUILD/bin [NAME...]        PREREGD_LONG=1: whole horizons, and 7 threads
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

LONG = os.environ.get("PREREGD_LONG") == "1"

BASE = {"layers": 2, "width": 64, "heads": 4, "context": 96, "batch_tokens": 192, "tokenizer": "bytes", "data": "corpus",
        "lr": 2e-3, "seed": 1}
MOE = {"experts": 4, "top_k": 2, "expert_ffn": 88, "balance_loss": 0.01, "router_z_loss": 0.001}
# name: (parameters, tokens, tokens with --long)
MODELS = {
    "micro": ({**BASE, **MOE}, 960, 120_000),
    "first_light": ({**BASE, "vocab": 257, "ffn": 176, "seed": 42, "lr": 1e-3,
                     "schedule": {"kind": "cosine", "warmup": 0.02, "floor": 0.1}}, 960, 600_000),
    # Wider than a piece of a product (256 positions), passes longer than one, an odd number of dimensions of a head
    "everything": ({**BASE, "layers": 3, "width": 264, "heads": 6, "kv_heads": 2, "context": 160, "batch_tokens": 1280,
                    "micro_batch": 4, "tokenizer": "bpe", "vocab": 400, "dense_layers": 1, "ffn": 328, "experts": 5,
                    "top_k": 2, "expert_ffn": 72, "shared": 1, "renormalise": False, "balance_loss": 0.01,
                    "balance_anneal": 0.5, "router_z_loss": 0.001, "bias_update_rate": 0.001, "reset_dead_experts": 1,
                    "tie_embeddings": False, "weight_decay": 0.05, "marks": [0.5], "target_loss": 5.0, "eval_every": 1,
                    "val_tokens": 640, "init": "start",
                    "schedule": {"kind": "wsd", "warmup": 0.1, "floor": 0.1, "decay": 0.3}}, 2_560, 25_600),
}
SCORED = {"choices": "grammar", "schema": "giving"}


def flags():
    with open("/proc/cpuinfo", encoding="ascii") as f:
        return set(next((line for line in f if line.startswith("flags")), "").split())


class Way:
    """A way to run the workers that must not show in what they write."""

    def __init__(self, name, threads=1, **env):
        self.name, self.threads, self.env = name, threads, env


def ways():
    has = flags()
    found, skipped = [Way("baseline", PREREG_CPU="baseline")], []
    if {"avx2", "fma"} <= has:
        found.append(Way("avx2", PREREG_CPU="avx2"))
        found.append(Way("avx2, 3 threads", 3, PREREG_CPU="avx2"))
    else:
        skipped.append("avx2: not in this processor")
    if {"avx512f", "avx512dq", "avx512bw", "avx512vl"} <= has:
        found += [Way(f"avx512, {n} threads", n, PREREG_CPU="avx512") for n in ((1, 2, 3, 7) if LONG else (1, 2, 3))]
        if "avx512_bf16" in has:
            found.append(Way("avx512 without bfloat16", 2, PREREG_CPU="avx512", PREREG_BFLOAT16="no"))
        else:
            skipped.append("bfloat16 instructions: not in this processor")
    else:
        skipped.append("avx512: not in this processor")
    return found, skipped


def attempt(way, binaries, worker, folder, task):
    os.makedirs(folder)
    with open(os.path.join(folder, "task.json"), "w", encoding="utf-8") as f:
        json.dump({"protocol": 1, "threads": way.threads, **task}, f)
    env = {"PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1", "PREREG_TASK": "task.json",
           "PREREG_EVENTS": "events.jsonl", **way.env}
    done = subprocess.run([os.path.join(binaries, worker)], cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{way.name}: {worker} ended with {done.returncode}: {done.stderr.strip()[-600:]}")


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def numbers(folder, files):
    """What must be equal, by name."""
    with open(os.path.join(folder, "result.json"), encoding="utf-8") as f:
        result = json.load(f)
    found = {name: digest(os.path.join(folder, name)) for name in files}
    for key in ("metrics", "viable", "censored"):
        found[key] = json.dumps(result.get(key), sort_keys=True)
    with open(os.path.join(folder, "events.jsonl"), encoding="utf-8") as f:
        points = [json.loads(line) for line in f if '"point"' in line]
    found["curves"] = json.dumps([[p.get("name"), p.get("step", p.get("x")), p.get("value", p.get("y"))] for p in points])
    return found


def prepare(binaries, place):
    subprocess.run([os.path.join(binaries, "prereg-data"), "demo", "--seed", "1", "--bytes", "300000", "--out", place],
                   check=True, capture_output=True)
    subprocess.run([os.path.join(binaries, "prereg-data"), "tokenizer", "--vocab", "400", "--out",
                    os.path.join(place, "bpe.json"), os.path.join(place, "corpus.txt")], check=True, capture_output=True)


def data_of(place, *names):
    where = {"corpus": "corpus.txt", "bpe": "bpe.json", "start": os.path.join("start", "model")}
    return {name: {"path": os.path.join(place, where.get(name, name + ".jsonl"))} for name in names}


def train(way, binaries, place, folder, params):
    names = ["corpus"] + [name for name in ("bpe", "start") if name in (params.get("tokenizer"), params.get("init"))]
    attempt(way, binaries, "prereg-train", folder, {"params": params, "data": data_of(place, *names)})
    return numbers(folder, ["model/model.bin"])


def trained_and_scored(way, binaries, place, folder, params):
    found = {"train " + k: v for k, v in train(way, binaries, place, os.path.join(folder, "train"), params).items()}
    for task, data in SCORED.items():
        at = os.path.join(folder, task)
        asked = {"task": task, "data": data, "limit": 288 if LONG else 4}
        attempt(way, binaries, "prereg-eval", at, {"params": asked, "data": data_of(place, data),
                                                   "inputs": {"train": os.path.join(folder, "train")}})
        items = sorted(name for name in os.listdir(at) if name.startswith("items"))
        found.update({f"{task} {k}": v for k, v in numbers(at, items).items()})
    return found


def differences(one, other):
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def compare(binaries, place, name, precision, among):
    params, short, long = MODELS[name]
    tokens = long if LONG else short
    params = {**params, "precision": precision, "horizon": {"contract": "fixed", "tokens": tokens}}
    params.setdefault("val_tokens", 65_536 if LONG else 192)
    if not LONG and (name, precision) != ("micro", "float32"):
        among = among[1:] or among  # fma in software takes minutes
    first, failed = None, []
    for way in among:
        folder = os.path.join(place, f"{name} {precision} {way.name}")
        began = time.monotonic()
        found = trained_and_scored(way, binaries, place, folder, params)
        first = first or found
        if os.environ.get("PREREGD_TIMES"):
            print(f"  {way.name}: {time.monotonic() - began:.1f} s", flush=True)
        differing = differences(first, found)
        if differing:
            failed.append(f"{name}, {precision}: {way.name} differs from {among[0].name} in {', '.join(differing)}")
        shutil.rmtree(folder)
    whole = hashlib.sha256(json.dumps(first, sort_keys=True).encode()).hexdigest()
    print(f"{name}, {precision}: {whole[:16]}, {len(first)} quantities, {len(among)} ways", flush=True)
    return failed


def micro_batches(binaries, place, among):
    """Passes of whole pieces (256 tokens) leave a dense model's weights alone, unless its embedding is tied."""
    shape = {**BASE, "ffn": 176, "context": 128, "batch_tokens": 2048, "val_tokens": 256,
             "horizon": {"contract": "fixed", "tokens": 8_192}}
    failed = []
    for tied, size, wanted in ((False, 4, True), (False, 2, True), (False, 1, False), (True, 4, False)):
        weights = []
        for passes in (16, size):
            folder = os.path.join(place, f"passes {tied} {size} {passes}")
            train(among[-1], binaries, place, folder, {**shape, "micro_batch": passes, "tie_embeddings": tied})
            weights.append(digest(os.path.join(folder, "model", "model.bin")))
        equal = weights[0] == weights[1]
        said = f"dense, {'tied' if tied else 'untied'}, passes of {size * 128} tokens: " \
            f"{'the same' if equal else 'other'} weights as of one pass of 2048"
        print(said, flush=True)
        if equal != wanted:
            failed.append(said + ", against docs/arithmetic.md")
    return failed


def main():
    binaries = os.path.abspath(sys.argv[1])
    names = sys.argv[2:] or list(MODELS)
    place = tempfile.mkdtemp(prefix="prereg-same-")
    try:
        prepare(binaries, place)
        among, skipped = ways()
        train(among[-1], binaries, place, os.path.join(place, "start"),
              {**{k: v for k, v in MODELS["everything"][0].items() if k not in ("init", "marks", "target_loss")},
               "horizon": {"contract": "fixed", "tokens": 2_560}})
        failed = []
        for name in names:
            for precision in ("float32", "bfloat16"):
                failed += compare(binaries, place, name, precision, among)
        failed += micro_batches(binaries, place, among)
    finally:
        shutil.rmtree(place)
    print("\n".join([f"skipped: {reason}" for reason in skipped] + failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
