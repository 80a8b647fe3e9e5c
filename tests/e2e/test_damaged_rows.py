#!/usr/bin/env python3
"""One program's rows in the database are damaged, or its folder is gone: that program alone stops, its work is not lost, and the others go on."""

import os
import shutil
import sqlite3

from lib import lab
from lib import rogue
from lib.lab import ANY, LOCK, OK, equal, expect

WAITING = "mode=wait,seed=1/probe"
KEPT = ("grid.toml", "grid.toml.lock")


def submit(place, budget):
    """A program with a task that waits to be released; its id."""
    known = {p["id"] for p in place.status()}
    grid = rogue.program(place, ["wait", "good"], budget=budget)
    place.must(OK, "preregd", "submit", grid)
    new = [p["id"] for p in place.status() if p["id"] not in known]
    equal(len(new), 1, "new programs")
    place.wait_for(lambda: place.tasks(new[0])[WAITING]["state"] == "running", 60, "the waiting task runs")
    return new[0]


def keep(place, source, target):
    os.makedirs(place.path(target), exist_ok=True)
    for name in KEPT:
        shutil.copy2(place.path(source, name), place.path(target, name))


def damage(place, program):
    """Another connection writes a row into the journal's table: the next row of that program has no place there."""
    with sqlite3.connect(os.path.join(place.state, "preregd.db"), timeout=30) as db:
        db.execute("INSERT INTO journal SELECT program, max(seq) + 1, '', '' FROM journal"
                   " WHERE program = (SELECT no FROM programs WHERE id = ?)", (program,))
    db.close()


def exits(place, program):
    """How many attempts of the waiting task have ended."""
    cell = os.path.join(place.state, "programs", program, "cells", *WAITING.split("/"))
    return sum("exit.json" in names for _, _, names in os.walk(cell))


def two_programs(place):
    place.serve()
    bad = submit(place, 0.9)
    keep(place, "rogue", "kept")
    os.remove(place.path("rogue", "grid.toml.lock"))
    good = submit(place, 0.8)
    damage(place, bad)
    said = place.must(LOCK, "preregctl", "pause", bad)
    expect(bad in said.stderr and "preregctl rebuild" in said.stderr, f"the refusal: {said.stderr}")
    return bad, good


def test_others_go_on(place):
    bad, good = two_programs(place)
    status = place.ctl_json("status")
    equal([p["id"] for p in status["programs"]], [good], "the programs that are loaded")
    equal([u["id"] for u in status["unloaded"]], [bad], "those that are not")
    expect("preregctl rebuild" in status["unloaded"][0]["why"], f"what to do is not named: {status['unloaded']}")
    expect("not loaded" in place.ctl("status").stdout, "status does not show it")
    for command in ("status", "resume"):
        place.must(LOCK, "preregctl", command, bad)
    equal(exits(place, bad), 0, "attempts of the damaged program that were ended")
    rogue.release(place)
    place.wait_finished(120)
    equal([p["id"] for p in place.status()], [good], "what has finished")


def test_folder_that_is_gone(place):
    """It is paused until its folder is back, and goes on with `resume`; the other program ends meanwhile."""
    place.serve()
    bad = submit(place, 0.9)
    os.remove(place.path("rogue", "grid.toml.lock"))
    good = submit(place, 0.8)
    folder = os.path.join(place.state, "programs", bad)
    os.rename(folder, place.path("aside"))
    for command in ("pause", "resume"):
        said = place.must(ANY, "preregctl", command, bad)
        expect(folder in said.stderr and "put it back" in said.stderr, f"the refusal: {said.stderr}")
    of = {p["id"]: p for p in place.status()}
    equal((of[bad]["paused_by"], of[good]["paused_by"]), ("folder", None), "what is paused")
    expect("put it back" in of[bad]["paused_why"], of[bad]["paused_why"])
    expect(f"preregctl resume {bad}" in place.ctl("status").stdout, "status does not say what to type")
    rogue.release(place)
    place.wait_for(lambda: {p["id"]: p["state"] for p in place.status()}[good] == "finished", 120, "the other program ends")
    equal({p["id"]: p["state"] for p in place.status()}[bad], "paused", "the program whose folder is gone")
    os.rename(place.path("aside"), folder)
    place.must(OK, "preregctl", "resume", bad)
    place.wait_finished(120)
    place.must(OK, "preregctl", "status", bad)
    log = open(os.path.join(place.state, "preregd.log"), encoding="utf-8").read()
    equal(log.count("cannot be written; the other programs go on"), 1, "how often the log says so")


def test_submitted_again(place):
    bad, _ = two_programs(place)
    keep(place, "kept", "rogue")
    said = place.must(LOCK, "preregd", "submit", place.path("rogue/grid.toml"))
    expect(bad in said.stderr and "preregctl rebuild" in said.stderr, f"the refusal: {said.stderr}")


def test_rebuilt(place):
    """The attempt that ran meanwhile is found, and its result accepted."""
    bad, good = two_programs(place)
    rogue.release(place)
    place.wait_for(lambda: exits(place, bad) == 1, 60, "the damaged program's attempt ends")
    place.wait_finished(120)
    place.ctl("stop")
    equal(place.daemon.wait(timeout=240), 0, "how the daemon ends")
    place.daemon = None
    place.ctl("rebuild", place.state)
    place.serve()
    place.wait_for(lambda: sorted(p["id"] for p in place.status()) == sorted([bad, good]), 60, "both are loaded")
    place.wait_finished(120)
    task = place.tasks(bad)[WAITING]
    equal((task["state"], exits(place, bad)), ("done", 1), "the task, and its attempts")


lab.main(test_others_go_on, test_folder_that_is_gone, test_submitted_again, test_rebuilt)
