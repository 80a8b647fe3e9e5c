#!/usr/bin/env python3
"""What the machine does to attempts: it is never taken for the work's own fault."""

import os
import subprocess

import lab
import rogue
from lab import OK, equal, expect

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
    """More than can be handed over: the task ends at once and says so, nothing is tried again and again."""
    place.serve()
    grid = rogue.program(place, ["good", "null"])
    long = ", ".join('"' + "x" * 120000 + '"' for _ in range(9))
    place.edit(grid, 'command = ["./rogue_worker.py"]', f'command = ["./rogue_worker.py", {long}]')
    os.remove(grid + ".lock")
    place.ctl("lock", grid)
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(60)
    task = place.ctl_json("explain", "mode=good,seed=1/probe")
    equal((task["state"], task["cause"], task["attempts"]), ("blocked", "user_error", 1), "what became of the task")
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


lab.main(test_shim_does_not_load, test_too_many_arguments, test_watch_survives_the_daemon)
