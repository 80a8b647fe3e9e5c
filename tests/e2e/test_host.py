#!/usr/bin/env python3
"""What the machine does to attempts, and what it lacks: it is never taken for the work's own fault."""

import json
import os
import subprocess

from lib import lab
from lib import rogue
from lib.lab import OK, equal, expect

BROKEN = """#!/bin/sh
echo "prereg-shim: error while loading shared libraries: libgone.so.1" >&2
exit 127
"""


def test_shim_does_not_load(place):
    """An upgrade gone wrong: a few tries, a pause that says why, and not one task the worse for it."""
    place.serve()
    shim = os.path.join(place.bin, "prereg-shim")
    os.rename(shim, shim + ".whole")
    place.write("bin/prereg-shim", BROKEN, mode=0o755)
    modes = ["good", "null", "huge", "crash_once", "checkpointed_once", "foreign_write", "garbage", "nan"]
    grid = rogue.program(place, modes)
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: place.status()[0]["paused_by"] == "host", 60, "the program is paused")
    status = place.status()[0]
    expect("libgone.so.1" in status["paused_why"] and "127" in status["paused_why"], f"why: {status['paused_why']}")
    expect(status["attempts"] < 20, f"attempts until then: {status['attempts']}")
    expect("is tried again by itself" in place.ctl("status").stdout, "status does not say what happens next")
    tried = [name for name, t in place.tasks().items() if t["attempts"] > 0]
    said = place.ctl_json("explain", tried[0])
    expect("libgone.so.1" in said["attempt_list"][0]["detail"], "explain does not say why the attempt was lost")
    equal((said["budgets"]["attempts"]["used"], said["budgets"]["crashes"]["used"]), (0, 0), "budgets of a task")
    os.rename(shim + ".whole", shim)
    place.ctl("resume")
    place.wait_finished(120)
    equal({t["state"] for t in place.tasks().values()}, {"done"}, "states at the end")


def test_too_many_arguments(place):
    """More than can be handed over: the tasks end at once and say so, nothing is tried again and again. Both cells fail so:
    the program pauses, until a person says that they may."""
    place.serve()
    grid = rogue.program(place, ["good", "null"])
    long = ", ".join('"' + "x" * 120000 + '"' for _ in range(9))
    place.edit(grid, 'command = ["./rogue_worker.py"]', f'command = ["./rogue_worker.py", {long}]')
    os.remove(grid + ".lock")
    place.ctl("lock", grid)
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: place.status()[0]["paused_by"] == "failures", 60, "the program is paused")
    expect("at most 1024 KiB" in place.status()[0]["paused_why"], f"why: {place.status()[0]['paused_why']}")
    place.ctl("resume", "--accept-failures")
    place.wait_finished(60)
    task = place.ctl_json("explain", "mode=good,seed=1/probe")
    equal((task["state"], task["cause"], task["attempts"]), ("blocked", "user_error", 2), "what became of the task")
    expect("at most 1024 KiB" in task["attempt_list"][0]["detail"], f"detail: {task['attempt_list'][0]['detail']}")


def test_watch_survives_the_daemon(place):
    """status --watch goes on when the daemon is started again, and ends with the program."""
    place.serve()
    place.must(OK, "preregd", "submit", rogue.program(place, ["wait", "good"]))
    place.wait_for(lambda: place.tasks()["mode=wait,seed=1/probe"]["state"] == "running", 60, "it runs")
    watch = subprocess.Popen([os.path.join(place.bin, "preregctl"), "status", "--watch", "--interval", "100ms"], env=place.env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        expect("rogue" in watch.stdout.readline(), "nothing is watched")
        place.kill_daemon()
        expect("waiting for it" in watch.stderr.readline(), "it is not said that the daemon is away")
        place.serve()
        rogue.release(place)
        place.wait_finished(120)
        equal(watch.wait(timeout=60), OK, "exit code of status --watch")
    finally:
        watch.kill()
        watch.communicate()


PREPARE = """after = ["prepare"]

[stage.prepare]
command = ["./rogue_worker.py"]
params = {{ mode = "needs", seed = "$seed", until = "{until}" }}
"""


def test_missing_module(place):
    """What every cell needs is not installed: no cell is given up, the program pauses and says what is missing. Once it is
    there `resume` brings all of them to their end; journal, report and receipt agree on what happened."""
    place.serve()
    grid = rogue.program(place, ["good", "null", "huge", "garbage"], run="crashes = 1",
                         stages=PREPARE.format(until=place.path("released")))
    with open(place.path("submit.err"), "w", encoding="utf-8") as f:
        submit = subprocess.Popen([os.path.join(place.bin, "preregd"), "submit", "--wait", grid], env=place.env,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=f)

    def submit_said():
        with open(place.path("submit.err"), encoding="utf-8") as f:
            return f.read()

    try:
        place.wait_for(lambda: any(p["paused_by"] == "failures" for p in place.status()), 60, "the program is paused")
        why = "every attempt of `prepare` fails the same way: crash (exit code 1): ModuleNotFoundError: No module named 'nowhere'"
        equal(place.status()[0]["paused_why"], why, "why it is paused")
        equal(place.status()[0]["tasks"]["blocked"], 0, "cells that are given up")
        said = place.ctl("status").stdout
        expect(why in said and "--accept-failures" in said, f"status:\n{said}")
        said = place.ctl("explain", "mode=good,seed=1/prepare").stdout
        expect("fail the same way" in said, "explain does not say it")
        expect("0 of 50" in said and "not among them" in said, f"the attempts before the pause: {said}")
        said = place.ctl("logs", "mode=good,seed=1/prepare").stdout
        expect("ended as crash: ModuleNotFoundError" in said, f"logs does not say how it ended: {said}")
        # The daemon is killed once it has told, and resumed once what was at work has failed too: either may take longer.
        equal(submit.wait(timeout=60), lab.ANY, "exit code of submit --wait, which nothing but a person would end")
        expect("is paused (failures): " + why in submit_said(), f"submit --wait says the pause: {submit_said()}")
        expect("`preregctl resume --accept-failures`" in submit_said(), f"what to type: {submit_said()}")
        place.kill_daemon()
        place.serve()
        equal(place.status()[0]["paused_why"], why, "why it is paused, after a restart")
        place.wait_for(lambda: {t["state"] for t in place.tasks().values()} <= {"ready", "waiting"}, 60, "nothing is at work")
        rogue.release(place)
        place.ctl("resume")
        place.must(lab.INDETERMINATE, "preregd", "submit", "--wait", grid)
        place.wait_finished(120)
    finally:
        submit.kill()
        submit.wait()
    equal({t["state"] for t in place.tasks().values()}, {"done"}, "states at the end")
    revived = sum(row["event"] == "task_revived" for row in journal(place))
    expect(revived >= 6 and revived % 2 == 0, f"{revived} tasks were revived, each with the one that comes after it")
    verify_receipt(place)


def journal(place):
    with open(os.path.join(place.program_folder(), "journal.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def verify_receipt(place):
    place.ctl("export", "-o", place.path("out"))
    receipt, = [name for name in os.listdir(place.path("out")) if not name.endswith(".tar")]
    place.ctl("verify", os.path.join(place.path("out"), receipt))


def test_fails_after_the_pause(place):
    """An attempt that began before the pause and fails after `resume`: its cell is tried again, though others are done, and
    the receipt's reader accepts that."""
    place.serve()
    stage = PREPARE.format(until=place.path("released")).replace('mode = "needs"', 'mode = "needs_or_sticks", which = "$mode"')
    place.must(OK, "preregd", "submit", rogue.program(place, ["good", "null", "huge", "garbage"], run="crashes = 1", stages=stage))
    place.wait_for(lambda: any(p["paused_by"] == "failures" for p in place.status()), 60, "the program is paused")
    place.wait_for(lambda: place.tasks()["mode=null,seed=1/prepare"]["state"] == "running", 60, "the attempt from before the pause runs")
    rogue.release(place)
    place.ctl("resume")
    place.wait_for(lambda: place.tasks()["mode=good,seed=1/prepare"]["state"] == "done", 60, "another cell is done")
    place.write("released.fail", "")
    place.wait_finished(120)
    equal({t["state"] for t in place.tasks().values()}, {"done"}, "states at the end")
    equal(place.tasks()["mode=null,seed=1/prepare"]["attempts"], 2, "attempts of the cell that failed late")
    rows = journal(place)
    resumed = [row["event"] for row in rows].index("resumed")
    expect(any(row["event"] == "task_revived" for row in rows[resumed:]), "no task was revived after the resumption")
    verify_receipt(place)


lab.main(test_missing_module, test_fails_after_the_pause, test_shim_does_not_load, test_too_many_arguments, test_watch_survives_the_daemon)
