#!/usr/bin/env python3
"""Writes records.json: cells reconstructed to agree with the published aggregates of "Below the Measurement Floor".

The paper prints aggregates (published.json), not its 48 records. The counts of correct answers below were found by a seeded search for cells
whose aggregates are the published ones; README.md lists each one, what is free, and where published figures exclude one another.
Standard library only; the aggregates are computed again and compared before anything is written.
"""
import json
import math
import os

HERE = os.path.dirname(os.path.abspath(__file__))
SEEDS = [42, 43, 44]
CONDITIONS = [("dense", "0.001"), ("dense", "0.002"), ("moe", "0.001"), ("moe", "0.002")]
METRIC = {"mmlu": "acc", "hellaswag": "acc_norm", "winogrande": "acc"}

# Correct answers, [condition][seed].
COUNTS = {
    "mmlu": [[3252, 3244, 3210], [3224, 3217, 3249], [3210, 3236, 3222], [3220, 3218, 3244]],
    "hellaswag": [[2638, 2628, 2642], [2642, 2624, 2647], [2641, 2630, 2643], [2639, 2636, 2633]],
    "winogrande": [[657, 656, 636], [657, 635, 633], [649, 631, 650], [632, 637, 657]],
}
# Shares of the greatest entropy, [learning rate][seed] of the mixture: 4.7 to 5.1 effective experts of 8, and so related to the scores
# that the supplementary fits have the published marginal R2.
ENTROPY = [[0.75617, 0.75929, 0.76816], [0.76578, 0.77175, 0.76654]]
# Levels are free; the mean gap is the published one.
LOSS = {"dense": [[4.123, 4.108, 4.105], [4.109, 4.102, 4.104]], "moe": [[4.507, 4.502, 4.496], [4.489, 4.491, 4.494]]}


def score(task, condition, seed, items):
    """Six decimals, as the paper's 0.6314 points have them."""
    return round(COUNTS[task][condition][seed] / items[task], 6)


def difference(values):
    """Mixture less dense: mean and standard error over seeds, in percentage points."""
    d = [50 * (values[2][i] + values[3][i] - values[0][i] - values[1][i]) for i in range(3)]
    mean = sum(d) / 3
    return mean, math.sqrt(sum((x - mean) ** 2 for x in d) / 2 / 3)


def bf10(mean, se, sd):
    return math.exp(-0.5 * math.log1p((sd / se) ** 2) + 0.5 * (mean / se) ** 2 * sd ** 2 / (se ** 2 + sd ** 2))


def check(results, items):
    """Stops when an aggregate that can hold does not."""
    largest = {}
    for task in COUNTS:
        values = [[score(task, c, k, items) for k in range(3)] for c in range(4)]
        mean, se = difference(values)
        for sd, published in zip(results["bayes_priors_pp"], results["bf10"][task]):
            assert abs(bf10(mean, se, sd) - published) <= 0.00005, (task, sd, bf10(mean, se, sd))
        means = [sum(row) / 3 for row in values]
        for i in range(4):
            for k in range(i + 1, 4):
                largest[task, i, k] = abs(means[i] - means[k])
    top = max(largest, key=largest.get)
    assert top == ("winogrande", 0, 1) and abs(largest[top] - results["max_abs_difference"]) < 5e-7, top
    best = max(score("mmlu", c, k, items) for c in range(4) for k in range(3))
    assert abs(best - results["mmlu_best_cell"]) < 5e-5
    gap = sum(LOSS["moe"][r][k] - LOSS["dense"][r][k] for r in range(2) for k in range(3)) / 6
    assert abs(gap - results["loss_gap_nats"]) < 1e-9, gap


def train_record(cell, condition, k):
    arch, rate = CONDITIONS[condition][0], condition % 2
    facts = {"params_total": 34611712, "params_active": 34611712, "tokens": 10240000, "steps": 5000, "step_seconds": 1.05}
    if arch == "moe":
        facts.update(params_total=62956032, params_active=34644480, step_seconds=1.12, router_load=0.125, router_kills=0,
                     router_occupancy=0.125, router_anneal=1, router_entropy=ENTROPY[rate][k],
                     router_effective=round(8 ** ENTROPY[rate][k], 4))
    return {"cell": cell, "stage": "train", "metrics": {"val_loss": {"value": LOSS[arch][rate][k]}}, "facts": facts}


def main():
    with open(os.path.join(HERE, "published.json"), encoding="utf-8") as f:
        published = json.load(f)
    items = published["items"]
    check(published["results"], items)
    records = []
    for c, (arch, lr) in enumerate(CONDITIONS):
        for k, seed in enumerate(SEEDS):
            cell = f"arch={arch},lr={lr},seed={seed}"
            records.append(train_record(cell, c, k))
            for task in COUNTS:
                # No n: the harness left it unpopulated on all of the paper's records, and the plan's items stand in.
                records.append({"cell": cell, "stage": task, "metrics": {METRIC[task]: {"value": score(task, c, k, items)}}})
            records.append({"cell": cell, "stage": "gsm8k", "end": "blocked", "cause": "not_measurable"})
    head = {"schema": 1, "program": "below_the_floor", "label": "reconstructed"}
    lines = ",\n".join("  " + json.dumps(r) for r in records)
    with open(os.path.join(HERE, "records.json"), "w", encoding="utf-8") as out:
        out.write(json.dumps(head)[:-1] + ', "records": [\n' + lines + "\n]}\n")


main()
