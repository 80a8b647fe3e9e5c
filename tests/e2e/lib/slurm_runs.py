"""Programs under a real Slurm, for test_slurm.py: the local run that each must end like, its submission, and looks at its attempts.

python_worker is edited before it is locked: under Slurm, while WORK/hold is there, its training goes slowly and uses no processor, so that a
disturbance meets it; and one that finds another attempt of its task alive says so in WORK/doubled.
"""

import glob
import json
import os
import shutil

from lib import lab
from lib import slurm_cluster
from lib.lab import OK, equal, expect

GRACE = 3  # seconds: on loopback a file is seen at once
PAUSE = 0.3  # seconds between two looks by a command
CHECKPOINTS = '[run.train]\ncheckpoint = "300ms"\n'
TRAIN = (
    ("import statistics\n", "import statistics\nimport fcntl\nimport time\n"),
    ("def work(w, p):\n", '''\
FOLDER = os.path.dirname(os.environ.get("PREREG_TASK", ""))
WORK = os.path.join(FOLDER, *[".."] * 5)


def go_slowly(step):
    if step >= 20 and os.path.exists(os.path.join(WORK, "hold")):
        time.sleep(0.3)


def alone():
    """A lock for as long as this process lives."""
    if os.path.isdir(os.path.join(WORK, "alone")):
        name = "-".join(FOLDER.split(os.sep)[-3:-1])
        lock = open(os.path.join(WORK, "alone", name), "w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            with open(os.path.join(WORK, "doubled"), "a") as f:
                f.write(name + "\\n")
        return lock


def work(w, p):
    lock = alone()
'''),
    ("        # Drawn anew", "        go_slowly(step)\n        # Drawn anew"),
)


class Local:
    """The undisturbed local run of a program: what every other run must end in. Its locked folder is kept in `host`."""

    def __init__(self, host, bin_folder, name):
        self.name = name
        with lab.Lab(bin_folder) as place:
            grid = place.prepare_small(24_000) if name == "micro" else place.prepare(name)
            if name == "python_worker":
                for old, new in TRAIN:
                    place.edit(os.path.join(os.path.dirname(grid), "train.py"), old, new)
            place.ctl("lock", grid)
            place.serve()
            place.must(OK, "preregd", "submit", grid, "--wait", timeout=600)
            self.results, self.verdict = lab.results(place.program_folder()), place.verdict_bytes()
            place.end_all()
            self.folder = host.path("locked", name)
            shutil.copytree(os.path.dirname(grid), self.folder, symlinks=True)

    def copy(self, place):
        """grid.toml of a copy for another run."""
        shutil.copytree(self.folder, place.path(self.name), symlinks=True)
        return place.path(self.name, "grid.toml")

    def same(self, place):
        again = lab.results(place.program_folder())
        equal(sorted(again), sorted(self.results), "tasks with a result")
        for task in self.results:
            equal(again[task], self.results[task], f"metrics, weights, data and items of {task}")
        equal(place.verdict_bytes(), self.verdict, "verdict.json")
        expect(not os.path.exists(place.path("work", "doubled")), "two attempts of a task were alive at once")


class Pinned(Local):
    """python_worker with a model of GPUs pinned; it has no local run."""

    def __init__(self, place, model):
        grid = place.prepare("python_worker", place.path("pinned"))
        place.edit(grid, "\n[run]\n", f'\n[pin]\ngpu = "{model}"\n\n[run]\n')
        place.ctl("lock", grid)
        self.name, self.folder = "pinned-copy", place.path("pinned")


def prepare(place, local, stages="", slurm="", run=""):
    """A copy of the locked program under Slurm, in a folder that the nodes share. run: more of [run]."""
    work = place.path("work")
    os.makedirs(os.path.join(work, "alone"), exist_ok=True)
    grid = local.copy(place)
    slurm_cluster.place_under_slurm(place, grid, f'work = "{work}"\n{run}{stages or CHECKPOINTS}[run.slurm]\ngrace = "{GRACE}s"\n'
                                                 f'poll = "1s"\n{slurm}')
    return grid


def submit(place, local, **more):
    grid = prepare(place, local, **more)
    place.serve()
    # A probe would use up a job id: a controller that has forgotten all would then give out ids of jobs that its nodes still run.
    place.must(OK, "preregd", "submit", grid, "--no-slurm-check")


def hold(place):
    os.makedirs(place.path("work"), exist_ok=True)
    place.write("work/hold", "")


def release(place):
    os.unlink(place.path("work", "hold"))


# ── attempts ─────────────────────────────────────────────────────────────────────────────────────


def attempts(place):
    """[folder, start or None, exit or None] of every attempt whose folder is there; the shim removes start.json at the end."""
    found = []
    for folder in glob.glob(place.path("work", "*", "cells", "*", "*", "attempt-*")):
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


def job_file(folder):
    """{"name", "index"} of the attempt's job, or None."""
    try:
        with open(os.path.join(folder, "job"), encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def job_names(place):
    """Names of all jobs that were submitted for this place."""
    return {job["name"] for job in (job_file(row[0]) for row in attempts(place)) if job}


def begun(place, cluster):
    """Folders of the attempts whose jobs have a node, whether or not their shims have written anything."""
    out = cluster.run("squeue", "-h", "-r", "-t", "running,configuring,completing", "-o", "%j").stdout.split()
    return {row[0] for row in attempts(place) if (job_file(row[0]) or {}).get("name") in out}


def jobs(place, cluster):
    """Those of this place that Slurm still knows: (state, name, reason) of each."""
    ours = job_names(place)
    return [job for job in cluster.jobs().values() if job[1] in ours]


def job_of(cluster, folder):
    """The id of the attempt's job as scancel takes it, or None; as a person would find it."""
    job = job_file(folder)
    if job is None:
        return None
    out = cluster.run("squeue", "-h", "-r", "-t", "running", f"--name={job['name']}", "-o", "%i").stdout.split()
    wanted = f"_{job['index']}" if job.get("index") is not None else ""
    return next((i for i in out if i.endswith(wanted)), None)


def running_attempt(place, cluster, seconds=120):
    """(folder, job id) of a training that runs under Slurm and has a checkpoint."""
    found = []

    def look():
        for folder, start, end in attempts(place):
            if start is not None and end is None and glob.glob(os.path.join(folder, "checkpoint", "step-*", "manifest.json")):
                job = job_of(cluster, folder)
                if job is not None:
                    found.append((folder, job))
                    return True
        return False
    place.wait_for(look, seconds, "a training runs under Slurm", PAUSE)
    return found[-1]


def end_of(place, folder, seconds=120):
    """exit.json of an attempt, once it is there."""
    path = os.path.join(folder, "exit.json")
    place.wait_for(lambda: os.path.exists(path), seconds, f"{path} is written")
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def next_attempt(place, folder, seconds=180):
    """The folder of the task's next attempt, once it has started."""
    found = []

    def look():
        found[:] = [row[0] for row in attempts(place) if task_of(row[0]) == task_of(folder) and row[0] > folder and (row[1] or row[2])]
        return bool(found)
    place.wait_for(look, seconds, f"another attempt at {task_of(folder)}", PAUSE)
    return found[0]


def went_on(place, folder):
    """Waits until an attempt has resumed from a checkpoint."""
    def look():
        try:
            with open(os.path.join(folder, "events.jsonl"), encoding="utf-8") as f:
                return any('"resumed"' in line for line in f)
        except OSError:
            return False
    place.wait_for(look, 60, "it went on from a checkpoint", PAUSE)


def journal(place):
    with open(os.path.join(place.program_folder(), "journal.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]
