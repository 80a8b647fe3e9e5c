#!/usr/bin/env python3
"""Writes records.json: nine losses reconstructed to agree with the published means and errors of "Dense vs Sparse Pretraining at Tiny Scale".

The paper prints means over three seeds with errors (published.json). Read as standard errors over seeds, those of the three arms and of the
two paired gaps fix the losses up to a rotation; README.md says what is free. Standard library only.
"""
import json
import math
import os

HERE = os.path.dirname(os.path.abspath(__file__))
# Within the rounding of the printed means, such that the printed gaps come out: 1.6545 - 1.5788 alone would be 0.0757.
MEAN = {"dense_active": 1.65453, "moe": 1.57876, "dense_total": 1.56078}
LABEL = "reconstructed: best losses that agree with the published means and errors"
AXES = ((1 / math.sqrt(2), -1 / math.sqrt(2), 0.0), (1 / math.sqrt(6), 1 / math.sqrt(6), -2 / math.sqrt(6)))


def se(values):
    mean = sum(values) / 3
    return math.sqrt(sum((x - mean) ** 2 for x in values) / 2 / 3)


def losses(results):
    """Deviations in the plane of three seeds: the mixture along one axis, each dense arm at the angle that its gap's error asks for."""
    error = {arm: results["val_loss"][arm][1] for arm in MEAN}
    angle = {"moe": 0.0}
    for arm, gap in (("dense_active", results["gap_active"][1]), ("dense_total", results["gap_total"][1])):
        angle[arm] = math.acos((error["moe"] ** 2 + error[arm] ** 2 - gap ** 2) / (2 * error["moe"] * error[arm]))
    size = math.sqrt(6)  # from a standard error over three seeds to the length of the deviations
    return {arm: [round(MEAN[arm] + size * error[arm] * (math.cos(angle[arm]) * AXES[0][k] + math.sin(angle[arm]) * AXES[1][k]), 5)
                  for k in range(3)] for arm in MEAN}


def check(found, results):
    for arm, (mean, error) in results["val_loss"].items():
        assert abs(sum(found[arm]) / 3 - mean) <= 0.00005 and abs(se(found[arm]) - error) <= 0.00005, arm
    for name, arms in (("gap_active", ("dense_active", "moe")), ("gap_total", ("moe", "dense_total"))):
        gaps = [a - b for a, b in zip(found[arms[0]], found[arms[1]])]
        assert abs(sum(gaps) / 3 - results[name][0]) <= 0.00005 and abs(se(gaps) - results[name][1]) <= 0.00005, name


def main():
    with open(os.path.join(HERE, "published.json"), encoding="utf-8") as f:
        results = json.load(f)["results"]
    found = losses(results)
    check(found, results)
    records = []
    for arm in ("dense_active", "moe", "dense_total"):
        for k in range(3):
            records.append({"cell": f"arm={arm},seed={k + 1}", "stage": "train", "metrics": {"best_val_loss": found[arm][k]}})
    head = {"schema": 1, "program": "active_vs_total_published", "label": LABEL}
    lines = ",\n".join("  " + json.dumps(r) for r in records)
    with open(os.path.join(HERE, "records.json"), "w", encoding="utf-8") as out:
        out.write(json.dumps(head)[:-1] + ', "records": [\n' + lines + "\n]}\n")


main()
