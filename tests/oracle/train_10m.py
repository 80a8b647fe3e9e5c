#!/usr/bin/env python3
"""A model trained on TinyStories by prereg-train and by PyTorch, from the same weights on the same tokens in the same order.

    train_10m.py BUILD_FOLDER [--small] [--bfloat16 [--named]] [--seeds 1,2,3] [--rate R] [--warmup F] [--out FOLDER]

Fails where the validation losses at the end differ by more than 0.5 %, for any seed, or where a training has a spike: what
follows one is a matter of luck. Contestants have one thread each and run one after another. Ten million parameters take some
two CPU minutes a contestant and seed; --small, not quite a million, a quarter of one.
--bfloat16: also precision = "bfloat16", and PyTorch under autocast to bfloat16; both validate as they train. --named: with a
CPUID that names avx512_bf16 to that PyTorch, where a hypervisor hides it (tests/bench/cpuid_bfloat16.c).
FOLDER/against_pytorch.json gets all curves. A run that FOLDER has already is not repeated: use another one after a change.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

import torch

import oracle

TOLERANCE = 0.005
SPIKE = 1.1  # times the greatest training loss of the SPIKE_STEPS steps before
SPIKE_STEPS = 5
LARGE = {"layers": 8, "width": 320, "heads": 5, "ffn": 864, "context": 256, "batch_tokens": 1024, "micro_batch": 4,
         "horizon": {"contract": "fixed", "tokens": 1024 * 160}, "lr": 0.0003, "warmup": 0.3, "val_tokens": 16384}
SMALL = {"layers": 4, "width": 128, "heads": 4, "ffn": 344, "context": 128, "batch_tokens": 1024, "micro_batch": 8,
         "horizon": {"contract": "fixed", "tokens": 1024 * 120}, "lr": 0.001, "warmup": 0.1, "val_tokens": 16384}
COMMON = {"data": "stories", "marks": [0.1, 0.3, 0.6, 1.0]}


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def train_ours(build, folder, params, corpus):
    """Validation losses at the marks and training losses by step."""
    oracle.write_task(folder, params, {"stories": corpus})
    subprocess.run([os.path.join(build, "bin", "prereg-train")], cwd=folder, check=True,
                   env=dict(os.environ, PREREG_TASK="task.json", PREREG_EVENTS="events.jsonl", OPENBLAS_NUM_THREADS="1"))
    with open(os.path.join(folder, "result.json"), encoding="utf-8") as f:
        metrics = json.load(f)["metrics"]
    with open(os.path.join(folder, "events.jsonl"), encoding="utf-8") as f:
        points = [event for event in map(json.loads, f) if event.get("name") == "loss"]
    return {"val": {f"{mark:g}": metrics[f"val_loss@{mark:g}"]["value"] for mark in params["marks"]},
            "curve": {str(p["step"]): p["value"] for p in points}}


def precision(bfloat16):
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16)


def validate(net, held_out, bfloat16):
    tokens, targets = held_out
    total = 0.0
    with torch.no_grad(), precision(bfloat16):
        for at in range(0, len(tokens), 8):
            logits = net(tokens[at:at + 8]).logits
            wanted = targets[at:at + 8].reshape(-1)
            total += float(torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), wanted, reduction="sum"))
    return total / targets.numel()


def train_pytorch(inputs, params):
    """The same of PyTorch, from the driver's dump in `inputs`."""
    torch.set_num_threads(1)
    bfloat16, dump = params["precision"] == "bfloat16", oracle.Dump(inputs)
    net = oracle.transformers_model(dump, attention="sdpa")
    opt = oracle.optimiser(net.named_parameters(), params)
    (tokens, targets), held_out, steps = dump.order(), dump.held_out("stories"), dump.layout["steps"]
    at_mark = {round(mark * steps): f"{mark:g}" for mark in params["marks"]}
    val, curve = {}, {}
    for step in range(steps):
        with precision(bfloat16):
            logits = net(tokens[step]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets[step].reshape(-1))
        loss.backward()
        curve[str(step + 1)] = float(loss)
        oracle.optimiser_step(opt, params, step, steps)
        if step + 1 in at_mark:
            val[at_mark[step + 1]] = validate(net, held_out, bfloat16)
    return {"val": val, "curve": curve, "parameters": sum(p.numel() for p in net.parameters())}


def start_pytorch(build, folder, inputs, params, named):
    """train_pytorch() in a process of its own, which CPUID may be answered for."""
    oracle.write_task(folder, params, {})
    env = dict(os.environ, OMP_NUM_THREADS="1")
    if named:
        env["LD_PRELOAD"] = os.path.join(build, "bench", "cpuid_bfloat16.so")
        if not os.path.exists(env["LD_PRELOAD"]):
            sys.exit(f"no {env['LD_PRELOAD']}: build the target cpuid_bfloat16")
    done = subprocess.run([sys.executable, os.path.abspath(__file__), "--pytorch", inputs, folder], env=env, check=False)
    if done.returncode != 0:
        sys.exit(f"PyTorch ended with {done.returncode}")
    with open(os.path.join(folder, "result.json"), encoding="utf-8") as f:
        return json.load(f)


def as_pytorch(inputs, folder):
    with open(os.path.join(folder, "task.json"), encoding="utf-8") as f:
        params = json.load(f)["params"]
    with open(os.path.join(folder, "result.json"), "w", encoding="utf-8") as f:
        json.dump(train_pytorch(inputs, params), f)


def spikes(curve):
    """Steps whose loss exceeds what came before."""
    losses = [loss for _, loss in sorted((int(s), loss) for s, loss in curve.items())]
    return [i + 1 for i, loss in enumerate(losses) if i > 0 and loss > SPIKE * max(losses[max(0, i - SPIKE_STEPS):i])]


def run_side(args, folder, side, params, corpus):
    """One contestant of one seed; what an earlier run with the same parameters left in `folder` is taken."""
    name = f"{side} {params['precision']}" + (", named" if is_named(args, side, params) else "")
    place = os.path.join(folder, name.replace(", ", "-").replace(" ", "-"))
    kept = os.path.join(place, "run.json")
    if os.path.exists(kept):
        with open(kept, encoding="utf-8") as f:
            run = json.load(f)
        if run["params"] == params:
            return name, run
    before = children_seconds()
    if side == "ours":
        run = train_ours(args.build, place, params, corpus)
    else:
        run = start_pytorch(args.build, place, os.path.join(folder, "inputs"), params, is_named(args, side, params))
    run.update(params=params, cpu_seconds=children_seconds() - before, spikes=spikes(run["curve"]))
    with open(kept, "w", encoding="utf-8") as f:
        json.dump(run, f)
    return name, run


def is_named(args, side, params):
    return args.named and side == "pytorch" and params["precision"] == "bfloat16"


def run_all(args, folder, params, corpus):
    """Seed -> (side, precision) -> (its name, its run)."""
    runs = {seed: {} for seed in args.seeds.split(",")}
    for number in args.precisions:
        for seed, of in runs.items():
            place, mine = os.path.join(folder, f"seed-{seed}"), {**params, "seed": int(seed)}
            inputs = os.path.join(place, "inputs")
            if not of and not os.path.exists(os.path.join(inputs, "layout.json")):
                oracle.write_task(inputs, {**mine, "precision": "float32"}, {"stories": corpus})
                oracle.drive(args.build, "inputs", inputs)
            for side in ("ours", "pytorch"):
                name, run = of[side, number] = run_side(args, place, side, {**mine, "precision": number}, corpus)
                print(f"  seed {seed}, {name}: {run['val']['1']:.5f} at the end, {run['cpu_seconds']:.0f} CPU s"
                      + (f", spikes at {run['spikes']}" if run["spikes"] else ""), flush=True)
    return runs


def spread(values):
    deviation = f", standard deviation {statistics.stdev(values):.5f}" if len(values) > 1 else ""
    return f"mean {statistics.mean(values):.5f}{deviation}, {min(values):.5f} to {max(values):.5f}"


def compare(runs, number, warm):
    """Prints how far the sides are apart, seed by seed; whether it is little enough."""
    good = True
    for seed, of in runs.items():
        ours, theirs = of["ours", number][1], of["pytorch", number][1]
        apart = {step: abs(loss / theirs["curve"][step] - 1) for step, loss in ours["curve"].items() if int(step) > warm}
        worst = max(apart, key=apart.get)
        marks = ", ".join(f"{100 * (ours['val'][m] / theirs['val'][m] - 1):+.4f} % at {m}" for m in ours["val"])
        held = abs(ours["val"]["1"] / theirs["val"]["1"] - 1) <= TOLERANCE and not ours["spikes"] and not theirs["spikes"]
        learned = theirs["val"]["0.1"] - theirs["val"]["1"] > 0.1
        print(f"{number}, seed {seed}: validation loss {marks}; training loss after the warm-up "
              f"{100 * apart[worst]:.4f} % at most (step {worst}), {100 * statistics.mean(apart.values()):.4f} % on average"
              + ("" if held else "; FAILED") + ("" if learned else "; FAILED: it has learned nothing"))
        good = good and held and learned
    return good


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--bfloat16", action="store_true")
    parser.add_argument("--named", action="store_true", help="PyTorch's CPUID names avx512_bf16")
    parser.add_argument("--seeds", default="1", help="of weights and order, with commas between them")
    parser.add_argument("--rate", type=float, help="peak learning rate of all contestants, instead of the model's own")
    parser.add_argument("--warmup", type=float, help="share of the steps, instead of the model's own")
    parser.add_argument("--out", help="where the runs and against_pytorch.json are left; a temporary folder otherwise")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    args.precisions = ["bfloat16", "float32"] if args.bfloat16 else ["float32"]
    return args


def main():
    if sys.argv[1:2] == ["--pytorch"]:
        return as_pytorch(*sys.argv[2:])
    args = parse()
    params = {**(SMALL if args.small else LARGE), **COMMON}
    params["lr"] = args.rate or params["lr"]
    params["schedule"] = {"kind": "cosine", "warmup": args.warmup or params["warmup"]}
    del params["warmup"]
    corpus = oracle.shared_data("tinystories", "train.jsonl")
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.abspath(args.out or scratch)
        runs = run_all(args, folder, params, corpus)
        with open(os.path.join(folder, "against_pytorch.json"), "w", encoding="utf-8") as f:
            json.dump({seed: dict(of.values()) for seed, of in runs.items()}, f, indent=1)
    first = next(iter(runs.values()))
    torch_run = first["pytorch", "float32"][1]
    steps = len(torch_run["curve"])
    print(f"{torch_run['parameters']} parameters, {steps} steps, rate {params['lr']:g}, warm-up {params['schedule']['warmup']:g}; losses at the end, over seeds:")
    for key, (name, _) in first.items():
        print(f"  {name}: {spread([of[key][1]['val']['1'] for of in runs.values()])}")
    warm = round(steps * params["schedule"]["warmup"])
    return 0 if all([compare(runs, number, warm) for number in args.precisions]) else 1


sys.exit(main())
