"""A place for one end-to-end test: its own folder, its own state, its own copies of the executables.

The executables come from two builds: preregd and its helpers from the build under test (which may be
sanitized), the workers from PREREGD_E2E_WORKERS when that is set (a release build: sanitized training is too slow), else from
the same build. They are copied into one folder, because a worker is looked for beside the executable that asks.

Whatever a test started is ended when the lab closes: only processes whose executable lies inside the lab's folder.
"""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent import futures

LIB = os.path.dirname(os.path.abspath(__file__))
HERE = os.path.dirname(LIB)
TOP = os.path.dirname(os.path.dirname(HERE))
SHARED = os.environ.get("PREREGD_SHARED", os.path.join(TOP, "..", "shared"))
OWN = ("preregd", "preregctl", "prereg-shim", "prereg-report", "prereg-gpus")
WORKERS = ("prereg-train", "prereg-eval", "prereg-data", "prereg-python", "prereg-lm-eval")
SKIP = 77
LONG = os.environ.get("PREREGD_LONG") == "1"
SPARSE = int(os.environ.get("PREREGD_SPARSE", "1"))  # sweeps over every point of something take every so many of them

PATIENCE = 4

OK, ANY, USAGE, LOCK, INDETERMINATE, INVALID, NO_DAEMON, VOID = range(8)


class Skipped(SystemExit):
    """The test needs what is not here. Outside main() it ends the process with the code for a skipped test."""

    def __init__(self, why):
        super().__init__(SKIP)
        self.why = why


def skip(why):
    print(f"skipped: {why}", flush=True)
    raise Skipped(why)


class Failed(Exception):
    """What a test saw is not what must be."""


def expect(condition, text):
    if not condition:
        raise Failed(text)


def equal(got, wanted, what):
    expect(got == wanted, f"{what}: got {got!r}, wanted {wanted!r}")


class Lab:
    def __init__(self, bin_folder):
        self.folder = tempfile.mkdtemp(prefix="prereg-e2e-")
        self.bin = os.path.join(self.folder, "bin")
        self.state = os.path.join(self.folder, "state")
        self.daemon = None
        self.keep = False
        os.mkdir(self.bin)
        workers = os.environ.get("PREREGD_E2E_WORKERS") or bin_folder
        for name in OWN:
            shutil.copy2(os.path.join(bin_folder, name), self.bin)
        for name in WORKERS:
            shutil.copy2(os.path.join(workers, name), self.bin)
        self.env = {**os.environ, "PREREGD_STATE": self.state, "PREREGD_BIN": self.bin, "LC_ALL": "C.UTF-8",
                    "OPENBLAS_NUM_THREADS": "1", "NO_COLOR": "1", "PREREGD_RUN": "1"}
        self.env.pop("CI", None)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.end_all()
        if self.keep or (kind is not None and not issubclass(kind, SystemExit)):
            print(f"kept for a look: {self.folder}")
            self.print_log()
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    # ── processes ────────────────────────────────────────────────────────────────────────────────

    def processes(self):
        """pid -> name of its executable, of everything that runs from this lab's folder (objects included)."""
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                exe = os.readlink(f"/proc/{entry}/exe")
                with open(f"/proc/{entry}/cmdline", "rb") as f:
                    arguments = f.read().split(b"\0")
                cwd = os.readlink(f"/proc/{entry}/cwd")
            except OSError:
                continue
            if exe.startswith(self.folder + "/"):
                found[int(entry)] = os.path.basename(exe.replace(" (deleted)", ""))
            elif cwd.startswith(self.state + "/") and int(entry) != os.getpid():
                found[int(entry)] = os.path.basename(arguments[0].decode(errors="replace"))
        return found

    def kill(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def end_all(self):
        for _ in range(50):
            pids = self.processes()
            if not pids:
                break
            for pid in pids:
                self.kill(pid)
            self.reap()
            time.sleep(0.02)
        self.reap()

    def reap(self):
        if self.daemon is not None and self.daemon.poll() is not None:
            self.daemon = None

    def print_log(self, n=15):
        try:
            with open(os.path.join(self.state, "preregd.log"), errors="replace") as f:
                print("".join(f.readlines()[-n:]))
        except OSError:
            pass

    def serve(self):
        """A daemon in the foreground of a process of ours; returns when it answers."""
        log = open(self.path("serve.out"), "ab")
        self.daemon = subprocess.Popen([os.path.join(self.bin, "preregd"), "serve"], env=self.env, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log, cwd=self.folder)
        log.close()
        self.wait_for(lambda: self.run("preregctl", "status", "--json").returncode == OK, 120, "the daemon answers")

    def serve_without_waiting(self):
        log = open(self.path("serve.out"), "ab")
        self.daemon = subprocess.Popen([os.path.join(self.bin, "preregd"), "serve"], env=self.env, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log, cwd=self.folder)
        log.close()

    def kill_daemon(self):
        if self.daemon is not None:
            self.daemon.kill()
            self.daemon.wait()
            self.daemon = None

    # ── commands ─────────────────────────────────────────────────────────────────────────────────

    def run(self, name, *arguments, cwd=None, env=None, timeout=240):
        return subprocess.run([os.path.join(self.bin, name), *arguments], cwd=cwd or self.folder, env=env or self.env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)

    def must(self, wanted, name, *arguments, **more):
        """Runs it and holds its exit code against `wanted`; sanitizer findings show as other codes."""
        run = self.run(name, *arguments, **more)
        if run.returncode != wanted:
            raise Failed(f"{name} {' '.join(arguments)}: exit {run.returncode}, wanted {wanted}\n"
                         f"{run.stdout[-3000:]}\n{run.stderr[-3000:]}")
        return run

    def ctl(self, *arguments, wanted=OK, **more):
        return self.must(wanted, "preregctl", *arguments, **more)

    def ctl_json(self, *arguments, wanted=OK):
        """An answer of --json; every one of them carries its schema."""
        run = self.ctl(*arguments, "--json", wanted=wanted)
        try:
            answer = json.loads(run.stdout)
        except ValueError as error:
            raise Failed(f"{arguments[0]} --json: {error}: {run.stdout!r} {run.stderr!r}") from error
        equal(answer.get("schema"), 1, f"schema of {arguments[0]} --json")
        return answer

    def wait_for(self, condition, seconds, what, pause=0.05):
        """`pause` between two looks grows to a quarter of a second: many conditions run a command, and others share the machine.
        `seconds`, as on a quiet machine, ends what hangs and judges no speed: it waits PATIENCE times as long."""
        end = time.monotonic() + PATIENCE * seconds
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(pause)
            pause = max(pause, min(1.2 * pause, 0.25))
        raise Failed(f"waited {PATIENCE * seconds} s in vain: {what}")

    # ── programs ─────────────────────────────────────────────────────────────────────────────────

    def prepare(self, name, folder=None):
        """The path of grid.toml of a prepared copy of an example program."""
        folder = folder or self.path(name)
        run = subprocess.run([os.path.join(TOP, "ops/programs/prepare"), name, folder], env=self.env, capture_output=True,
                             text=True)
        expect(run.returncode == 0, f"prepare {name}: {run.stdout}{run.stderr}")
        return os.path.join(folder, "grid.toml")

    def prepare_small(self, tokens=12_000):
        """micro with less training, whole with PREREGD_LONG=1: for tests in which it does not matter what the models learn."""
        grid = self.prepare("micro")
        if LONG:
            return grid
        self.edit(grid, "tokens = 120_000", f"tokens = {tokens}")
        return grid

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.replace(path, text, mode)
        return path

    def replace(self, path, text, mode):
        """As an editor saves: written beside and renamed, so that a process reads all of the old text or all of the new."""
        path = os.path.realpath(path)
        beside = path + ".edited"
        with open(beside, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(beside, mode)
        os.rename(beside, path)

    def edit(self, path, old, new):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        expect(old in text, f"{path} holds no {old!r}")
        self.replace(path, text.replace(old, new), stat.S_IMODE(os.stat(path).st_mode))

    def program_folder(self):
        """The only program's folder."""
        root = os.path.join(self.state, "programs")
        names = sorted(os.listdir(root))
        equal(len(names), 1, "programs in the state folder")
        return os.path.join(root, names[0])

    def status(self):
        return self.ctl_json("status")["programs"]

    def tasks(self, program=None):
        """'cell/stage' -> task, of one program."""
        answer = self.ctl_json("cells", *([program] if program else []))
        return {f"{cell['name']}/{task['stage']}": task for cell in answer["cells"] for task in cell["tasks"]}

    def wait_finished(self, seconds, pause=0.05):
        """Until every program has its verdict and report."""
        def finished():
            run = self.run("preregctl", "status", "--json")
            return run.returncode == OK and all(p["state"] == "finished" for p in json.loads(run.stdout)["programs"])
        self.wait_for(finished, seconds, "the programs finish", pause)

    def verdict_bytes(self):
        with open(os.path.join(self.program_folder(), "report", "verdict.json"), "rb") as f:
            return f.read()


def results(program_folder):
    """'cell/stage' -> what must not depend on luck: metrics, digests of artifacts, what was read, the items' bytes."""
    found = {}
    cells = os.path.join(program_folder, "cells")
    for cell in sorted(os.listdir(cells)):
        for stage in sorted(os.listdir(os.path.join(cells, cell))):
            path = os.path.join(cells, cell, stage, "result.json")
            if not os.path.exists(path):
                continue
            with open(path, encoding="utf-8") as f:
                result = json.load(f)
            items = None
            if isinstance(result.get("items"), str):
                with open(os.path.join(os.path.dirname(os.path.realpath(path)), result["items"]), "rb") as f:
                    items = f.read()
            artifacts = {a["path"]: a["sha256"] for a in result.get("artifacts", [])}
            found[f"{cell}/{stage}"] = (result["metrics"], artifacts, result.get("read"), items)
    return found


def run_one(test, bin_folder):
    """Runs a test in a lab of its own and prints how it ended: OK, SKIP or ANY."""
    started = time.monotonic()
    try:
        with Lab(bin_folder) as lab:
            test(lab)
        word, code = "ok", OK
    except Skipped as skipped:
        word, code = f"skipped: {skipped.why}", SKIP
    except Exception as error:  # whatever it is: the other tests run
        if not isinstance(error, (Failed, subprocess.TimeoutExpired)):
            traceback.print_exc(file=sys.stdout)
        word, code = f"FAILED: {type(error).__name__}: {error}", ANY
    print(f"{test.__name__}: {word} ({time.monotonic() - started:.1f} s)", flush=True)
    return code


def main(*tests, at_once=1):
    """Runs the tests of a file, each in a lab of its own: `file BIN [TEST…]`. Exits with 1 when a test failed, with the code for a skipped
    test when all were skipped; a test that was skipped hides neither the failures nor the passes of the others. at_once: so many beside
    each other, for tests that mostly wait."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # `ops/check &` of a script ignores it, and what it starts would
    bin_folder = os.path.abspath(sys.argv[1])
    unknown = set(sys.argv[2:]) - {t.__name__ for t in tests}
    if unknown:
        sys.exit(f"no such test: {' '.join(sorted(unknown))}")
    chosen = [t for t in tests if len(sys.argv) < 3 or t.__name__ in sys.argv[2:]]
    if at_once == 1:
        codes = [run_one(test, bin_folder) for test in chosen]
    else:
        with futures.ThreadPoolExecutor(at_once) as pool:
            codes = list(pool.map(lambda test: run_one(test, bin_folder), chosen))
    sys.exit(exit_code(codes.count(ANY), codes.count(SKIP), len(chosen)))


def exit_code(n_failed, n_skipped, n):
    return 1 if n_failed else SKIP if n_skipped == n else 0
