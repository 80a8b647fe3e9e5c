#!/usr/bin/env python3
"""The lock at boot, at every spawn and at the verdict: what changed on the way is refused and named (invariant 3)."""

import os
import time

from lib import lab
from lib import rogue
from lib.lab import LOCK, OK, equal, expect

# A second stage, which is spawned when the first is done.
SECOND = """
[stage.second]
after = ["probe"]
command = ["./rogue_worker.py"]
params = { mode = "good", seed = "$seed" }
"""
WAITING = "mode=wait,seed=1/probe"
RUN = "[run.probe]\ncrashes = 1\n"


def submitted(place, stages=""):
    """A program with one task done and one that waits to be released."""
    grid = rogue.program(place, ["good", "wait"], run=RUN, stages=stages)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: place.tasks()[WAITING]["state"] == "running", 30, "the waiting task runs")
    return os.path.join(place.program_folder(), "grid.toml")


def change(place, path, old, new):
    os.chmod(path, 0o644)
    place.edit(path, old, new)


def wait_paused(place, what):
    """Paused, for a reason that names what changed."""
    place.wait_for(lambda: place.status()[0]["paused_by"] is not None, 30, "the program is paused")
    why = str(place.status()[0]["paused_why"])
    expect(what in why, f"the reason does not name {what}: {why}")
    expect(not os.path.exists(os.path.join(place.program_folder(), "report", "verdict.json")), "a verdict was written")


def test_at_boot(place):
    copy = submitted(place)
    place.end_all()
    change(place, copy, "floor = 0.50", "floor = 0.40")
    rogue.release(place)
    place.serve()
    with open(os.path.join(place.state, "preregd.log"), encoding="utf-8") as f:
        expect("floor" in f.read(), "the log does not name the value")
    unloaded = place.ctl_json("status")["unloaded"]
    equal([u["id"] for u in unloaded], [os.path.basename(os.path.dirname(copy))], "what status says is not loaded")
    expect("floor" in unloaded[0]["why"], f"the reason does not name the value: {unloaded}")
    expect("not loaded" in place.ctl("status").stdout, "status does not show it")
    named = place.ctl("status", "rogue", wanted=LOCK)
    expect("floor" in named.stderr, f"asked for by name: {named.stderr}")
    time.sleep(2)
    expect(not os.path.exists(os.path.join(os.path.dirname(copy), "report", "verdict.json")), "a verdict was written")
    place.end_all()
    change(place, copy, "floor = 0.40", "floor = 0.50")
    place.serve()
    place.wait_for(place.status, 30, "the program is back")
    place.wait_finished(60)


def test_submitted_again(place):
    """What does not load is taken up when it is submitted again, and said to be unloaded no more."""
    copy = submitted(place)
    place.end_all()
    change(place, copy, "floor = 0.50", "floor = 0.40")
    place.serve()
    equal(len(place.ctl_json("status")["unloaded"]), 1, "programs not loaded")
    place.must(OK, "preregd", "submit", place.path("rogue/grid.toml"))
    status = place.ctl_json("status")
    equal((len(status["programs"]), status["unloaded"]), (1, []), "programs loaded and not")
    rogue.release(place)
    place.wait_finished(60)


def test_at_spawn(place):
    copy = submitted(place, stages=SECOND)
    change(place, copy, "chance = 0.25", "chance = 0.20")
    rogue.release(place)
    wait_paused(place, "chance")
    cell = os.path.join(place.program_folder(), "cells", "mode=wait,seed=1", "second")
    started = [folder for folder, _, names in os.walk(cell) if {"start.json", "exit.json"} & set(names)]
    equal(started, [], "attempts that were let go")
    change(place, copy, "chance = 0.20", "chance = 0.25")
    place.kill_daemon()
    place.serve()
    wait_paused(place, "chance")
    equal(place.status()[0]["paused_by"], "lock", "who paused it, after a restart")
    place.ctl("resume")
    place.wait_finished(60)


def test_at_verdict(place):
    copy = submitted(place)
    change(place, copy, 'prior = 0.5', 'prior = 0.6')
    rogue.release(place)
    journal = os.path.join(os.path.dirname(copy), "journal.jsonl")
    place.wait_for(lambda: "verdict_refused" in open(journal, encoding="utf-8").read(), 30, "the refusal is journalled")
    expect(not os.path.exists(os.path.join(os.path.dirname(copy), "report", "verdict.json")), "a verdict was written")
    place.end_all()
    change(place, copy, "prior = 0.6", "prior = 0.5")
    place.serve()
    place.wait_finished(60)


def damage(folder):
    """Puts another file in the place of each one of a folder."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with open(path, "rb") as f:
            text = f.read()
        os.remove(path)  # what runs keeps its own file
        with open(path, "wb") as f:
            f.write(text + b"\n# changed\n")
        os.chmod(path, 0o755)


def test_worker_copy_changed(place):
    """A worker runs from its copy in STATE/objects; a damaged copy is made again from its source."""
    submitted(place, stages=SECOND)
    damage(os.path.join(place.state, "objects"))
    rogue.release(place)
    place.wait_finished(60)
    expect(all(t["state"] == "done" for t in place.tasks().values()), "something was not done")
    with open(os.path.join(place.state, "objects", os.listdir(os.path.join(place.state, "objects"))[0]), "rb") as f:
        expect(b"# changed" not in f.read(), "the copy is still damaged")


def test_worker_and_copy_changed(place):
    """Where the source is another by now as well, the program waits; no task is blocked for it."""
    submitted(place, stages=SECOND)
    worker = place.path("rogue/rogue_worker.py")
    place.edit(worker, "import json", "import json  # changed")
    damage(os.path.join(place.state, "objects"))
    rogue.release(place)
    wait_paused(place, "rogue_worker.py")
    equal(place.status()[0]["paused_by"], "lock", "who paused it")
    equal(place.tasks()["mode=wait,seed=1/second"]["state"], "ready", "the task that could not start")
    place.edit(worker, "import json  # changed", "import json")
    place.ctl("resume")
    place.wait_finished(60)
    expect(all(t["state"] == "done" for t in place.tasks().values()), "something was not done")


def data_program(place):
    """One task done and one waiting, whose second stage reads a file of data that can be put aside."""
    place.write("rogue/data/corpus.txt", "what was locked\n")
    grid = rogue.program(place, ["good", "wait"], run=RUN,
                         stages='[data]\ncorpus = "data/corpus.txt"\n' + SECOND)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: place.tasks()[WAITING]["state"] == "running", 30, "the waiting task runs")
    place.wait_for(lambda: place.tasks()["mode=good,seed=1/second"]["state"] == "done", 30, "the other cell is done")
    return place.path("rogue/data")


def test_data_missing(place):
    """Data that are not there pause the program; it goes on by itself when they are."""
    data = data_program(place)
    os.rename(data, data + ".away")
    rogue.release(place)
    wait_paused(place, "corpus")
    equal(place.status()[0]["paused_by"], "data", "who paused it")
    task = place.tasks()["mode=wait,seed=1/second"]
    equal((task["state"], task["cause"]), ("ready", None), "the task that could not start")
    os.rename(data + ".away", data)
    place.wait_finished(60)
    expect(all(t["state"] == "done" for t in place.tasks().values()), "something was not done")


def test_data_back_and_other(place):
    """What comes back with other bytes is drift."""
    data = data_program(place)
    os.rename(data, data + ".away")
    rogue.release(place)
    wait_paused(place, "corpus")
    place.write("rogue/data/corpus.txt", "what was not locked\n")
    place.wait_for(lambda: place.tasks()["mode=wait,seed=1/second"]["cause"] == "drift", 30, "drift is found")


def test_verdict_asked_again(place):
    """A verdict that the lock refused comes by itself once the lock holds."""
    copy = submitted(place)
    change(place, copy, 'prior = 0.5', 'prior = 0.6')
    rogue.release(place)
    journal = os.path.join(os.path.dirname(copy), "journal.jsonl")
    place.wait_for(lambda: "verdict_refused" in open(journal, encoding="utf-8").read(), 30, "the refusal is journalled")
    time.sleep(4)
    equal(open(journal, encoding="utf-8").read().count("verdict_refused"), 1, "refusals journalled while nothing is mended")
    change(place, copy, "prior = 0.6", "prior = 0.5")
    place.wait_finished(60)


def test_run_may_change(place):
    """[run] is not locked: it changes without a word of the lock."""
    copy = submitted(place)
    place.end_all()
    change(place, copy, "crashes = 1", "crashes = 2")
    rogue.release(place)
    place.serve()
    place.wait_finished(60)


lab.main(test_at_boot, test_submitted_again, test_at_spawn, test_at_verdict, test_worker_copy_changed,
         test_worker_and_copy_changed, test_data_missing,
         test_data_back_and_other, test_verdict_asked_again, test_run_may_change)
