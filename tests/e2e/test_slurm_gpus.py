#!/usr/bin/env python3
"""GPUs and nodes under a real Slurm, whose nodes pretend to have them: [pin] gpu where a node has another model, what explain says of an
attempt's job and node, and what `submit --wait` calls a job that waits."""

import json
import os
import shutil
import subprocess

from lib import lab
from lib.lab import OK, equal, expect
from lib.slurm_cluster import Cluster, skip_without_slurm
from lib.two_arms import DESIGN, READING

H100, T4 = "NVIDIA H100 80GB HBM3", "NVIDIA T4"
PAUSE = 0.3


def program(place, models):
    """Four tasks of train with one GPU each, which wait for release(); the model of each node's GPU is in `models`."""
    folder = place.path("gpus")
    os.makedirs(folder)
    shutil.copy2(os.path.join(lab.LIB, "gpu_worker.py"), folder)
    for node, model in models.items():
        place.write(f"{node}.json", json.dumps([{"uuid": f"GPU-{node}-aaaaaaaa-1111-2222-3333", "model": model, "memory_bytes": 80 << 30}]))
    grid = place.write("gpus/grid.toml", f"""[program]
name = "gpus"
schema = 1
question = "Which nodes have it?"
{DESIGN}
[stage.train]
command = ["./gpu_worker.py"]
params = {{ until = "{place.path('released')}", arm = "$arm", seed = "$seed" }}
[stage.score]
command = ["./gpu_worker.py"]
after = ["train"]
params = {{ arm = "$arm", seed = "$seed" }}
{READING.format()}
[pin]
gpu = "NVIDIA H100"

[run]
work = "{place.path('work')}"
[run.train]
executor = "slurm"
gpus = 1
[run.slurm]
poll = "1s"
grace = "3s"
array = false
setup = ["export PREREG_GPUS={place.folder}/$SLURMD_NODENAME.json", "sleep 1"]
""")
    place.ctl("lock", grid)
    return grid


def trains(place):
    """name -> explain of each task of train."""
    return {name: place.ctl_json("explain", name) for name in place.tasks() if name.endswith("/train")}


def test_a_node_with_another_gpu(place):
    with Cluster(place, nodes=2, cpus=2, gpus=1):
        grid = program(place, {"n1": T4, "n2": H100})
        place.serve()
        place.must(OK, "preregd", "submit", grid)
        with open(place.path("wait.err"), "w", encoding="utf-8") as err:
            wait = subprocess.Popen([os.path.join(place.bin, "preregd"), "submit", grid, "--wait"], env=place.env, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=err, cwd=place.folder)

        def one_runs():
            return [n for n, t in trains(place).items() if t["state"] == "running"]
        place.wait_for(one_runs, 120, "one runs on n2", PAUSE)
        task = one_runs()[0]
        place.wait_for(lambda: trains(place)[task]["attempt_list"][-1]["gpus"], 30, "its GPU is known", PAUSE)
        counts = place.status()[0]["tasks"]
        equal(sum(n for key, n in counts.items() if key != "planned"), counts["planned"], "what the counts add up to")
        expect(counts["queued"] >= 1, f"none waits in Slurm: {counts}")
        expect("waiting in Slurm" in place.ctl("status").stdout, place.ctl("status").stdout)
        place.write("released", "")
        equal(wait.wait(120) in (OK, lab.INDETERMINATE), True, "submit --wait")
        with open(place.path("wait.err"), encoding="utf-8") as f:
            first = f.readline()
        expect("0/8 tasks done, 0 running" in first, first)
        refused = []
        for name, t in trains(place).items():
            equal([t["budgets"][b]["used"] for b in ("attempts", "crashes")], [0, 0], f"budgets of {name}")
            *lost, last = t["attempt_list"]
            refused += lost
            equal((last["executor"], last["node"], [g["model"] for g in last["gpus"]]), ("slurm", "n2", [H100]), f"the last of {name}")
            expect(last["job"].isdigit(), f"its job: {last['job']}")
            words = f"attempt {last['no']}: Slurm job {last['job']} on node n2, GPU-n2-aaaaa\u2026 (index 0, {H100})"
            expect(words in place.ctl("explain", name).stdout, place.ctl("explain", name).stdout)
        expect(refused, "no attempt was refused on n1")
        for a in refused:
            equal(a["reason"], "never_launched", f"how it ended: {a}")
            expect(a["detail"].startswith(f"n1 has {T4}: [pin] gpu: locked"), f"why: {a['detail']}")


def test_no_node_has_it(place):
    """It is not tried for ever: the program pauses and says what the nodes have; the tasks have lost nothing."""
    with Cluster(place, nodes=2, cpus=2, gpus=1) as cluster:
        grid = program(place, {"n1": T4, "n2": "NVIDIA A100"})
        place.serve()
        place.must(OK, "preregd", "submit", grid)
        place.wait_for(lambda: place.status()[0]["paused_by"] == "host", 120, "the program is paused", PAUSE)
        why = place.status()[0]["paused_why"]
        expect(f"n1 has {T4}" in why and "n2 has NVIDIA A100" in why, why)
        for name, t in trains(place).items():
            equal([t["budgets"][b]["used"] for b in ("attempts", "crashes")], [0, 0], f"budgets of {name}")
            equal({a["reason"] for a in t["attempt_list"] if not a["live"]} <= {"never_launched"}, True, f"ends of {name}")
        equal(cluster.run("scancel", "-u", str(os.getuid())).returncode, 0, "scancel")


skip_without_slurm()
lab.main(test_a_node_with_another_gpu, test_no_node_has_it, at_once=2)
