#!/usr/bin/env python3
"""prereg-report that dies, fails for good, or has values to draw that no axis was made for: the verdict stands, `status` says what
is missing, and the report comes once it can."""

import json
import os

from lib import lab
from lib.lab import OK, equal, expect
from lib.two_arms import DESIGN, READING

GRID = """[program]
name = "reporting"
schema = 1
question = "Is it reported?"
""" + DESIGN + """[stage.score]
command = ["./worker.py"]
params = {{ arm = "$arm", seed = "$seed" }}
""" + READING

WORKER = """#!/usr/bin/env python3
import json, os, sys
if "--describe" in sys.argv:
    print(json.dumps({"protocol": 1, "metrics": ["acc", "loss"]}))
    sys.exit(0)
with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
    task = json.load(f)
seed, sign = task["params"]["seed"], 1 if task["params"]["arm"] == "a" else -1
with open("events.jsonl", "w", encoding="utf-8") as f:
    for step in range(1, 60):
        value = (1.7e308 if step % 2 else -1.7e308) if seed == 1 else sign * 5e-324 * step
        f.write(json.dumps({"type": "point", "name": "loss", "step": step * (1e300 if sign > 0 else 1), "value": value}) + "\\n")
huge = {"value": sign * 1.6e308, "se": 1e308, "n": 100}
result = {"protocol": 1, "attempt": task["attempt"], "facts": {"threads": 1, "params_total": sign * 1.2e307},
          "metrics": {"acc": {"value": 0.6 + 0.01 * seed, "n": 100}, "loss": huge}}
with open("result.tmp", "w", encoding="utf-8") as f:
    json.dump(result, f)
os.replace("result.tmp", "result.json")
"""


def prepare(place):
    place.write("p/worker.py", WORKER, 0o755)
    loss = '[measure.loss]\nmetric = "score.loss"\nbetter = "lower"\ncounted = false\n'
    grid = place.write("p/grid.toml", GRID.format().replace("[contrast]", loss + "[contrast]"))
    place.ctl("lock", grid)
    return grid


def replace_report(place, script):
    """In place of prereg-report; the real one is beside it."""
    path = os.path.join(place.bin, "prereg-report")
    if not os.path.exists(path + ".real"):
        os.rename(path, path + ".real")
    place.write("bin/prereg-report", script, 0o755)


def restore_report(place):
    path = os.path.join(place.bin, "prereg-report")
    os.replace(path + ".real", path)


def rows(place, event):
    with open(os.path.join(place.program_folder(), "journal.jsonl"), encoding="utf-8") as f:
        return [row for row in map(json.loads, f) if row["event"] == event]


def summary(place):
    return place.status()[0]


def test_dies_once(place):
    """One death of prereg-report: it runs again, and `reported` is journalled when the report is there. Huge values are drawn."""
    grid = prepare(place)
    replace_report(place, f'#!/bin/sh\nif [ ! -e "{place.path("died")}" ]; then : > "{place.path("died")}"; kill -9 $$; fi\n'
                          f'exec "{os.path.join(place.bin, "prereg-report.real")}" "$@"\n')
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(120)
    expect(os.path.exists(place.path("died")), "prereg-report did not die")
    folder = place.program_folder()
    equal([row.get("detail") for row in rows(place, "reported")], [None], "what `reported` says")
    for name in ("report.html", "report.md", "report.json", "SHA256SUMS"):
        expect(os.path.exists(os.path.join(folder, "report", name)), f"no {name}")
    with open(os.path.join(folder, "report", "report.html"), encoding="utf-8") as f:
        html = f.read()
    expect("curve thin" in html and "nan" not in html.lower().split("<body")[-1].split("points=\"")[1].split("\"")[0], "the curves are drawn")
    equal(summary(place)["report_why"], None, "why there is no report")


def test_fails(place):
    """A report that fails for good is told, nobody waits for it, and it comes by hand or after a restart."""
    grid = prepare(place)
    replace_report(place, "#!/bin/sh\necho 'prereg-report: no ink' >&2\nexit 9\n")
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: (summary(place)["report_why"] or "").endswith("code 9: prereg-report: no ink"), 60, "status says why")
    place.wait_finished(120)
    expect("no ink" in rows(place, "reported")[0]["detail"], f"{rows(place, 'reported')}")
    said = place.ctl("status").stdout
    expect("no ink" in said and "preregctl report reporting-" in said, f"status: {said}")
    equal(place.ctl_json("verdict")["outcome"], "up", "the verdict stands")
    expect("no ink" in place.ctl("report", wanted=lab.ANY).stderr, "why `report` fails")
    restore_report(place)
    place.ctl("report")
    equal((summary(place)["report_why"], summary(place)["report"] is not None), (None, True), "after preregctl report")
    place.ctl("stop")
    place.wait_for(lambda: place.daemon.poll() is not None, 60, "the daemon stops although it meant to try again")
    os.unlink(os.path.join(place.program_folder(), "report", "SHA256SUMS"))
    place.serve()
    place.wait_for(lambda: os.path.exists(os.path.join(place.program_folder(), "report", "SHA256SUMS")), 60, "a report after a restart")
    place.wait_for(lambda: summary(place)["report"] is not None, 60, "status names the report")


def test_words(place):
    """`preregctl submit` is preregd's; what is typed of a cell names its tasks; `cancel` says what to type."""
    grid = prepare(place)
    place.serve()
    place.ctl("submit", grid)
    equal(len(place.status()), 1, "programs after preregctl submit")
    place.wait_finished(120)
    said = place.ctl("explain", "arm=a,seed=1").stdout
    expect(said.startswith("arm=a,seed=1/score is done"), f"explain of a cell with one task: {said}")
    expect("no task" in place.ctl("explain", "arm=c,seed=1", wanted=lab.ANY).stderr, "explain of no cell")
    said = place.ctl("cancel", wanted=lab.USAGE).stderr
    expect("preregctl cancel CELL/STAGE" in said and "--all" in said, f"cancel: {said}")
    expect("preregctl cells" in place.ctl("cancel", "nothing", wanted=lab.ANY).stderr, "cancel of nothing")


def test_acts(place):
    """Who cancelled, tried again, paused and went on, and when, is in the report."""
    hold = place.write("hold", "")
    place.write("p/worker.py", WORKER.replace("seed, sign =", f"import time\nwhile os.path.exists({hold!r}):\n    time.sleep(0.05)\nseed, sign ="), 0o755)
    grid = place.write("p/grid.toml", GRID.format())
    place.ctl("lock", grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: any(t["state"] == "running" for t in place.tasks().values()), 60, "something runs")
    place.ctl("pause", "--reason", "x" * 501, wanted=lab.USAGE)
    place.ctl("pause", "--reason", "the room is too hot: 40 °C")
    said = place.ctl("status").stdout
    expect("paused (user): the room is too hot: 40 °C" in said, f"status:\n{said}")
    place.ctl("cancel", "arm=b,seed=2/score", "--reason", "its data\x1b[31m are wrong")
    place.ctl("retry", "arm=b,seed=2/score", "--reason", "they are not")
    place.ctl("cancel", "arm=b,seed=2/score")
    place.ctl("resume", "--reason", "windows open")
    os.unlink(hold)
    place.wait_finished(120)
    with open(os.path.join(place.program_folder(), "report", "report.md"), encoding="utf-8") as f:
        lines = [line for line in f if line.startswith("| 20") and line.count("|") == 5]
    acts = [tuple(word.strip(" \\") for word in line.split("|")[2:4]) for line in lines]
    equal([act for act, _ in acts], ["paused", "cancelled", "retried", "cancelled", "resumed"], f"acts: {lines}")
    for line, reason in zip(lines, ("the room is too hot: 40 °C", "are wrong", "they are not", "", "windows open")):
        expect(reason in line, f"no {reason!r} in {line}")
    expect(not any("\x1b" in line for line in lines), f"acts: {lines}")
    expect("arm" in acts[1][1] and "score" in acts[1][1], f"what was cancelled: {acts}")


lab.main(test_dies_once, test_fails, test_words, test_acts)
