#!/usr/bin/env python3
"""Bad input and the documented exit codes: each one clear message, nothing half done."""

import json
import os
import shutil
import socket
import subprocess

from lib import lab
from lib import rogue
from lib.lab import ANY, INVALID, LOCK, NO_DAEMON, OK, USAGE, equal, expect


def lines(run):
    return [line for line in run.stderr.split("\n") if line]


def test_usage(place):
    place.ctl(wanted=USAGE)
    place.ctl("chekc", wanted=USAGE)
    place.ctl("status", "--jsn", wanted=USAGE)
    place.ctl("unblind", wanted=USAGE)
    place.ctl("cancel", wanted=USAGE)
    place.must(USAGE, "preregd", "serv")
    equal(place.ctl("--version").stdout.split()[0], "preregctl", "--version")
    expect("verdict" in place.ctl("help").stdout, "help lists no verdict")
    expect("--lines" in place.ctl("help", "logs").stdout, "help logs lists no --lines")


def test_usage_json(place):
    """An error of the command line is an object, too, wherever --json stands and whether or not it is taken."""
    for words in (["verdict", "--bad", "--json"], ["verdict", "-j", "--bad"], ["chekc", "--json"], ["unblind", "--json"],
                  ["explain", "--json"], ["init", "--list", "--json"], ["logs", "a/b", "--lines", "0", "--json"], ["--json"]):
        run = place.ctl(*words, wanted=USAGE)
        answer = json.loads(run.stdout)
        equal((answer["schema"], answer["error"]["exit_code"]), (1, USAGE), f"the error of {words}")
        expect(answer["error"]["message"] in run.stderr, f"{words}: another message on standard error: {run.stderr}")
    equal(place.ctl("verdict", "--bad", wanted=USAGE).stdout, "", "standard output without --json")
    equal(place.ctl("verdict", "--bad", "--", "--json", wanted=USAGE).stdout, "", "standard output when --json is an argument")


def test_which_program(place):
    """One rule for what is omitted; what cannot be taken back has to be named; every answer names its program."""
    ids = {}
    rogue.release(place)
    place.serve()
    for name in ("done", "open", "later"):
        grid = rogue.program(place, ["good", "wait"])
        place.edit(grid, 'name = "rogue"', f'name = "{name}"')
        shutil.copytree(place.path("rogue"), place.path(name))
        place.ctl("lock", "--replace", place.path(name, "grid.toml"))
        ids[name] = json.loads(place.must(OK, "preregd", "submit", place.path(name, "grid.toml"), "--json").stdout)["program"]
        if name == "done":
            equal(place.ctl("diff").stdout.split(":")[0], ids[name], "diff of the only one")
            equal(place.ctl_json("retry")["program"], ids[name], "retry of the only one")
            place.wait_finished(60)
            os.remove(place.path("released"))
    task = "mode=wait,seed=1/probe"
    acts = (["unblind", "--reason", "x"], ["cancel", "--all"], ["cancel", task], ["cancel", task.split("/", maxsplit=1)[0]], ["retry"],
            ["retry", task])
    for act in acts:
        said = place.ctl(*act, wanted=USAGE).stderr
        expect("3 programs" in said and "--program" in said and all(i in said for i in ids.values()),
               f"{act} names no candidates: {said}")
        equal(place.ctl_json(*act, wanted=USAGE)["error"]["exit_code"], USAGE, f"{act} --json")
    equal([p["unblinded"] for p in place.status()], [False] * 3, "unblinded")
    for command in (["cells"], ["verdict"], ["report"], ["explain", task], ["logs", task], ["diff"]):
        run = place.run("preregctl", *command, "--json")
        expect(ids["later"] in run.stdout, f"{command} is not of the newest that is not finished: {run.stdout}{run.stderr}")
    expect(f"  of {ids['later']}" in place.ctl("explain", task).stdout, "explain does not say of which")
    expect(ids["later"] in place.run("preregctl", "export").stderr, "export is of another")
    expect(ids["later"] in place.run("preregctl", "rerun", "mode=good,seed=1").stderr, "rerun is of another")
    for act, of in ((["pause"], []), (["resume"], []), (["unblind", "--reason", "x"], [ids["later"]]),
                    (["retry"], ["-p", "later"]), (["cancel", "--all"], ["-p", "later"])):
        equal(place.ctl_json(*act, *of)["program"], ids["later"], f"the program of {act} --json")
    for act, of in ((["pause"], ["open"]), (["resume"], ["open"]), (["unblind", "--reason", "x"], ["open"]),
                    (["retry"], ["-p", "open"]), (["cancel", "--all"], ["-p", "open"])):
        expect(place.ctl(*act, *of).stdout.startswith(ids["open"] + ": "), f"{act} does not name the program")
    place.wait_finished(60)
    root = place.status()[1]["root"]
    equal((place.ctl_json("diff")["program"], place.ctl_json("diff", root)["program"]), (ids["later"], ids["open"]),
          "the newest of finished ones, and one by its root")
    place.ctl("stop")
    place.wait_for(lambda: "preregd" not in place.processes().values(), 20, "the daemon stops")
    equal(json.loads(place.run("preregctl", "verdict", "--json").stdout)["program"], ids["later"], "the same without a daemon")


def test_one_stage(place):
    """What is said of the only stage of a cell, sealed and at work."""
    place.serve()
    place.must(OK, "preregd", "submit", rogue.program(place, ["wait", "good"]))
    place.wait_for(lambda: sorted(t["state"] for t in place.tasks().values()) == ["done", "running"], 30, "one is done, one runs")
    equal(place.ctl("curves").stdout, "probe: sealed until the end\n", "curves")
    equal(place.ctl_json("explain", "seed=1,mode=good"), place.ctl_json("explain", "mode=good,seed=1/probe"),
          "explain of a cell with one task")
    equal(place.ctl("stop").stdout, "preregd is stopping; 1 attempt was running: it goes on, and the next preregd adopts it\n", "stop")
    place.daemon.wait()
    place.serve()
    equal(place.ctl("stop", "--kill").stdout, "preregd is stopping; 1 attempt was running: it gets time to checkpoint, and is ended\n",
          "stop --kill")


def test_no_daemon(place):
    for command in (["status"], ["cells"], ["verdict"], ["stop"], ["pause"], ["explain", "a/b"], ["logs", "a/b"]):
        run = place.ctl(*command, wanted=NO_DAEMON)
        expect("preregd serve" in run.stderr, f"{command[0]} does not say how to start one: {run.stderr}")
    equal(json.loads(place.ctl("status", "--json", wanted=NO_DAEMON).stdout)["schema"], 1, "schema of an error")


def test_bad_toml(place):
    """All diagnostics of a file in one go, with line and column, and the nearest known name."""
    grid = place.prepare("micro")
    place.edit(grid, "horizon      = {", "horizn       = {")
    place.edit(grid, 'levels = ["dense", "moe"]', 'levels = ["dense", "dense"]')
    place.edit(grid, "prior = 0.5", "prior = 1.5")
    place.edit(grid, "chance = 0.25, floor = 0.40", "chanse = 0.25, floor = 0.40")
    run = place.ctl("check", "--no-run", grid, wanted=INVALID)
    found = [line for line in lines(run) if line.startswith(grid + ":")]
    expect(len(found) >= 3, f"fewer than three diagnostics with a place:\n{run.stderr}")
    expect(any("chance" in line for line in found), f"no nearest name:\n{run.stderr}")
    answer = json.loads(place.ctl("check", "--no-run", "--json", grid, wanted=INVALID).stdout)
    equal(answer["schema"], 1, "schema of check --json")
    for text in ("[program", "\xff\xfe\x00", "", "[program]\nname = 3\n"):
        bad = place.write("bad.toml", text)
        place.ctl("check", "--no-run", bad, wanted=INVALID)


def test_items(place):
    """Fewer items than the measure says would end undetermined: check and amend say so before, with the place."""
    grid = place.prepare("micro")
    note = place.ctl("check", "--no-run", grid).stderr
    expect("note: the items of measures were not checked" in note, f"--no-run says nothing of items: {note}")
    place.edit(grid, 'data = "grammar", limit = 60', 'data = "grammar", limit = 50')
    for command in (["check", grid], ["lock", grid], ["amend", grid, "--reason", "fewer"]):
        said = place.ctl(*command, wanted=INVALID).stderr
        expect(any(line.startswith(grid + ":") and "60 items" in line and "scores 50" in line for line in said.splitlines()), said)


def test_memory(place):
    """[run] is not locked: less memory than a worker cannot do without is refused at submit, and before."""
    grid = place.prepare("micro")
    place.ctl("lock", grid)
    place.edit(grid, "[run.train]\n", '[run.train]\nmemory = "1MiB"\n')
    for run in (place.must(INVALID, "preregd", "submit", grid), place.ctl("check", grid, wanted=INVALID)):
        expect('stage "train" needs at least' in run.stderr and "may use 1.0 MiB" in run.stderr and f"{grid}:" in run.stderr, run.stderr)
    place.edit(grid, 'memory = "1MiB"', 'memory = "4GiB"')
    place.ctl("check", grid)


def test_absurd_programs(place):
    """10^6 cells, a factor without levels, a hole and a clash in the table, a floor under chance."""
    cases = {
        "seed levels": ("levels    = [1, 2, 3]", "levels    = [" + ",".join(str(i) for i in range(500001)) + "]"),
        "no levels": ("levels    = [1, 2, 3]", "levels    = []"),
        "hole": ('["none", "moe", "below"], ', ""),
        "clash": ('["none", "moe", "below"], ', '["none", "moe", "below"], ["none", "moe", "dense"], '),
        "floor under chance": ("floor = 0.40", "floor = 0.20"),
        "priors over 1": ("prior = 0.5", "prior = 0.7"),
        "unknown outcome": ('["none", "dense", "below"]', '["none", "dense", "belov"]'),
        "bad condition": ("counter.k >= 1", "counter.q >= 1"),
        "cycle": ('after   = ["train"]\ncommand = ["prereg-eval"]\nthreads = 1\nparams  = { task = "schema"',
                  'after   = ["giving"]\ncommand = ["prereg-eval"]\nthreads = 1\nparams  = { task = "schema"'),
        "missing data": ("data/grammar.jsonl", "data/grammar_of_yore.jsonl"),
        "missing worker": ('["prereg-train"]', '["prereg-trane"]'),
        "bad parameter": ("heads        = 4", "heads        = 5"),
        "unknown metric": ("grammar.acc", "grammar.accuracy"),
        "other items": ('data = "grammar", limit = 60', 'data = "grammar", limit = 50'),
    }
    for name, (old, new) in cases.items():
        folder = place.path(name.replace(" ", "_"))
        grid = place.prepare("micro", folder)
        place.edit(grid, old, new)
        run = place.run("preregctl", "lock", grid)
        expect(run.returncode == INVALID, f"{name}: exit {run.returncode}, wanted {INVALID}\n{run.stderr[:2000]}")
        expect(run.stderr.strip(), f"{name}: nothing is said")
        expect(not os.path.exists(grid + ".lock"), f"{name}: a lock was written")


def test_wrong_things_in_the_way(place):
    """Folders where files should be, files where folders should be, nothing where something should be."""
    place.write("state", "a file where the state folder should be\n")
    run = place.run("preregd", "serve")
    expect(run.returncode == ANY and lines(run), f"serve on a file: exit {run.returncode}, {run.stderr!r}")
    os.remove(place.path("state"))
    os.mkdir(place.path("folder.toml"))
    expect(place.run("preregctl", "check", place.path("folder.toml")).returncode in (ANY, INVALID), "a folder as program")
    place.ctl("check", place.path("absent.toml"), wanted=ANY)
    grid = place.prepare("micro")
    os.mkdir(grid + ".lock")
    expect(place.run("preregctl", "lock", grid).returncode in (ANY, LOCK), "a folder where the lock should be")
    os.rmdir(grid + ".lock")


def test_init_does_not_overwrite(place):
    place.ctl("init", "new")
    run = place.ctl("init", "new", wanted=ANY)
    expect("already" in run.stderr, run.stderr)
    place.must(OK, "prereg-data", "demo", "--seed", "1", "--out", place.path("new/data"))
    place.ctl("check", place.path("new/grid.toml"))
    place.ctl("lock", place.path("new/grid.toml"))


def test_lock(place):
    """One changed value, one changed byte of data or worker, and submit refuses; [run] is free; a forged root is seen."""
    grid = place.prepare("micro")
    place.must(LOCK, "preregd", "submit", grid)  # not locked yet
    place.ctl("lock", grid)
    with open(grid + ".lock", "rb") as f:
        first = f.read()
    place.ctl("lock", grid)
    with open(grid + ".lock", "rb") as f:
        equal(f.read(), first, "the lock after locking twice")
    place.edit(grid, "floor = 0.40", "floor = 0.39")
    run = place.must(LOCK, "preregd", "submit", grid)
    expect("floor" in run.stderr + run.stdout, f"the changed value is not named: {run.stderr}")
    place.ctl("lock", grid, wanted=ANY)
    place.edit(grid, "floor = 0.39", "floor = 0.40")
    data = place.path("micro/data/grammar.jsonl")
    with open(data, "ab") as f:
        f.write(b"\n")
    place.must(LOCK, "preregd", "submit", grid)
    with open(data, "rb+") as f:
        f.truncate(os.path.getsize(data) - 1)
    place.edit(grid + ".lock", '"floor": 0.4' if b'"floor": 0.4' in first else '"floor":0.4',
               '"floor": 0.3' if b'"floor": 0.4' in first else '"floor":0.3')
    place.must(LOCK, "preregd", "submit", grid)
    with open(grid + ".lock", "wb") as f:
        f.write(first)
    with open(place.path("bin/prereg-eval"), "ab") as f:
        f.write(b"\0")
    place.must(LOCK, "preregd", "submit", grid)


def test_two_daemons(place):
    place.serve()
    run = place.run("preregd", "serve")
    expect(run.returncode == ANY, f"a second daemon: exit {run.returncode}")
    expect(lines(run), "the second daemon says nothing")
    place.ctl("status")


def test_state_of_another_version(place):
    place.serve()
    place.ctl("stop")
    place.wait_for(lambda: "preregd" not in place.processes().values(), 20, "the daemon stops")
    database = os.path.join(place.state, "preregd.db")
    with open(database, "rb+") as f:
        f.seek(60)  # user_version, big endian
        f.write((4711).to_bytes(4, "big"))
    for name in ("preregd.db-wal", "preregd.db-shm"):
        if os.path.exists(os.path.join(place.state, name)):
            os.remove(os.path.join(place.state, name))
    run = place.run("preregd", "serve")
    expect(run.returncode == ANY and "version" in (run.stderr + open(place.path("state/preregd.log")).read()),
           f"exit {run.returncode}: {run.stderr}")


def test_socket(place):
    """The socket is its owner's alone, takes garbage without falling over, and keeps its limits."""
    place.serve()
    path = os.path.join(place.state, "preregd.sock")
    equal(os.stat(path).st_mode & 0o777, 0o600, "mode of the socket")
    for text in (b"\n", b"nonsense\n", b'{"schema":1}\n', b'{"schema":9,"id":1,"method":"ping"}\n', b"\x00\xff" * 100 + b"\n",
                 b"[" * 5000 + b"\n", b"x" * (2 << 20) + b"\n"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(10)
            s.connect(path)
            try:
                s.sendall(text)
                answer = s.recv(65536)
            except (BrokenPipeError, ConnectionResetError):
                answer = b""
        if answer:
            equal(json.loads(answer.split(b"\n")[0])["ok"], False, f"answer to {text[:20]!r}")
    place.ctl("status")


def test_output_to_a_full_disk(place):
    if not os.path.exists("/dev/full"):
        return
    with open("/dev/full", "w") as full:
        run = subprocess.run([os.path.join(place.bin, "preregctl"), "help"], stdout=full, stderr=subprocess.PIPE, env=place.env)
    equal(run.returncode, ANY, "exit code of a command whose output went nowhere")


def test_errors_are_last(place):
    """Through a pipe too, the errors of a check are below its report, which then names no next step."""
    def check(wanted):
        run = subprocess.run([os.path.join(place.bin, "preregctl"), "check", grid], env=place.env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        equal(run.returncode, wanted, f"exit code of check: {run.stdout}")
        return run.stdout.splitlines()
    grid = place.prepare("micro")
    expect(check(OK)[-1].startswith("lock: none yet (`preregctl try`"), "check does not name the next step")
    place.edit(grid, '"grammar.acc"', '"grammar.akk"')
    said = check(INVALID)
    equal(said[-1], "preregctl check: 1 error", "the last line")
    expect(": error: " in said[-2], f"the line above the last: {said[-2]}")
    equal(said[-3], "lock: none yet", "the end of the report")


lab.main(test_usage, test_usage_json, test_which_program, test_one_stage, test_no_daemon, test_bad_toml, test_items, test_memory,
         test_absurd_programs, test_wrong_things_in_the_way, test_init_does_not_overwrite, test_lock, test_two_daemons,
         test_state_of_another_version, test_socket, test_output_to_a_full_disk, test_errors_are_last)
