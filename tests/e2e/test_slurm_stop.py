#!/usr/bin/env python3
"""preregd ends right behind a cancellation: no job of it stays in Slurm's queue, whether or not another daemon follows."""

import os
import time

from lib import lab
from lib import slurm_cluster
from lib.lab import NO_DAEMON, OK, equal, expect

JOBS = 6  # micro's trainings


def submit(place, cluster, slurm=""):
    """micro under Slurm on one core: one training runs, the others wait."""
    work = place.path("work")
    os.mkdir(work)
    grid = place.prepare("micro")
    # it lasts until it is ended
    place.edit(grid, "tokens = 120_000", "tokens = 120_000_000")
    slurm_cluster.place_under_slurm(place, grid, f'work = "{work}"\n[run.slurm]\n{slurm}')
    place.ctl("lock", grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid, "--no-slurm-check")
    place.wait_for(lambda: len(alive(cluster)) == JOBS, 30, "the jobs are in the queue")
    place.wait_for(lambda: "RUNNING" in alive(cluster), 30, "one of them runs")


def alive(cluster):
    return [j[0] for j in cluster.jobs().values() if j[0] in ("PENDING", "RUNNING")]


def ended(place, seconds=40):
    """Waits for the end of the daemon; returns how long that took."""
    started = time.monotonic()
    place.wait_for(lambda: place.daemon.poll() is not None, seconds, "the daemon ends")
    place.reap()
    return time.monotonic() - started


def nothing_is_left(place, cluster):
    place.wait_for(lambda: not alive(cluster), 15, "no job is in the queue")
    place.wait_for(lambda: not [p for p in place.processes().values() if p == "prereg-train"], 15, "no worker is left")


def test_cancelled_and_stopped(place):
    """cancel --all and stop, one behind the other, and no other daemon."""
    with slurm_cluster.Cluster(place, nodes=1, cpus=1) as cluster:
        submit(place, cluster)
        place.ctl("cancel", "--all", "--reason", "a test")
        said = place.ctl("stop").stdout
        took = ended(place)
        expect("is stopping" in said, said)
        nothing_is_left(place, cluster)
        print(f"  the daemon ended {took:.1f} s after `preregctl stop`", flush=True)
        place.serve()
        place.wait_finished(60)
        equal({t["state"] for t in place.tasks().values()}, {"blocked", "never_run"}, "what became of the tasks")


def test_killed_and_stopped(place):
    """stop --kill: what waits leaves the queue, what runs is terminated."""
    with slurm_cluster.Cluster(place, nodes=1, cpus=1) as cluster:
        submit(place, cluster)
        place.ctl("stop", "--kill")
        ended(place)
        nothing_is_left(place, cluster)


def test_the_next_daemon_cancels(place):
    """Killed between the two, a daemon leaves the cancellation to the next one."""
    with slurm_cluster.Cluster(place, nodes=1, cpus=1) as cluster:
        submit(place, cluster, 'grace = "2s"\n')
        place.ctl("cancel", "--all", "--reason", "a test")
        place.kill_daemon()
        equal(len(alive(cluster)), JOBS, "jobs when it was killed")
        place.serve()
        place.wait_finished(90)
        nothing_is_left(place, cluster)


def test_controller_is_away(place):
    """The wait is bounded, a second request ends it, and the next daemon goes on where this one could not."""
    with slurm_cluster.Cluster(place, nodes=1, cpus=1) as cluster:
        submit(place, cluster, 'grace = "2s"\n')
        cluster.kill("slurmctld")
        place.ctl("cancel", "--all", "--reason", "a test")
        place.ctl("stop")
        time.sleep(0.5)
        equal(place.daemon.poll(), None, "it waits for Slurm")
        run = place.run("preregctl", "resume")
        equal(run.returncode, NO_DAEMON, f"a request meanwhile: {run.stdout}{run.stderr}")
        expect("preregd is stopping, and waits for what is being cancelled" in run.stderr, run.stderr)
        place.ctl("status")
        place.ctl("stop")
        expect(ended(place) < 5, "the second request ends it at once")
        cluster.start("slurmctld")
        place.wait_for(cluster.answers, 30, "slurmctld answers", 0.2)
        place.serve()
        place.wait_finished(90)
        nothing_is_left(place, cluster)


if __name__ == "__main__":
    lab.main(test_cancelled_and_stopped, test_killed_and_stopped, test_the_next_daemon_cancels, test_controller_is_away, at_once=2)
