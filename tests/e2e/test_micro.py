#!/usr/bin/env python3
"""A whole small program from plan to verdict, undisturbed, and what must hold around it."""

import glob
import json
import os
import subprocess

from lib import lab
from lib.lab import LOCK, OK, equal, expect

PUBLISHED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "ops", "published")


def locked(place, grid=None):
    grid = grid or place.prepare_small()
    place.ctl("check", grid)
    place.ctl("lock", grid)
    return grid


def test_to_verdict(place):
    """submit --wait starts a daemon, says so, follows to the verdict; everything is where it should be after."""
    grid = locked(place, place.prepare("micro"))
    run = place.must(OK, "preregd", "submit", grid, "--wait")
    expect("preregd" in run.stdout + run.stderr, "submit says nothing of the daemon it started")
    folder = place.program_folder()
    for name in ("verdict.json", "provenance.json", "instruments.json", "report.html", "report.md", "SHA256SUMS"):
        expect(os.path.isfile(os.path.join(folder, "report", name)), f"report/{name} is missing")
    with open(os.path.join(folder, "report", "instruments.json"), encoding="utf-8") as file:
        told = json.load(file)
    equal(told["why"], None, "why nothing was computed of the instruments")
    verdict = json.loads(place.verdict_bytes())
    equal(verdict["coverage"]["tasks"], {"planned": 18, "done": 18, "blocked": 0, "never_run": 0}, "coverage")
    equal(len(verdict["gates"]), 12, "gates")
    states = {task["state"] for task in place.tasks().values()}
    equal(states, {"done"}, "states of the tasks")
    equal(len(lab.results(folder)), 18, "linked results")
    published = subprocess.run([PUBLISHED, folder], capture_output=True, text=True, check=False)
    equal(published.returncode, OK, f"ops/published: {published.stdout}{published.stderr}")
    expect("same bytes as published: " in published.stdout, published.stdout)
    model = glob.glob(os.path.join(folder, "cells", "arch=moe,seed=2", "train", "attempt-*", "model", "model.bin"))[0]
    os.chmod(os.path.dirname(model), 0o755)
    os.chmod(model, 0o644)
    with open(model, "r+b") as file:
        byte = file.read(1)
        file.seek(0)
        file.write(bytes([byte[0] ^ 1]))
    published = subprocess.run([PUBLISHED, folder], capture_output=True, text=True, check=False)
    equal(published.returncode, 1, "ops/published after a bit of a weight has changed")
    expect(published.stderr.count("arch=moe,seed=2/train/model/model.bin") == 2, published.stderr)
    drawn = place.ctl("curves").stdout
    expect("arch=dense  loss of train, 3 cells; last" in drawn and "arch=moe  loss of train, 3 cells" in drawn, drawn)
    last = next(line for line in drawn.splitlines() if line.startswith("arch=dense  loss")).split("; last ")[1].split(", ")
    equal(last, [f"{float(value):.4g}" for value in last], "last values: four digits each")
    equal(len(last), 3, "last values")
    one = place.ctl("curves", "arch=moe,seed=2").stdout
    expect("arch=moe  loss of train, 1 cell" in one and "arch=dense" not in one, one)
    equal(place.ctl("curves", "seed=2,arch=moe").stdout, one, "the factors in another order")
    task = place.ctl_json("explain", "arch=moe,seed=2/train")
    equal(place.ctl_json("explain", "seed=2,arch=moe/train"), task, "the factors in another order")
    said = place.ctl("explain", "arch=moe,seed=2/train").stdout
    expect("0 of 50" in said and "not among them" not in said, f"the attempt that was accepted spends nothing: {said}")
    said = place.ctl("explain", "seed=2,arch=moe", wanted=1).stderr
    expect("is a cell; name one of its tasks: arch=moe,seed=2/train (done)" in said, said)
    said = place.ctl("explain", "train", wanted=1).stderr
    expect("expected CELL/STAGE, such as arch=dense,seed=1/train: `preregctl cells` lists them" in said, said)
    expect("no such cell or arm" in place.ctl("curves", "arch=mo", wanted=1).stderr, "an unknown cell")


def test_end_outlives_the_daemon(place):
    """When a program finished is known to the next daemon, too."""
    grid = locked(place)
    place.must(OK, "preregd", "submit", grid, "--wait")
    before = place.status()[0]
    expect(before["finished"] is not None, f"finished: {before['finished']}")
    place.ctl("stop")
    place.serve()
    after = place.status()[0]
    equal((after["finished"], after["elapsed_ms"]), (before["finished"], before["elapsed_ms"]), "after a restart")


def test_submit_is_idempotent(place):
    """The same root again is the same program; [run] may change, nothing locked may."""
    grid = locked(place)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.must(OK, "preregd", "submit", grid)
    equal(len(place.status()), 1, "programs after two submits")
    drawn = place.ctl("curves").stdout
    expect("grammar: sealed until the end" in drawn and "train: sealed" not in drawn, drawn)
    place.edit(grid, "slots = 2", "slots = 1")
    place.must(OK, "preregd", "submit", grid)
    equal(len(place.status()), 1, "programs after another [run]")
    place.edit(grid, "floor = 0.40", "floor = 0.30")
    place.must(LOCK, "preregd", "submit", grid)
    place.edit(grid, "floor = 0.30", "floor = 0.40")
    place.wait_finished(180)
    place.must(OK, "preregd", "submit", grid, "--wait")


def finished_and_stopped(place):
    """A finished program and no daemon; its verdict's bytes and its tasks' states."""
    grid = locked(place)
    place.serve()
    place.must(OK, "preregd", "submit", grid, "--wait")
    found = place.verdict_bytes(), {t: v["state"] for t, v in place.tasks().items()}
    place.ctl("stop")
    place.wait_for(lambda: "preregd" not in place.processes().values(), 20, "the daemon stops")
    for name in os.listdir(place.state):
        if name.startswith("preregd.db"):
            os.remove(os.path.join(place.state, name))
    return found


def says_the_same(place, verdict, states):
    place.serve()
    place.wait_finished(60)
    equal(place.verdict_bytes(), verdict, "verdict.json after rebuild")
    equal({t: v["state"] for t, v in place.tasks().items()}, states, "tasks after rebuild")
    answer = place.ctl_json("verdict")
    equal(answer["verdict"], json.loads(verdict), "verdict --json after rebuild")


def test_rebuild(place):
    """A lost database is made anew from journal and cell folders, and says the same."""
    found = finished_and_stopped(place)
    programs = place.ctl_json("rebuild")["programs"]
    equal([(p["history"], p["tasks"]["done"]) for p in programs], [("verified", 18)], "what was rebuilt")
    says_the_same(place, *found)


def test_rebuild_without_journal(place):
    """Without its journal a program's history is unverified, and its verdict, read off the files again, is the same bytes."""
    found = finished_and_stopped(place)
    folder = place.program_folder()
    os.remove(os.path.join(folder, "journal.jsonl"))
    os.remove(os.path.join(folder, "report", "verdict.json"))
    programs = place.ctl_json("rebuild")["programs"]
    equal([(p["history"], p["tasks"]["done"]) for p in programs], [("unverified", 18)], "what was rebuilt")
    says_the_same(place, *found)
    with open(os.path.join(folder, "report", "provenance.json"), encoding="utf-8") as f:
        equal(json.load(f)["history"], "unverified", "history in provenance.json")


def test_rebuild_tampered(place):
    """A journal that somebody changed is named, with exit 3; a lost verdict.json is written again, the same bytes."""
    found = finished_and_stopped(place)
    folder = place.program_folder()
    os.remove(os.path.join(folder, "report", "verdict.json"))
    journal = os.path.join(folder, "journal.jsonl")
    with open(journal, encoding="utf-8") as f:
        lines = f.readlines()
    lines[4] = lines[4].replace('"event"', '"evenT"', 1)
    with open(journal, "w", encoding="utf-8") as f:
        f.writelines(lines)
    programs = place.ctl_json("rebuild", wanted=LOCK)["programs"]
    equal([p["history"] for p in programs], ["unverified"], "history after tampering")
    says_the_same(place, *found)
    equal(place.ctl_json("verdict")["history"], "unverified", "history beside the verdict")


# Sanitized, the others and test_templates go to a verdict, too
lab.main(*((test_to_verdict,) if lab.SPARSE == 1 else ()), test_end_outlives_the_daemon, test_submit_is_idempotent, test_rebuild,
         test_rebuild_without_journal, test_rebuild_tampered)
