#!/usr/bin/env python3
"""Programs under a real Slurm on loopback: the bytes of the local run, whatever dies, is cancelled, preempted, requeued, forgotten or runs out
of time. PREREGD_SEED chooses the killer's seed.

The scenarios run beside each other, because they mostly wait. Those that disturb nothing but their own jobs share one cluster; the others
have one of their own.
"""

import json
import os
import sys
import time
from concurrent import futures

from lib import lab
from lib import slurm_killer
from lib import slurm_runs as runs
from lib.hosts import Host
from lib.lab import OK, equal, expect
from lib.slurm_cluster import Cluster, skip_without_slurm

BIN = os.path.abspath(sys.argv[1])
AT_ONCE = 7
# n4 and n5 may die; the jobs on n6 may be preempted.
PARTITIONS = """\
PartitionName=main Nodes=n1,n2,n3 Default=YES PriorityTier=1 PreemptMode=OFF
PartitionName=mortal Nodes=n4,n5 PriorityTier=1 PreemptMode=OFF
PartitionName=low Nodes=n6 PriorityTier=1 PreemptMode=CANCEL
PartitionName=first Nodes=n6 PriorityTier=10 PreemptMode=OFF"""
PREEMPTION = "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL"


class shared:
    """What several scenarios use; filled in before they begin."""
    cluster = None
    micro = None
    python = None


def disturbed(place, act, cluster=None, slurm="", stages="", repair=lambda: None):
    """python_worker, whose training goes slowly until `act` is over. repair: what is done to the cluster from then on."""
    cluster = cluster or shared.cluster
    cluster.attach(place)
    runs.hold(place)
    runs.submit(place, shared.python, slurm=slurm, stages=stages)
    act(cluster)
    runs.release(place)
    finished(place, shared.python, repair)


def finished(place, local, repair=lambda: None):
    def is_finished():
        repair()
        run = place.run("preregctl", "status", "--json")
        return run.returncode == OK and all(p["state"] == "finished" for p in json.loads(run.stdout)["programs"])
    place.wait_for(is_finished, 300, "the program finishes", runs.PAUSE)
    local.same(place)
    expect(all(task["state"] == "done" for task in place.tasks().values()), "a task was given up")


def once_each(place, n):
    """No task needed a second attempt."""
    starts = sorted(runs.task_of(row[0]) for row in runs.attempts(place))
    equal((len(starts), len(set(starts))), (n, n), f"attempts: {starts}")


# ── undisturbed ──────────────────────────────────────────────────────────────────────────────────


def test_same_bytes(place):
    """micro, in arrays; then nothing of it is left in the queue."""
    shared.cluster.attach(place)
    runs.submit(place, shared.micro)
    finished(place, shared.micro)
    expect(len(runs.job_names(place)) < len(runs.attempts(place)), "no array")
    place.wait_for(lambda: not [job for job in runs.jobs(place, shared.cluster) if job[0] in ("PENDING", "RUNNING", "COMPLETING")], 30,
                   "no job is left in the queue", runs.PAUSE)


def test_python_single_jobs(place):
    """python_worker, one job for each attempt; the evaluation runs locally."""
    shared.cluster.attach(place)
    runs.submit(place, shared.python, slurm="array = false\n", stages=runs.CHECKPOINTS + '[run.quiz]\nexecutor = "local"\n')
    finished(place, shared.python)
    equal(len(runs.job_names(place)), sum("/train/" in a[0] for a in runs.attempts(place)), "jobs")


# ── GPUs ─────────────────────────────────────────────────────────────────────────────────────────


def gpus_of(place, folder):
    """start.json's, which exit.json keeps."""
    for name in ("exit.json", "start.json"):
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                found = json.load(f)
            found = found.get("start", found)
            return [(g["uuid"], g["model"], g["memory_bytes"]) for g in found.get("gpus", [])]
        except (OSError, ValueError):
            pass
    return None


def test_gpus_of_the_nodes(place):
    """A job has its GPUs by number; which they are is found out on the node, and is in provenance.json. A job that has one of another model
    than [pin] gpu does not begin. No device is behind the cluster's GPUs, so its Slurm names none: a line of setup does."""
    model, other = "NVIDIA H100 80GB HBM3", "NVIDIA T4"
    listed = [{"uuid": f"GPU-{i}aaaaaaa-1111-2222-3333-444455556666", "model": m, "memory_bytes": 80 << 30, "driver": "550", "ecc": True}
              for i, m in enumerate((model, model, other))]
    script = place.write("gpus.json", json.dumps(listed))
    more = {"stages": runs.CHECKPOINTS + "gpus = 1\n", "slurm": f'setup = ["export PREREG_GPUS={script} CUDA_VISIBLE_DEVICES=$((SLURM_JOB_ID % 2))"]\n'}
    with Cluster(place, nodes=1, cpus=4, gpus=2) as cluster:
        runs.submit(place, shared.python, **more)
        finished(place, shared.python)
        wanted = [[(g["uuid"], model, 80 << 30)] for g in listed[:2]]
        for folder, _, _ in runs.attempts(place):
            found = gpus_of(place, folder)
            expect(found in wanted if "/train/" in folder else not found, f"GPUs of {folder}: {found}")
        text = read(os.path.join(place.program_folder(), "report", "provenance.json"))
        expect(any(g["uuid"] in text for g in listed[:2]), "provenance.json names no GPU")
        place.ctl("stop")
        place.state = place.path("pinned-state")
        place.env["PREREGD_STATE"] = place.state
        os.rename(place.path("work"), place.path("work-of-before"))
        pinned = runs.Pinned(place, other)
        runs.submit(place, pinned, **more)
        ended = []

        def has_ended():
            ended[:] = [row for row in runs.journal(place) if row["event"] == "attempt_ended"]
            return bool(ended)
        place.wait_for(has_ended, 60, "an attempt ended", runs.PAUSE)
        equal(ended[0]["attempt"]["reason"], "never_launched", f"how it ended: {ended[0]['detail']}")
        expect(f'[pin] gpu: locked "{other}", and GPU GPU-' in ended[0]["detail"], f"why: {ended[0]['detail']}")
        expect(all(row[1] is None for row in runs.attempts(place)), "a worker was started")
        equal(cluster.run("scancel", "-u", str(os.getuid())).returncode, 0, "scancel")


# ── one thing at a time ──────────────────────────────────────────────────────────────────────────


def test_cancelled_by_hand(place):
    """scancel: a checkpoint, and another attempt that goes on; no crash is counted."""
    def act(cluster):
        folder, job = runs.running_attempt(place, cluster)
        equal(cluster.run("scancel", job).returncode, 0, "scancel")
        runs.went_on(place, runs.next_attempt(place, folder))
    disturbed(place, act)


def test_preempted(place):
    """A job of a higher partition takes the node; the shim has a checkpoint made, and the program goes on after it."""
    def act(cluster):
        folder, _ = runs.running_attempt(place, cluster)
        script = place.write("first.sh", "#!/bin/sh\nsleep 5\n", 0o755)
        equal(cluster.run("sbatch", "--partition=first", "--exclusive", "--output=/dev/null", script).returncode, 0, "sbatch")
        equal(runs.end_of(place, folder)["code"], 75, "how the preempted worker ended")
        runs.went_on(place, runs.next_attempt(place, folder))
    disturbed(place, act, slurm='partition = "low"\n')


def test_requeued_by_the_site(place):
    """scontrol requeue, though the job says --no-requeue: the second run refuses its folder; another attempt does the task."""
    def act(cluster):
        folder, job = runs.running_attempt(place, cluster)
        equal(cluster.run("scontrol", "update", f"job={job}", "requeue=1").returncode, 0, "requeue=1")
        equal(cluster.run("scontrol", "requeue", job).returncode, 0, "requeue")
        runs.next_attempt(place, folder, 240)
    disturbed(place, act)


def test_time_limit(place):
    """USR2 before the limit: a checkpoint and exit 75, well before Slurm would kill it; the next attempt goes on."""
    def act(cluster):
        folder, _ = runs.running_attempt(place, cluster)
        equal(runs.end_of(place, folder)["code"], 75, "how the worker ended")
        runs.went_on(place, runs.next_attempt(place, folder))
    disturbed(place, act, stages=runs.CHECKPOINTS + 'time = "1min"\n')


def test_node_dies(place):
    """The machine of a node is off. NODE_FAIL, the grace, and another attempt elsewhere; how long that took is printed."""
    def act(cluster):
        folder, job = runs.running_attempt(place, cluster)
        node = cluster.run("squeue", "-h", "-j", job, "-o", "%N").stdout.strip()
        started = time.monotonic()
        cluster.kill_node(node)
        runs.next_attempt(place, folder, 240)
        print(f"  from the death of {node} to the start of the new attempt: {time.monotonic() - started:.1f} s "
              f"(SlurmdTimeout 10 s, grace {runs.GRACE} s)", flush=True)
        cluster.start(node)
    disturbed(place, act, slurm='partition = "mortal"\n')


def test_adopted(place):
    """preregd is killed while jobs run and wait: the next one adopts them, and submits none of them again."""
    def act(cluster):
        folder, job = runs.running_attempt(place, cluster)
        place.kill_daemon()
        before = runs.job_names(place)
        time.sleep(0.5)
        place.serve()
        equal(os.path.exists(os.path.join(folder, "fenced")), False, "the attempt that ran was given up")
        equal(runs.job_of(cluster, folder), job, "the job of the attempt that ran")
        equal(runs.job_names(place), before, "jobs that were submitted")
    disturbed(place, act)
    once_each(place, 8)


def test_controller_restarts(place):
    """kill -9 slurmctld again and again, while jobs run and end: nothing is lost or doubled."""
    def act(cluster):
        runs.running_attempt(place, cluster)
        for i in range(3):
            cluster.kill("slurmctld")
            if i == 2:
                runs.release(place)  # some end while it is away
            cluster.start("slurmctld")
            place.wait_for(cluster.answers, 60, "slurmctld answers", runs.PAUSE)
        runs.hold(place)
    with Cluster(place) as cluster:
        disturbed(place, act, cluster)


# ── the controller has lost all that it knew ─────────────────────────────────────────────────────


def strangers(place, cluster, n):
    """Ids of so many jobs that are another's and are held in the queue."""
    script = place.write("stranger.sh", "#!/bin/sh\n", 0o755)
    return [cluster.run("sbatch", "--parsable", "--hold", "--output=/dev/null", "--job-name=stranger", script).stdout.strip()
            for _ in range(n)]


def test_ids_are_given_again(place):
    """kill -9 slurmctld, and its saved state is lost: our jobs are forgotten, and their ids are given to others, which stay untouched."""
    def act(cluster):
        runs.running_attempt(place, cluster)
        ours = {i.partition("_")[0] for i in cluster.jobs()}
        cluster.forget_everything()
        place.wait_for(cluster.answers, 60, "slurmctld answers", runs.PAUSE)
        others.extend(strangers(place, cluster, 6))
        expect(ours & set(others), f"ids of ours {ours} that others got: {others}")
        place.wait_for(lambda: any("/attempt-02-" in row[0] and row[1] for row in runs.attempts(place)), 180, "a second attempt runs",
                       runs.PAUSE)

    others = []
    with Cluster(place, nodes=1) as cluster:
        disturbed(place, act, cluster, repair=cluster.resume_drained)
        known = cluster.jobs()
        equal([known.get(i, ("gone", "", ""))[:2] for i in others], [("PENDING", "stranger")] * len(others), "the others")


def test_forgotten_while_away(place):
    """The controller forgets all while no daemon runs. What had not begun is submitted again under its name, as the same attempt."""
    waiting = []

    def act(cluster):
        runs.running_attempt(place, cluster)
        place.kill_daemon()
        begun = runs.begun(place, cluster)
        cluster.forget_everything()
        place.wait_for(cluster.answers, 60, "slurmctld answers", runs.PAUSE)
        # Only now: one that was about to begin has begun, or will not any more. On a busy machine its shim may be late.
        waiting.extend(row[0] for row in runs.attempts(place) if row[0] not in begun
                       and row[1] is None and row[2] is None and not os.path.exists(os.path.join(row[0], "heartbeat")))
        place.serve()
    with Cluster(place, nodes=1, cpus=2) as cluster:
        disturbed(place, act, cluster, slurm="array = false\n", repair=cluster.resume_drained)
    expect(waiting, "no attempt waited in the queue")
    folders = [row[0] for row in runs.attempts(place)]
    for folder in waiting:
        equal([f for f in folders if runs.task_of(f) == runs.task_of(folder)], [folder], "attempts of a task that waited")


# ── the daemon is a job itself ───────────────────────────────────────────────────────────────────


def serve_in_job(place, cluster, host, *options):
    """The id of a job on a node, which is a host of that name for the daemon that runs there."""
    script = place.write(f"serve-{host.name}.sh", f"""#!/bin/sh
export PREREGD_STATE='{host.state}' PREREGD_DATABASE='{host.local}' PREREGD_BIN='{place.bin}' LC_ALL=C.UTF-8 NO_COLOR=1
exec unshare --uts sh -c 'hostname {host.name} && exec "{place.bin}/preregd" serve --foreground'
""", 0o755)
    run = cluster.run("sbatch", "--parsable", "--partition=daemons", f"--nodelist={host.name}", f"--output={serve_output(place, host)}",
                      *options, script)
    equal(run.returncode, 0, f"sbatch: {run.stderr}")
    return run.stdout.strip()


def serve_output(place, host):
    return place.path(f"serve-{host.name}.out")


def move_daemon(place, cluster, hosts):
    """From n2 to n3 to n4 and back, each time with less proof; the words of each takeover that has a row."""
    n2, n3, n4 = hosts
    first = cluster.run("squeue", "-h", "-n", "serve-n2.sh", "-o", "%i").stdout.strip()
    # 1. scancel: the daemon stops, and says so. The next one waits for the end of its job.
    second = serve_in_job(place, cluster, n3, f"--dependency=afterany:{first}")
    equal(cluster.run("scancel", first).returncode, 0, "scancel")
    place.wait_for(n3.answers, 60, "the daemon on n3 answers", runs.PAUSE)
    # 2. Its processes are killed: Slurm knows that its job has ended.
    third = serve_in_job(place, cluster, n4, f"--dependency=afterany:{second}")
    (pid,) = [pid for pid, name in place.processes().items() if name == "preregd"]
    place.kill(pid)
    place.wait_for(n4.answers, 120, "the daemon on n4 answers", runs.PAUSE)
    # 3. Its node is lost: Slurm cannot know whether it still runs there, so a person takes over.
    cluster.kill_node("n4")
    serve_in_job(place, cluster, n2)
    place.wait_for(lambda: "--take-over" in read(serve_output(place, n2)), 120, "the daemon on n2 is refused", runs.PAUSE)
    said, terminal = n2.take_over("yes", 120)
    place.wait_for(lambda: n2.answers() or n2.daemon.poll() is not None, 60, f"the daemon on n2 answers: {said}", runs.PAUSE)
    os.close(terminal)
    return ((f"by the daemon of host n4, process ", f"Slurm job {third} of prereg", "from that of host n3", f"Slurm job {second} of prereg",
             "its Slurm job had ended (FAILED)"),
            ("by the daemon of host n2", "from that of host n4", f"Slurm job {third} of prereg", "a person said so"))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def test_daemon_in_a_job(place):
    """preregd serve in a job on one node. When that job has ended, however, a successor on another node takes over; its jobs go on."""
    if os.getuid() != 0:
        lab.skip("a host name of its own for a job needs root")
    partitions = "PartitionName=main Nodes=n1 Default=YES\nPartitionName=daemons Nodes=n2,n3,n4"
    with Cluster(place, nodes=4, cpus=8, partitions=partitions) as cluster:
        hosts = [Host(place, name, place.path("shared")) for name in ("n2", "n3", "n4")]
        place.state = hosts[0].state
        runs.hold(place)
        grid = runs.prepare(place, shared.python)
        serve_in_job(place, cluster, hosts[0])
        place.wait_for(hosts[0].answers, 60, "the daemon on n2 answers", runs.PAUSE)
        hosts[0].must(OK, "preregd", "submit", grid)
        runs.running_attempt(place, cluster)
        told = move_daemon(place, cluster, hosts)
        runs.release(place)
        place.wait_for(lambda: all(p["state"] == "finished" for p in hosts[0].json("status")["programs"]), 300, "it finishes", runs.PAUSE)
        shared.python.same(place)
        once_each(place, 8)
        takeovers = [row["detail"] for row in runs.journal(place) if row["event"] == "taken_over"]
        equal(len(takeovers), len(told), f"takeovers: {takeovers}")
        for row, parts in zip(takeovers, told):
            for part in parts:
                expect(part in row, f"{part!r} is not in: {row}")
        hosts[0].end()


# ── everything at random ─────────────────────────────────────────────────────────────────────────


def test_everything_is_killed(place):
    seed = int(os.environ.get("PREREGD_SEED", "20261128"))
    with Cluster(place) as cluster:
        runs.submit(place, shared.micro)
        killer = slurm_killer.Killer(place, cluster, seed)
        killer.run(1800 if lab.LONG else 400)
        print(f"  seed {seed}: killed {killer.counts}", flush=True)
        expect(len(killer.counts) >= 4, f"too little was killed: {killer.counts}")
        shared.micro.same(place)


def main():
    skip_without_slurm()
    with lab.Lab(BIN) as host, Cluster(host, nodes=6, cpus=16, memory=64000, partitions=PARTITIONS, extra=PREEMPTION) as shared.cluster:
        with futures.ThreadPoolExecutor(2) as pool:
            micro, python = (pool.submit(runs.Local, host, BIN, name) for name in ("micro", "python_worker"))
            shared.micro, shared.python = micro.result(), python.result()
        lab.main(test_everything_is_killed, test_daemon_in_a_job, test_gpus_of_the_nodes, test_node_dies, test_ids_are_given_again,
                 test_forgotten_while_away, test_time_limit, test_controller_restarts, test_preempted, test_cancelled_by_hand,
                 test_requeued_by_the_site, test_adopted, test_python_single_jobs, test_same_bytes, at_once=AT_ONCE)


if __name__ == "__main__":
    main()
