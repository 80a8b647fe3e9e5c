#!/usr/bin/env python3
"""Every --json answer is one JSON object with "schema":1 and the members that docs name; sealed scores appear in none."""

import json
import os
import shutil

from lib import lab
from lib import rogue
from lib import signers
from lib.lab import LOCK, OK, equal, expect

MEMBERS = {
    "status": {"daemon", "programs"},
    "cells": {"program", "n_cells", "stages", "cells"},
    "explain": {"program", "stage", "state", "why", "budgets", "attempt_list", "counted", "sealed"},
    "logs": {"program", "task", "attempts"},
    "verdict": {"program", "environments", "state", "kind", "outcome", "exit_code", "verdict", "means", "ranks"},
    "report": {"folder", "html"},
    "export": {"folder", "tar", "sums_sha256"},
    "verify": {"receipt", "holds", "fault", "level", "sentence", "program", "root", "head", "records", "outcome", "tool", "counts",
               "reruns", "established", "claimed", "not_shown"},
    "rerun": {"tool", "program", "root", "cell", "time", "stages", "left_out", "level", "same", "file", "kept"},
    "sign": {"signature"},
}


def members(place, command, *arguments, wanted=OK):
    answer = place.ctl_json(command, *arguments, wanted=wanted)
    missing = MEMBERS[command] - set(answer)
    expect(not missing, f"{command} --json lacks {sorted(missing)}")
    return answer


def test_schemas(place):
    grid = place.prepare_small()
    check = place.ctl_json("check", grid)
    expect({"ok", "diagnostics"} <= set(check), f"check --json has {sorted(check)}")
    lock = place.ctl_json("lock", grid)
    equal(len(lock["root"]), 64, "the root in lock --json")
    place.ctl_json("version")
    place.serve()
    place.must(OK, "preregd", "submit", grid, "--wait")
    status = members(place, "status")
    equal(status["programs"][0]["root"], lock["root"], "root in status")
    equal(status["programs"][0]["environments"], {}, "environments in status, of stages that name none")
    members(place, "cells")
    task = next(iter(place.tasks()))
    members(place, "explain", task)
    members(place, "logs", task)
    verdict = members(place, "verdict")
    equal(json.dumps(verdict["verdict"], sort_keys=True), json.dumps(json.loads(place.verdict_bytes()), sort_keys=True),
          "verdict --json against verdict.json")
    report = members(place, "report")
    with open(os.path.join(report["folder"], "instruments.json"), encoding="utf-8") as f:
        instruments = json.load(f)
    verdict = members(place, "verdict")
    equal((verdict["means"], verdict["ranks"]), (instruments["means"], instruments["ranks"]), "means and ranks of verdict --json")
    expect(verdict["means"], "no means")
    rerun(place, task.split("/", maxsplit=1)[0])
    receipts(place, verdict["outcome"])
    for command in ("retry", "unblind"):
        run = place.run("preregctl", command, "--json", *(["--reason", "test"] if command == "unblind" else []))
        equal(json.loads(run.stdout)["schema"], 1, f"schema of {command} --json")
        if run.returncode == OK:
            equal(json.loads(run.stdout)["program"], status["programs"][0]["id"], f"the program of {command} --json")
    for command in ("pause", "resume"):
        run = place.run("preregctl", command, "--json")
        equal(json.loads(run.stdout)["schema"], 1, f"schema of {command} --json")
    place.ctl_json("stop")


def rerun(place, cell):
    """The shipped workers give the same again."""
    again = members(place, "rerun", cell)
    equal((again["level"], [s["same"] for s in again["stages"]]), ("re-executed", [True, True, True]), "rerun --json")


def receipts(place, outcome):
    folder = members(place, "export", "--out", place.path("receipts"))["folder"]
    verified = members(place, "verify", folder)
    equal((verified["holds"], verified["outcome"], verified["level"]), (True, outcome, "self-consistent"), "verify --json")
    if shutil.which("ssh-keygen"):
        members(place, "sign", folder, "--key", signers.key(place, "alice"))
    place.edit(os.path.join(folder, "coverage.json"), '"done"', '"dune"')
    broken = members(place, "verify", folder, wanted=LOCK)
    equal(set(broken["fault"]), {"file", "line", "what", "expected", "found"}, "members of a fault")
    equal((broken["holds"], broken["level"]), (False, None), "verify --json of what does not follow")


def test_watch(place):
    """Without a terminal --watch writes a line when something changed, and ends with the program."""
    grid = place.prepare_small()
    place.ctl("lock", grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    run = place.ctl("status", "--watch", "--interval", "200ms", timeout=180)
    expect("\033" not in run.stdout, "colour or cursor movement without a terminal")
    last = run.stdout.strip().split("\n")[-1]
    expect("18 of 18 tasks done" in last, f"the last line is {last!r}")
    rows = [json.loads(line) for line in place.ctl("status", "--watch", "--json").stdout.strip().split("\n")]
    equal({row["schema"] for row in rows}, {1}, "schema of status --watch --json")


def test_sealed(place):
    """While a counted task is open, nothing that a command prints holds a score; after unblind it is journalled."""
    secret = "0.75"
    grid = rogue.program(place, ["good", "never_reports"], run="[run.probe]\ncrashes = 1\n")
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: place.tasks()["mode=good,seed=1/probe"]["state"] == "done", 30, "the good task is done")
    for command in (["status"], ["cells"], ["explain", "mode=good,seed=1/probe"], ["logs", "mode=good,seed=1/probe"],
                    ["verdict"]):
        for extra in ([], ["--json"]):
            text = place.run("preregctl", *command, *extra).stdout
            expect(secret not in text, f"{command[0]} {extra} shows a sealed score")
    with open(os.path.join(place.state, "preregd.log"), errors="replace") as f:
        expect(secret not in f.read(), "the log shows a sealed score")
    with open(os.path.join(place.state, "preregd.db"), "rb") as f:
        expect(b'"value":0.75' not in f.read(), "the store holds a sealed score")
    equal(place.ctl_json("unblind", "--reason", "end-to-end test")["unblinded"], True, "unblind")
    with open(os.path.join(place.program_folder(), "journal.jsonl")) as f:
        expect("end-to-end test" in f.read(), "the journal does not hold the reason")


lab.main(test_schemas, test_watch, test_sealed)
