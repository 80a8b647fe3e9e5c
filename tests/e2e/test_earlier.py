#!/usr/bin/env python3
"""A program that the tree of commit 7da8867 finished, before verdict.json had effects and first_error and provenance.json had runs: today's
tree serves it, rebuilds its store, exports it, verifies the receipt, and writes a lost verdict.json again, the same bytes.

fixtures/finished_7da8867.tar.xz holds p/ (grid.toml, worker, lock) and state/ of a lab's folder: the program of test_receipts.py with [run] slots
= 2, and 1 from the end of its training on. A fixture of another version is made in the same way, by that version's tests."""

import json
import os
import tarfile

import lab
from forging import forge
from lab import ANY, LOCK, equal, expect

FIXTURE = os.path.join(lab.HERE, "fixtures/finished_7da8867.tar.xz")
NOTE = "verdict.json lacks effects and first_error, as earlier versions wrote it"


def unpack(place):
    """The program's folder. Its plan is where this lab is: workers are looked for beside it."""
    with tarfile.open(FIXTURE) as tar:
        tar.extractall(place.folder)
    folder = place.program_folder()
    with open(os.path.join(folder, "origin.json"), encoding="utf-8") as f:
        was = json.load(f)["path"]
    place.edit(os.path.join(folder, "origin.json"), was, place.path("p/grid.toml"))
    return folder


def export(place, out, *more):
    """The receipt's folder, of a finished program whose verdict lacks what came later."""
    run = place.ctl("export", *more, "--out", place.path(out))
    equal(run.stdout.splitlines()[-1], NOTE, "what export says of an earlier version")
    folder = run.stdout.splitlines()[0]
    for path in (folder, folder + ".tar"):
        answer = place.ctl_json("verify", path)
        equal((answer["holds"], answer["level"], answer["outcome"]), (True, "self-consistent", "up"), f"verify {path}")
        expect(any(text.startswith(NOTE) for text in answer["established"]), f"verify does not say it: {answer['established']}")
        expect(any("[run] was" in text for text in answer["established"]), f"[run] is not shown: {answer['established']}")
    return folder


def stop(place):
    place.ctl("stop")
    place.wait_for(lambda: place.daemon.poll() is not None, 60, "the daemon stops")


def test_finished(place):
    folder = unpack(place)
    path = os.path.join(folder, "report/verdict.json")
    with open(path, "rb") as f:
        text = f.read()
    first = export(place, "of_folder", folder)
    said = place.ctl("export", wanted=ANY).stderr  # by name: asked of the store
    expect("of an older schema: start `preregd serve` once" in said, said)
    place.serve()
    equal([p["state"] for p in place.status()], ["finished"], "the program")
    equal(place.ctl_json("export", "--out", place.path("served"))["verdict_is_early"], True, "what export --json says")
    expect("up" in place.ctl("verdict").stdout, "the verdict is not shown")
    stop(place)
    place.ctl("rebuild")
    place.serve()
    export(place, "rebuilt")
    place.ctl("report")
    export(place, "reported")
    stop(place)
    os.remove(path)
    place.serve()
    place.wait_for(lambda: os.path.exists(path), 60, "verdict.json is written again")
    with open(path, "rb") as f:
        equal(f.read(), text, "the verdict that was lost")
    check_changed(place, first)


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


def test_computed_otherwise(place):
    """Of a verdict that this version computes to another end, export says what to do."""
    folder = unpack(place)
    path = os.path.join(folder, "report/verdict.json")
    place.edit(path, '"prior": 0.5', '"prior": 0.6')
    os.remove(os.path.join(folder, "report/SHA256SUMS"))
    for name in ("report.html", "report.md", "report.json", "instruments.json"):
        os.remove(os.path.join(folder, "report", name))
    said = place.ctl("export", folder, "--out", place.path("out"), wanted=LOCK).stderr
    expect("an earlier version finished it: export it with that" in said, said)


lab.main(test_finished, test_computed_otherwise)
