#!/usr/bin/env python3
"""Receipts with items: `verify` counts every score again and computes the instruments, and finds what was left out, added or changed.
Without --items a receipt of the same program says that its scores rest on records."""

import json
import os
import shutil
import subprocess

from lib import lab
from lib.forging import forge
from lib.lab import LOCK, OK, equal, expect
from lib.two_arms import DESIGN, decision

GRID = """[program]
name = "{name}"
schema = 1
question = "Does every score follow from its items?"
""" + DESIGN + """[stage.train]
command = ["./items_worker.py"]
params = {{ seed = "$seed" }}
[stage.score]
after = ["train"]
command = ["./items_worker.py"]
params = {{ arm = "$arm", seed = "$seed", lie = {lie} }}
[measure]
acc = {{ metric = "score.acc", items = 20, chance = 0.25, floor = 0.5 }}
{more}[instrument.paired]
kind = "items"
contrast = "arm"
cluster = "group"
""" + decision("arm", ("a", "b"))


def run(place, name, lie, more=""):
    folder = place.path(name)
    os.makedirs(folder)
    shutil.copy2(os.path.join(lab.LIB, "items_worker.py"), folder)
    grid = place.write(os.path.join(name, "grid.toml"), GRID.format(name=name, lie=lie, more=more))
    place.ctl("lock", grid)
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(120)


def fault(place, folder, file, what):
    answer = place.ctl_json("verify", folder, wanted=LOCK)
    expect(answer["fault"]["file"] == file and what in answer["fault"]["what"], f"wanted {file}: {what}: {answer['fault']}")
    equal((answer["items"], answer["rests_on"]), (None, None), "what is said of items beside a fault")


def copy_of(place, folder):
    copy = place.path("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    return copy


def test_items(place):
    place.env["XDG_CONFIG_HOME"] = place.path("config")
    place.serve()
    run(place, "honest", 0.0)
    plain = place.ctl_json("export", "honest", "--out", place.path("plain"))["folder"]
    answer = place.ctl_json("verify", plain)
    equal((answer["rests_on"], answer["items"]), ("records", None), "without items")
    expect(any("The items behind the scores" in s for s in answer["not_shown"]), f"not shown: {answer['not_shown']}")
    equal(place.ctl("export", "honest", "--items", "--out", place.path("quiet")).stderr, "", "items that are there")
    made = place.ctl_json("export", "honest", "--items", "--out", place.path("out"))
    for path in (made["folder"], made["tar"]):
        answer = place.ctl_json("verify", path)
        equal((answer["level"], answer["rests_on"]), ("self-consistent", "items"), path)
        equal(answer["items"], {"results": 4, "scores": 12, "others": 4, "other": "centered", "without": 4,
                                "uncounted": 0, "first_uncounted": None, "lines": 88, "faulty": 8, "empty": 0, "first_empty": None,
                                "instruments": True, "why": None}, f"items of {path}")
        expect(any(s == "of 88 items 8 are at fault and count for no score" for s in answer["established"]), f"established: {answer['established']}")
        expect(any(s.startswith("12 scores were counted again from the items of 4 results, and are the same") for s in answer["established"]),
               f"established: {answer['established']}")
        expect(any("instruments.json was computed again" in s for s in answer["established"]), f"established: {answer['established']}")
        said = place.ctl("verify", path).stdout
        expect(said.startswith("self-consistent, counted again from the items  honest: "), said)
    with open(os.path.join(made["folder"], "instruments.json"), encoding="utf-8") as f:
        paired = next(i for i in json.load(f)["instruments"] if i["name"] == "paired")
    expect(paired["measures"][0]["clustered"]["mean"] is not None, f"the instrument has no items: {paired}")
    check_harm(place, made["folder"], plain)


def by_hand(folder):
    """The step of VERIFY.md about items: what it prints."""
    with open(os.path.join(folder, "VERIFY.md"), encoding="utf-8") as f:
        step = f.read().split("**Items**")[1].split("\n9. ")[0]
    script = "\n".join(line[7:] for line in step.split("\n") if line.startswith("       "))
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=True).stdout


def check_harm(place, folder, plain):
    """By one who makes the sums anew."""
    names = sorted(os.listdir(os.path.join(folder, "items")))
    copy = copy_of(place, folder)
    os.unlink(os.path.join(copy, "items", names[0]))
    forge(copy)
    fault(place, copy, "items/" + names[0], "is missing")
    copy = copy_of(place, folder)
    with open(os.path.join(copy, "items", names[0]), "rb+") as f:
        raw = f.read()
        f.seek(raw.index(b'"acc": 1') + 7)
        f.write(b"0")
    if shutil.which("jq"):
        equal((by_hand(folder), by_hand(plain)), ("", ""), "by hand")
        said = by_hand(copy)
        expect("is not the one of the result" in said and "acc is " in said, f"a changed item, by hand: {said!r}")
    else:
        print("skipped in part: no jq for the step of VERIFY.md")
    forge(copy)
    fault(place, copy, "items/" + names[0], "not those that the result is of")
    copy = copy_of(place, folder)
    shutil.copy2(os.path.join(copy, "items", names[0]), os.path.join(copy, "items", "0" * 64 + ".jsonl"))
    forge(copy)
    fault(place, copy, "items/" + "0" * 64 + ".jsonl", "no accepted result names these items")
    for where, wanted in ((folder, LOCK), (plain, OK)):
        copy = copy_of(place, where)
        path = os.path.join(copy, "instruments.json")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace('"n_pairs": 2', '"n_pairs": 3'))
        forge(copy)
        if wanted == LOCK:
            fault(place, copy, "instruments.json", "n_pairs")
        place.ctl("verify", copy, wanted=wanted)  # without items nothing refers to it


def test_lie(place):
    """A score that its items do not give: exported as the record that it is, and never with its items."""
    place.serve()
    run(place, "lying", 0.05)
    said = place.ctl("export", "lying", "--items", "--out", place.path("out"), wanted=LOCK)
    expect("acc, counted again from the items" in said.stderr, said.stderr)
    equal(os.listdir(place.path("out")), [], "what is left of it")
    place.ctl("export", "lying", "--out", place.path("out"))


def test_in_part(place):
    """A counted measure whose items have no member of its name: nothing is said to have been counted again that was not."""
    place.serve()
    run(place, "renamed", 0.0, more='centered = { metric = "score.centered" }\n')
    made = place.ctl_json("export", "renamed", "--items", "--out", place.path("out"))
    answer = place.ctl_json("verify", made["folder"])
    equal((answer["rests_on"], answer["items"]["scores"], answer["items"]["uncounted"], answer["items"]["first_uncounted"]),
          ("items in part", 12, 4, "arm=a,seed=1/score.centered"), "what the scores rest on")
    expect(any(s.startswith("That 4 scores of counted measures follow from items: they were not") for s in answer["not_shown"]), answer["not_shown"])
    said = place.ctl("verify", made["folder"]).stdout
    expect(said.startswith("self-consistent, counted again from the items in part  renamed: "), said)


if __name__ == "__main__":
    lab.main(test_items, test_lie, test_in_part)
