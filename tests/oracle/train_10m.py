#!/usr/bin/env python3
"""A model trained on TinyStories by prereg-train and by PyTorch, from the same weights on the same tokens in the same order.

    train_10m.py BUILD_FOLDER [--small] [--bfloat16] [--out FOLDER]

Fails when the validation losses at the end differ by more than 0.5 %. The two run side by side,
one thread each. Ten million parameters take about five CPU minutes a side; --small, not quite a million, takes a quarter of one.
FOLDER/against_pytorch.json gets both curves. --bfloat16: ours with precision = "bfloat16", PyTorch's under autocast to bfloat16;
both validate as they train.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile

import torch

import oracle

TOLERANCE = 0.005
LARGE = {"layers": 8, "width": 320, "heads": 5, "ffn": 864, "context": 256, "batch_tokens": 1024, "micro_batch": 4,
         "horizon": {"contract": "fixed", "tokens": 1024 * 160}, "lr": 0.0008, "val_tokens": 16384}
SMALL = {"layers": 4, "width": 128, "heads": 4, "ffn": 344, "context": 128, "batch_tokens": 1024, "micro_batch": 8,
         "horizon": {"contract": "fixed", "tokens": 1024 * 120}, "lr": 0.001, "val_tokens": 16384}
COMMON = {"data": "stories", "seed": 1, "schedule": {"kind": "cosine", "warmup": 0.1}, "marks": [0.1, 0.3, 0.6, 1.0]}


def cpu_seconds(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def start_ours(build, folder):
    return subprocess.Popen([os.path.join(os.path.abspath(build), "bin", "prereg-train")], cwd=folder,
                            env=dict(os.environ, PREREG_TASK="task.json", PREREG_EVENTS="events.jsonl",
                                     OPENBLAS_NUM_THREADS="1"))


def finish_ours(process, folder):
    """Validation losses at the marks, the training curve, CPU seconds."""
    events = os.path.join(folder, "events.jsonl")
    before = cpu_seconds(resource.RUSAGE_CHILDREN)
    if process.wait() != 0:
        sys.exit(f"prereg-train: exit {process.returncode}")
    seconds = cpu_seconds(resource.RUSAGE_CHILDREN) - before
    with open(os.path.join(folder, "result.json"), encoding="utf-8") as f:
        metrics = json.load(f)["metrics"]
    val = {mark: metrics[f"val_loss@{mark:g}"]["value"] for mark in COMMON["marks"]}
    with open(events, encoding="utf-8") as f:
        points = [event for event in map(json.loads, f) if event.get("name") == "loss"]
    return val, {p["step"]: p["value"] for p in points}, seconds


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


def train_pytorch(folder, params, bfloat16):
    torch.set_num_threads(1)
    dump = oracle.Dump(folder)
    net = oracle.transformers_model(dump, attention="sdpa")
    opt = oracle.optimiser(net.named_parameters(), params)
    (tokens, targets), held_out, steps = dump.order(), dump.held_out("stories"), dump.layout["steps"]
    at_mark = {round(mark * steps): mark for mark in params["marks"]}
    val, curve = {}, {}
    begin = cpu_seconds(resource.RUSAGE_SELF)
    for step in range(steps):
        with precision(bfloat16):
            logits = net(tokens[step]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets[step].reshape(-1))
        loss.backward()
        curve[step + 1] = float(loss)
        oracle.optimiser_step(opt, params, step, steps)
        if step + 1 in at_mark:
            val[at_mark[step + 1]] = validate(net, held_out, bfloat16)
    return val, curve, cpu_seconds(resource.RUSAGE_SELF) - begin, sum(p.numel() for p in net.parameters())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--bfloat16", action="store_true")
    parser.add_argument("--out", help="where the runs and against_pytorch.json are left; a temporary folder otherwise")
    args = parser.parse_args()
    params = dict(SMALL if args.small else LARGE, **COMMON, precision="bfloat16" if args.bfloat16 else "float32")
    corpus = oracle.shared_data("tinystories", "train.jsonl")
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.abspath(args.out or scratch)
        oracle.write_task(folder, params, {"stories": corpus})
        oracle.drive(args.build, "inputs", folder)
        with start_ours(args.build, folder) as process:
            try:
                theirs = train_pytorch(folder, params, args.bfloat16)
                ours = finish_ours(process, folder)
            finally:
                process.kill()
        print(f"{theirs[3]} parameters, {len(theirs[1])} steps; CPU seconds {ours[2]:.0f} ours, {theirs[2]:.0f} PyTorch")
        with open(os.path.join(folder, "against_pytorch.json"), "w", encoding="utf-8") as f:
            json.dump({"params": params, "parameters": theirs[3], "val_loss": {"ours": ours[0], "pytorch": theirs[0]},
                       "train_loss": {"ours": ours[1], "pytorch": theirs[1]},
                       "cpu_seconds": {"ours": ours[2], "pytorch": theirs[2]}}, f, indent=1)
    worst_step = max(abs(theirs[1][s] / loss - 1) for s, loss in ours[1].items())
    print(f"training loss: worst difference at a step {100 * worst_step:.4f} %")
    for mark in params["marks"]:
        print(f"validation loss at {mark:g}: ours {ours[0][mark]:.6f}, PyTorch {theirs[0][mark]:.6f}, "
              f"difference {100 * (ours[0][mark] / theirs[0][mark] - 1):+.4f} %")
    fallen = theirs[0][params["marks"][0]] - theirs[0][1.0]
    return 0 if fallen > 0.1 and abs(ours[0][1.0] / theirs[0][1.0] - 1) <= TOLERANCE else 1


sys.exit(main())
