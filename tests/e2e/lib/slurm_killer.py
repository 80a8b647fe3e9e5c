"""Kills at random in a place that runs under a private Slurm, for test_slurm.py."""

import os
import random
import time

from lib import lab
from lib.lab import OK

KILLS_PER_TASK = 2  # under the crash budget
NUDGE_S = 12


class Killer:
    """SIGKILL to one thing at a time: the controller, a node's daemon, a step's, a shim, a worker, preregd."""

    def __init__(self, place, cluster, seed):
        self.place, self.cluster, self.random = place, cluster, random.Random(seed)
        self.counts = {}
        self.per_task = {}

    def attempt_of(self, pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                places = [os.readlink(f"/proc/{pid}/cwd"), *f.read().decode(errors="replace").split("\0")]
        except OSError:
            return None
        inside = [p.split("/cells/", 1)[1].split("/") for p in places if "/cells/" in p]
        return "/".join(inside[0][:2]) if inside else None

    def kill_one(self, pids):
        """One whose task has kills left; its number, or None."""
        able = [pid for pid in pids if self.per_task.get(self.attempt_of(pid), 0) < KILLS_PER_TASK and self.attempt_of(pid)]
        if not able:
            return False
        pid = self.random.choice(sorted(able))
        task = self.attempt_of(pid)
        self.per_task[task] = self.per_task.get(task, 0) + 1
        self.place.kill(pid)
        return True

    def restart(self, name):
        self.cluster.kill(name)
        time.sleep(self.random.uniform(0, 0.5))
        self.cluster.start(name)
        return True

    def kill(self, what):
        """One thing of that kind; false: there is none at this moment."""
        place, cluster = self.place, self.cluster
        if what == "slurmctld":
            return self.restart("slurmctld")
        if what == "slurmd":
            return self.restart(self.random.choice(cluster.nodes))
        if what == "slurmstepd":
            steps = cluster.steps()
            if steps:
                place.kill(self.random.choice(sorted(steps)))
            return bool(steps)
        if what == "preregd":
            place.kill_daemon()
            place.serve_without_waiting()
            return True
        own = ("preregd", "preregctl", "prereg-report")
        return self.kill_one([pid for pid, name in place.processes().items()
                              if name not in own and (name == "prereg-shim") == (what == "shim")])

    def strike(self):
        """Of the kinds that were killed least often, one that is there: a short run meets all of them."""
        kinds = ["slurmctld", "slurmd", "slurmstepd", "shim", "worker", "preregd"]
        self.random.shuffle(kinds)
        for what in sorted(kinds, key=lambda kind: self.counts.get(kind, 0)):
            if self.kill(what):
                self.counts[what] = self.counts.get(what, 0) + 1
                return

    def nudge(self):
        """A job whose step was killed shows RUNNING until its node registers again, which Slurm asks for every minute or two (rule 20)."""
        for name in self.cluster.nodes:
            self.cluster.kill(name)
            self.cluster.start(name)

    def run(self, seconds):
        end = time.monotonic() + seconds
        nudged = time.monotonic()
        while time.monotonic() < end:
            if self.place.daemon is None or self.place.daemon.poll() is not None:
                self.place.serve_without_waiting()
            time.sleep(self.random.uniform(0.3, 1.5))
            run = self.place.run("preregctl", "status", "--json")
            if run.returncode == OK and '"state": "finished"' in run.stdout:
                return
            if sum(self.counts.values()) < (200 if lab.LONG else 25):
                self.strike()
                nudged = time.monotonic()
            elif time.monotonic() > nudged + NUDGE_S:
                self.nudge()
                nudged = time.monotonic()
        raise lab.Failed(f"not finished after {seconds} s; killed {self.counts}")
