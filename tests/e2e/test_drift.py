#!/usr/bin/env python3
"""The lock at boot, at every spawn and at the verdict: what changed on the way is refused and named (invariant 3)."""

import base64
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time

from lib import lab
from lib import rogue
from lib.lab import LOCK, OK, equal, expect

# A second stage, which is spawned when the first is done.
SECOND = """
[stage.second]
after = ["probe"]
command = ["./rogue_worker.py"]
params = { mode = "good", seed = "$seed" }
"""
WAITING = "mode=wait,seed=1/probe"
RUN = "[run.probe]\ncrashes = 1\n"


def submitted(place, stages=""):
    """A program with one task done and one that waits to be released."""
    grid = rogue.program(place, ["good", "wait"], run=RUN, stages=stages)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: place.tasks()[WAITING]["state"] == "running", 30, "the waiting task runs")
    place.wait_for(lambda: all(t["state"] == "done" for name, t in place.tasks().items() if name.startswith("mode=good")), 30,
                   "the other cell is done")
    return os.path.join(place.program_folder(), "grid.toml")


def change(place, path, old, new):
    os.chmod(path, 0o644)
    place.edit(path, old, new)


def wait_paused(place, what):
    """Paused, for a reason that names what changed."""
    place.wait_for(lambda: place.status()[0]["paused_by"] is not None, 30, "the program is paused")
    why = str(place.status()[0]["paused_why"])
    expect(what in why, f"the reason does not name {what}: {why}")
    expect(not os.path.exists(os.path.join(place.program_folder(), "report", "verdict.json")), "a verdict was written")


def test_at_boot(place):
    copy = submitted(place)
    place.end_all()
    change(place, copy, "floor = 0.50", "floor = 0.40")
    rogue.release(place)
    place.serve()
    with open(os.path.join(place.state, "preregd.log"), encoding="utf-8") as f:
        expect("floor" in f.read(), "the log does not name the value")
    unloaded = place.ctl_json("status")["unloaded"]
    equal([u["id"] for u in unloaded], [os.path.basename(os.path.dirname(copy))], "what status says is not loaded")
    expect("floor" in unloaded[0]["why"], f"the reason does not name the value: {unloaded}")
    expect("not loaded" in place.ctl("status").stdout, "status does not show it")
    named = place.ctl("status", "rogue", wanted=LOCK)
    expect("floor" in named.stderr, f"asked for by name: {named.stderr}")
    time.sleep(2)
    expect(not os.path.exists(os.path.join(os.path.dirname(copy), "report", "verdict.json")), "a verdict was written")
    place.end_all()
    change(place, copy, "floor = 0.40", "floor = 0.50")
    place.serve()
    place.wait_for(place.status, 30, "the program is back")
    place.wait_finished(60)


def test_submitted_again(place):
    """What does not load is taken up when it is submitted again, and said to be unloaded no more."""
    copy = submitted(place)
    place.end_all()
    change(place, copy, "floor = 0.50", "floor = 0.40")
    place.serve()
    equal(len(place.ctl_json("status")["unloaded"]), 1, "programs not loaded")
    place.must(OK, "preregd", "submit", place.path("rogue/grid.toml"))
    status = place.ctl_json("status")
    equal((len(status["programs"]), status["unloaded"]), (1, []), "programs loaded and not")
    rogue.release(place)
    place.wait_finished(60)


def test_at_spawn(place):
    copy = submitted(place, stages=SECOND)
    change(place, copy, "chance = 0.25", "chance = 0.20")
    rogue.release(place)
    wait_paused(place, "chance")
    cell = os.path.join(place.program_folder(), "cells", "mode=wait,seed=1", "second")
    started = [folder for folder, _, names in os.walk(cell) if {"start.json", "exit.json"} & set(names)]
    equal(started, [], "attempts that were let go")
    change(place, copy, "chance = 0.20", "chance = 0.25")
    place.kill_daemon()
    place.serve()
    wait_paused(place, "chance")
    equal(place.status()[0]["paused_by"], "lock", "who paused it, after a restart")
    place.ctl("resume")
    place.wait_finished(60)


def write_package(site, name, version, files):
    """An installed package with its RECORD, whose lines have the forms that pip and others write."""
    lines = []
    for path, text in files.items():
        full = os.path.join(site, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        quoted = f'"{path}"' if "," in path else path
        lines.append(f"{quoted},sha256={digest},{len(text)}")
    info = f"{name}-{version}.dist-info"
    os.makedirs(os.path.join(site, info))
    with open(os.path.join(site, info, "RECORD"), "w", encoding="utf-8") as f:
        f.write("\r\n".join([*lines, f"{name}/__pycache__/__init__.cpython-311.pyc,sha256={digest},9", f"{info}/RECORD,,", ""]))


# Runs by the environment's interpreter, which "python3" means there, and imports a package of it.
IN_VENV = """
import json, os, sys, toolbox
with open(os.environ["PREREG_TASK"]) as f:
    task = json.load(f)
assert sys.prefix == os.environ["VIRTUAL_ENV"] == {venv!r}, (sys.prefix, os.environ)
with open("part", "w") as f:
    json.dump({{"protocol": 1, "attempt": task["attempt"], "metrics": {{"x": {{"value": toolbox.VALUE}}}}, "facts": {{}}, "read": {{}},
               "artifacts": []}}, f)
os.rename("part", "result.json")
"""

VENV_STAGE = """
[stage.second]
after = ["probe"]
command = ["python3", "second.py"]
environment = "venv"
describe = false
"""


def venv_program(place):
    """A program whose second stage runs in a venv with one package; (its grid.toml, the venv's site-packages)."""
    venv = place.path("rogue/venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    site = glob.glob(os.path.join(venv, "lib/python3.*/site-packages"))[0]
    write_package(site, "toolbox", "1.2.0", {"toolbox/__init__.py": "VALUE = 7\n", "toolbox/a, b.txt": "text\n"})
    place.write("rogue/second.py", IN_VENV.format(venv=venv))
    return rogue.program(place, ["good", "wait"], run=RUN, stages=VENV_STAGE), site


def test_environment_locked(place):
    """Interpreter, packages and loose files of a venv are in the lock; each kind of drift is named, and undone it is none."""
    grid, site = venv_program(place)
    with open(grid + ".lock", encoding="utf-8") as f:
        locked = json.load(f)["locked"]["environments"]
    equal((list(locked), {name: p["version"] for name, p in locked["venv"]["packages"].items()}, locked["venv"]["loose"]),
          (["venv"], {"toolbox": "1.2.0"}, {}), "the list in the lock")
    code, info = os.path.join(site, "toolbox/__init__.py"), os.path.join(site, "toolbox-1.2.0.dist-info")
    cfg = os.path.join(os.path.dirname(grid), "venv/pyvenv.cfg")
    python = os.path.join(os.path.dirname(grid), "venv/bin/python3")

    def write(path, text):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def other_python():
        os.rename(python, python + ".away")
        write(python, "#!/bin/sh\n")
    rows = [("toolbox 1.2.0 was locked, 1.3.0 is installed", lambda: os.rename(info, info.replace("1.2.0", "1.3.0")),
             lambda: os.rename(info.replace("1.2.0", "1.3.0"), info)),
            ("toolbox 1.2.0 was locked, and is not installed", lambda: os.rename(info, site + "/away"),
             lambda: os.rename(site + "/away", info)),
            ("toolbox: toolbox/__init__.py differs from its RECORD", lambda: write(code, "VALUE = 8\n"),
             lambda: write(code, "VALUE = 7\n")),
            ("toolbox: toolbox/__init__.py is gone", lambda: os.rename(code, code + "c"), lambda: os.rename(code + "c", code)),
            ("other 2.0 is installed, and was not locked", lambda: write_package(site, "other", "2.0", {"other/x.py": ""}),
             lambda: shutil.rmtree(site + "/other-2.0.dist-info") or shutil.rmtree(site + "/other")),
            ("sitecustomize.py was not there when it was locked", lambda: write(site + "/sitecustomize.py", "x = 1\n"),
             lambda: os.remove(site + "/sitecustomize.py")),
            ("leads to /elsewhere", lambda: write(site + "/more.pth", "# more\n/elsewhere\n"), lambda: os.remove(site + "/more.pth")),
            ("is installed as a link to its sources", lambda: write(info + "/direct_url.json", '{"dir_info": {"editable": true}}'),
             lambda: os.remove(info + "/direct_url.json")),
            ("uses the system's packages", lambda: place.edit(cfg, "site-packages = false", "site-packages = true"),
             lambda: place.edit(cfg, "site-packages = true", "site-packages = false")),
            ("is installed with other files", other_python, lambda: os.replace(python + ".away", python))]
    place.serve()
    for text, harm, undo in rows:
        harm()
        for command in (["preregctl", "lock", "--verify", grid], ["preregd", "submit", grid]):
            run = place.must(LOCK, *command)
            expect(text in run.stderr and "stage.second.environment" in run.stderr, f"{command}: {text!r} is not in {run.stderr!r}")
        undo()
        place.ctl("lock", "--verify", grid)
    os.makedirs(site + "/toolbox/__pycache__", exist_ok=True)
    write(site + "/toolbox/__pycache__/__init__.cpython-311.pyc", "bytecode that an import leaves")
    place.ctl("lock", "--verify", grid)


def test_environment_drift(place):
    """What changes in a venv between two tasks ends the next one as drift, and is named; a venv that is away is waited for."""
    grid, site = venv_program(place)
    venv = place.path("rogue/venv")
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: place.tasks()["mode=good,seed=1/second"]["state"] == "done", 60, "one cell is done")
    place.wait_for(lambda: place.tasks()[WAITING]["state"] == "running", 30, "the waiting task runs")
    os.rename(venv, venv + ".away")
    rogue.release(place)
    wait_paused(place, "venv does not exist")
    info = os.path.join(venv + ".away", os.path.relpath(site, venv), "toolbox-1.2.0.dist-info")
    os.rename(info, info.replace("1.2.0", "2.0.1"))
    os.rename(venv + ".away", venv)
    place.wait_for(lambda: place.tasks()["mode=wait,seed=1/second"]["cause"] == "drift", 30, "drift is found")
    told = place.ctl("explain", "mode=wait,seed=1/second").stdout
    expect("toolbox 1.2.0 was locked, 2.0.1 is installed" in told, f"the package is not named: {told}")
    check_at_verdict(place, lambda: os.rename(info.replace("1.2.0", "2.0.1").replace("venv.away", "venv"), info.replace("venv.away", "venv")))


def check_at_verdict(place, undo):
    """An environment that is not the locked one refuses the verdict; as it was, there is one, and the report has it."""
    folder = place.program_folder()

    def journal():
        with open(os.path.join(folder, "journal.jsonl"), encoding="utf-8") as f:
            return f.read()
    place.wait_for(lambda: "verdict_refused" in journal(), 30, "the refusal is journalled")
    expect("toolbox 1.2.0 was locked, 2.0.1 is installed" in journal(), "the refusal does not name the package")
    expect(not os.path.exists(os.path.join(folder, "report/verdict.json")), "a verdict was written")
    place.end_all()
    undo()
    place.serve()
    place.wait_finished(60)
    place.wait_for(lambda: os.path.exists(os.path.join(folder, "report/report.json")), 60, "the report is there")
    with open(os.path.join(folder, "report/report.md"), encoding="utf-8") as f:
        rows = [line for line in f if line.startswith("| second ")]
    row = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in rows if "venv" in line]
    equal([(r[1], r[2], r[4], r[6]) for r in row], [("venv", "venv", "1", "1")], f"the environment in the report: {rows}")
    expect(row[0][3].startswith(f"Python {sys.version.split()[0]}"), f"the interpreter in the report: {row}")
    with open(os.path.join(folder, "grid.toml.lock"), encoding="utf-8") as f:
        locked = json.load(f)["locked"]["environments"]["venv"]
    text = json.dumps(locked, sort_keys=True, separators=(",", ":"))  # canonical: of ASCII, without numbers
    wanted = {"second": {"environment": "venv", "digest": hashlib.sha256(text.encode()).hexdigest()}}
    equal(place.status()[0]["environments"], wanted, "environments in status --json")
    for where in ("verdict --json", "verdict --json without a daemon"):
        equal(json.loads(place.run("preregctl", "verdict", "--json").stdout)["environments"], wanted, f"environments in {where}")
        place.end_all()


def test_at_verdict(place):
    copy = submitted(place)
    change(place, copy, 'prior = 0.5', 'prior = 0.6')
    rogue.release(place)
    journal = os.path.join(os.path.dirname(copy), "journal.jsonl")
    place.wait_for(lambda: "verdict_refused" in open(journal, encoding="utf-8").read(), 30, "the refusal is journalled")
    expect(not os.path.exists(os.path.join(os.path.dirname(copy), "report", "verdict.json")), "a verdict was written")
    place.end_all()
    change(place, copy, "prior = 0.6", "prior = 0.5")
    place.serve()
    place.wait_finished(60)


def damage(folder):
    """Puts another file in the place of each one of a folder."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with open(path, "rb") as f:
            text = f.read()
        os.remove(path)  # what runs keeps its own file
        with open(path, "wb") as f:
            f.write(text + b"\n# changed\n")
        os.chmod(path, 0o755)


def test_worker_copy_changed(place):
    """A worker runs from its copy in STATE/objects; a damaged copy is made again from its source."""
    submitted(place, stages=SECOND)
    damage(os.path.join(place.state, "objects"))
    rogue.release(place)
    place.wait_finished(60)
    expect(all(t["state"] == "done" for t in place.tasks().values()), "something was not done")
    with open(os.path.join(place.state, "objects", os.listdir(os.path.join(place.state, "objects"))[0]), "rb") as f:
        expect(b"# changed" not in f.read(), "the copy is still damaged")


def test_worker_and_copy_changed(place):
    """Where the source is another by now as well, the program waits; no task is blocked for it."""
    submitted(place, stages=SECOND)
    worker = place.path("rogue/rogue_worker.py")
    place.edit(worker, "import json", "import json  # changed")
    damage(os.path.join(place.state, "objects"))
    rogue.release(place)
    wait_paused(place, "rogue_worker.py")
    equal(place.status()[0]["paused_by"], "lock", "who paused it")
    equal(place.tasks()["mode=wait,seed=1/second"]["state"], "ready", "the task that could not start")
    place.edit(worker, "import json  # changed", "import json")
    place.ctl("resume")
    place.wait_finished(60)
    expect(all(t["state"] == "done" for t in place.tasks().values()), "something was not done")


def data_program(place):
    """One task done and one waiting, whose second stage reads a file of data that can be put aside."""
    place.write("rogue/data/corpus.txt", "what was locked\n")
    grid = rogue.program(place, ["good", "wait"], run=RUN,
                         stages='[data]\ncorpus = "data/corpus.txt"\n' + SECOND)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: place.tasks()[WAITING]["state"] == "running", 30, "the waiting task runs")
    place.wait_for(lambda: place.tasks()["mode=good,seed=1/second"]["state"] == "done", 30, "the other cell is done")
    return place.path("rogue/data")


def test_data_missing(place):
    """Data that are not there pause the program; it goes on by itself when they are."""
    data = data_program(place)
    os.rename(data, data + ".away")
    rogue.release(place)
    wait_paused(place, "corpus")
    equal(place.status()[0]["paused_by"], "data", "who paused it")
    task = place.tasks()["mode=wait,seed=1/second"]
    equal((task["state"], task["cause"]), ("ready", None), "the task that could not start")
    os.rename(data + ".away", data)
    place.wait_finished(60)
    expect(all(t["state"] == "done" for t in place.tasks().values()), "something was not done")


def test_data_back_and_other(place):
    """What comes back with other bytes is drift."""
    data = data_program(place)
    os.rename(data, data + ".away")
    rogue.release(place)
    wait_paused(place, "corpus")
    place.write("rogue/data/corpus.txt", "what was not locked\n")
    place.wait_for(lambda: place.tasks()["mode=wait,seed=1/second"]["cause"] == "drift", 30, "drift is found")


def test_verdict_asked_again(place):
    """A verdict that the lock refused comes by itself once the lock holds."""
    copy = submitted(place)
    change(place, copy, 'prior = 0.5', 'prior = 0.6')
    rogue.release(place)
    journal = os.path.join(os.path.dirname(copy), "journal.jsonl")
    place.wait_for(lambda: "verdict_refused" in open(journal, encoding="utf-8").read(), 30, "the refusal is journalled")
    time.sleep(4)
    equal(open(journal, encoding="utf-8").read().count("verdict_refused"), 1, "refusals journalled while nothing is mended")
    change(place, copy, "prior = 0.6", "prior = 0.5")
    place.wait_finished(60)


def test_run_may_change(place):
    """[run] is not locked: it changes without a word of the lock."""
    copy = submitted(place)
    place.end_all()
    change(place, copy, "crashes = 1", "crashes = 2")
    rogue.release(place)
    place.serve()
    place.wait_finished(60)


lab.main(test_at_boot, test_submitted_again, test_at_spawn, test_environment_locked, test_environment_drift, test_at_verdict, test_worker_copy_changed,
         test_worker_and_copy_changed, test_data_missing,
         test_data_back_and_other, test_verdict_asked_again, test_run_may_change)
