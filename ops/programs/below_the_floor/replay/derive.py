#!/usr/bin/env python3
"""Writes records.json: cells reconstructed to agree with the published aggregates of "Below the Measurement Floor".

The paper prints aggregates, not its 48 records. Counts of correct answers are chosen here so that the aggregates come out
again; README.md lists each one, what is free, and where published figures exclude one another. Deterministic.
"""
import json
import math
import random

SEEDS = [42, 43, 44]
CONDITIONS = [("dense", "0.001"), ("dense", "0.002"), ("moe", "0.001"), ("moe", "0.002")]

# Correct answers summed over the three seeds, per condition: fixed by the published condition means and differences.
SUMS = {
    "mmlu": (14042, [9706, 9690, 9668, 9682]),
    "hellaswag": (10042, [7913, 7908, 7908, 7913]),
    "winogrande": (1267, [1949, 1925, 1936, 1931]),
}
# Spread of the architecture difference over seeds (standard error, percentage points) and the range of a cell's count.
SE_PP = {"mmlu": 0.0578, "hellaswag": 0.0388, "winogrande": 0.8716}
RANGE = {"mmlu": (3195, 3252), "hellaswag": (2622, 2650), "winogrande": (631, 657)}
BEST_MMLU = 3252  # 0.2316 of 14042


def split(rng, total, low, high):
    """Three counts in low..high with the given sum."""
    while True:
        a, b = rng.randint(low, high), rng.randint(low, high)
        if low <= total - a - b <= high:
            return [a, b, total - a - b]


def spread(n, cells):
    """Standard error over seeds of the dense - moe difference, in percentage points."""
    d = [100 * (cells[0][i] + cells[1][i] - cells[2][i] - cells[3][i]) / (2 * n) for i in range(3)]
    mean = sum(d) / 3
    return math.sqrt(sum((x - mean) ** 2 for x in d) / 2) / math.sqrt(3)


def search(rng, task):
    n, sums = SUMS[task]
    best = None
    for _ in range(200000):
        cells = [split(rng, s, *RANGE[task]) for s in sums]
        if task == "mmlu" and max(map(max, cells)) != BEST_MMLU:
            continue
        miss = abs(spread(n, cells) - SE_PP[task])
        if best is None or miss < best[0]:
            best = (miss, cells)
            if miss < 2e-4:
                break
    return best[1]


def train_record(cell, arch, k):
    # Levels are free; the gap of 0.388 nats between the arms is the published one.
    loss = {"dense": 4.112, "moe": 4.5}[arch] + [0.011, -0.004, -0.007][k]
    facts = {"params_total": 34611712, "params_active": 34611712, "tokens": 10240000, "steps": 5000, "step_seconds": 1.05}
    if arch == "moe":
        facts.update(params_total=62956032, params_active=34644480, step_seconds=1.12, router_load=0.125, router_kills=0,
                     router_occupancy=0.125, router_anneal=1, router_entropy=[0.75, 0.78, 0.8][k])
    return {"cell": cell, "stage": "train", "metrics": {"val_loss": {"value": round(loss, 6)}}, "facts": facts}


def main():
    rng = random.Random(20260401)
    metric = {"mmlu": "acc", "hellaswag": "acc_norm", "winogrande": "acc"}
    counts = {task: search(rng, task) for task in SUMS}
    records = []
    for c, (arch, lr) in enumerate(CONDITIONS):
        for k, seed in enumerate(SEEDS):
            cell = f"arch={arch},lr={lr},seed={seed}"
            records.append(train_record(cell, arch, k))
            for task, (n, _) in SUMS.items():
                records.append({"cell": cell, "stage": task,
                                "metrics": {metric[task]: {"value": counts[task][c][k] / n, "n": n}}})
            records.append({"cell": cell, "stage": "gsm8k", "end": "blocked", "cause": "not_measurable"})
    head = {"schema": 1, "program": "below_the_floor", "label": "reconstructed"}
    lines = ",\n".join("  " + json.dumps(r) for r in records)
    with open("records.json", "w", encoding="utf-8") as out:
        out.write(json.dumps(head)[:-1] + ', "records": [\n' + lines + "\n]}\n")
    for task, (n, sums) in SUMS.items():
        means = [100 * s / (3 * n) for s in sums]
        pairs = {f"{i}-{j}": round(means[i] - means[j], 4) for i in range(4) for j in range(i + 1, 4)}
        print(task, [round(m, 4) for m in means], pairs, "se", round(spread(n, counts[task]), 4), counts[task])


main()
