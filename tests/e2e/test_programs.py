#!/usr/bin/env python3
"""Every example program checks and locks; the papers' designs at full size say of themselves what the papers say."""

import os
import subprocess

import lab
from lab import OK, expect, equal

NEEDS_SHARED = ("below_the_floor", "below_the_floor_small", "active_vs_total", "active_vs_total_small", "holding_fixed",
                "holding_fixed_small")


def names():
    run = subprocess.run([os.path.join(lab.TOP, "ops/programs/prepare"), "--list"], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_all_check_and_lock(place):
    real = os.path.isdir(os.path.join(lab.SHARED, "data", "tinystories"))
    chosen = [n for n in names() if real or n not in NEEDS_SHARED]
    expect("micro" in chosen and "first_light" in chosen, f"programs are missing: {chosen}")
    for name in chosen:
        grid = place.prepare(name)
        answer = place.ctl_json("check", grid)
        equal(answer["ok"], True, f"check of {name}")
        place.ctl("lock", grid)
        place.ctl("check", "--no-run", grid)
        place.ctl("lock", grid)


def test_below_the_floor_is_the_papers(place):
    if not os.path.isdir(os.path.join(lab.SHARED, "data", "tinystories")):
        lab.skip(f"no real data in {lab.SHARED}")
    grid = place.prepare("below_the_floor")
    text = place.ctl("check", grid).stdout
    for figure in ("12 cells", "60 tasks", "34,611,712", "62,956,032", "34,644,480", "5.47"):
        expect(figure in text or figure.replace(",", "") in text, f"check does not print {figure}:\n{text}")


def test_starter(place):
    """What `init` writes runs to a verdict."""
    place.ctl("init", "new")
    place.must(OK, "prereg-data", "demo", "--seed", "1", "--out", place.path("new/data"))
    with open(place.path("new/grid.toml"), encoding="utf-8") as f:
        expect('"new"' in f.read(), "init names the program after its folder")
    place.ctl("check", place.path("new/grid.toml"))
    place.ctl("lock", place.path("new/grid.toml"))
    run = place.run("preregd", "submit", place.path("new/grid.toml"), "--wait", timeout=600)
    expect(run.returncode in (0, 4, 7), f"exit {run.returncode}: {run.stderr}")
    expect(os.path.isfile(os.path.join(place.program_folder(), "report", "report.html")), "no report")


lab.main(test_all_check_and_lock, test_below_the_floor_is_the_papers, test_starter)
