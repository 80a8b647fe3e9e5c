#!/usr/bin/env python3
"""GPUs that PREREG_GPUS pretends, from discovery to provenance: whole ones and shares, what is used by others, what never fits, a
daemon that dies while they are held. One test needs a real one, and PyTorch."""

import json
import os
import shutil
import signal
import subprocess
import time

from lib import lab
from lib import workers
from lib.lab import INVALID, OK, equal, expect
from lib.two_arms import DESIGN, READING

A, B = "GPU-aaaaaaaa-1111-2222-3333-444455556666", "GPU-bbbbbbbb-1111-2222-3333-444455556666"
GIB = 1 << 30


def gpu(uuid, model="NVIDIA H100 80GB HBM3", memory=80 * GIB, processes=()):
    return {"uuid": uuid, "model": model, "memory_bytes": memory, "driver": "550.54.15", "ecc": True, "processes": list(processes)}


def pretend(place, *gpus):
    place.env["PREREG_GPUS"] = place.write("gpus.json", json.dumps(gpus))


def program(place, run, pin="", env="", name="gpus"):
    """Locked; two arms in two replicates: four tasks of train, which wait for release(), and four of score."""
    folder = place.path(name)
    os.makedirs(folder)
    shutil.copy2(os.path.join(lab.LIB, "gpu_worker.py"), folder)
    grid = place.write(f"{name}/grid.toml", f"""[program]
name = "{name}"
schema = 1
question = "Who has which GPU?"
{DESIGN}
[stage.train]
command = ["./gpu_worker.py"]
params = {{ until = "{place.path('released')}", arm = "$arm", seed = "$seed" }}
{env}
[stage.score]
command = ["./gpu_worker.py"]
after = ["train"]
params = {{ arm = "$arm", seed = "$seed" }}
{READING.format()}
{pin}
[run]
{run}
""")
    place.ctl("lock", grid)
    return grid


def release(place):
    place.write("released", "")


def seen(place, stage="train"):
    """'arm=a,seed=1' -> what its newest attempt sees."""
    found, cells = {}, os.path.join(place.program_folder(), "cells")
    for cell in os.listdir(cells):
        folder = os.path.join(cells, cell, stage)
        for attempt in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            path = os.path.join(folder, attempt, "seen.json")
            if attempt.startswith("attempt-") and os.path.exists(path):
                with open(path, encoding="utf-8") as f:
                    found[cell] = json.load(f)
    return found


def given(place):
    return sorted(s["CUDA_VISIBLE_DEVICES"] for s in seen(place).values())


def why(place, task):
    return place.ctl_json("explain", task)


def waiting(place):
    return sorted(name for name, t in place.tasks().items() if name.endswith("/train") and t["state"] == "ready")


def names_gpus(place):
    """status, cells and explain say which attempt has which GPU, to people and to programs."""
    place.wait_for(lambda: sum(t["state"] == "running" for t in place.tasks().values()) == 2, 30, "both are seen to run")
    running = sorted(name for name, t in place.tasks().items() if t["state"] == "running")
    held = {g["uuid"]: g for g in place.status()[0]["gpus"]}
    equal((sorted(held), sorted(name for g in held.values() for name in g["tasks"])), ([A, B], running), "who has what")
    for name in running:
        has = place.tasks()[name]["gpus"]
        equal([g["model"] for g in has], ["NVIDIA H100 80GB HBM3"], "the model")
        equal([g["index"] for g in has], [0 if has[0]["uuid"] == A else 1], "the index")
        attempt = why(place, name)["attempt_list"][-1]
        equal((attempt["executor"], attempt["gpus"], attempt["node"], attempt["job"]), ("local", has, None, None), "the attempt")
        words = f"{has[0]['uuid'][:12]}\u2026 (index {has[0]['index']}, NVIDIA H100 80GB HBM3)"
        expect(f"attempt 1: {words}" in place.ctl("explain", name).stdout, place.ctl("explain", name).stdout)
        expect(f"{words}: {name}" in place.ctl("status").stdout, place.ctl("status").stdout)


def test_whole(place):
    """Two GPUs, four tasks: each has one of its own and no other is seen; stages without GPUs see none. Provenance and report name
    them."""
    pretend(place, gpu(A), gpu(B))
    place.serve()
    place.must(OK, "preregd", "submit", program(place, "slots = 4\n[run.train]\ngpus = 1", pin='[pin]\ngpu = "NVIDIA H100"'))
    place.wait_for(lambda: len(seen(place)) == 2, 60, "two tasks run")
    equal(given(place), [A, B], "what they see")
    equal({s["CUDA_DEVICE_ORDER"] for s in seen(place).values()}, {"PCI_BUS_ID"}, "the order")
    task = waiting(place)[0]
    place.wait_for(lambda: why(place, task)["why"] == "gpus", 30, "it waits for GPUs")
    text = why(place, task)["why_text"]
    equal(text, "waits for GPUs: needs 1 GPU of the model NVIDIA H100, 0 of 2 free; 2 are given to attempts of this daemon", "why")
    said = place.ctl("explain", task).stdout
    expect(text in said and "is ready: it waits for GPUs of this machine" in said, said)
    names_gpus(place)
    equal([w["why"] for w in place.status()[0]["not_running"] if w["why"] != "dependency"], ["gpus"], "status")
    release(place)
    place.wait_finished(120)
    had = [a["gpus"] for a in why(place, task)["attempt_list"]]
    expect(len(had) == 1 and had[0][0]["uuid"] in (A, B), f"the GPU of an attempt that has ended: {had}")
    equal(place.status()[0]["gpus"], [], "GPUs that are held in the end")
    equal({s["CUDA_VISIBLE_DEVICES"] for s in seen(place, "score").values()}, {""}, "what stages without GPUs see")
    with open(os.path.join(place.program_folder(), "report", "provenance.json"), encoding="utf-8") as f:
        tasks = json.load(f)["tasks"]
    for task in tasks:
        gpus = task["attempts"][0].get("gpus")
        if task["stage"] == "score":
            equal(gpus, None, "GPUs of score")
            continue
        equal(len(gpus), 1, "GPUs of train")
        expect(gpus[0]["uuid"] in (A, B), f"provenance: {gpus}")
        equal((gpus[0]["model"], gpus[0]["driver"], gpus[0]["memory_bytes"], gpus[0]["ecc"]),
              ("NVIDIA H100 80GB HBM3", "550.54.15", 80 * GIB, True), "provenance")
    with open(os.path.join(place.program_folder(), "report", "report.md"), encoding="utf-8") as f:
        expect("; 1 x NVIDIA H100 80GB HBM3" in f.read(), "the report does not name the model")


def test_shared(place):
    """Shares by what is declared of memory: two of 30 GiB fit into 80 GiB, a third does not, and the other GPU is left to whom it
    fits."""
    pretend(place, gpu(A), gpu(B, memory=20 * GIB))
    place.serve()
    run = 'slots = 4\n[run.train]\ngpus = 0.25\ngpu_memory = "30GiB"'
    place.must(OK, "preregd", "submit", program(place, run))
    place.wait_for(lambda: len(seen(place)) == 2, 60, "two tasks run")
    equal(given(place), [A, A], "what they see")
    task = waiting(place)[0]
    place.wait_for(lambda: why(place, task)["why"] == "gpus", 30, "it waits for GPUs")
    equal(why(place, task)["why_text"], "waits for GPUs: needs 0.25 of a GPU with 30 GiB, 0 of 1 free; GPU-aaaaaaaa\u2026 has 80 GiB, of "
          "which attempts of this daemon hold 60 GiB", "why")
    equal(place.status()[0]["gpus"][0]["n_tasks"], 2, "who share it")
    release(place)
    place.wait_finished(120)


def test_foreign_process(place):
    """A GPU that somebody else uses is not given, and both commands say by whom; once free it is. What is ours is not foreign."""
    stranger = {"pid": 4194303, "name": "python", "user": "x", "memory_bytes": GIB}
    pretend(place, gpu(A, processes=[stranger]))
    place.serve()
    place.must(OK, "preregd", "submit", program(place, "slots = 4\n[run.train]\ngpus = 1"))
    task = "arm=a,seed=1/train"
    place.wait_for(lambda: "is used by" in why(place, task)["why_text"], 30, "the stranger is seen")
    text = "waits for GPUs: needs 1 GPU, 0 of 1 free; GPU-aaaaaaaa\u2026 is used by pid 4194303 (python) of user x"
    equal(why(place, task)["why_text"], text, "why")
    expect("is used by pid 4194303 (python) of user x" in place.ctl("status").stdout, "status does not say it")
    equal(seen(place), {}, "attempts while it is used")
    pretend(place, gpu(A))
    place.wait_for(lambda: len(seen(place)) == 1, 60, "it runs")
    pid = next(iter(seen(place).values()))["pid"]
    pretend(place, gpu(A, processes=[{"pid": pid}]))
    equal(given(place), [A], "what it sees")
    release(place)
    place.wait_finished(120)  # its own process, which has ended by then, keeps the GPU from no other task


def test_memory_of_others(place):
    """Memory that no process that can be seen uses (another container's, a desktop's): what declares memory waits, with figures."""
    pretend(place, {**gpu(A), "free_bytes": 50 * GIB})
    place.serve()
    place.must(OK, "preregd", "submit", program(place, 'slots = 4\n[run.train]\ngpus = 1\ngpu_memory = "60GiB"'))
    task = "arm=a,seed=1/train"
    text = "waits for GPUs: needs 1 GPU with 60 GiB, 0 of 1 free; GPU-aaaaaaaa\u2026 has 80 GiB, of which other processes use 30 GiB"
    place.wait_for(lambda: why(place, task)["why_text"] == text, 30, f"it waits: {why(place, task)}")
    equal(seen(place), {}, "attempts meanwhile")
    pretend(place, {**gpu(A), "free_bytes": 70 * GIB})
    place.wait_for(lambda: len(seen(place)) == 1, 60, "it runs")
    release(place)
    place.wait_finished(120)


def test_driver_falls_silent(place):
    """The list fails after it was known: what runs goes on, nothing is given by the list of before, and status says why."""
    pretend(place, gpu(A))
    place.serve()
    place.must(OK, "preregd", "submit", program(place, "slots = 4\n[run.train]\ngpus = 1"))
    place.wait_for(lambda: len(seen(place)) == 1, 60, "one task runs")
    place.write("gpus.json", "[{")
    place.wait_for(lambda: "the GPUs cannot be listed" in place.ctl("status").stdout, 30, "status says it")
    first = seen(place)
    release(place)
    (name,) = first
    place.wait_for(lambda: place.tasks()[f"{name}/train"]["state"] == "done", 60, "it ends")
    time.sleep(3)
    equal(seen(place), first, "attempts while nothing is known")
    equal(why(place, waiting(place)[0])["why_text"], "waits until the GPUs of this machine are known", "why")
    pretend(place, gpu(A))
    place.wait_finished(120)


def test_daemon_dies(place):
    """The daemon is killed while both GPUs are held: the next one gives neither away, and knows its own workers as its own."""
    pretend(place, gpu(A), gpu(B))
    place.serve()
    place.must(OK, "preregd", "submit", program(place, "slots = 4\n[run.train]\ngpus = 1"))
    place.wait_for(lambda: len(seen(place)) == 2, 60, "two tasks run")
    before = seen(place)
    place.kill_daemon()
    pretend(place, *[gpu(s["CUDA_VISIBLE_DEVICES"], processes=[{"pid": s["pid"]}]) for s in before.values()])
    place.serve()
    task = waiting(place)[0]
    place.wait_for(lambda: "are known" not in (why(place, task)["why_text"] or "are known"), 30, "the GPUs are known again")
    equal(why(place, task)["why_text"], "waits for GPUs: needs 1 GPU, 0 of 2 free; 2 are given to attempts of this daemon", "why: no stranger")
    equal(seen(place), before, "who runs")
    release(place)
    place.wait_finished(120)
    equal({name: t["attempts"] for name, t in place.tasks().items()}, {name: 1 for name in place.tasks()}, "attempts")


def test_refused(place):
    """What no GPU of the machine can grant: check warns and submit refuses, with the figures; and so for a pinned model."""
    pretend(place, gpu(A), gpu(B, model="NVIDIA T4", memory=15 * GIB))
    place.serve()
    has = "this machine has 1 x NVIDIA H100 80GB HBM3 (80 GiB), 1 x NVIDIA T4 (15 GiB)"
    wishes = {
        "two": ("[run.train]\ngpus = 2", "", "2 GPUs of one model"),
        "large": ('[run.train]\ngpus = 0.5\ngpu_memory = "90GiB"', "", "0.5 of a GPU with 90 GiB"),
        "pinned": ("[run.train]\ngpus = 1", '[pin]\ngpu = "NVIDIA A100"', '1 GPU of the model "NVIDIA A100" ([pin] gpu)'),
    }
    for name, (run, pin, needs) in wishes.items():
        grid = program(place, run, pin=pin, name=name)
        said = f"run.train.gpus: an attempt needs {needs}, and {has}"
        checked = place.ctl("check", grid)
        expect("warning: " + said in checked.stderr, f"{name}: check: {checked.stderr}")
        refused = place.must(INVALID, "preregd", "submit", grid)
        expect(said in refused.stderr, f"{name}: submit: {refused.stderr}")
    equal(place.status(), [], "programs")
    grid = program(place, '[run.train]\ngpus = 1\ngpu_memory = "10GiB"\n', name="fits")
    expect("gpus" not in place.ctl("check", grid).stderr.replace(place.folder, ""), "a wish that fits is warned of")
    place.edit(grid, "[run]", '[run]\ngpus = ["GPU-bbb"]')
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: given(place) == [B], 60, "it runs on the only one that it may use")
    release(place)
    place.wait_finished(120)


def test_pinned_and_not_asked_for(place):
    """A pin that no stage can need is warned of; a stage under Slurm needs it as one of this machine does."""
    pin, warning = '[pin]\ngpu = "NVIDIA H100"', "warning: pin.gpu: no stage asks for GPUs"
    none = program(place, "slots = 4", pin=pin, name="none")
    for options in ([], ["--no-run"]):
        expect(warning in place.ctl("check", *options, none).stderr, f"no stage asks, {options}")
    jobs = program(place, '[run.train]\nexecutor = "slurm"\ngpus = 1', pin=pin, name="jobs")
    expect(warning not in place.ctl("check", jobs).stderr, "a stage under Slurm asks")


def test_environment_of_its_own(place):
    """A stage that sets the variables itself and asks for GPUs: an error; without asking its own value holds."""
    pretend(place, gpu(A))
    grid = program(place, "slots = 4", env='env = { CUDA_VISIBLE_DEVICES = "7" }')
    place.edit(grid, "slots = 4", "slots = 4\n[run.train]\ngpus = 1")
    said = place.ctl("check", grid, wanted=INVALID).stderr
    expect("run.train.gpus: the stage's env sets CUDA_VISIBLE_DEVICES" in said, f"check: {said}")
    place.edit(grid, "[run.train]\ngpus = 1", "")
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: seen(place), 60, "it runs")
    equal(set(given(place)), {"7"}, "its own value")
    release(place)
    place.wait_finished(120)


def test_model_is_replaced(place):
    """The GPU of a pinned program is exchanged for another model: nothing runs on that, and explain says why."""
    pretend(place, gpu(A))
    place.serve()
    place.must(OK, "preregd", "submit", program(place, "slots = 4\n[run.train]\ngpus = 1", pin='[pin]\ngpu = "NVIDIA H100"'))
    place.wait_for(lambda: len(seen(place)) == 1, 60, "it runs")
    pretend(place, gpu(B, model="NVIDIA A100"))
    task = waiting(place)[0]
    place.wait_for(lambda: "cannot run" in why(place, task)["why_text"], 30, "it is noticed")
    equal(why(place, task)["why_text"],
          "cannot run on this machine: needs 1 GPU of the model NVIDIA H100, and 0 of its 1 GPUs would do", "why")
    pretend(place, gpu(A))
    release(place)
    place.wait_finished(120)


def test_bad_file(place):
    """A file of simulated GPUs that is not one: each command says so, and what wants no GPUs runs."""
    place.env["PREREG_GPUS"] = place.write("gpus.json", '[{"uuid":"GPU-1"}]')
    place.serve()
    said = place.run("preregd", "submit", program(place, "[run.train]\ngpus = 1", name="wants"))
    expect(said.returncode != OK and "GPU 1: " in said.stderr and "gpus.json" in said.stderr, f"submit: {said.stderr}")
    place.must(OK, "preregd", "submit", program(place, "slots = 4", name="none"))
    release(place)
    place.wait_finished(120)


TORCH = """[program]
name = "torch"
schema = 1
question = "Are weights the same whatever died on the way?"
{design}
[data]
corpus = "data/corpus.txt"
[stage.train]
command = ["prereg-python", "train_torch.py"]
params = {{ reach = 2, steps = 3000, batch = 64, lr = 0.01, seed = "$seed" }}
env = {{ PATH = "{path}", CUBLAS_WORKSPACE_CONFIG = ":4096:8" }}
[stage.score]
command = ["./gpu_worker.py"]
after = ["train"]
params = {{ arm = "$arm", seed = "$seed" }}
{reading}
[run]
slots = 2
[run.train]
gpus = 0.5
gpu_memory = "2GiB"
checkpoint = "200ms"
"""


def trained(place, grid, n_kills):
    """'cell/train' -> digests of the weights, in a state folder of its own."""
    place.state = place.env["PREREG_STATE"] = place.path(f"state-{n_kills}")
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: len({task for _, task in workers.workers(place) if task.endswith("/train")}) == 2, 120, "two train at once")
    for _ in range(n_kills):
        place.wait_for(lambda: any(t["done"] for t in place.tasks().values()), 120, "one has made steps")
        os.kill(workers.workers(place)[0][0], signal.SIGKILL)
    place.wait_finished(1200)
    equal({t["state"] for t in place.tasks().values()}, {"done"}, "states")
    equal(max(t["attempts"] for t in place.tasks().values()), 1 + n_kills, "attempts")
    place.kill_daemon()
    return {task: artifacts for task, (_, artifacts, _, _) in lab.results(place.program_folder()).items() if task.endswith("/train")}


def test_pytorch(place):
    """python_worker's PyTorch training twice at the same time on one real GPU, by shares; once more with a worker killed on the way,
    which resumes: the same weights."""
    place.env.pop("PREREG_GPUS", None)
    if not any(g["vendor"] == "nvidia" for g in json.loads(place.must(OK, "prereg-gpus").stdout)):
        lab.skip("no NVIDIA GPU is here")
    probe = "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 1)"
    if subprocess.run(["python3", "-c", probe], capture_output=True).returncode != 0:
        lab.skip("python3 has no PyTorch that uses the GPU")
    folder = os.path.dirname(place.prepare("python_worker", place.path("torch")))
    shutil.copy2(os.path.join(lab.LIB, "gpu_worker.py"), folder)
    grid = place.write("torch/grid.toml", TORCH.format(design=DESIGN, reading=READING.format(), path=os.environ["PATH"]))
    place.ctl("lock", grid, "--replace")
    equal(trained(place, grid, 0), trained(place, grid, 1), "weights of the plain run and of the one with a death")


if __name__ == "__main__":
    lab.main(test_whole, test_shared, test_foreign_process, test_memory_of_others, test_driver_falls_silent, test_daemon_dies,
             test_refused, test_pinned_and_not_asked_for, test_environment_of_its_own, test_model_is_replaced, test_bad_file, test_pytorch)
