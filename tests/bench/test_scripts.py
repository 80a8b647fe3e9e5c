#!/usr/bin/env python3
"""The scripts that read what prereg-train and prereg-eval print: each runs once, on as little as it takes, so that a key
that has another name now fails here and not in a bench. No time is judged.

    test_scripts.py BUILD
"""

import argparse
import importlib.machinery
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile

import contest
import eval_contest

HERE = os.path.dirname(os.path.abspath(__file__))
TINY = {"layers": 1, "width": 32, "heads": 2, "ffn": 48, "vocab": 64, "context": 16}
# Answers as torch_peer.py does; its losses are those of its environment
PEER = """#!{python}
import json, os, sys
first, later = (float(x) for x in os.environ["LOSSES"].split())
print(json.dumps({{"torch": "fake", "params": 1, "first_loss": first, "optimiser": "fused", "fused_attention": True,
                  "chunked_head": False, "libraries": []}}), flush=True)
for line in sys.stdin:
    words = line.split()
    if words[0] == "quit":
        break
    n = int(words[1]) if len(words) > 1 else 1
    print(json.dumps({{"wall": [1.0] * n, "processor": [1.0] * n, "losses": [later] * n, "peak": 1, "imported": 1}}), flush=True)
"""


def script(name):
    """A script as a module."""
    path = os.path.join(HERE, name)
    loader = importlib.machinery.SourceFileLoader(f"script_{name}", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def check(holds, what):
    if not holds:
        raise SystemExit(f"test_scripts: {what}")


def run(command, folder, **env):
    done = subprocess.run(command, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_bench_train(build, folder):
    runner = script("run")
    out = run([os.path.join(HERE, "bench_train"), "--smoke"], folder, PREREGD_BUILD=build)
    figures = [f for f in map(runner.figure_of, out.splitlines()) if f]
    check(len(figures) == 4 * len(script("bench_train").MODELS), f"bench_train printed {len(figures)} figures\n{out}")
    for figure in figures:
        check(all(math.isfinite(v) and v > 0 for v in figure["values"]), f"bench_train: {figure}")


def check_train(build, folder):
    """Against itself as the build before: what is compared without a PyTorch, but for threads, which wait for each other."""
    out = os.path.join(folder, "train.json")
    run([os.path.join(HERE, "train"), build, "first_light", "--rounds", "1", "--steps", "1", "--threads", "1", "--before", build,
         "--no-processes", "--ours", "float32", "openblas", "bfloat16", "--out", out], folder)
    with open(out, encoding="utf-8") as f:
        judged = json.load(f)["contests"]["first_light"]["judged"]
    check(any("before" in line["what"] for line in judged), f"train compared too little: {judged}")


def check_sweep(build):
    sweep = script("sweep")
    point = sweep.measure(argparse.Namespace(build=build, threads=1, steps=1, fair=None), "tiny", TINY, 1)
    sweep.print_row(point)
    check(sum(point["microseconds"].values()) > 0, f"sweep: {point}")


def check_eval(build, folder):
    try:
        eval_contest.shared("winogrande")
    except contest.Broken as why:
        print(f"skipped: eval: {why}")
        return
    out = os.path.join(folder, "eval.json")
    run([os.path.join(HERE, "eval"), build, "winogrande", "--rounds", "1", "--scale", "0.01", "--out", out], folder)
    with open(out, encoding="utf-8") as f:
        turns = json.load(f)["cases"]["winogrande"]["turns"]["ours"]
    check(turns[0]["facts"]["cpu_seconds"] > 0, f"eval: {turns}")


def play_peer(folder, first, later):
    """One turn of a PyTorch with these losses; returns why it is broken, or None, and what was compared of it."""
    train, label = script("train"), ("current float32", 1)
    os.environ["LOSSES"] = f"{first} {later}"
    shape = os.path.join(folder, "tiny.json")
    with open(shape, "w", encoding="utf-8") as f:
        json.dump(TINY, f)
    running = train.start({label: lambda: contest.Peer(os.path.join(folder, "python"), shape, 1, 1)})
    turns = {}
    train.play_round(running, turns, 1)
    for one in running.values():
        one.close()
    return list(turns)


def check_nonsense_is_left_out(folder):
    python = os.path.join(folder, "python")
    with open(python, "w", encoding="utf-8") as f:
        f.write(PEER.format(python=sys.executable))
    os.chmod(python, 0o755)
    sound = math.log(TINY["vocab"])
    check(play_peer(folder, sound, sound), "a sound PyTorch was left out")
    for first, later in (("nan", sound), (sound, "nan"), (sound, "inf"), (sound + 1, sound)):
        check(not play_peer(folder, first, later), f"a PyTorch with the losses {first} and {later} was compared")


def main():
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="preregd-bench-scripts-") as folder:
        check_nonsense_is_left_out(folder)
        check_bench_train(build, folder)
        check_train(build, folder)
        check_sweep(build)
        check_eval(build, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
