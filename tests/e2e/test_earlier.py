#!/usr/bin/env python3
"""State folders of earlier trees: today's tree serves each of them, rebuilds its store, exports the program, verifies the receipt, and
writes a lost verdict.json again, the same bytes. Each fixture holds p/ (grid.toml, worker, lock) and state/ of a lab's folder.

fixtures/finished_7da8867.tar.xz is older than verdict.json's effects and first_error and provenance.json's runs: the program of
test_receipts.py with [run] slots = 2, and 1 from the end of its training on. fixtures/finished_ca88b79.tar.xz is older than schema 5
of the database, which dropped the table of records: a program that was amended, with a task that was retried
(fixtures/make_finished.py made it). fixtures/void_7da8867.tar.xz is a program that lost one task with a budget of none: its verdict
says "1 counted tasks are lost"."""

import json
import os
import tarfile

from lib import lab
from lib.forging import forge
from lib.lab import ANY, LOCK, equal, expect

NOTE = "verdict.json lacks effects and first_error, as earlier versions wrote it"


class Kept:
    """A fixture, and whether its verdict has what came later."""

    def __init__(self, commit, whole, kind="finished"):
        self.path = os.path.join(lab.HERE, f"fixtures/{kind}_{commit}.tar.xz")
        self.whole = whole


EARLY = Kept("7da8867", False)
WHOLE = Kept("ca88b79", True)
VOID_BY_ONE = Kept("7da8867", False, "void")


def unpack(place, kept):
    """The program's folder. Its plan is where this lab is: workers are looked for beside it."""
    with tarfile.open(kept.path) as tar:
        tar.extractall(place.folder)
    folder = place.program_folder()
    with open(os.path.join(folder, "origin.json"), encoding="utf-8") as f:
        was = json.load(f)["path"]
    place.edit(os.path.join(folder, "origin.json"), was, place.path("p/grid.toml"))
    return folder


def export(place, kept, out, *more):
    """The receipt's folder."""
    run = place.ctl("export", *more, "--out", place.path(out))
    equal(run.stdout.splitlines()[-1] == NOTE, not kept.whole, "what export says of an earlier version")
    folder = run.stdout.splitlines()[0]
    for path in (folder, folder + ".tar"):
        answer = place.ctl_json("verify", path)
        equal((answer["holds"], answer["level"], answer["outcome"]), (True, "self-consistent", "up"), f"verify {path}")
        equal(any(text.startswith(NOTE) for text in answer["established"]), not kept.whole, f"the note of verify: {answer['established']}")
        equal(any("[run] was" in text for text in answer["established"]), not kept.whole, f"changes of [run]: {answer['established']}")
    return folder


def stop(place):
    place.ctl("stop")
    place.wait_for(lambda: place.daemon.poll() is not None, 60, "the daemon stops")


def content(*parts):
    with open(os.path.join(*parts), "rb") as f:
        return f.read()


def serve_rebuild_export(place, kept):
    """Ends with the daemon stopped; returns the receipt that was exported first."""
    folder = unpack(place, kept)
    path = os.path.join(folder, "report/verdict.json")
    text, journal = content(path), content(folder, "journal.jsonl")
    first = export(place, kept, "of_folder", folder)
    said = place.ctl("export", wanted=ANY).stderr  # by name: asked of the store
    expect("of an older schema: start `preregd serve` once" in said, said)
    place.serve()
    equal([p["state"] for p in place.status()], ["finished"], "the program")
    equal(place.ctl_json("export", "--out", place.path("served"))["verdict_is_early"], not kept.whole, "what export --json says")
    expect("up" in place.ctl("verdict").stdout, "the verdict is not shown")
    tasks = place.tasks()
    stop(place)
    rebuilt = place.ctl_json("rebuild")["programs"][0]
    equal((rebuilt["history"], rebuilt["journal_rows"]), ("verified", journal.count(b"\n")), "the history after a rebuild")
    place.serve()
    equal(place.tasks(), tasks, "the tasks after a rebuild")
    export(place, kept, "rebuilt")
    place.ctl("report")
    export(place, kept, "reported")
    stop(place)
    os.remove(path)
    place.serve()
    place.wait_for(lambda: os.path.exists(path), 60, "verdict.json is written again")
    expect(content(path) == text, "the verdict that was lost is another one")
    expect(content(folder, "journal.jsonl").startswith(journal), "the journal's rows changed")
    return first, tasks


def test_early(place):
    first, _ = serve_rebuild_export(place, EARLY)
    check_changed(place, first)


def test_amended_and_retried(place):
    _, tasks = serve_rebuild_export(place, WHOLE)
    equal(tasks["arm=b,seed=1/score"]["attempts"], 2, "attempts of the task that was retried")
    equal(place.status()[0]["amendments"], 1, "amendments")


def check_changed(place, receipt):
    """What an earlier verdict has is computed again: a figure that is another, a member too few, and one of those that came later."""
    path = os.path.join(receipt, "verdict.json")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for old, new, what in (('"counters"', '"counter"', "counters"), ('"prior": 0.5', '"prior": 0.6', "prior"),
                           ('  "gates"', '  "effects": [],\n  "gates"', "effects")):
        expect(old in text, f"{path} holds no {old}")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace(old, new, 1))
        forge(receipt)
        fault = place.ctl_json("verify", receipt, wanted=LOCK)["fault"]
        expect(fault["file"] == "verdict.json" and what in fault["what"], f"wanted {what}: {fault}")
        expect(" made the receipt, " in fault["what"], f"the versions are not named: {fault}")


def test_void_by_one(place):
    """The sentence of a VOID verdict is compared as that version wrote it; its number and its budget are computed."""
    folder = unpack(place, VOID_BY_ONE)
    path = os.path.join(folder, "report/verdict.json")
    text = content(path)
    expect(b'"1 counted tasks are lost, the exclusion budget is 0"' in text, "the fixture says something else")
    receipt = place.ctl("export", folder, "--out", place.path("out")).stdout.splitlines()[0]
    answer = place.ctl_json("verify", receipt)
    equal((answer["holds"], answer["outcome"]), (True, "VOID"), "verify")
    place.serve()
    stop(place)
    os.remove(path)
    place.serve()
    place.wait_for(lambda: os.path.exists(path), 60, "verdict.json is written again")
    expect(content(path) == text, "the verdict that was lost is another one")
    with open(os.path.join(receipt, "verdict.json"), encoding="utf-8") as f:
        said = f.read()
    for old, new in (("1 counted tasks are", "2 counted tasks are"), ("budget is 0", "budget is 1"), ("tasks are lost", "task is lost")):
        with open(os.path.join(receipt, "verdict.json"), "w", encoding="utf-8") as f:
            f.write(said.replace(old, new, 1))
        forge(receipt)
        fault = place.ctl_json("verify", receipt, wanted=LOCK)["fault"]
        expect(fault["file"] in ("verdict.json", "journal.jsonl"), f"{new}: {fault}")


def test_computed_otherwise(place):
    """Of a verdict that this version computes to another end, export says what to do."""
    folder = unpack(place, EARLY)
    path = os.path.join(folder, "report/verdict.json")
    place.edit(path, '"prior": 0.5', '"prior": 0.6')
    os.remove(os.path.join(folder, "report/SHA256SUMS"))
    for name in ("report.html", "report.md", "report.json", "instruments.json"):
        os.remove(os.path.join(folder, "report", name))
    said = place.ctl("export", folder, "--out", place.path("out"), wanted=LOCK).stderr
    expect("an earlier version finished it: export it with that" in said, said)


lab.main(test_early, test_amended_and_retried, test_void_by_one, test_computed_otherwise)
