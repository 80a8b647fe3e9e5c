#!/usr/bin/env python3
"""`preregctl init --template`: a new user follows the first lines of each template, word by word."""

import os
import re
import shutil
import subprocess

from lib import lab
from lib.lab import ANY, INVALID, LOCK, OK, USAGE, equal, expect

NAMES = ["minimal", "below_the_floor", "active_vs_total", "holding_fixed"]
# Templates with files beside grid.toml, which need libraries: tests/oracle/test_templates.py runs them to the verdict.
WITH_FILES = {"pytorch": ["train.py"], "transformers": ["train.py"], "lm-eval": ["tasks/grammar.yaml"]}
COMMAND = re.compile(r"^#   ((?:prereg|preregctl|preregd|prereg-data) [^#]*[^# ])", re.MULTILINE)


def commands_of(grid):
    """The commands in the comment on top, in their order."""
    with open(grid, encoding="utf-8") as f:
        top = f.read().split("\n\n")[0]
    commands = COMMAND.findall(top)
    expect(len(commands) == 4 and commands[0].startswith("prereg-data") and commands[3].endswith("--wait"),
           f"{grid} does not say what to run: {commands}")
    return commands


def follow(place, folder, commands):
    env = {**place.env, "PATH": place.bin + os.pathsep + place.env["PATH"]}
    printed = ""
    for command in commands:
        run = subprocess.run(["sh", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, timeout=300)
        expect(run.returncode == OK or command.endswith("--wait"), f"{command}: exit {run.returncode}\n{run.stdout}{run.stderr}")
        printed = run.stdout + run.stderr
    return run.returncode, printed


def made(place, name):
    place.ctl("init", "--template", name, f"my_{name}")
    folder = place.path(f"my_{name}")
    with open(os.path.join(folder, "grid.toml"), encoding="utf-8") as f:
        text = f.read()
    expect(f'"my_{name}"' in text and '"starter"' not in text, "init names the program after its folder")
    return folder


def test_check_and_lock(place):
    impossible = {"holding_fixed": [3, 6]}
    for name in NAMES:
        folder = made(place, name)
        follow(place, folder, commands_of(os.path.join(folder, "grid.toml"))[:3])
        reach = place.ctl_json("check", os.path.join(folder, "grid.toml"))["proof"]["reach"]
        rows = [i for i, row in enumerate(reach["rows"], 1) if row == "impossible"]
        equal(rows, impossible.get(name, []), f"rows of {name} that are impossible")
        equal([o["name"] for o in reach["outcomes"] if not o["binds"]], [], f"outcomes of {name} that nothing binds")


def test_to_the_verdict(place):
    for name in ("minimal", "active_vs_total") if lab.SPARSE == 1 else ("minimal",):
        folder = made(place, name)
        code, printed = follow(place, folder, commands_of(os.path.join(folder, "grid.toml")))
        expect(code == OK and "verdict: " in printed, f"{name}: exit {code}\n{printed}")


def test_names(place):
    listed = [line.split()[0] for line in place.ctl("init", "--list").stdout.splitlines()]
    equal(listed, [*NAMES, *WITH_FILES], "--list")
    rows = [(["--template", ""], "there are minimal, below_the_floor"), (["--template", "minmal"], "there are minimal"),
            (["--template"], "needs a value"), (["--list", "new"], "--list takes nothing else"),
            (["--list", "--template", "minimal"], "--list takes nothing else"), (["new", "old"], "usage: preregctl init")]
    for words, message in rows:
        run = place.ctl("init", *words, wanted=USAGE)
        expect(message in run.stderr, f"init {words}: {run.stderr!r}")
    expect("the path is empty" in place.ctl("init", "", wanted=ANY).stderr, "an empty folder name")
    expect(not os.path.exists(place.path("new")), "a refused init wrote something")


def test_with_files(place):
    """What is beside grid.toml is written, too, and never over a file that is there; the plan holds without any library."""
    for name, files in WITH_FILES.items():
        shown = place.ctl("init", "--template", name, "mine").stdout
        folder = place.path("mine")
        found = sorted(os.path.relpath(os.path.join(at, n), folder) for at, _, names in os.walk(folder) for n in names)
        equal(found, sorted(["grid.toml", *files]), f"files of {name}")
        with open(os.path.join(folder, "grid.toml"), encoding="utf-8") as f:
            commands = COMMAND.findall(f.read().split("\n\n")[0])
        for command in commands:
            expect(f"  {command}" in shown, f"init {name} does not print {command!r}:\n{shown}")
        equal((len(commands), ".venv/bin/pip install" in shown), (5, True), f"commands of {name}")
        expect(".venv is not a folder" in place.ctl("check", "--no-run", f"{folder}/grid.toml", wanted=INVALID).stderr, "no .venv")
        os.mkdir(os.path.join(folder, ".venv"))
        follow(place, folder, [commands[0], "preregctl check --no-run grid.toml"])
        os.remove(os.path.join(folder, "grid.toml"))
        place.write(os.path.join(folder, files[0]), "mine\n")
        refused = place.ctl("init", "--template", name, "mine", wanted=ANY).stderr
        expect(f"{files[0]} exists already" in refused and not os.path.exists(os.path.join(folder, "grid.toml")), refused)
        shutil.rmtree(folder)


def test_successor(place):
    old = made(place, "minimal")
    grid = os.path.join(old, "grid.toml")
    expect("has no lock" in place.ctl("init", "early", "--from", grid, wanted=LOCK).stderr, "a program without a lock")
    expect(not os.path.exists(place.path("early", "grid.toml")), "a refused init wrote something")
    follow(place, old, commands_of(grid)[:3])
    root = place.ctl_json("lock", "--verify", grid)["root"]
    expect(root in place.ctl("init", "second", "--from", old).stdout, "the root that is superseded")
    new = place.path("second", "grid.toml")
    with open(new, encoding="utf-8") as f:
        text = f.read()
    expect(f'supersedes = "{root}"' in text and 'name = "second"' in re.sub(" +", " ", text), text)
    missing = place.ctl("check", "--no-run", new, wanted=INVALID).stderr
    expect(missing.count('"prior" is missing') == 2 and "unknown" not in missing, missing)
    expect("left unchanged" in place.ctl("init", "second", "--from", old, wanted=ANY).stderr, "an existing grid.toml")
    expect("exclude each other" in place.ctl("init", "x", "--from", old, "--template", "minimal", wanted=USAGE).stderr, "both")


def test_next_commands_are_shell_words(place):
    for folder, word in (("it's here", "'it'\\''s here'"), ("-dash", "./-dash"), ("plain/one", "plain/one")):
        shown = place.ctl("init", "--", folder).stdout
        expect(f"  cd {word}\n" in shown, shown)
        run = subprocess.run(["sh", "-c", shown.splitlines()[1] + " && pwd"], cwd=place.folder, capture_output=True, text=True)
        equal(run.stdout.strip(), place.path(folder), f"cd to {folder}")
    os.mkdir(place.path("here"))
    expect("  cd " not in place.ctl("init", cwd=place.path("here")).stdout, "cd to where one is")


lab.main(test_check_and_lock, test_to_the_verdict, test_names, test_with_files, test_successor, test_next_commands_are_shell_words)
