#!/usr/bin/env python3
"""The lock at boot, at every spawn and at the verdict: what changed on the way is refused and named (invariant 3)."""

import os

import lab
import rogue
from lab import OK, equal, expect

# A second stage, which is spawned when the first is done.
SECOND = """
[stage.second]
after = ["work"]
command = ["./rogue_worker.py"]
params = { mode = "good", seed = "$seed" }
"""
WAITING = "mode=wait,seed=1/work"
RUN = "[run.work]\ncrashes = 1\n"


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
    place.serve()
    wait_paused(place, "floor")
    change(place, copy, "floor = 0.40", "floor = 0.50")
    rogue.release(place)
    place.ctl("resume")
    place.wait_finished(60)


def test_at_spawn(place):
    copy = submitted(place, stages=SECOND)
    change(place, copy, "chance = 0.25", "chance = 0.20")
    rogue.release(place)
    wait_paused(place, "chance")
    equal(place.tasks()["mode=wait,seed=1/second"]["attempts"], 0, "attempts of the stage that was to be spawned")
    change(place, copy, "chance = 0.20", "chance = 0.25")
    place.ctl("resume")
    place.wait_finished(60)


def test_at_verdict(place):
    copy = submitted(place)
    change(place, copy, 'prior = 0.5', 'prior = 0.6')
    rogue.release(place)
    wait_paused(place, "prior")
    change(place, copy, 'prior = 0.6', 'prior = 0.5')
    place.ctl("resume")
    place.wait_finished(60)


def test_worker_copy_changed(place):
    """A worker runs from its copy in STATE/objects; a changed copy is not run."""
    submitted(place, stages=SECOND)
    objects = os.path.join(place.state, "objects")
    for name in os.listdir(objects):
        path = os.path.join(objects, name)
        os.chmod(path, 0o755)
        with open(path, "rb") as f:
            text = f.read()
        os.remove(path)  # the running one keeps its own file
        with open(path, "wb") as f:
            f.write(text + b"\n# changed\n")
        os.chmod(path, 0o755)
    rogue.release(place)
    place.wait_for(lambda: place.status()[0]["paused_by"] is not None or
                   place.tasks()["mode=good,seed=1/second"]["cause"] == "drift", 30, "the spawn is refused")


def test_run_may_change(place):
    """[run] is not locked: it changes without a word of the lock."""
    copy = submitted(place)
    place.end_all()
    change(place, copy, "crashes = 1", "crashes = 2")
    rogue.release(place)
    place.serve()
    place.wait_finished(60)


lab.main(test_at_boot, test_at_spawn, test_at_verdict, test_worker_copy_changed, test_run_may_change)
