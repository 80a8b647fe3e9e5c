#!/usr/bin/env python3
"""Every example program checks and locks, `init` writes one that runs, and README.md has what is published."""

import os
import shutil
import subprocess

from lib import lab
from lib.lab import ANY, OK, equal, expect
from lib.programs import check_and_lock

NEEDS_SHARED = ("below_the_floor", "below_the_floor_small", "active_vs_total", "active_vs_total_small", "holding_fixed",
                "holding_fixed_small")


def names():
    run = subprocess.run([os.path.join(lab.TOP, "ops/programs/prepare"), "--list"], capture_output=True, text=True, check=True)
    return run.stdout.split()


PAPERS = ("below_the_floor", "active_vs_total")  # test_programs_papers.py prepares each, which takes its time


def test_all_check_and_lock(place):
    real = os.path.isdir(os.path.join(lab.SHARED, "data", "tinystories"))
    chosen = [n for n in names() if n not in ("holding_fixed", *PAPERS) and (real or n not in NEEDS_SHARED)]
    expect("micro" in chosen and "first_light" in chosen, f"programs are missing: {chosen}")
    for name in chosen:
        check_and_lock(place, name)


def test_starter(place):
    """What `init` writes runs to a verdict."""
    said = place.ctl("init", "new").stdout
    steps = [line.split()[1] for line in said.splitlines() if line.startswith("  prereg")]
    equal(steps, ["demo", "check", "try", "lock", "submit"], f"the steps that init names: {said}")
    place.must(OK, "prereg-data", "demo", "--seed", "1", "--out", place.path("new/data"))
    with open(place.path("new/grid.toml"), encoding="utf-8") as f:
        expect('"new"' in f.read(), "init names the program after its folder")
    place.ctl("check", place.path("new/grid.toml"))
    place.ctl("lock", place.path("new/grid.toml"))
    run = place.run("preregd", "submit", place.path("new/grid.toml"), "--wait", timeout=600)
    expect(run.returncode in (0, 4, 7), f"exit {run.returncode}: {run.stderr}")
    expect(os.path.isfile(os.path.join(place.program_folder(), "report", "report.html")), "no report")


def test_published(place):
    """README.md has what is published; a root is compared where the workers are the published ones, and shown where not."""
    tree = place.path("tree")
    shutil.copytree(os.path.join(lab.TOP, "ops"), os.path.join(tree, "ops"))
    shutil.copy2(os.path.join(lab.TOP, "README.md"), tree)
    roots = os.path.join(tree, "ops/programs/first_light/published.root")

    def said(wanted, *arguments):
        run = place.must(wanted, os.path.join(tree, "ops/published"), *arguments)
        return run.stdout + run.stderr

    said(OK, "--readme")
    with open(roots, encoding="utf-8") as f:
        old = f.read().split()[-2]
    place.edit(os.path.join(tree, "README.md"), "## One session\n", f"## One session\n{old[:8]}, {old[:16]}, {old}.\n")
    place.edit(roots, old, "5" * 64)  # as if other workers had been published
    place.edit(os.path.join(tree, "README.md"), old, "5" * 64)
    place.edit(os.path.join(tree, "README.md"), old[:16], "5" * 16)
    place.edit(os.path.join(tree, "README.md"), old[:8], "5" * 8)
    said(OK, "--root", place.bin)
    with open(roots, encoding="utf-8") as f:
        text = f.read()
    root = text.split()[-2]
    with open(os.path.join(tree, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    expect(f"{root[:8]}, {root[:16]}, {root}.\n" in readme and f"\n{root}  root\n" in readme, readme[:6000])
    said(OK, "--readme")
    expect(f"same root as published: {root}\n" in said(OK, "--current", place.bin), "the same executables")
    worker = next(line for line in text.splitlines() if line.endswith("  prereg-eval"))
    place.edit(roots, worker, "6" * 64 + "  prereg-eval")
    place.edit(roots, root, "7" * 64)
    shown = said(OK, "--current", place.bin)
    for line in ("another root than the published one", f"  published  {'6' * 64}  prereg-eval\n", f"  here       {worker}\n",
                 f"  published  {'7' * 64}  root\n", f"  here       {root}  root\n"):
        expect(line in shown, f"{line!r} is not in {shown}")
    expect("prereg-train" not in shown, shown)
    place.edit(roots, "6" * 64, worker[:64])
    expect("the workers are the published ones, but not the root" in said(ANY, "--current", place.bin), "another root")
    expect("README.md has other digests" in said(ANY, "--readme"), "README.md")


# Sanitized, a program to its verdict is in test_templates and test_micro
lab.main(test_all_check_and_lock, *((test_starter, test_published) if lab.SPARSE == 1 else ()))
