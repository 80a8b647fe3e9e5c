#!/usr/bin/env python3
"""Workers that misbehave: each gets its recorded cause, none takes another's results along."""

import json
import os
import time

from lib import lab
from lib import rogue
from lib.lab import INDETERMINATE, OK, VOID, equal, expect

FAST = """[run.probe]
crashes = 2
deadlines = { setup = "10s", step = "10s" }
memory = "256MiB"
"""

# mode -> (state, cause) that its task must end in
ENDS = {
    "good": ("done", None),
    "foreign_write": ("done", None),
    "garbage": ("done", None),
    "flood": ("blocked", "bad_result"),
    "sparse": ("blocked", "bad_result"),
    "no_result": ("blocked", "bad_result"),
    "torn_result": ("blocked", "bad_result"),
    "wrong_attempt": ("blocked", "bad_result"),
    "missing_metric": ("blocked", "bad_result"),
    "null": ("done", None),
    "huge": ("done", None),
    "crash": ("blocked", "crash"),
    "crash_once": ("done", None),
    "checkpointed_once": ("done", None),
    "bad_parameters": ("blocked", "user_error"),
    "bad_data": ("blocked", "bad_input"),
    "cannot": ("blocked", "not_measurable"),
    "hang": ("blocked", "hang"),
    "never_reports": ("blocked", "hang"),
    "memory": ("blocked", "oom"),
}


def test_causes(place):
    """Every mode at once; the verdict is undetermined where a mode of the contrast is, and says so."""
    place.serve()
    grid = rogue.program(place, list(ENDS), run=FAST, slots=6)
    run = place.run("preregd", "submit", grid, "--wait", timeout=600)
    expect(run.returncode in (OK, INDETERMINATE, VOID), f"submit --wait: exit {run.returncode}\n{run.stderr}")
    got = {name.split(",")[0].split("=")[1]: (t["state"], t["cause"]) for name, t in place.tasks().items()}
    wrong = {m: (got.get(m), ENDS[m]) for m in ENDS if got.get(m) != ENDS[m]}
    expect(not wrong, f"(got, wanted) where they differ: {wrong}")
    verdict = json.loads(place.verdict_bytes())
    scores = {g["cell"].split(",")[0].split("=")[1]: g["score"] for g in verdict["gates"]}
    equal(scores["good"], 0.75, "the good worker's score")
    equal(scores["null"], None, "the score of a worker that said null")
    garbage = place.ctl_json("explain", "mode=garbage,seed=1/probe")
    equal(garbage["garbage_lines"], 5, "lines that are no events")
    folder = place.ctl_json("explain", "mode=good,seed=1/probe")["attempt_list"][0]["folder"]
    equal(sorted(os.listdir(folder)), ["exit.json", "result.json"],
          "files of an attempt that has ended and said nothing")
    holes = place.ctl_json("explain", "mode=sparse,seed=1/probe")
    expect(100 < holes["garbage_lines"] < 10000, f"of six gigabytes of nothing too much was read: {holes['garbage_lines']}")
    torn = place.ctl_json("explain", "mode=torn_result,seed=1/probe")["attempt_list"][0]["detail"]
    expect(torn is not None and torn in place.ctl("explain", "mode=torn_result,seed=1/probe").stdout
           and torn.startswith("result.json is not valid: line 1"), f"explain does not say why the result is bad: {torn}")
    equal(len(place.ctl_json("explain", "mode=crash_once,seed=1/probe")["attempt_list"]), 2, "attempts of crash_once")
    logs = place.ctl("logs", "mode=bad_parameters,seed=1/probe").stdout
    expect("layers: 0 is under 1" in logs, f"logs show no word of the worker:\n{logs}")


def test_nan_is_undetermined(place):
    """NaN reaches no gate: the record is kept as undetermined, and the verdict is not bound by it."""
    place.serve()
    grid = rogue.program(place, ["good", "nan"], budget=0.0, run=FAST)
    run = place.run("preregd", "submit", grid, "--wait")
    expect(run.returncode in (INDETERMINATE, VOID), f"exit {run.returncode}")
    verdict = json.loads(place.verdict_bytes())
    scores = {g["cell"].split(",")[0].split("=")[1]: g["score"] for g in verdict["gates"]}
    equal(scores["nan"], None, "the score that was NaN")
    equal(place.tasks()["mode=nan,seed=1/probe"]["state"], "done", "the task whose score was NaN")


def test_estimate_beyond_all_time(place):
    """A share of the work so small that the time left is no number: unknown, and the daemon stays."""
    place.serve()
    grid = rogue.program(place, ["far", "cannot"])
    place.must(OK, "preregd", "submit", grid)
    far = "mode=far,seed=1/probe"
    place.wait_for(lambda: place.tasks()[far]["done"] == 1, 60, "its progress is known")
    time.sleep(0.01)  # some of it was spent
    equal(place.tasks()[far]["eta_ms"], None, "time left of the task")
    equal(place.status()[0]["eta_ms"], None, "time left of the program")
    expect("time left unknown" in place.ctl("status").stdout, "status says nothing of the time left")
    rogue.release(place)
    place.wait_finished(60)


def test_orphans(place):
    """Children that a worker leaves are ended; nothing of theirs outlives the program."""
    place.serve()
    grid = rogue.program(place, ["good", "orphans"], run=FAST)
    place.run("preregd", "submit", grid, "--wait")
    equal(place.tasks()["mode=good,seed=1/probe"]["state"], "done", "the good task")
    place.wait_for(lambda: not [n for n in place.processes().values() if "python" in n or "rogue" in n], 20,
                   "the left children end")


def test_over_the_exclusion_budget_is_void(place):
    """A crash too many: VOID, exit 7, and the reason stands in the verdict."""
    place.serve()
    grid = rogue.program(place, ["good", "crash"], budget=0.0, run=FAST)
    place.must(VOID, "preregd", "submit", grid, "--wait")
    place.ctl("verdict", wanted=VOID)
    answer = place.ctl_json("verdict", wanted=VOID)
    equal((answer["kind"], answer["exit_code"]), ("void", VOID), "kind and exit code of the verdict")


def test_retry_cancel_pause(place):
    """What a person can do to a running program; a cancelled task leaves its measure undetermined."""
    place.serve()
    grid = rogue.program(place, ["good", "never_reports"], run='[run.probe]\ncrashes = 1\n')
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: place.tasks()["mode=never_reports,seed=1/probe"]["state"] == "running", 30, "it runs")
    place.wait_for(lambda: place.tasks()["mode=good,seed=1/probe"]["state"] == "done", 30, "the other is done")
    place.ctl("verdict", wanted=lab.ANY)
    place.ctl("pause")
    equal(place.status()[0]["state"], "paused", "state after pause")
    place.ctl("resume")
    equal(place.status()[0]["state"], "running", "state after resume")
    why = place.ctl_json("explain", "mode=never_reports,seed=1/probe")
    equal(why["why"], "running", "why of a running task")
    place.ctl("cancel", "mode=never_reports,seed=1/probe")
    place.wait_finished(60)
    verdict = json.loads(place.verdict_bytes())
    equal(verdict["coverage"]["counted"]["excluded"], 0, "a cancelled task is never excluded")
    place.ctl("retry", wanted=lab.ANY)


def test_after_the_end(place):
    """What a person may still ask of a finished program, and what is said of it."""
    place.serve()
    grid = rogue.program(place, ["good", "crash"], budget=0.0, run=FAST)
    place.must(VOID, "preregd", "submit", grid, "--wait")
    for command in ("pause", "resume"):
        expect("has its verdict" in place.ctl(command, wanted=lab.ANY).stderr, f"{command} of a finished program")
    for what in (["mode=good,seed=1"], ["--all"]):
        expect("nothing to cancel" in place.ctl("cancel", *what).stdout, f"cancel {what} of a finished program")
    blocked = "mode=crash,seed=1/probe"
    said = place.ctl("explain", blocked).stdout
    expect("cannot be tried again" in said and "preregctl retry" not in said, f"explain of a blocked task:\n{said}")
    refused = place.ctl("retry", blocked, wanted=lab.ANY).stderr
    expect(place.ctl_json("explain", blocked)["retry_refusal"] in refused, f"retry says other than explain: {refused}")
    done = place.tasks()["mode=good,seed=1/probe"]
    equal((done["done"], done["total"]), (None, None), "progress of a task that is not at work")
    expect("of" in place.run("preregctl", "--state", place.state, "status").stdout, "--state before the command")
    report = os.path.join(place.program_folder(), "report")
    os.remove(os.path.join(report, "report.html"))
    place.ctl("report")  # written again, by a process with the caller's umask
    equal({os.stat(os.path.join(report, name)).st_mode & 0o777 for name in os.listdir(report)}, {0o600}, "modes in report/")


lab.main(test_causes, test_estimate_beyond_all_time, test_nan_is_undetermined, test_orphans,
         test_over_the_exclusion_budget_is_void, test_retry_cancel_pause, test_after_the_end)
