#!/usr/bin/env python3
"""One task in lm-evaluation-harness on one thread, for tests/bench/eval: prints processor seconds of simple_evaluate, the peak of
the resident set before it, and the metrics, as one JSON object."""

import argparse
import json
import os
import resource
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../oracle"))

import harness
import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("task")
    parser.add_argument("data")
    parser.add_argument("--pool")
    parser.add_argument("--shots", type=int, default=0)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--subjects", nargs="*")
    args = parser.parse_args()
    torch.set_num_threads(1)
    harness.quiet()
    folder = os.getcwd()
    if args.task == "mmlu":
        name = harness.define_mmlu(folder, "bench", args.data, args.subjects, args.shots)
    else:
        name = harness.define(folder, "bench", args.task, args.data, args.pool, args.shots)
    manager = harness.find_tasks(folder)
    model = harness.Plain(pretrained=args.model, device="cpu", dtype="float32", batch_size=args.batch)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    since, wall = time.process_time(), time.monotonic()
    results = harness.run(model, manager, [name])
    seconds, wall = time.process_time() - since, time.monotonic() - wall
    metrics = {k: v for k, v in results["results"]["bench"].items() if isinstance(v, float)}
    samples = sum(n["effective"] for n in results["n-samples"].values())
    print()
    print(json.dumps({"seconds": seconds, "wall": wall, "imported": before, "metrics": metrics, "items": samples,
                      "torch": torch.__version__, "mkl": torch.backends.mkl.is_available(),
                      "capability": torch.backends.cpu.get_cpu_capability()}))


main()
