#!/usr/bin/env python3
"""One program, one digest: prereg-train and prereg-eval under every instruction set that the processor has, several
numbers of threads, both precisions, with and without bfloat16 instructions. Timings and what names the machine are
left out; weights, items, metrics and curves are not.

    test_same_bytes.py BUILD/bin [--aarch64 BIN] [NAME...]

--aarch64 runs the executables in BIN (preset cross-aarch64) under emulation, beside the processor's best instruction set.
PREREGD_LONG=1: 7 threads, all models in every way, and long horizons where they do not take hours (fma in software, emulation).
PREREGD_SPARSE=4 (a sanitized build): the smallest size, three threads, and not how passes are divided. PREREGD_TIMES=1 prints
what each way takes.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LONG = os.environ.get("PREREGD_LONG") == "1"
SPARSE = not LONG and os.environ.get("PREREGD_SPARSE", "1") != "1"

BASE = {"layers": 2, "width": 64, "heads": 4, "context": 96, "batch_tokens": 192, "tokenizer": "bytes", "data": "corpus",
        "lr": 2e-3, "seed": 1}
MOE = {"experts": 4, "top_k": 2, "expert_ffn": 88, "balance_loss": 0.01, "router_z_loss": 0.001}
# name: (parameters, tokens of each size)
MODELS = {
    "micro": ({**BASE, **MOE}, {"tiny": 384, "short": 960, "long": 120_000}),
    "first_light": ({**BASE, "vocab": 257, "ffn": 176, "seed": 42, "lr": 1e-3,
                     "schedule": {"kind": "cosine", "warmup": 0.02, "floor": 0.1}}, {"tiny": 384, "short": 960, "long": 120_000}),
    # More rows than columns, more columns than rows; a shared expert, a dense block
    "muon": ({**BASE, **MOE, "width": 32, "context": 48, "batch_tokens": 96, "shared": 1, "dense_layers": 1, "ffn": 72,
              "optimizer": "muon", "lr": 0.02}, {"tiny": 96, "short": 192, "long": 60_000}),
    # Wider than a piece of a product (256 positions), passes longer than one, heads that fill no vector (44 dimensions)
    "everything": ({**BASE, "layers": 3, "width": 264, "heads": 6, "kv_heads": 2, "context": 160, "batch_tokens": 640,
                    "micro_batch": 2, "tokenizer": "bpe", "vocab": 400, "dense_layers": 1, "ffn": 328, "experts": 5,
                    "top_k": 2, "expert_ffn": 72, "shared": 1, "renormalise": False, "balance_loss": 0.01,
                    "balance_anneal": 0.5, "router_z_loss": 0.001, "bias_update_rate": 0.001, "reset_dead_experts": 1,
                    "router_noise": 0.3, "capacity_factor": 1.0,
                    "tie_embeddings": False, "weight_decay": 0.05, "marks": [0.5], "target_loss": 5.0, "eval_every": 1,
                    "val_tokens": 320, "init": "start",
                    "schedule": {"kind": "wsd", "warmup": 0.1, "floor": 0.1, "decay": 0.3}},
                   {"tiny": 640, "short": 1_280, "long": 12_800}),
}
# Tokens of the validation, unless the model says, and items of a score
VALIDATED = {"tiny": 96, "short": 192, "long": 65_536}
ITEMS = {"tiny": 2, "short": 4, "long": 288}
# A long horizon does without the numbers of threads between the least and the most.
BETWEEN = {"avx2", "avx512, 2 threads", "avx512, 3 threads"}
SCORED = {"choices": "grammar", "schema": "giving"}


def flags():
    with open("/proc/cpuinfo", encoding="ascii") as f:
        return set(next((line for line in f if line.startswith("flags")), "").split())


class Way:
    """A way to run the workers that must not show in what they write. `run`: what is put before a worker's path."""

    def __init__(self, name, threads=1, binaries=None, run=(), **env):
        self.name, self.threads, self.binaries, self.run, self.env = name, threads, binaries, list(run), env
        self.slow = bool(run) or env.get("PREREG_CPU") == "baseline"


def multiplies_pairs(binaries):
    """The worker's own answer: CPUID does not name the instruction under every hypervisor that executes it."""
    env = {"PATH": os.environ["PATH"], "PREREG_BFLOAT16": "yes"}
    asked = subprocess.run([os.path.join(binaries, "prereg-train"), "--version"], env=env, capture_output=True, check=False)
    return asked.returncode == 0


def ways(binaries):
    has = flags()
    found, skipped = [Way("baseline", PREREG_CPU="baseline")], []
    if {"avx2", "fma"} <= has:
        found.append(Way("avx2", PREREG_CPU="avx2"))
        found.append(Way("avx2, 3 threads", 3, PREREG_CPU="avx2"))
    else:
        skipped.append("avx2: not in this processor")
    if {"avx512f", "avx512dq", "avx512bw", "avx512vl"} <= has:
        found += [Way(f"avx512, {n} threads", n, PREREG_CPU="avx512") for n in ((1, 2, 3, 7) if LONG else (1, 2, 3))]
        found.append(Way("avx512 without bfloat16 instructions", 2, PREREG_CPU="avx512", PREREG_BFLOAT16="no"))
        if multiplies_pairs(binaries):
            found.append(Way("avx512 with bfloat16 instructions", 2, PREREG_CPU="avx512", PREREG_BFLOAT16="yes"))
        else:
            skipped.append("bfloat16 instructions: this processor does not execute them")
    else:
        skipped.append("avx512: not in this processor")
    return found, skipped


def emulated(binaries):
    """The ways of an aarch64 build, or why there are none."""
    root = os.environ.get("PREREGD_AARCH64_ROOT", os.path.join(TOP, "build", "aarch64-root"))
    if not os.path.exists(os.path.join(root, "unpacked")) or not shutil.which("qemu-aarch64"):
        return [], "aarch64: run ops/setup cross"
    if not os.path.exists(os.path.join(binaries, "prereg-train")):
        return [], f"aarch64: {binaries} has no prereg-train"
    return [Way("aarch64, 2 threads", 2, os.path.abspath(binaries), ("qemu-aarch64", "-L", root))], None


def attempt(way, binaries, worker, folder, task):
    os.makedirs(folder)
    with open(os.path.join(folder, "task.json"), "w", encoding="utf-8") as f:
        json.dump({"protocol": 1, "threads": way.threads, **task}, f)
    env = {"PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1", "PREREG_TASK": "task.json",
           "PREREG_EVENTS": "events.jsonl", **way.env}
    done = subprocess.run([*way.run, os.path.join(way.binaries or binaries, worker)], cwd=folder, env=env,
                          capture_output=True, text=True, check=False)
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


def trained_and_scored(way, binaries, place, folder, params, limit):
    found = {"train " + k: v for k, v in train(way, binaries, place, os.path.join(folder, "train"), params).items()}
    for task, data in SCORED.items():
        at = os.path.join(folder, task)
        asked = {"task": task, "data": data, "limit": limit}
        attempt(way, binaries, "prereg-eval", at, {"params": asked, "data": data_of(place, data),
                                                   "inputs": {"train": os.path.join(folder, "train")}})
        items = sorted(name for name in os.listdir(at) if name.startswith("items"))
        found.update({f"{task} {k}": v for k, v in numbers(at, items).items()})
    return found


def differences(one, other):
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def groups(name, precision, among, others):
    """Which ways are compared, at which size."""
    among = [way for way in among if precision == "bfloat16" or "PREREG_BFLOAT16" not in way.env]
    if SPARSE:
        among = [way for way in among if way.threads == 3 or way.slow or "PREREG_BFLOAT16" in way.env]
    fast = [way for way in among if not way.slow] or among
    if others:
        return [("short" if LONG else "tiny", fast[-1:] + others)]
    if LONG:
        return [("short", among), ("long", [way for way in fast if way.name not in BETWEEN])]
    return [("tiny" if SPARSE else "short", among if (name, precision) == ("micro", "float32") else fast)]  # fma in software takes minutes


def compare(binaries, place, name, precision, size, among):
    params, tokens = MODELS[name]
    params = {**params, "precision": precision, "horizon": {"contract": "fixed", "tokens": tokens[size]}}
    params.setdefault("val_tokens", VALIDATED[size])
    first, failed = None, []
    for way in among:
        folder = os.path.join(place, f"{name} {precision} {way.name}")
        began, used = time.monotonic(), sum(os.times()[2:4])
        found = trained_and_scored(way, binaries, place, folder, params, ITEMS[size])
        first = first or found
        if os.environ.get("PREREGD_TIMES"):
            print(f"  {way.name}: {time.monotonic() - began:.1f} s, {sum(os.times()[2:4]) - used:.1f} of processors", flush=True)
        differing = differences(first, found)
        if differing:
            failed.append(f"{name}, {precision}: {way.name} differs from {among[0].name} in {', '.join(differing)}")
        shutil.rmtree(folder)
    whole = hashlib.sha256(json.dumps(first, sort_keys=True).encode()).hexdigest()
    print(f"{name}, {precision}, {tokens[size]} tokens: {whole[:16]}, {len(first)} quantities, "
          f"{len(among)} ways ({'; '.join(way.name for way in among)})", flush=True)
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


def parse(arguments):
    """Executables here, of aarch64 (or None), and names of models."""
    binaries, names, cross = os.path.abspath(arguments[0]), arguments[1:], None
    if names[:1] == ["--aarch64"]:
        cross, names = names[1], names[2:]
    return binaries, cross, names or [name for name in MODELS if LONG or cross is None or name != "everything"]


def main():
    binaries, cross, names = parse(sys.argv[1:])
    among, skipped = ways(binaries)
    others, why = emulated(cross) if cross else ([], None)
    if why:
        print("skipped: " + why)
        return 77
    place, failed = tempfile.mkdtemp(prefix="prereg-same-"), []
    try:
        prepare(binaries, place)
        if "everything" in names:
            train(among[-1], binaries, place, os.path.join(place, "start"),
                  {**{k: v for k, v in MODELS["everything"][0].items() if k not in ("init", "marks", "target_loss")},
                   "horizon": {"contract": "fixed", "tokens": 1_280}})
        for name in names:
            for precision in ("float32", "bfloat16"):
                for size, group in groups(name, precision, among, others):
                    failed += compare(binaries, place, name, precision, size, group)
        if not others and not SPARSE:
            failed += micro_batches(binaries, place, among)
    finally:
        shutil.rmtree(place)
    print("\n".join([f"skipped: {reason}" for reason in skipped] + failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
