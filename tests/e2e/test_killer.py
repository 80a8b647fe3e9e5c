#!/usr/bin/env python3
"""kill -9 of daemon, shims and workers at random, from a printed seed: the run ends in the same bytes as without.

PREREGD_SEED chooses the seed, PREREGD_LONG=1 runs first_light and more seeds.
"""

import os
import random
import time

import lab
from lab import OK, equal, expect
from two_arms import DESIGN, READING

PRELOAD = os.path.join(os.path.dirname(os.path.abspath(lab.sys.argv[1])), "tests", "e2e_daemon_preload.so")
LONG = os.environ.get("PREREGD_LONG") == "1"
KILLS_PER_TASK = 2  # under the crash budget, and never three restarts in a row without progress
DAEMON_KILLS_MAX = 12


def attempt_of(pid):
    """'cell/stage' of the attempt that a shim or worker works in, from its working directory or its arguments."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            places = [os.readlink(f"/proc/{pid}/cwd"), *f.read().decode(errors="replace").split("\0")]
    except OSError:
        return None
    inside = [place.split("/cells/", 1)[1].split("/") for place in places if "/cells/" in place]
    return "/".join(inside[0][:2]) if inside else None


class Killer:
    def __init__(self, place, seed):
        self.place = place
        self.random = random.Random(seed)
        self.per_task = {}
        self.n_daemon = 0
        self.n_processes = 0

    def strike(self):
        """Kills one thing, or everything that runs."""
        place = self.place
        running = place.processes()
        daemon = place.daemon.pid if place.daemon else None
        others = [pid for pid, name in running.items() if pid != daemon and name not in ("preregctl", "prereg-report")]
        what = self.random.choice(["daemon", "process", "process", "all"])
        if what in ("daemon", "all") and daemon and self.n_daemon < DAEMON_KILLS_MAX:
            self.n_daemon += 1
            place.kill_daemon()
        if what == "process" and others:
            self.strike_process(self.random.choice(others))
        if what == "all":
            for pid in others:
                self.strike_process(pid)

    def strike_process(self, pid):
        task = attempt_of(pid)
        if task is None or self.per_task.get(task, 0) >= KILLS_PER_TASK:
            return
        self.per_task[task] = self.per_task.get(task, 0) + 1
        self.n_processes += 1
        self.place.kill(pid)

    def run(self, seconds):
        end = time.monotonic() + seconds
        place = self.place
        while time.monotonic() < end:
            if place.daemon is None or place.daemon.poll() is not None:
                time.sleep(self.random.uniform(0, 0.3))
                place.serve_without_waiting()
            time.sleep(self.random.uniform(0.05, 0.6))
            run = place.run("preregctl", "status", "--json")
            if run.returncode == OK and '"state": "finished"' in run.stdout:
                return
            self.strike()
        raise lab.Failed(f"not finished after {seconds} s under the killer")


def undisturbed(place, name):
    grid = place.prepare(name)
    place.ctl("lock", grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid, "--wait", timeout=900)
    found = lab.results(place.program_folder()), place.verdict_bytes()
    place.end_all()
    return grid, found


def killed(place, grid, calm, seed, number):
    results, verdict = calm
    place.state = place.path(f"state-{number}")
    place.env["PREREGD_STATE"] = place.state
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    killer = Killer(place, seed)
    killer.run(1800 if LONG else 300)
    print(f"  seed {seed}: killed the daemon {killer.n_daemon} times, {killer.n_processes} other processes "
          f"of {len(killer.per_task)} tasks", flush=True)
    expect(killer.n_daemon + killer.n_processes > 0, "the killer killed nothing")
    again = lab.results(place.program_folder())
    equal(sorted(again), sorted(results), "tasks with a result")
    for task in results:
        equal(again[task], results[task], f"metrics, weights, data and items of {task}")
    equal(place.verdict_bytes(), verdict, "verdict.json")
    place.end_all()


def test_same_bytes(place):
    seeds = [int(os.environ["PREREGD_SEED"])] if "PREREGD_SEED" in os.environ else [20261121]
    if LONG and len(seeds) == 1:
        seeds += [seeds[0] + i for i in range(1, 5)]
    grid, calm = undisturbed(place, "micro")
    for number, seed in enumerate(seeds):
        killed(place, grid, calm, seed, number)


def test_first_light_same_bytes(place):
    if not LONG:
        lab.skip("first_light under the killer runs with ops/check --long")
    grid, calm = undisturbed(place, "first_light")
    killed(place, grid, calm, 7, "first_light")


SMALL = """[program]
name = "small"
schema = 1
question = "Does a write that fails change anything?"
""" + DESIGN + """[stage.score]
command = ["./worker.py"]
params = {{ arm = "$arm", seed = "$seed" }}
""" + READING

WORKER = """#!/usr/bin/env python3
import json, os, sys
if "--describe" in sys.argv:
    print(json.dumps({"protocol": 1, "metrics": ["acc"]}))
    sys.exit(0)
with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
    task = json.load(f)
result = {"protocol": 1, "attempt": task["attempt"], "facts": {"threads": 1},
          "metrics": {"acc": {"value": 0.6 + 0.01 * task["params"]["seed"], "n": 100}}}
with open("result.tmp", "w", encoding="utf-8") as f:
    json.dump(result, f)
os.replace("result.tmp", "result.json")
"""


def faulted(place, grid, how, nth, verdict, number):
    """A daemon whose Nth write is short, fails or is its last; another one then brings the program to the same verdict."""
    place.state = place.env["PREREGD_STATE"] = place.path(f"fault-{number}")
    outside = dict(place.env)
    armed = place.write("armed", str(nth))
    place.env.update(LD_PRELOAD=PRELOAD, PREREG_CRASH=armed, PREREG_CRASH_AT="writes")
    if how != "kill":
        place.env["PREREG_FAULT"] = how
    place.serve_without_waiting()
    place.env = outside
    end = time.monotonic() + 60
    while time.monotonic() < end and place.daemon.poll() is None:
        if place.run("preregctl", "status").returncode == OK and place.run("preregd", "submit", grid).returncode == OK:
            break
        time.sleep(0.05)
    time.sleep(random.Random(nth).uniform(0, 0.5))
    place.kill_daemon()
    os.unlink(armed)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(120)
    equal(place.verdict_bytes(), verdict, f"verdict.json after write {nth}: {how}")
    place.kill_daemon()
    place.end_all()


def exported(place, how, nth, number):
    """An export whose Nth write is short, fails or is its last leaves no receipt under its name, or a whole one."""
    out = place.path(f"out-{number}")
    env = {**place.env, "LD_PRELOAD": PRELOAD, "PREREG_CRASH": place.write("armed", str(nth)), "PREREG_CRASH_AT": "writes"}
    if how != "kill":
        env["PREREG_FAULT"] = how
    program = place.program_folder()
    run = place.run("preregctl", "export", program, "--out", out, env=env)
    os.unlink(place.path("armed"))
    found = [n for n in (os.listdir(out) if os.path.isdir(out) else []) if n.endswith("-receipt") or n.endswith(".tar")]
    for name in found:
        place.ctl("verify", os.path.join(out, name))
    expect(run.returncode != OK or len(found) == 2, f"export, write {nth} {how}: exit 0 and {found}")
    place.ctl("export", program, "--out", out + "-again")


def test_write_faults(place):
    """Failing, short and killed Nth write calls of daemon and preregctl."""
    seed = int(os.environ.get("PREREGD_SEED", "20261123"))
    chance = random.Random(seed)
    place.write("p/worker.py", WORKER, 0o755)
    grid = place.write("p/grid.toml", SMALL.format())
    place.ctl("lock", grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(120)
    verdict = place.verdict_bytes()
    place.kill_daemon()
    place.end_all()
    end = time.monotonic() + (3600 if LONG else 0)
    counts = {}
    for number in range(10**6):
        how = ("fail", "short", "kill")[number % 3]
        faulted(place, grid, how, chance.randint(1, 120), verdict, number)
        exported(place, how, chance.randint(1, 40), number)
        counts[how] = counts.get(how, 0) + 1
        if number >= 2 and time.monotonic() >= end:
            break
    print(f"  seed {seed}: faults in the daemon and in export: {counts}", flush=True)


lab.main(*([test_write_faults, test_same_bytes, test_first_light_same_bytes] if LONG else [test_write_faults, test_same_bytes]))
