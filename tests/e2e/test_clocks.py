#!/usr/bin/env python3
"""A machine's clock before its lock, and behind its journal: at submit, when the daemon starts, while it runs."""

import json
import os
import sys

from lib import lab
from lib.lab import LOCK, OK, equal, expect

GRID = """[program]
name = "clocked"
schema = 1
question = "What time is it?"
[[factor]]
name = "arm"
levels = ["a", "b"]
[stage.train]
command = ["./worker.py"]
params = { arm = "$arm", hold = "HOLD" }
[measure]
loss = { metric = "train.loss", better = "lower" }
[contrast]
arm = { between = { arm = ["a", "b"] } }
[[input]]
name = "sign"
levels = [["up", "contrast.arm[loss].mean > 0"], ["down", "otherwise"]]
[table]
inputs = ["sign"]
rows = [["up", "up"], ["down", "down"]]
[outcome]
up = { prior = 0.5, title = "Up" }
down = { prior = 0.4, title = "Down" }
[run]
slots = 1
crashes = 20
"""
WORKER = """#!/usr/bin/env python3
import json, os, sys, time
if "--describe" in sys.argv:
    sys.exit(64)
with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
    task = json.load(f)
if os.path.exists(task["params"]["hold"] + ".crash"):
    sys.exit(1)
while os.path.exists(task["params"]["hold"]):
    time.sleep(0.05)
with open("result.json", "w", encoding="utf-8") as f:
    json.dump({"protocol": 1, "attempt": task["attempt"], "metrics": {"loss": {"value": 1.5}}}, f)
"""
HOUR = 3600


def shift(place, seconds):
    """The clock of the daemon and of commands from now on: of those that run, too."""
    library = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "tests", "clock_shift.so")
    expect(os.path.exists(library), f"{library} is not there")
    os.rename(place.write("shift.new", str(seconds)), place.path("shift"))
    options = os.environ.get("ASAN_OPTIONS", "")
    place.env.update(LD_PRELOAD=library, CLOCK_SHIFT_FILE=place.path("shift"),
                     ASAN_OPTIONS=options + (":" if options else "") + "verify_asan_link_order=0")


def locked(place):
    """A program of two tasks, one after the other; the first goes on while `hold` is there."""
    grid = place.write("clocked/grid.toml", GRID.replace("HOLD", place.path("hold")))
    place.write("clocked/worker.py", WORKER, 0o755)
    shift(place, 0)
    place.ctl("lock", grid)  # asks the worker to describe itself: nothing holds it yet
    place.write("hold", "")
    return grid


def submitted(place):
    grid = locked(place)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: "running" in [t["state"] for t in place.tasks().values()], 120, "the first task runs")


def journal(place):
    with open(os.path.join(place.program_folder(), "journal.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def check_exported(place):
    """Once it is finished: no row is dated before the one before it, and the receipt holds."""
    rows = journal(place)
    times = [r["time"] for r in rows]
    equal(times, sorted(times), "the journal's times")
    expect(any("clock" in r for r in rows), "no row says what the clock said")
    receipt = place.ctl_json("export", "clocked", "--out", place.path("receipt"))["folder"]
    place.ctl("verify", receipt)


def check_paused_and_mended(place, when):
    os.unlink(place.path("hold"))
    place.wait_for(lambda: place.status()[0]["paused_by"] == "lock", 120, "the program is paused")
    summary = place.status()[0]
    for part in ("the lock was made at", "clock"):
        expect(part in summary["paused_why"], f"why it is paused: {summary['paused_why']}")
    expect(when in (summary["clock"] or ""), f"what is said of the clock: {summary['clock']}")
    expect(when in place.ctl("status", "clocked").stdout, "status does not say so to people")
    # The next task is started, and the program paused, while the result of the first is verified
    place.wait_for(lambda: sorted(t["state"] for t in place.tasks().values()) == ["done", "ready"], 120, "one task is done")
    place.ctl("resume", "clocked")
    place.wait_for(lambda: place.status()[0]["paused_by"] == "lock", 120, "the program is paused again")
    shift(place, 0)
    place.ctl("resume", "clocked")
    place.wait_finished(120)
    check_exported(place)


def test_before_the_lock_at_submit(place):
    grid = locked(place)
    os.unlink(place.path("hold"))
    place.serve()
    shift(place, -HOUR)
    said = place.must(LOCK, "preregd", "submit", grid).stderr
    expect("the lock was made at" in said and "set the clock right" in said, f"what is said of it: {said}")
    equal(place.status(), [], "programs of the daemon")
    shift(place, -60)  # two honest machines may differ by that
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(120)
    check_exported(place)


def test_before_the_lock_at_start(place):
    submitted(place)
    place.kill_daemon()
    shift(place, -HOUR)
    place.serve()
    check_paused_and_mended(place, "when the daemon started")


def test_before_the_lock_while_it_runs(place):
    submitted(place)
    shift(place, -HOUR)
    said = place.ctl("amend", place.path("clocked/grid.toml"), "--no-run", "--reason", "early", wanted=LOCK).stderr
    expect("the lock was made at" in said and "set the clock right" in said, f"what amend says of it: {said}")
    check_paused_and_mended(place, "while the daemon ran")


def test_behind_the_journal(place):
    """After the lock and before what was written down since: it is said, and the work goes on."""
    grid = locked(place)
    shift(place, HOUR)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: "running" in [t["state"] for t in place.tasks().values()], 120, "the first task runs")
    place.kill_daemon()
    shift(place, 0)
    place.serve()
    expect("when the daemon started" in (place.status()[0]["clock"] or ""), "the clock behind the journal is not told of")
    os.unlink(place.path("hold"))
    place.wait_finished(120)
    equal(place.status()[0]["history"], "verified", "the history")
    check_exported(place)
    before = journal(place)
    place.kill_daemon()
    os.unlink(place.path("state", "preregd.db"))
    place.ctl("rebuild")
    equal(journal(place), before, "the journal after a rebuild")
    place.serve()
    equal(place.status()[0]["history"], "verified", "the history after a rebuild")


def backing_off(place, n_attempts):
    """What `explain` answers of the tasks that wait after a failure, having had that many attempts or more."""
    names = [n for n, t in place.tasks().items() if t["state"] == "backoff" and t["attempts"] >= n_attempts]
    answers = {n: place.ctl_json("explain", n) for n in names}
    return {n: a for n, a in answers.items() if a["why"] == "backoff" and a["attempts"] >= n_attempts}


def test_backoff_by_a_clock_that_was_ahead(place):
    """What is left of a backoff is a duration: the wall clock, right again, does not make it a day."""
    grid = locked(place)
    place.write("hold.crash", "")
    shift(place, 24 * HOUR)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    n_attempts, same = 2, {}
    while not same:  # on a busy machine the wait may be over before the daemon is back; it doubles with every attempt
        expect(n_attempts < 15, "no daemon came back before a backoff was over")
        shift(place, 24 * HOUR)
        place.wait_for(lambda: backing_off(place, n_attempts + 1), 600, f"attempt {n_attempts + 1} has failed")
        before = backing_off(place, n_attempts + 1)
        place.kill_daemon()
        shift(place, 0)
        place.serve()
        n_attempts = max(t["attempts"] for t in place.tasks().values())
        same = {n: a for n, a in backing_off(place, 1).items() if n in before and a["attempts"] == before[n]["attempts"]}
    for answer in same.values():
        expect(0 <= answer["not_before_ms"] <= 300_000, f"the wait that is left: {answer['not_before_ms']} ms")
        expect(" h " not in answer["why_text"], f"what is said of it: {answer['why_text']}")


lab.main(test_before_the_lock_at_submit, test_before_the_lock_at_start, test_before_the_lock_while_it_runs,
         test_behind_the_journal, test_backoff_by_a_clock_that_was_ahead)
