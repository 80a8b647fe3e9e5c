#!/usr/bin/env python3
"""preregctl check --slurm against a real Slurm of two nodes on loopback: what fits, and one clear error for whatever does not."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

from lib import lab
from lib import slurm_cluster
from lib.lab import ANY, INVALID, OK, USAGE, equal, expect


def program(place, slurm="", stage=""):
    """micro under Slurm, with more of [run.slurm] and [run.train]."""
    work = place.path("work")
    os.makedirs(work, exist_ok=True)
    grid = place.prepare("micro")
    slurm_cluster.place_under_slurm(place, grid, f'work = "{work}"\n[run.train]\nmemory = "1GiB"\ntime = "10min"\n{stage}[run.slurm]\n{slurm}')
    return grid


def check(place, grid, wanted, *more):
    return place.ctl("check", grid, "--no-run", "--slurm", *more, wanted=wanted)


def one_error(run, *parts, at=None):
    """Exactly one error, which has all of the parts; nothing else follows from it. at: (file, what is there) of its place."""
    errors = {line for line in run.stderr.splitlines() if " error: " in line}
    equal(len(errors), 1, f"errors: {run.stderr}")
    error = errors.pop()
    for part in parts:
        expect(part in error, f"{part!r} is not in: {error}")
    if at is not None:
        expect(error.startswith(place_of(*at) + ": error: "), f"not at {at[1]!r}, {place_of(*at)}: {error}")
    return error


def one_and_stderr(run, *parts):
    one_error(run, *parts)
    return run.stderr


def place_of(grid, text):
    """"FILE:LINE:COLUMN" of the last place where the file has this text."""
    with open(grid, encoding="utf-8") as f:
        before = f.read().rpartition(text)[0]
    return f"{grid}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


def submit(place, grid, wanted, *more):
    return place.must(wanted, "preregd", "submit", grid, *more)


def no_daemon(place):
    expect(not os.path.exists(os.path.join(place.state, "preregd.db")), "a daemon was started for it")


def bare_path(place):
    """A PATH without Slurm."""
    bare = place.path("bare")
    os.mkdir(bare)
    for name in ("sh", "git", "env"):
        os.symlink(shutil.which(name), os.path.join(bare, name))
    return bare


def left_nothing(place, cluster):
    equal(os.listdir(place.path("work")), [], "what is left in the work folder")
    place.wait_for(lambda: not [j for j in cluster.jobs().values() if j[0] in ("PENDING", "RUNNING", "COMPLETING")], 20,
                   "no probe is left in the queue")


def test_fits(place):
    """All is well: figures of the cluster, each stage, and what a node has seen."""
    with slurm_cluster.Cluster(place, nodes=2) as cluster:
        grid = program(place, 'setup = ["echo of setup"]\n')
        said = check(place, grid, OK).stdout
        for part in ("cluster prereg, Slurm ", "partition main: 2 nodes, at most 2 cores, 3.91 GiB, 0 GPUs", "arrays of up to 1001",
                     "no accounting", "train: 1 core, 1 GiB, 10 min", "Slurm would take it and start it now on n1",
                     f"sees {os.path.realpath(place.path('work'))}", "locks of its files are seen here"):
            expect(part in said, f"{part!r} is not in: {said}")
        answer = json.loads(check(place, grid, OK, "--json").stdout)["slurm"]
        probe = answer["probes"][0]
        equal((len(answer["probes"]), probe["state"], probe["flock"]), (1, "answered", True), f"probes: {answer}")
        expect(abs(probe["skew_ms"]) <= probe["skew_bound_ms"] < 2000, f"one clock is off against itself: {probe}")
        expect(probe["version"] in place.ctl("version").stdout, f"version of the shim: {probe}")
        equal([s["stage"] for s in answer["stages"]][0], "train", "stages")
        left_nothing(place, cluster)
        expect("slurm: not asked" in place.ctl("check", grid, "--no-run").stdout, "check without --slurm points to it")


def test_refused(place):
    """What Slurm would never run is refused with figures, and nothing is submitted."""
    partitions = "PartitionName=main Nodes=n1,n2 Default=YES\nPartitionName=short Nodes=n1 MaxTime=5"
    with slurm_cluster.Cluster(place, nodes=2, partitions=partitions) as cluster:
        for slurm, stage, at, parts in (
                ('partition = "gpu"\n', "", '"gpu"', ("has no partition \"gpu\"", "main, short")),
                ('partition = "short"\n', "", '"10min"', ("run.train.time", "10 min", "at most 5 min")),
                ("", "threads = 3\n", "3\n", ("run.train", "3 cores", "at most 2 cores, 3.91 GiB")),
                ("", "gpus = 1\n", "1\n", ("run.train", "1 GPU", "0 GPUs")),
                ('options = ["--nice", "--constraint=a100"]\n', "", '"--constraint=a100"',
                 ("run.train", "1 core, 1 GiB", "Slurm refuses", "feature")),
                ('options = ["--nodelist=n9"]\n', "", '"--nodelist=n9"', ("run.train", "Slurm refuses", "node name")),
                ('options = ["--hint=nomultithread", "--colour=red"]\n', "", '"--colour=red"',
                 ("run.train", "Slurm refuses", "unrecognized option '--colour=red'")),
                ('options = ["--cpu-freq=fast"]\n', "", '"--cpu-freq=fast"', ("run.train", 'unrecognized --cpu-freq argument "fast"')),
                ('options = ["--reservation=tea"]\n', "", '"--reservation=tea"',
                 ("Slurm refuses", "reservation is invalid")),
        ):
            grid = program(place, slurm, stage)
            one_error(check(place, grid, INVALID), *parts, at=(grid, at))
            equal(cluster.jobs(), {}, f"jobs after {slurm}{stage}")
        one_error(check(place, program(place, 'options = ["--time=5"]\n'), INVALID), "options[0]", "--time, which is preregd's")
        left_nothing(place, cluster)


def test_no_slurm(place):
    """No commands, no controller, no stage under Slurm: one line each, and the exit code for anything else."""
    grid = program(place)
    bare = bare_path(place)
    run = place.run("preregctl", "check", grid, "--no-run", "--slurm", env={**place.env, "PATH": bare})
    equal(run.returncode, ANY, f"exit code: {run.stderr}")
    equal(run.stderr.count("\n"), 1, f"lines: {run.stderr}")
    expect("no Slurm on this machine: sbatch is not in PATH" in run.stderr and "slurm-client" in run.stderr, run.stderr)
    local = place.prepare("micro", place.path("local"))
    run = place.ctl("check", local, "--no-run", "--slurm", wanted=USAGE)
    expect("no stage of this program runs under Slurm" in run.stderr, run.stderr)
    with slurm_cluster.Cluster(place, nodes=1) as cluster:
        cluster.kill("slurmctld")
        run = check(place, grid, ANY)
        expect("Slurm does not answer" in run.stderr and "Unable to contact slurm controller" in run.stderr, run.stderr)
    equal(os.listdir(place.path("work")), [], "what is left in the work folder")


def test_node_does_not_see(place):
    """A work folder that is another one on the nodes."""
    if os.getuid() != 0:
        lab.skip("hiding a folder from a node needs root")
    os.mkdir(place.path("work"))
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        lab.skip("this machine allows no mount namespace")
    with slurm_cluster.Cluster(place, nodes=1, hidden=place.path("work")) as cluster:
        grid = program(place)
        at = (grid, f'"{place.path("work")}"')
        refusal = one_error(check(place, grid, INVALID), "node n1 does not see the work folder", os.path.realpath(place.path("work")), at=at)
        place.ctl("lock", grid)
        equal(one_error(submit(place, grid, INVALID), at=at), refusal, "what submit says")
        left_nothing(place, cluster)
        no_daemon(place)


def test_shim_and_setup(place):
    """The shim's version is asked on the node, not here; the line of setup that fails is shown with what it printed."""
    with slurm_cluster.Cluster(place, nodes=1, node_timeout=60) as cluster:
        other = place.write("other/prereg-shim", "#!/bin/sh\necho prereg-shim 0.0.7\n", 0o755)
        grid = program(place, f'shim = "{other}"\n')
        one_error(check(place, grid, INVALID), "node n1 is prereg-shim 0.0.7, this is prereg-shim ", at=(grid, f'"{other}"'))
        place.write("other/prereg-shim", "#!/bin/sh\nexit 2\n", 0o755)
        one_error(check(place, grid, INVALID), "not a prereg-shim that reports its version")
        grid = program(place, 'shim = "/nowhere/prereg-shim"\n')
        one_error(check(place, grid, INVALID), "node n1 cannot run /nowhere/prereg-shim", at=(grid, '"/nowhere/prereg-shim"'))
        grid = program(place, 'setup = ["true", "echo no such module >&2; false"]\n')
        one_error(check(place, grid, INVALID), "line 2 of [run.slurm] setup failed on node n1: echo no such module >&2; false "
                  "(it printed: no such module)", at=(grid, '"echo no'))
        left_nothing(place, cluster)


def test_submit_asks(place):
    """What `check --slurm` refuses, `preregd submit` refuses in the same words, before a daemon is started; and there is a way round it."""
    with slurm_cluster.Cluster(place, nodes=1, node_timeout=60) as cluster:
        grid = program(place)
        place.ctl("lock", grid)
        for slurm in ('partition = "gpu"\n', 'options = ["--colour=red"]\n', 'shim = "/nowhere/prereg-shim"\n', 'setup = ["false"]\n'):
            grid = program(place, slurm)
            refusal = one_error(check(place, grid, INVALID))
            run = submit(place, grid, INVALID)
            equal(one_error(run), refusal, f"what submit says of {slurm}")
            expect("was not submitted: 1 error (--no-slurm-check" in run.stderr, run.stderr)
            left_nothing(place, cluster)
            no_daemon(place)
        cluster.kill("slurmctld")
        run = submit(place, program(place), ANY)
        expect("Slurm does not answer" in run.stderr and "--no-slurm-check submits it" in run.stderr, run.stderr)
        bare = bare_path(place)
        run = place.run("preregd", "submit", grid, env={**place.env, "PATH": bare})
        equal(run.returncode, ANY, f"exit code without Slurm: {run.stderr}")
        expect("no Slurm on this machine: sbatch is not in PATH" in run.stderr and "--no-slurm-check" not in run.stderr, run.stderr)
        no_daemon(place)
        expect("submitted micro-" in submit(place, grid, OK, "--no-slurm-check").stdout, "submitted")
        place.ctl("cancel", "--all", "--reason", "a test")
        expect("already submitted micro-" in submit(place, grid, OK).stdout, "what is known here is not asked about again")
        place.ctl("stop")


def test_submit_while_nodes_are_away(place):
    """They may come back: a warning, and the program is submitted."""
    with slurm_cluster.Cluster(place, nodes=2, cpus=1) as cluster:
        grid = program(place)
        place.ctl("lock", grid)
        for node in cluster.nodes:
            equal(cluster.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=no power").returncode, 0, "scontrol")
        away = "run.train: no node that is up can run it now (n1 is IDLE+DRAIN (no power), and 1 more); the probe job waited "
        run = check(place, grid, OK)
        expect("warning: " + away in run.stderr and " error: " not in run.stderr, run.stderr)
        # what no node could do if it were up is an error all the same
        one_error(check(place, program(place, "", "threads = 2\n"), INVALID), "at most 1 core,")
        grid = program(place)
        run = submit(place, grid, OK)
        expect("warning: " + away in run.stderr and "submitted micro-" in run.stdout, run.stderr + run.stdout)
        place.ctl("cancel", "--all", "--reason", "a test")
        place.wait_finished(60)
        place.ctl("stop")
        equal([j for j in cluster.jobs().values() if j[0] in ("PENDING", "RUNNING")], [], "jobs that wait")


def test_submit_to_full_cluster(place):
    """A probe that does not begin is a warning, and the program is submitted."""
    with slurm_cluster.Cluster(place, nodes=1, cpus=1) as cluster:
        grid = program(place)
        place.ctl("lock", grid)
        script = place.write("busy.sh", "#!/bin/sh\nsleep 600\n", 0o755)
        equal(cluster.run("sbatch", "--output=/dev/null", script).returncode, 0, "sbatch")
        place.wait_for(lambda: [j[0] for j in cluster.jobs().values()] == ["RUNNING"], 20, "the node is busy")
        run = submit(place, grid, OK, "--slurm-wait", "3s")
        expect("warning: run.train: the probe job waited 3" in run.stderr and "submitted micro-" in run.stdout, run.stderr + run.stdout)
        place.ctl("cancel", "--all", "--reason", "a test")
        place.ctl("stop")


def test_work_folder(place):
    """A folder that cannot be used is refused at its key, with or without Slurm; one that is missing is made if the one above is there."""
    grid = place.prepare("micro")
    place.ctl("lock", grid)
    with open(grid, encoding="utf-8") as f:
        text = f.read()
    file = place.write("a-file", "")
    os.symlink(place.path("nothing"), place.path("dangling"))
    for work, parts in ((file, ("run.work", "is not a folder")), (f"{file}/runs", ("no such folder", "is not a folder either")),
                        (place.path("missing/runs"), ("no such folder", "make that one")), (place.path("dangling"), ("a link to nothing",)),
                        *(() if os.getuid() == 0 else (("/proc/runs", ("/proc: you cannot write",)),))):
        place.replace(grid, text.replace("\n[run]\n", f'\n[run]\nwork = "{work}"\n'), 0o644)
        one_error(submit(place, grid, INVALID), *parts, at=(grid, f'"{work}"'))
        expect("warning: run.work: " in place.ctl("check", grid, "--no-run").stderr, f"check of {work}")
        place.edit(grid, "\n[run]\n", '\n[run]\nexecutor = "slurm"\n')  # the folder is looked at first, and there is no way round that
        expect("--no-slurm-check" not in one_and_stderr(submit(place, grid, INVALID), *parts), "the way out that is none")
    no_daemon(place)
    # what only the daemon's attempt to make it shows has its place and code, too
    place.replace(grid, text.replace("\n[run]\n", '\n[run]\nwork = "/proc/runs"\n'), 0o644)
    expect(place_of(grid, '"/proc/runs"') in submit(place, grid, INVALID).stderr, "the place of /proc/runs")
    place.replace(grid, text.replace("\n[run]\n", f'\n[run]\nwork = "{place.path("new")}"\n'), 0o644)
    submit(place, grid, OK)
    expect(os.path.isdir(place.path("new")), "a missing folder is made")
    place.ctl("cancel", "--all", "--reason", "a test")
    place.ctl("stop")


def test_waits(place):
    """A full cluster: the probe's reason in words, a warning; it is cancelled, also when a signal ends the check."""
    with slurm_cluster.Cluster(place, nodes=1, cpus=1) as cluster:
        grid = program(place)
        script = place.write("busy.sh", "#!/bin/sh\nsleep 600\n", 0o755)
        equal(cluster.run("sbatch", "--output=/dev/null", script).returncode, 0, "sbatch")
        place.wait_for(lambda: [j[0] for j in cluster.jobs().values()] == ["RUNNING"], 20, "the node is busy")
        run = check(place, grid, OK, "--slurm-wait", "3s")
        expect("warning: run.train: the probe job waited 3" in run.stderr, run.stderr)
        expect("Resources (no node is free)" in run.stderr or "Priority (" in run.stderr, run.stderr)
        expect("probe: waited in the queue" in run.stdout, run.stdout)
        run = place.run("preregctl", "check", grid, "--no-run", "--slurm", "--slurm-wait", "1ms")
        equal(run.returncode, USAGE, f"--slurm-wait 1ms: {run.stderr}")
        asking = subprocess.Popen([os.path.join(place.bin, "preregctl"), "check", grid, "--no-run", "--slurm"], env=place.env,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        place.wait_for(lambda: sum(j[0] == "PENDING" for j in cluster.jobs().values()) == 1, 20, "the probe waits")
        asking.send_signal(signal.SIGINT)
        asking.communicate(timeout=120)
        equal(asking.returncode, -signal.SIGINT, "how it ended")
        equal(os.listdir(place.path("work")), [], "what is left in the work folder")
        place.wait_for(lambda: sorted(j[0] for j in cluster.jobs().values() if j[0] != "CANCELLED") == ["RUNNING"], 20,
                       "the probes are cancelled, and no other job")


def test_probe_is_ended(place):
    """A probe that another person or the cluster ends says nothing about the program: a warning, at once."""
    with slurm_cluster.Cluster(place, nodes=1, cpus=1) as cluster:
        grid = program(place, 'setup = ["sleep 600"]\n')
        asking = subprocess.Popen([os.path.join(place.bin, "preregctl"), "check", grid, "--no-run", "--slurm"], env=place.env,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        place.wait_for(lambda: [j[0] for j in cluster.jobs().values()] == ["RUNNING"], 20, "the probe runs")
        started = time.monotonic()
        equal(cluster.run("scancel", "-u", str(os.getuid())).returncode, 0, "scancel")
        text, said = asking.communicate(timeout=240)
        expect("warning: run.train: the probe job was ended on node n1 before it had an answer (CANCELLED)" in said, said)
        expect("probe: no answer: the probe job was ended" in text, text)
        equal(asking.returncode, OK, said)
        expect(time.monotonic() - started < 120, "it was not judged at once")
        left_nothing(place, cluster)


def test_cluster_ends_with_its_test(place):
    """The harness itself: a test that is killed leaves no process of its Slurm behind, a running job included."""
    script = place.write("dies.py", f"""
import os, signal, sys
sys.path.insert(0, {lab.HERE!r})
from lib import lab, slurm_cluster
class Place(lab.Lab):
    def __init__(self):
        self.folder, self.env, self.state, self.daemon, self.keep = {place.folder!r}, dict(os.environ), "", None, False
place = Place()
cluster = slurm_cluster.Cluster(place, nodes=1).__enter__()
job = place.write("job.sh", "#!/bin/sh\\nsleep 600\\n", 0o755)
cluster.run("sbatch", "--output=/dev/null", job)
place.wait_for(lambda: "RUNNING" in [j[0] for j in cluster.jobs().values()], 20, "it runs")
place.wait_for(lambda: len(slurm_cluster.ours(cluster.folder)) >= 5, 20, "its processes are there")
print(len(slurm_cluster.ours(cluster.folder)), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
""")
    slurm_cluster.skip_without_slurm()
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    expect(run.stdout.strip().isdigit() and int(run.stdout) >= 5, f"processes of the cluster: {run.stdout} {run.stderr}")
    folder = os.path.realpath(place.path("slurm"))
    started = time.monotonic()
    place.wait_for(lambda: not slurm_cluster.ours(folder), 20, "everything has ended")
    print(f"  ended {run.stdout.strip()} processes in {time.monotonic() - started:.1f} s", flush=True)


if __name__ == "__main__":
    lab.main(test_submit_asks, test_refused, test_fits, test_no_slurm, test_node_does_not_see, test_shim_and_setup,
             test_submit_while_nodes_are_away, test_submit_to_full_cluster, test_work_folder, test_waits,
             test_probe_is_ended, test_cluster_ends_with_its_test, at_once=2)
