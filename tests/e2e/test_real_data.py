#!/usr/bin/env python3
"""Twelve models trained on TinyStories, four real benchmarks, a verdict: below_the_floor_small as it is shipped."""

import json
import os

from lib import lab
from lib.lab import OK, equal, expect

ITEMS = {"winogrande": 1267, "hellaswag": 200, "arc_easy": 300, "copa": 100}


def test_below_the_floor_small(place):
    if not lab.LONG:
        lab.skip("two minutes of training: ops/check --long (PREREGD_LONG=1)")
    if not os.path.isdir(os.path.join(lab.SHARED, "data", "tinystories")):
        lab.skip(f"no real data in {lab.SHARED}")
    grid = place.prepare("below_the_floor_small")
    place.ctl("check", grid)
    place.ctl("lock", grid)
    run = place.run("preregd", "submit", grid, "--wait", timeout=1500)
    verdict = json.loads(place.verdict_bytes())
    expect(verdict["outcome"] in ("O1", "O2", "O3", "O4", "INDETERMINATE") or verdict["outcome"] is None,
           f"outcome {verdict['outcome']}")
    equal(run.returncode == OK, str(verdict["outcome"]).startswith("O"), "exit 0 exactly when an outcome binds")
    equal(verdict["coverage"]["tasks"], {"planned": 60, "done": 60, "blocked": 0, "never_run": 0}, "coverage")
    equal(len(verdict["gates"]), 48, "gates")
    for gate in verdict["gates"]:
        equal(gate["n"], ITEMS[gate["measure"]], f"items of {gate['measure']}")
        correct = gate["score"] * gate["n"]
        expect(abs(correct - round(correct)) < 1e-6, f"{gate['score']} of {gate['n']} is no count")
    losses = [r[0]["val_loss"]["value"] for task, r in lab.results(place.program_folder()).items() if task.endswith("/train")]
    equal(len(losses), 12, "trained models")
    expect(all(1.0 < loss < 3.5 for loss in losses), f"validation losses of models that have learnt something: {losses}")
    print(f"  {verdict['outcome']}: {verdict['title']}; losses {min(losses):.3f} to {max(losses):.3f}", flush=True)


lab.main(test_below_the_floor_small)
