#!/usr/bin/env python3
"""`preregctl replay`: verdicts of records from elsewhere, with the exit code of each kind; nothing is executed."""

import json
import os

from lib import lab
from lib.lab import ANY, INDETERMINATE, INVALID, OK, VOID, equal, expect

PAPER = os.path.join(lab.TOP, "ops/programs/below_the_floor")
MICRO = os.path.join(lab.TOP, "ops/programs/micro/grid.toml")


def records(place, change=lambda cell, stage, record: record):
    """Records of every task of micro: grammar clears everywhere, the mixture is ahead, giving does not clear."""
    found = []
    for arch in ("dense", "moe"):
        for seed in (1, 2, 3):
            cell = f"arch={arch},seed={seed}"
            score = 0.50 + (0.10 if arch == "moe" else 0)
            rows = {"train": {"metrics": {"val_loss": 2.0}, "facts": {"params_active": 100}},
                    "grammar": {"metrics": {"acc": {"value": score, "n": 60}}, "facts": {}},
                    "giving": {"metrics": {"acc": {"value": 0.5, "n": 60}}, "facts": {}}}
            for stage, row in rows.items():
                record = change(cell, stage, {"cell": cell, "stage": stage, "end": "done", **row})
                if record:
                    found.append(record)
    text = json.dumps({"schema": 1, "program": "micro", "label": "made up", "records": found})
    return place.write("records.json", text)


def test_the_paper(place):
    """The reconstructed cells of the paper: O4 binds by rows 4, 8, 12 and 16, MMLU 10.8 standard errors under its floor."""
    arguments = ("replay", os.path.join(PAPER, "grid.toml"), os.path.join(PAPER, "replay/records.json"))
    verdict = place.ctl_json(*arguments)["verdict"]
    equal((verdict["outcome"], verdict["rows_fired"]), ("O4", [4, 8, 12, 16]), "outcome and rows")
    margins = [g["z"] for g in verdict["gates"] if g["measure"] == "mmlu" and g["z"] is not None]
    equal(round(-max(margins), 1), 10.8, "margin of the best cell on MMLU")
    text = place.ctl(*arguments).stdout
    for words in ("O4", "4, 8, 12, 16", "-10.8", "reconstructed"):
        expect(words in text, f"the text does not hold {words!r}:\n{text}")


def test_bound(place):
    place.ctl("replay", MICRO, records(place))
    verdict = place.ctl_json("replay", MICRO, records(place))["verdict"]
    equal((verdict["outcome"], verdict["counters"]["k"]), ("moe", [1, 1]), "outcome and counter")


def test_json_is_not_changed(place):
    """Marks that turn the direction of text: data in a pipe bears them as they are, text never does."""
    whole = records(place)
    place.edit(whole, '"made up"', '"made \u202eup\u2066"')
    for more in ((), ("--out", place.path("out"))):
        told = place.ctl_json("replay", MICRO, whole, *more)["verdict"]["records"]
        expect("made \u202eup\u2066" in told, f"{more}: --json changed the label: {told!r}")
    said = place.ctl("replay", MICRO, whole).stdout
    expect("made ???up???;" in said, f"a terminal would obey: {said!r}")


def test_indeterminate(place):
    """One missing score leaves its gate open; the rows that fire do not agree."""
    def change(cell, stage, record):
        if (cell, stage) == ("arch=moe,seed=2", "grammar"):
            record["metrics"] = {}
        return record
    verdict = place.ctl_json("replay", MICRO, records(place, change), wanted=INDETERMINATE)["verdict"]
    equal(verdict["counters"]["k"], [0, 1], "the counter's interval")


def test_a_loss_that_ran_away(place):
    """Finite, whole, and beyond what an integer can be: a number like any other."""
    def run_away(cell, stage, record):
        if stage == "train":
            record["metrics"] = {"val_loss": 1e20 if "moe" in cell else 9007199254740994}
        return record
    verdict = place.ctl_json("replay", MICRO, records(place, run_away))["verdict"]
    equal(verdict["outcome"], "moe", "outcome")


def test_void(place):
    """More counted tasks lost to machines than the budget allows; or a voiding validity that fails, or is unknown."""
    def lose(cell, stage, record):
        return {"cell": cell, "stage": stage, "end": "blocked", "cause": "crash"} if stage == "giving" else record
    place.ctl("replay", MICRO, records(place, lose), wanted=VOID)

    def unmatched(cell, stage, record):
        if stage == "train" and "moe" in cell:
            record["facts"]["params_active"] = 150
        return record
    place.ctl("replay", MICRO, records(place, unmatched), wanted=VOID)

    def unknown(_cell, stage, record):
        if stage == "train":
            record["facts"] = {}
        return record
    place.ctl("replay", MICRO, records(place, unknown), wanted=VOID)


def test_bad_records(place):
    """Records that are none, of no such cell, doubled: an error, or undetermined; never a number."""
    for text in ("", "{", "[]", '{"schema":2,"program":"micro","label":"x","records":[]}',
                 '{"schema":1,"program":"micro","label":"x","records":[{"cell":"arch=sparse,seed=1","stage":"train","end":"done"}]}'):
        run = place.run("preregctl", "replay", MICRO, place.write("bad.json", text))
        expect(run.returncode not in (OK, INDETERMINATE, VOID) and run.returncode > 0, f"{text!r}: exit {run.returncode}")
        expect(run.stderr, f"{text!r}: nothing is said")
    place.ctl("replay", MICRO, place.path("absent.json"), wanted=ANY)
    place.ctl("replay", place.write("no.toml", "[program]\n"), records(place), wanted=INVALID)


def test_values(place):
    """Values that are none leave their gate open and say why; what the file cannot mean is an error that names it."""
    for value, why in (({"value": 1.2, "n": 60}, "outside 0..1"), ({"value": 0.5, "n": -3}, "n is not a count"),
                       ({"value": 0.5, "n": 59.5}, "n is not a count"), ({"value": 0.5, "n": 59}, "on 59 items, the plan says 60"),
                       ({"value": None}, "null or NaN, without a reason"),
                       (float("nan"), "null or NaN, without a reason"), ("0.5", "not a number")):
        def change(cell, stage, record, value=value):
            if (cell, stage) == ("arch=moe,seed=2", "grammar"):
                record["metrics"] = {"acc": value}
            return record
        verdict = place.ctl_json("replay", MICRO, records(place, change), wanted=INDETERMINATE)["verdict"]
        gate = [g for g in verdict["gates"] if (g["measure"], g["cell"]) == ("grammar", "arch=moe,seed=2")][0]
        equal((gate["cleared"], gate["why"]), (None, why), f"gate of {value}")
    with open(records(place), encoding="utf-8") as f:
        good = f.read()
    for old, new, word in (('"value": 0.6', '"value": 0.6.', "records.json"), ('"program": "micro"', '"program": "other"', "other"),
                           ('"stage": "giving"', '"stage": "taking"', "taking"), ('"end": "done"', '"end": "blocked"', "cause")):
        bad = place.write("records.json", good.replace(old, new, 1))
        run = place.run("preregctl", "replay", MICRO, bad, "--out", place.path("out"))
        expect(run.returncode > 0 and word in run.stderr, f"{new}: exit {run.returncode}, {run.stderr}")
        expect(not os.path.exists(place.path("out")), f"{new}: a folder was written")


def test_the_same_in_a_folder(place):
    """Records that stand twice, and none at all: --out says what the verdict that is only printed says."""
    whole = records(place)
    with open(whole, encoding="utf-8") as f:
        file = json.load(f)
    grammar = [r for r in file["records"] if r["stage"] == "grammar"]
    for name, rows, wanted in (("twice", file["records"] + grammar[:1], INDETERMINATE), ("none", [], VOID)):
        path = place.write(f"{name}.json", json.dumps({**file, "records": rows}))
        printed = place.ctl_json("replay", MICRO, path, wanted=wanted)["verdict"]
        place.ctl("replay", MICRO, path, "--out", place.path(name), wanted=wanted)
        with open(os.path.join(place.path(name), "report/verdict.json"), encoding="utf-8") as f:
            written = json.load(f)
        equal(*[(v["outcome"], v["gates"]) for v in (written, printed)], name)
        if name == "twice":
            equal([g["why"] for g in written["gates"] if g["cell"] == grammar[0]["cell"] and g["measure"] == "grammar"], ["recorded more than once"], name)


lab.main(test_the_same_in_a_folder, test_values, test_the_paper, test_bound, test_json_is_not_changed, test_indeterminate, test_a_loss_that_ran_away, test_void, test_bad_records)
