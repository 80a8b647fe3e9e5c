#!/usr/bin/env python3
"""`preregctl calibration`: outcomes against priors over programs, from files that must follow from lock and journal."""

import json
import os
import shutil

from lib import lab
from lib.lab import ANY, INVALID, LOCK, OK, equal, expect

PROGRAMS = os.path.join(lab.TOP, "ops/programs")
PAPERS = (("below_the_floor", "below_the_floor/grid.toml"), ("active_vs_total", "active_vs_total/replay/grid.toml"),
          ("holding_fixed", "holding_fixed/replay/grid.toml"))


def near(got, wanted, what):
    expect(got is not None and abs(got - wanted) < 1e-3, f"{what}: {got}, not {wanted}")


def test_imported(place):
    """Three papers: bits and Brier of each, sums and means, the statements in their bins; few, and it says so."""
    for name, grid in PAPERS:
        place.ctl("replay", os.path.join(PROGRAMS, grid), os.path.join(PROGRAMS, name, "replay/records.json"), "--out", place.path(name))
    folders = [place.path(name) for name, _ in PAPERS]
    answer = place.ctl_json("calibration", *folders)
    rows = {r["program"]: r for r in answer["programs"]}
    equal({n: (r["status"], r["outcome"], r["history"]) for n, r in rows.items()},
          {"below_the_floor": ("scored", "O4", "imported"), "active_vs_total_published": ("scored", "split", "imported"),
           "holding_fixed_published": ("scored", "by_contract", "imported")}, "rows")
    equal({r["why"] for r in rows.values()}, {"locked at import: no pre-registration"}, "remarks")
    near(rows["below_the_floor"]["bits"], 2.5564, "bits of O4")
    near(rows["below_the_floor"]["brier"], 0.31 ** 2 + 0.22 ** 2 + 0.18 ** 2 + 0.83 ** 2 + 0.12 ** 2, "Brier score of O4")
    near(answer["priors"]["bits"], 2.5564 + 2 * 1.3219, "bits in all")
    equal((answer["priors"]["scored"], sum(b["n"] for b in answer["priors"]["bins"]), sum(b["held"] for b in answer["priors"]["bins"])),
          (3, 4 + 5 + 3, 3), "statements, and how many held")
    equal((answer["forecasts"]["stated"], answer["forecasts"]["scored"]), (2, 2), "forecasts")
    near(answer["forecasts"]["mean_brier"], (0.01 + 0.0225) / 2, "Brier score of the forecasts")
    equal(answer["forecasts"]["bins"][4]["n"], 2, "both were said with more than 0.8")
    text = place.ctl("calibration", *folders).stdout
    expect("so few say little" in text and "below_the_floor" in text, text)
    check_forecasts(place, place.path("below_the_floor"))


def check_forecasts(place, folder):
    """The plan's stand whatever the report's file says: of another confidence or condition, of another root, or gone."""
    path = os.path.join(folder, "report/instruments.json")
    with open(path, encoding="utf-8") as f:
        whole = f.read()
    first = json.loads(whole)["forecasts"][0]
    for change, scored in ((lambda o: o["forecasts"][0].update(confidence=0.99), 1), (lambda o: o["forecasts"][0].update(condition="counter.k == 0"), 1),
                           (lambda o: o["forecasts"].clear(), 0), (lambda o: o.update(root="0" * 64), 0), (None, 0)):
        made = json.loads(whole)
        if change:
            change(made)
            with open(path, "w", encoding="utf-8") as f:
                json.dump(made, f)
        else:
            os.remove(path)
        answer = place.ctl_json("calibration", folder)
        equal((answer["forecasts"]["stated"], answer["forecasts"]["scored"]), (2, scored), "forecasts of a changed file")
        row = answer["programs"][0]
        equal({f["name"]: f["confidence"] for f in row["forecasts"]}[first["name"]], first["confidence"], "the plan's confidence")
        equal(row["forecasts_why"] is None, change is not None and made["root"] != "0" * 64, f"said: {row['forecasts_why']}")
    expect("0 scored of 2 stated" in place.ctl("calibration", folder).stdout, "it is not said that forecasts have no truth")


MADE_UP = """[program]
name = "{name}"
schema = 1
{more}
[[factor]]
name = "arch"
levels = ["x", "y"]
[[factor]]
name = "seed"
levels = [1, 2]
replicate = true
[stage.train]
command = ["./w"]
params = {{ a = "$arch", s = "$seed" }}
[measure]
q = {{ metric = "train.q", items = 100, chance = 0.25, floor = 0.3 }}
[contrast]
c = {{ between = {{ arch = ["x", "y"] }} }}
[[input]]
name = "ahead"
levels = [["x", "contrast.c.mean > 0"], ["y", "otherwise"]]
[table]
inputs = ["ahead"]
rows = [["x", "X"], ["y", "Y"]]
[outcome]
X = {{ prior = 0.6, title = "x" }}
Y = {{ prior = 0.3, title = "y" }}
[validity]
same_size = {{ condition = "ratio(fact.train.size, arch, 'x', 'y') within 0.01", on_fail = "void" }}
[forecast]
ahead = {{ condition = "contrast.c.mean > 0", confidence = 0.7 }}
"""


def made_up(place, name, more="", size=1, known=True):
    """A program of four cells in which x is ahead: an imported folder. A size of y other than 1 makes it VOID, a score that is
    not known INDETERMINATE."""
    grid = place.path(f"{name}.toml")
    place.write(f"{name}.toml", MADE_UP.format(name=name, more=more))
    cells = [{"cell": f"arch={arch},seed={seed}", "stage": "train", "facts": {"size": 1 if arch == "x" else size},
              "metrics": {"q": {"value": (0.5 if arch == "x" else 0.4) if known or seed == 1 else None, "n": 100}}}
             for arch in "xy" for seed in (1, 2)]
    place.write(f"{name}.json", json.dumps({"schema": 1, "program": name, "label": "made up", "records": cells}))
    place.run("preregctl", "replay", grid, place.path(f"{name}.json"), "--out", place.path(name))
    return place.path(name)


def test_not_scored(place):
    """VOID and INDETERMINATE programs are listed and stand in no sum and no bin; superseded ones are scored: a successor takes back no outcome."""
    plain = made_up(place, "plain")
    alone = place.ctl_json("calibration", plain)
    near(alone["priors"]["bits"], 0.737, "bits of X")
    near(alone["priors"]["mean_brier"], 0.4 ** 2 + 0.3 ** 2 + 0.1 ** 2, "Brier score of X")
    equal((alone["forecasts"]["stated"], alone["forecasts"]["scored"]), (1, 1), "forecasts")
    folders = [plain, made_up(place, "unequal", size=2), made_up(place, "unknown", known=False), made_up(place, "first")]
    root = place.ctl_json("calibration", folders[-1])["programs"][0]["root"]
    folders.append(made_up(place, "by_root", f'supersedes = "{root}"'))
    root = place.ctl_json("calibration", folders[-1])["programs"][0]["root"]
    folders.append(made_up(place, "by_name", f'supersedes = "{root}"'))
    answer = place.ctl_json("calibration", *folders)
    equal({r["program"]: (r["status"], r.get("outcome")) for r in answer["programs"]},
          {"plain": ("scored", "X"), "unequal": ("void", "VOID"), "unknown": ("indeterminate", "INDETERMINATE"),
           "first": ("scored", "X"), "by_root": ("scored", "X"), "by_name": ("scored", "X")}, "rows")
    equal({r["program"]: r["superseded_by"] for r in answer["programs"] if r["superseded_by"]}, {"first": "by_root", "by_root": "by_name"}, "successors")
    equal([r["status"] for r in place.ctl_json("calibration", plain, plain)["programs"]], ["scored", "repeated"], "the same twice")
    expect(not any("bits" in r for r in answer["programs"] if r["status"] in ("void", "indeterminate")), "bits without an outcome")
    for part in ("priors", "forecasts"):
        equal((answer[part]["scored"], answer[part]["mean_brier"]), (4, alone[part]["mean_brier"]), part)
        near(answer[part]["bits"], 4 * alone[part]["bits"], f"bits of {part}")
    equal(([b["n"] for b in answer["priors"]["bins"]], [b["held"] for b in answer["priors"]["bins"]]), ([0, 4, 0, 4, 0], [0, 0, 0, 4, 0]), "bins")
    equal(answer["forecasts"]["stated"], 5, "forecasts of the scored ones, and of the one without an outcome, whose truth is unknown")


def test_tampered(place):
    """A verdict of another root, and no imported folder at all."""
    name, grid = PAPERS[0]
    out = place.path("out")
    place.ctl("replay", os.path.join(PROGRAMS, grid), os.path.join(PROGRAMS, name, "replay/records.json"), "--out", out)
    with open(os.path.join(out, "report/verdict.json"), encoding="utf-8") as f:
        verdict = json.load(f)
    verdict["root"] = "0" * 64
    with open(os.path.join(out, "report/verdict.json"), "w", encoding="utf-8") as f:
        json.dump(verdict, f)
    row = place.ctl_json("calibration", out, wanted=LOCK)["programs"][0]
    equal((row["status"], row["bits"] if "bits" in row else None), ("unverified", None), "not scored")
    verdict.update(root=row["root"], outcome="O1")
    with open(os.path.join(out, "report/verdict.json"), "w", encoding="utf-8") as f:
        json.dump(verdict, f)
    row = place.ctl_json("calibration", out, wanted=LOCK)["programs"][0]
    equal((row["status"], "O4" in row["why"]), ("unverified", True), "an outcome that the records do not give")
    place.ctl("calibration", PROGRAMS, wanted=INVALID)
    place.ctl("calibration", place.path("nowhere"), wanted=ANY)
    expect("holds no programs" in place.ctl("calibration", wanted=ANY).stderr, "a state folder without programs")


def test_executed(place):
    """micro through the daemon: scored; a changed verdict, a torn journal: listed and not scored."""
    grid = place.prepare_small()
    place.ctl("lock", grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(120)
    folder = place.program_folder()
    row = place.ctl_json("calibration")["programs"][0]
    equal((row["status"], row["history"]), ("scored", "executed"), "micro")
    for file, change in (("report/verdict.json", lambda b: b.replace(b'"title"', b'"titel"')), ("journal.jsonl", lambda b: b.replace(b"moe", b"mae", 1)),
                         ("journal.jsonl", lambda b: b + b"\0\n"), ("journal.jsonl", lambda b: b[:-9])):
        path = os.path.join(folder, file)
        shutil.copy(path, path + ".kept")
        with open(path, "rb") as f:
            text = f.read()
        with open(path, "wb") as f:
            f.write(change(text))
        answer = place.ctl_json("calibration", wanted=LOCK)
        equal((answer["programs"][0]["status"], answer["priors"]["scored"]), ("unverified", 0), file)
        os.replace(path + ".kept", path)


lab.main(test_imported, test_not_scored, test_tampered, test_executed)
