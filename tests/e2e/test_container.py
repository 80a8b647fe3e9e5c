#!/usr/bin/env python3
"""A stage in a container, with podman itself and an image made here: to the verdict, killed on the way; what a worker sees there; drift.
Skipped where podman is not installed or cannot make a container."""

import glob
import json
import os
import resource
import signal
import subprocess
import sys
import tarfile

from lib import lab
from lib.lab import LOCK, OK, equal, expect
from lib.quiz_program import PROGRAM
from lib.workers import finish_killing, workers

PYTHON = "/usr/bin/python3"  # what workers outside a container run by
NAME = "localhost/prereg-test"

# crun knows no machine that mounts both versions of cgroups: there podman gets a mount namespace with the second one alone.
ONE_CGROUP = """#!/bin/sh
exec unshare -m sh -c 'mount -t cgroup2 none /sys/fs/cgroup && exec {podman} "$@"' podman "$@"
"""

LOOK = """
import json, os
with open(os.environ["PREREG_TASK"]) as f:
    task = json.load(f)
def fails(act):
    try:
        act()
    except OSError:
        return 1
    return 0
found = {"host": os.path.exists(%r), "data": os.path.exists(task["data"]["corpus"]["path"]), "home": os.environ["HOME"] == os.getcwd(),
         "input": os.path.exists(os.path.join(task["inputs"]["train"], "result.json")),
         "other": os.path.exists(os.path.dirname(os.path.dirname(os.path.dirname(os.getcwd()))) + "/reach=9"),
         "readonly": fails(lambda: open("/usr/new", "w")) + fails(lambda: open(task["data"]["corpus"]["path"], "a")),
         "network": len(os.listdir("/sys/class/net")), "threads": int(os.environ["OMP_NUM_THREADS"]),
         "path": os.environ["PATH"] == "/usr/bin:/opt/tools"}
with open("part", "w") as f:
    json.dump({"protocol": 1, "attempt": task["attempt"], "metrics": {k: {"value": int(v)} for k, v in found.items()}, "facts": {},
               "read": {}, "artifacts": []}, f)
os.rename("part", "result.json")
"""

LOOK_STAGE = """
[stage.look]
after = ["train"]
command = ["python3", "look.py"]
environment = "podman://%s"
describe = false
"""


def podman(place, *words, wanted=0):
    run = subprocess.run(["podman", *words], env=place.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
    if wanted is not None:
        expect(run.returncode == wanted, f"podman {words}: {run.returncode}\n{run.stderr}")
    return run


def make_root(path, note):
    """A tar with Python, its standard library and what they are linked with."""
    asked = subprocess.run([PYTHON, "-c", "import os, sys; print(os.path.realpath(sys.executable), os.path.dirname(os.__file__))"],
                           capture_output=True, text=True, check=True).stdout.split()
    binary, library = asked
    programs = [binary, "/usr/bin/env", *glob.glob(library + "/lib-dynload/*.so")]
    linked = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    files = {w for line in linked.splitlines() for w in line.split() if w.startswith("/") and not w.endswith(":")}

    def keep(member):
        left_out = ("__pycache__", "/test/", "/tests/", "-packages", "lib2to3", "idlelib", "ensurepip", "config-3")
        return None if any(part in member.name for part in left_out) else member
    with tarfile.open(path, "w", dereference=True) as tar:
        for name in sorted(files | {"/usr/bin/env"}):
            tar.add(name)
        tar.add(binary, "usr/bin/python3")
        tar.add(library, filter=keep)
        with open(path + ".note", "w", encoding="utf-8") as f:
            f.write(note)
        tar.add(path + ".note", "etc/note")


def engine(place):
    """A store of images for this lab alone, with one image in it."""
    found = subprocess.run(["sh", "-c", "command -v podman"], capture_output=True, text=True, check=False).stdout.strip()
    if not found or not os.path.exists(PYTHON):
        lab.skip("podman is not installed" if not found else f"no {PYTHON}")
    place.write("storage.conf", f'[storage]\ndriver = "overlay"\ngraphroot = "{place.path("graph")}"\nrunroot = "{place.path("run")}"\n')
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as f:
        n = min([int(f.read())] + [x for x in resource.getrlimit(resource.RLIMIT_NPROC) if x != resource.RLIM_INFINITY])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    place.write("containers.conf", f'[containers]\ndefault_ulimits = ["nofile={soft}:{hard}", "nproc={n}:{n}"]\n')
    place.env.update(CONTAINERS_STORAGE_CONF=place.path("storage.conf"), CONTAINERS_CONF=place.path("containers.conf"))
    make_root(place.path("root.tar"), "first")
    run = podman(place, "import", "--quiet", "--change", "ENV PATH=/usr/bin:/opt/tools", place.path("root.tar"), NAME, wanted=None)
    if run.returncode == 0:
        run = podman(place, "run", "--rm", "--cgroups=disabled", "--network=none", NAME, "python3", "-c", "", wanted=None)
    if run.returncode != 0 and "hybrid" in run.stderr:
        place.write("bin/podman", ONE_CGROUP.format(podman=found), 0o755)
        place.env["PATH"] = place.path("bin") + os.pathsep + place.env["PATH"]
        run = podman(place, "run", "--rm", "--cgroups=disabled", "--network=none", NAME, "python3", "-c", "", wanted=None)
    if run.returncode != 0:
        lab.skip(f"podman cannot make a container here: {run.stderr.strip().splitlines()[-1:]}")


def image_id(place):
    return podman(place, "image", "inspect", "--format", "{{.Id}}", NAME).stdout.strip()


def contained(place, steps):
    """The example with both stages in the image, locked."""
    grid = place.prepare("python_worker", place.path("inside"))
    place.edit(grid, "steps = 600", f"steps = {steps}")
    place.edit(grid, "[stage.train]\n", f'[stage.train]\nenvironment = "podman://{NAME}"\n')
    place.edit(grid, "[stage.quiz]\n", f'[stage.quiz]\nenvironment = "podman://{NAME}"\n')
    place.edit(grid, "[measure]\n", LOOK_STAGE % NAME + "[measure]\n")
    place.write("inside/look.py", LOOK % place.path("root.tar"))
    place.ctl("check", "--run", grid)
    place.ctl("lock", grid)
    with open(grid + ".lock", encoding="utf-8") as f:
        locked = json.load(f)["locked"]
    equal(locked["environments"], {f"podman://{NAME}": {"image": image_id(place)}}, "the image in the lock")
    expect("python3" not in locked["files"] and "look.py" in locked["files"], f"pinned: {list(locked['files'])}")
    return grid


def read_all(place, name):
    """Each file of that name below the cells, as JSON."""
    found = []
    for path in glob.glob(os.path.join(place.program_folder(), "cells/*/*/attempt-*", name)):
        with open(path, encoding="utf-8") as f:
            found.append(json.load(f))
    return found


def test_killed(place):
    """kill -9 of podman, of its monitor and of workers: the same metrics, models and items as outside; nothing is left behind."""
    engine(place)
    outside = place.prepare("python_worker")
    place.ctl("lock", outside)
    place.serve()
    place.must(OK, "preregd", "submit", outside, "--wait")
    calm = lab.results(place.program_folder())
    place.end_all()
    place.state = place.path("state-inside")
    place.env["PREREGD_STATE"] = place.state
    grid = contained(place, 600)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    killed = finish_killing(place, 400, 20261129)
    print(f"  killed {sum(killed.values())} processes of {len(killed)} tasks", flush=True)
    expect(killed, "nothing was killed")
    again = lab.results(place.program_folder())
    for task in calm:
        equal(again[task], calm[task], f"metrics, model and items of {task}")
    seen = [{k: v["value"] for k, v in again[task][0].items()} for task in again if task.endswith("/look")]
    equal(seen, [{"host": 0, "data": 1, "home": 1, "input": 1, "other": 0, "readonly": 2, "network": 1, "threads": 1, "path": 1}] * 4,
          "what a worker sees in its container")
    expect(image_id(place) in {e["worker"] for e in read_all(place, "exit.json")}, "the worker of stage look is not named by its image")
    equal([p for p in workers(place) if p], [], "processes that are left")


def test_terminated(place):
    """SIGTERM reaches the worker, which exits with 75 as anywhere; a pause and a resume take it to its verdict."""
    engine(place)
    grid = contained(place, 3000)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    started = os.path.join(place.program_folder(), "cells/*/train/*/checkpoint/step-*/manifest.json")
    place.wait_for(lambda: len({path.split("/checkpoint/")[0] for path in glob.glob(started)}) == 2, 90, "two have a checkpoint")
    place.ctl("pause")
    shims = [e["worker_pid"] for e in read_all(place, "start.json")]
    for pid in shims:
        os.kill(pid, signal.SIGTERM)
    place.wait_for(lambda: len(read_all(place, "exit.json")) == len(shims), 30, "they end")
    equal([e["code"] for e in read_all(place, "exit.json")], [75] * len(shims), "exit codes")
    place.ctl("resume")
    place.wait_finished(300)
    expect(all(t["state"] == "done" for t in place.tasks().values()), "something was not done")
    equal({e["code"] for e in read_all(place, "exit.json")}, {0, 75}, "all exit codes")


def test_drift(place):
    """Another image of the name, and no image: both are named, before the lock is used and while the program runs."""
    engine(place)
    grid = contained(place, 600)
    first = image_id(place)
    make_root(place.path("other.tar"), "second")
    podman(place, "tag", NAME, "localhost/kept")
    podman(place, "import", "--quiet", place.path("other.tar"), NAME)
    second = image_id(place)
    expect(first != second, "the images are equal")
    place.serve()
    for command in (["preregctl", "lock", "--verify", grid], ["preregd", "submit", grid]):
        said = place.must(LOCK, *command).stderr
        expect(f"image {first[:12]} was locked, {second[:12]} has its name now" in said, f"{command}: {said}")
    podman(place, "untag", NAME)
    said = place.run("preregctl", "lock", "--verify", grid)
    expect(said.returncode != 0 and "podman has no image" in said.stderr, f"no image: {said.returncode} {said.stderr}")
    podman(place, "tag", "localhost/kept", NAME)
    place.ctl("lock", "--verify", grid)
    bad = place.write("bad/grid.toml", open(grid, encoding="utf-8").read().replace(f"podman://{NAME}", "podman://--privileged"))
    said = place.run("preregctl", "check", "--no-run", bad)
    expect("expected podman://NAME" in said.stdout + said.stderr, f"an option as a name: {said.stdout}{said.stderr}")


def containers(place):
    """All that podman knows of, ended ones too."""
    return podman(place, "ps", "--all", "--quiet").stdout.split()


# Holds 200 MiB. "ends" leaves a result, "waits" and "deaf" do not end, and the second does not hear SIGTERM either.
HEAVY = """
import json, os, signal, time
with open(os.environ["PREREG_TASK"]) as f:
    task = json.load(f)
mode, held = task["params"]["mode"], b"x" * (200 << 20)
if mode == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("started", "w").close()
if mode != "ends":
    time.sleep(600)
with open("part", "w") as f:
    json.dump({"protocol": 1, "attempt": task["attempt"], "metrics": {"accuracy": {"value": 0.5, "n": 40}}, "facts": {}, "read": {},
               "artifacts": []}, f)
os.rename("part", "result.json")
"""


def heavy(place, mode):
    place.write("heavy/heavy.py", HEAVY)
    command = f'["python3", "heavy.py"]\nenvironment = "podman://{NAME}"\ndescribe = false\nparams = {{ mode = "{mode}", arch = "$arch" }}'
    return place.write("heavy/grid.toml", PROGRAM.replace('["prereg-eval"]', command))


def start(place, *words):
    """preregctl, once its worker is at work in a container."""
    started = set(glob.glob(place.path("**/started"), recursive=True))
    process = subprocess.Popen([os.path.join(place.bin, "preregctl"), *words], env=place.env, cwd=place.folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    place.wait_for(lambda: set(glob.glob(place.path("**/started"), recursive=True)) - started, 60, "its worker is at work")
    expect(containers(place), "there is no container")
    return process


def test_try(place):
    """What it took is the worker's, not podman's; one that is killed, or stopped, leaves no container behind."""
    engine(place)
    place.env["TMPDIR"] = place.path("tmp")
    os.makedirs(place.env["TMPDIR"])
    answer = place.ctl_json("try", heavy(place, "ends"))
    equal({(r["stage"], r["state"]) for r in answer["tried"]}, {("quiz", "done")}, "a try")
    peak = answer["tried"][0]["peak_bytes"]
    expect(200 << 20 < peak < 400 << 20, f"the worker held 200 MiB, {peak / (1 << 20):.0f} MiB were measured")
    equal(containers(place), [], "containers after a try")
    for mode, number in (("waits", signal.SIGKILL), ("waits", signal.SIGINT), ("deaf", signal.SIGTERM)):
        trying = start(place, "try", heavy(place, mode))
        trying.send_signal(number)
        trying.wait(60)
        place.wait_for(lambda: not containers(place), 30, f"the container ends after {number.name}")
        equal(list(place.processes().values()), [], f"processes after {number.name}")


def test_rerun(place):
    """A cell again in its container gives the same; no container is left behind."""
    engine(place)
    grid = contained(place, 600)
    place.serve()
    place.must(OK, "preregd", "submit", grid, "--wait")
    equal(place.status()[0]["environments"]["quiz"], {"environment": f"podman://{NAME}", "digest": image_id(place)}, "environments in status")
    answer = place.ctl_json("rerun", "reach=1,seed=1")
    equal((answer["same"], answer["level"], len(answer["stages"])), (True, "re-executed", 3), f"a rerun: {answer}")
    equal(containers(place), [], "containers after a rerun")


# Sanitized, a signal to the shim is the same with a container as without (test_shim)
lab.main(test_killed, *((test_terminated,) if lab.SPARSE == 1 else ()), test_drift, test_try, test_rerun)
