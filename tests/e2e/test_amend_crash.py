#!/usr/bin/env python3
"""The daemon dies at every point of an amendment: files, row, text in place. What comes up again is the old program or the new one,
and `rebuild` says the same of the same files. Results that are looked at while a metric changes."""

import json
import os
import shutil

from lib import lab
from lib.amending import amend, gate, read, submitted, task_of, unloaded
from lib.lab import OK, equal, expect

PRELOAD = os.path.join(os.path.dirname(os.path.abspath(lab.sys.argv[1])), "tests", "e2e_daemon_preload.so")


def serve_hurt(place):
    """A daemon that counts, once the file `crash` is there, and waits while `hold` is; nothing else is started with that."""
    if not os.path.exists(PRELOAD):
        lab.skip(f"no {PRELOAD}")
    outside = place.env
    place.env = {**outside, "LD_PRELOAD": PRELOAD, "PREREG_CRASH": place.path("crash"), "PREREG_HOLD": place.path("hold"),
                 "ASAN_OPTIONS": outside.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
    place.serve()
    place.env = outside


def rebuilt_head(place):
    """What rebuild makes of a copy of the state as the crash left it."""
    copy = place.path("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(place.state, copy, symlinks=True, ignore=shutil.ignore_patterns("*.sock"))
    place.ctl("rebuild", "--state", copy)  # a history that is not proved would make it 3
    name = os.path.basename(place.program_folder())
    shown = json.loads(place.ctl("diff", name, "--state", copy, "--json").stdout)
    with open(os.path.join(copy, "programs", name, "grid.toml"), encoding="utf-8") as f:
        return shown["head"], f.read()


def test_every_point(place):
    """At least one crash on either side of the row, and none that leaves anything in between."""
    crash = place.path("crash")
    grid = submitted(place)
    place.wait_for(lambda: sum(t["state"] == "running" for t in place.tasks().values()) == 2, 30, "two train")
    place.kill_daemon()
    serve_hurt(place)
    last, sides = "<= 1.20", {"old": 0, "new": 0}
    for n in range(1, 100, min(lab.SPARSE, 2)):
        head, number = place.status()[0]["head"], place.status()[0]["amendments"]
        wanted = f"<= 1.{20 + n}"
        place.edit(grid, last, wanted)
        place.write("crash", str(n))
        run = place.run("preregctl", "amend", grid, "--reason", "to and fro")
        os.remove(crash)
        if run.returncode == OK:
            break
        place.wait_for(lambda: place.daemon.poll() is not None, 10, f"it dies: {run.stderr}")
        place.daemon = None
        by_rebuild = rebuilt_head(place)
        serve_hurt(place)
        equal(unloaded(place), "", f"crash at {n}")
        now = place.status()[0]
        with open(os.path.join(place.program_folder(), "grid.toml"), encoding="utf-8") as f:
            text = f.read()
        side = "old" if now["head"] == head else "new"
        equal((now["history"], now["amendments"] - number), ("verified", 1 if side == "new" else 0), f"crash at {n}: {side}")
        expect((wanted if side == "new" else last) in text, f"crash at {n}: {side}, but grid.toml is another")
        equal(by_rebuild, (now["head"], text), f"crash at {n}: rebuild and the daemon's start")
        sides[side] += 1
        if side == "old":
            place.edit(grid, wanted, last)
        else:
            last = wanted
    expect(min(sides.values()) > 0, f"the row was not in between: {sides}")
    print(f"crashes: {sides}")
    place.ctl("diff", grid)
    gate(place, "train")
    gate(place, "score")
    place.wait_finished(60)
    check_tasks(place)


def check_tasks(place):
    """Every task has the root, and the head that held when it began."""
    shown = place.ctl_json("diff")
    heads = {shown["root"], *(a["head"] for a in shown["amendments"])}
    tasks = [task_of(d) for d, _, files in os.walk(os.path.join(place.program_folder(), "cells"))
             if {"start.json", "exit.json"} & set(files)]  # without it the daemon died while it prepared the attempt
    expect(len(tasks) >= 4 and all(t["root"] == shown["root"] and t["head"] in heads for t in tasks), "root and head of the tasks")


def being_looked_at(place, what):
    states = [task["state"] for name, task in place.tasks().items() if name.endswith("/score")]
    expect(len(states) == 2 and set(states) <= {"starting", "running"}, f"{what}: {states}")


def in_flight(place, gone, what):
    """Both results are being looked at: score.acc_norm becomes score.acc, and `gone` is missing in the first attempt's."""
    grid = submitted(place, edit=("shots = 5", f'shots = 5, lacks = "{gone}"'))
    place.kill_daemon()
    gate(place, "train")
    gate(place, "score")
    place.write("hold", "")
    serve_hurt(place)
    cells = os.path.join(place.program_folder(), "cells")

    def ended():
        return sorted(os.path.basename(os.path.dirname(os.path.dirname(d))) for d, _, files in os.walk(cells)
                      if "exit.json" in files and os.path.basename(os.path.dirname(d)) == "score")
    place.wait_for(lambda: len(ended()) == 2, 30, "both have scored")
    being_looked_at(place, what)
    place.edit(grid, "score.acc_norm", "score.acc")
    amend(place, grid)
    being_looked_at(place, what)
    os.remove(place.path("hold"))
    place.wait_finished(60)
    equal(place.ctl_json("verdict")["outcome"], "down", "outcome by acc (0.50), not by acc_norm (0.56)")
    check_tasks(place)
    return {task["attempts"] for name, task in place.tasks().items() if name.endswith("/score")}


def test_new_metric_is_missing(place):
    """It was whole by the plan as it was locked, and is none by the amended one: made again."""
    equal(in_flight(place, "acc", "the new metric is missing"), {2}, "attempts")


def test_old_metric_is_missing(place):
    """None by the plan as it was locked, whole by the amended one: taken."""
    equal(in_flight(place, "acc_norm", "the old metric is missing"), {1}, "attempts")


lab.main(test_every_point, test_new_metric_is_missing, test_old_metric_is_missing)
