#!/usr/bin/env python3
"""Two state folders with the same [run] work and the same locked program: one has the cells there, the other is refused; and the one
that has them keeps them wherever it goes."""

import json
import os
import shutil
import time

from lib import lab
from lib import rogue
from lib.lab import ANY, OK, equal, expect


def submitted(place):
    """A program whose tasks wait for rogue.release(), with its cells in work/; the path of its grid and of its folder there."""
    grid = rogue.program(place, ["wait", "wait_too"], run=f'work = "{place.path("work")}"\n')
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    return grid, os.path.join(place.path("work"), os.path.basename(place.program_folder()))


def other(place):
    """The environment of a second state folder."""
    return {**place.env, "PREREGD_STATE": place.path("other")}


def owner(folder):
    with open(os.path.join(folder, "owner.json"), encoding="utf-8") as f:
        return json.load(f)


def files_below(folder):
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)


def running(place):
    return sum(t["state"] == "running" for t in place.tasks().values())


def shim_of(place, task):
    with open(os.path.join(place.ctl_json("explain", task)["attempt_list"][-1]["folder"], "start.json"), encoding="utf-8") as f:
        return json.load(f)["shim_pid"]


def test_another_state_is_refused(place):
    grid, folder = submitted(place)
    place.wait_for(lambda: running(place) == 2, 30, "both run")
    before = files_below(place.path("work"))
    for flag, words in (((), f"{place.state} of host"), (("--adopt-work",), "is not gone")):
        run = place.must(ANY, "preregd", "submit", grid, *flag, env=other(place))
        expect(words in run.stderr, run.stderr)
    expect("`preregd submit --adopt-work`" not in run.stderr, run.stderr)
    equal([f for f in files_below(place.path("other")) if "/programs/" in f or "/objects/" in f], [], "what was written")
    equal([f for f in files_below(place.path("work")) if f not in before and not os.path.basename(f).startswith(".")], [], "and in work/")
    rogue.release(place)
    place.wait_finished(60)
    equal({t["attempts"] for t in place.tasks().values()}, {1}, "attempts of the first state")


def test_the_same_state_goes_on(place):
    grid, folder = submitted(place)
    place.wait_for(lambda: running(place) == 2, 30, "both run")
    first = owner(folder)
    place.kill_daemon()
    place.ctl("rebuild")
    os.rename(place.state, place.path("moved"))
    place.state = place.env["PREREGD_STATE"] = place.path("moved")
    place.serve()
    now = owner(folder)
    equal((now["state_id"], now["since"], now["state"]), (first["state_id"], first["since"], place.state), "the owner after a move")
    place.must(OK, "preregd", "submit", grid)
    rogue.release(place)
    place.wait_finished(60)
    place.ctl("remove", os.path.basename(folder), "--yes-lose-it")
    place.wait_for(lambda: not os.path.exists(folder), 30, "the cells and their mark are removed")
    place.must(OK, "preregd", "submit", grid)
    place.kill_daemon()
    place.serve()
    equal(place.ctl_json("status").get("unloaded"), [], "what was not loaded")


def test_what_is_gone_is_adopted(place):
    grid, folder = submitted(place)
    place.wait_for(lambda: running(place) == 2, 30, "both run")
    place.end_all()
    shutil.rmtree(place.state)
    rogue.release(place)
    run = place.must(ANY, "preregd", "submit", grid, env=other(place))
    expect("`preregd submit --adopt-work`" in run.stderr, run.stderr)
    place.must(OK, "preregd", "submit", grid, "--adopt-work", env=other(place))
    equal(owner(folder)["state"], place.path("other"), "the owner")
    place.state = place.env["PREREGD_STATE"] = place.path("other")
    place.wait_finished(60)
    shutil.rmtree(os.path.join(folder, "cells"))  # as a removal that was killed leaves it
    place.ctl("remove", os.path.basename(folder), "--yes-lose-it")
    place.wait_for(lambda: not os.path.exists(folder), 30, "the mark is removed")


def test_folders_of_before(place):
    """Of before there were marks: the first that starts has them, and the other program is not served, without harm to either."""
    grid, folder = submitted(place)
    place.wait_for(lambda: running(place) == 2, 30, "both run")
    place.kill_daemon()
    os.remove(os.path.join(folder, "owner.json"))
    place.must(OK, "preregd", "submit", grid, env=other(place))
    place.serve()
    unloaded = place.ctl_json("status")["unloaded"]
    equal(len(unloaded), 1, "what was not loaded")
    expect(f"{place.path('other')} of host" in unloaded[0]["why"], unloaded[0]["why"])
    run = place.must(ANY, "preregd", "submit", grid)
    expect("belong to the state" in run.stderr, run.stderr)
    rogue.release(place)
    place.kill_daemon()
    place.state = place.env["PREREGD_STATE"] = place.path("other")
    place.wait_finished(60)
    equal({t["attempts"] for t in place.tasks().values()}, {1}, "attempts of the state that has them")


def test_one_that_lost_them_while_it_served(place):
    """Adopted away, as from a host that cannot see this one's folder: nothing more is started there, and it says why. A result that
    comes all the same is linked once the cells are given back."""
    folder = submitted(place)[1]
    place.wait_for(lambda: running(place) == 2, 30, "both run")
    mark = owner(folder)
    before = dict(mark)
    mark["state_id"] = "12345678-1234-4234-8234-123456789012"
    mark["state"] = "/elsewhere/state"
    place.write("work/" + os.path.basename(folder) + "/owner.json", json.dumps(mark))
    place.kill(shim_of(place, "mode=wait,seed=1/probe"))
    place.wait_for(lambda: place.status()[0]["paused_by"] == "lock", 60, "the program is paused")
    expect("belong to the state /elsewhere/state of host" in place.status()[0]["paused_why"], place.status()[0]["paused_why"])

    def done():
        return [name for name, t in place.tasks().items() if t["state"] == "done"]
    rogue.release(place)
    place.wait_for(done, 30, "the other attempt is done")
    time.sleep(1)
    cell, stage = done()[0].rsplit("/", 1)
    link = os.path.join(folder, "cells", cell, stage, "result.json")
    expect(os.path.isdir(os.path.dirname(link)) and not os.path.lexists(link), "its result was linked among another state's cells")
    place.write("work/" + os.path.basename(folder) + "/owner.json", json.dumps(before))
    place.wait_for(lambda: os.path.lexists(link), 30, "its result is linked")
    place.ctl("resume")
    place.wait_finished(60)


lab.main(test_another_state_is_refused, test_the_same_state_goes_on, test_what_is_gone_is_adopted, test_folders_of_before,
         test_one_that_lost_them_while_it_served)
