#!/usr/bin/env python3
"""kill -9 of daemon, shims and workers at random, from a printed seed: the run ends in the same bytes as without.

PREREGD_SEED chooses the seed, PREREGD_LONG=1 runs first_light and more seeds.
"""

import os
import random
import time

from lib import lab
from lib.lab import OK, equal, expect

KILLS_PER_TASK = 2  # under the crash budget, and never three restarts in a row without progress
DAEMON_KILLS_MAX = 8


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
    grid = place.prepare_small(60_000) if name == "micro" else place.prepare(name)
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
    killer.run(1800 if lab.LONG else 300)
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
    if lab.LONG and len(seeds) == 1:
        seeds += [seeds[0] + i for i in range(1, 5)]
    grid, calm = undisturbed(place, "micro")
    for number, seed in enumerate(seeds):
        killed(place, grid, calm, seed, number)


def test_first_light_same_bytes(place):
    if not lab.LONG:
        lab.skip("first_light under the killer runs with ops/check --long")
    grid, calm = undisturbed(place, "first_light")
    killed(place, grid, calm, 7, "first_light")


lab.main(*([test_same_bytes, test_first_light_same_bytes] if lab.LONG else [test_same_bytes]))
