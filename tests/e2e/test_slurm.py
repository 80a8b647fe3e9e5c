#!/usr/bin/env python3
"""Programs under a real Slurm of three nodes on loopback: the bytes of the local run, whatever dies, is cancelled, preempted, requeued or runs
out of time. PREREGD_SEED chooses the killer's seed."""

import glob
import json
import os
import random
import signal
import sys
import time

from lib import lab
from lib import slurm_cluster
from lib.lab import OK, equal, expect
from lib.slurm_cluster import Cluster

RUNNING = ("RUNNING", "COMPLETING")
KILLS_PER_TASK = 2  # under the crash budget
GRACE = 3  # seconds: on loopback a file is seen at once


class Local:
    """The undisturbed local run of a program: what every other run must end in."""

    def __init__(self, place, name, edits=()):
        self.grid = place.prepare_small() if name == "micro" else place.prepare(name)
        for old, new in edits:
            place.edit(self.grid, old, new)
        place.ctl("lock", self.grid)
        place.serve()
        place.must(OK, "preregd", "submit", self.grid, "--wait", timeout=600)
        self.results, self.verdict = lab.results(place.program_folder()), place.verdict_bytes()
        place.end_all()

    def same(self, place):
        again = lab.results(place.program_folder())
        equal(sorted(again), sorted(self.results), "tasks with a result")
        for task in self.results:
            equal(again[task], self.results[task], f"metrics, weights, data and items of {task}")
        equal(place.verdict_bytes(), self.verdict, "verdict.json")


def submit_to_slurm(place, grid, stages="", slurm="", run=""):
    """The same locked program in a new state folder, under Slurm; `run`: more of [run]."""
    place.state = place.path("state-slurm")
    place.env["PREREGD_STATE"] = place.state
    work = place.path("work")
    os.makedirs(work, exist_ok=True)
    slurm_cluster.place_under_slurm(place, grid, f'work = "{work}"\n{run}{stages or CHECKPOINTS}[run.slurm]\ngrace = "{GRACE}s"\n{slurm}')
    place.serve()
    place.must(OK, "preregd", "submit", grid)


CHECKPOINTS = '[run.train]\ncheckpoint = "200ms"\n'


def attempts(place):
    """[folder, start or None, exit or None] of every attempt whose folder is there; the shim removes start.json at the end."""
    found = []
    for folder in glob.glob(os.path.join(place.program_folder(), "cells", "*", "*", "attempt-*")):
        row = [folder]
        for name in ("start.json", "exit.json"):
            try:
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    row.append(json.load(f))
            except (OSError, ValueError):
                row.append(None)
        found.append(row)
    return sorted(found, key=lambda row: os.path.basename(row[0]))


def task_of(folder):
    return "/".join(folder.split(os.sep)[-3:-1])


def job_of(cluster, folder):
    """The id of the attempt's job as scancel takes it, or None; from its `job` file, as a person would."""
    try:
        with open(os.path.join(folder, "job"), encoding="utf-8") as f:
            job = json.load(f)
    except (OSError, ValueError):
        return None
    out = cluster.run("squeue", "-h", "-r", "-t", "running", f"--name={job['name']}", "-o", "%i").stdout.split()
    wanted = f"_{job['index']}" if job.get("index") is not None else ""
    return next((i for i in out if i.endswith(wanted)), None)


def running_attempt(place, cluster, seconds=60, with_checkpoint=True):
    """(folder, job id) of a training that runs under Slurm and has a checkpoint."""
    found = []

    def look():
        for folder, start, end in attempts(place):
            if start is not None and end is None and "/train/" in folder:
                if with_checkpoint and not glob.glob(os.path.join(folder, "checkpoint", "step-*", "manifest.json")):
                    continue
                job = job_of(cluster, folder)
                if job is not None:
                    found.append((folder, job))
                    return True
        return False
    place.wait_for(look, seconds, "a training runs under Slurm")
    return found[-1]


def end_of(place, folder, seconds=60):
    """exit.json of an attempt, once it is there."""
    path = os.path.join(folder, "exit.json")
    place.wait_for(lambda: os.path.exists(path), seconds, f"{path} is written")
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def next_attempt(place, task, after, seconds=120):
    """The start of the task's next attempt, once it has one."""
    found = []

    def look():
        found[:] = [row for row in attempts(place) if task_of(row[0]) == task and row[0] > after and (row[1] or row[2])]
        return bool(found)
    place.wait_for(look, seconds, f"another attempt at {task}")
    return found[0]


def resumed(place, folder):
    with open(os.path.join(folder, "events.jsonl"), encoding="utf-8") as f:
        return any('"resumed"' in line for line in f)


LONG_TRAINING = (("steps = 600", "steps = 3000"),)


# ── undisturbed ──────────────────────────────────────────────────────────────────────────────────


def test_same_bytes(place):
    """micro, in arrays; then nothing of it is left in the queue."""
    local = Local(place, "micro")
    with Cluster(place) as cluster:
        submit_to_slurm(place, local.grid)
        place.wait_finished(240)
        local.same(place)
        names = {name for _, name, _ in cluster.jobs().values()}
        expect(len(names) < len(attempts(place)), f"no array: {len(names)} names")
        equal([job for job in cluster.jobs().values() if job[0] in ("PENDING", *RUNNING)], [], "jobs in the queue")


def test_python_single_jobs(place):
    """python_worker, one job for each attempt; the evaluation runs locally."""
    local = Local(place, "python_worker")
    with Cluster(place) as cluster:
        submit_to_slurm(place, local.grid, slurm="array = false\n", stages='[run.train]\ncheckpoint = "200ms"\n[run.quiz]\nexecutor = "local"\n')
        place.wait_finished(240)
        local.same(place)
        equal(len({name for _, name, _ in cluster.jobs().values()}), sum("/train/" in a[0] for a in attempts(place)), "jobs")


# ── one thing at a time ──────────────────────────────────────────────────────────────────────────


def disturbed(place, act, edits=LONG_TRAINING, more="", stages="", **shape):
    """python_worker, whose training is long enough to be met, with one disturbance."""
    local = Local(place, "python_worker", edits)
    with Cluster(place, **shape) as cluster:
        submit_to_slurm(place, local.grid, slurm=more, stages=stages)
        act(cluster)
        place.wait_finished(300)
        local.same(place)
        expect(all(task["state"] == "done" for task in place.tasks().values()), "a task was given up")


def test_cancelled_by_hand(place):
    """scancel: a checkpoint, and another attempt that goes on; no crash is counted."""
    def act(cluster):
        folder, job = running_attempt(place, cluster)
        equal(cluster.run("scancel", job).returncode, 0, "scancel")
        row = next_attempt(place, task_of(folder), folder)
        place.wait_for(lambda: resumed(place, row[0]), 60, "it went on")
    disturbed(place, act)


def test_preempted(place):
    """A job of a higher partition takes the nodes; the shim has a checkpoint made, and the program goes on after it."""
    partitions = ("PartitionName=main Nodes=n1,n2,n3 Default=YES PriorityTier=1 PreemptMode=CANCEL\n"
                  "PartitionName=first Nodes=n1,n2,n3 PriorityTier=10 PreemptMode=OFF")
    extra = "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL"

    def act(cluster):
        folder, _ = running_attempt(place, cluster)
        script = place.write("first.sh", "#!/bin/sh\nsleep 5\n", 0o755)
        equal(cluster.run("sbatch", "--partition=first", "--nodes=3", "--exclusive", "--output=/dev/null", script).returncode, 0, "sbatch")
        equal(end_of(place, folder)["code"], 75, "how the preempted worker ended")
        row = next_attempt(place, task_of(folder), folder)
        place.wait_for(lambda: resumed(place, row[0]), 60, "it went on")
    disturbed(place, act, partitions=partitions, extra=extra)


def test_requeued_by_the_site(place):
    """scontrol requeue, though the job says --no-requeue: the second run refuses its folder; another attempt does the task."""
    def act(cluster):
        folder, job = running_attempt(place, cluster)
        equal(cluster.run("scontrol", "update", f"job={job}", "requeue=1").returncode, 0, "requeue=1")
        equal(cluster.run("scontrol", "requeue", job).returncode, 0, "requeue")
        next_attempt(place, task_of(folder), folder, 200)
    disturbed(place, act)


def test_time_limit(place):
    """USR2 before the limit: a checkpoint and exit 75, well before Slurm would kill it; the next attempt goes on."""
    def act(cluster):
        folder, _ = running_attempt(place, cluster)
        equal(end_of(place, folder, 120)["code"], 75, "how the worker ended")
        row = next_attempt(place, task_of(folder), folder)
        place.wait_for(lambda: resumed(place, row[0]), 60, "it went on")
    disturbed(place, act, edits=(("steps = 600", "steps = 20000"),), stages='[run.train]\ncheckpoint = "1s"\ntime = "1min"\n')


def test_node_dies(place):
    """The machine of a node is off. NODE_FAIL, the grace, and another attempt elsewhere; how long that took is printed."""
    def act(cluster):
        folder, job = running_attempt(place, cluster)
        node = cluster.run("squeue", "-h", "-j", job, "-o", "%N").stdout.strip()
        started = time.monotonic()
        cluster.kill_node(node)
        row = next_attempt(place, task_of(folder), folder, 240)
        print(f"  from the death of {node} to the start of the new attempt: {time.monotonic() - started:.1f} s "
              f"(SlurmdTimeout 10 s, grace {GRACE} s)", flush=True)
        cluster.start(node)
    disturbed(place, act)


def test_adopted(place):
    """preregd is killed while jobs run and wait: the next one adopts them, and submits none of them again."""
    def act(cluster):
        folder, job = running_attempt(place, cluster)
        place.kill_daemon()
        before = {name for _, name, _ in cluster.jobs().values()}
        time.sleep(0.5)
        place.serve()
        equal(os.path.exists(os.path.join(folder, "fenced")), False, "the attempt that ran was given up")
        expect(job_of(cluster, folder) == job or end_of(place, folder)["code"] == 0, "its job runs, or has ended well")
        expect(before, "jobs before")
    disturbed(place, act)
    starts = [task_of(row[0]) for row in attempts(place)]
    equal(len(starts), len(set(starts)), "attempts of a task: no task needed a second one")


def test_controller_forgets(place):
    """kill -9 slurmctld again and again, while jobs run and end: nothing is lost or doubled."""
    def act(cluster):
        running_attempt(place, cluster)
        for _ in range(3):
            cluster.kill("slurmctld")
            cluster.start("slurmctld")
            place.wait_for(cluster.answers, 40, "slurmctld answers")
    disturbed(place, act)


# ── everything at random ─────────────────────────────────────────────────────────────────────────


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

    def strike(self):
        place, cluster = self.place, self.cluster
        what = self.random.choice(["slurmctld", "slurmd", "slurmstepd", "shim", "worker", "preregd"])
        running = place.processes()
        if what == "slurmctld":
            done = self.restart("slurmctld")
        elif what == "slurmd":
            done = self.restart(self.random.choice(cluster.nodes))
        elif what == "slurmstepd":
            steps = cluster.steps()
            done = bool(steps)
            if steps:
                place.kill(self.random.choice(sorted(steps)))
        elif what == "preregd":
            place.kill_daemon()
            place.serve_without_waiting()
            done = True
        else:
            own = ("preregd", "preregctl", "prereg-report")
            done = self.kill_one([pid for pid, name in running.items() if name not in own and (name == "prereg-shim") == (what == "shim")])
        if done:
            self.counts[what] = self.counts.get(what, 0) + 1

    def run(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.place.daemon is None or self.place.daemon.poll() is not None:
                self.place.serve_without_waiting()
            time.sleep(self.random.uniform(0.3, 1.5))
            run = self.place.run("preregctl", "status", "--json")
            if run.returncode == OK and '"state": "finished"' in run.stdout:
                return
            if sum(self.counts.values()) < (200 if lab.LONG else 25):
                self.strike()
        raise lab.Failed(f"not finished after {seconds} s; killed {self.counts}")


def test_everything_is_killed(place):
    seed = int(os.environ.get("PREREGD_SEED", "20261128"))
    local = Local(place, "micro")
    with Cluster(place) as cluster:
        submit_to_slurm(place, local.grid)
        killer = Killer(place, cluster, seed)
        killer.run(1800 if lab.LONG else 400)
        print(f"  seed {seed}: killed {killer.counts}", flush=True)
        expect(len(killer.counts) >= 4, f"too little was killed: {killer.counts}")
        local.same(place)


PARTS = {
    "bytes": (test_same_bytes, test_python_single_jobs, test_cancelled_by_hand, test_adopted, test_everything_is_killed),
    "ends": (test_preempted, test_requeued_by_the_site, test_time_limit, test_node_dies, test_controller_forgets),
}

if __name__ == "__main__":
    part = PARTS.get(sys.argv[2]) if len(sys.argv) == 3 else None
    if part:  # ctest runs the two beside each other
        del sys.argv[2]
    lab.main(*(part or PARTS["bytes"] + PARTS["ends"]))
