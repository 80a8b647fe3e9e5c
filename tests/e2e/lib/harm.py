"""One program that is run again and again, each time with another harm: what is common to all of them, and what must hold in the end.

A run has a state folder of its own. It must end in the bytes of the verdict and of the results of the undisturbed one, its history
verified, no task that was done run again, no two attempts of a task alive at once."""

import contextlib
import json
import os
import shutil
import time
from collections import Counter

from lib import lab
from lib.lab import OK, equal, expect
from lib.two_arms import DESIGN, READING

GRID = """[program]
name = "harmed"
schema = 1
question = "Does any harm change anything?"
""" + DESIGN + """[stage.train]
command = ["./harm_worker.py"]
params = {{ arm = "$arm", seed = "$seed", log = "{log}", step_seconds = 0.03 }}
[stage.score]
after = ["train"]
command = ["./harm_worker.py"]
params = {{ log = "{log}", step_seconds = 0.03 }}
""" + READING + """[validity]
match = {{ condition = "0.85 <= ratio(fact.train.step_seconds, arm, 'b', 'a') <= 1.20", on_fail = "flag", timing = true }}
[run]
slots = 2
{run}"""

NEVER = 10 ** 9  # no process makes so many calls
PRELOADED = ("e2e_daemon_preload.so", "clock_shift.so")


class NotReached(Exception):
    """The run was over before the fault that was drawn: the fault."""


class Scene:
    """The program, how it ends undisturbed, and the run that is under way."""

    def __init__(self, place, work=None):
        self.place = place
        self.log = place.path("ran.log")
        os.makedirs(self.log + ".locks", exist_ok=True)
        os.makedirs(place.path("p"), exist_ok=True)
        shutil.copy2(os.path.join(lab.LIB, "harm_worker.py"), place.path("p"))
        for library in PRELOADED:
            shutil.copy2(os.path.join(os.path.dirname(os.path.abspath(lab.sys.argv[1])), "tests", library), place.bin)
        self.grid = place.write("p/grid.toml", GRID.format(log=self.log, run=f'work = "{work}"\n' if work else ""))
        with open(self.grid, encoding="utf-8") as f:
            self.text = f.read()
        place.ctl("lock", self.grid)
        self.work = work
        self.boot = None
        self.number = 0
        self.calm = None
        self.n_calls = {}
        self.after = contextlib.ExitStack()  # what is undone once the run is over
        self.begin()
        place.serve()
        self.submit()
        self.finish()
        self.calm = self.ending()
        place.ctl("stop")
        place.end_all()

    def begin(self):
        """A new state folder, nothing running, nothing said."""
        place = self.place
        place.end_all()
        if self.number > 0:
            shutil.rmtree(place.state, ignore_errors=True)
        self.number += 1
        place.state = place.env["PREREGD_STATE"] = place.path(f"state-{'work-' if self.work else ''}{self.number}")
        if self.work:
            shutil.rmtree(self.work, ignore_errors=True)
        place.write("ran.log", "")
        place.write("p/grid.toml", self.text)
        for name in ("armed", "fired", "ran.log.broken", "ran.log.hold"):
            if os.path.exists(place.path(name)):
                os.remove(place.path(name))
        self.said = set()  # what paused the program
        self.amended = False
        self.n_kills = 0

    def submit(self):
        return self.place.must(OK, "preregd", "submit", self.grid)

    # ── faults of calls ──────────────────────────────────────────────────────────────────────────

    def hurt(self, how, process=None):
        """The environment of whoever meets the fault `how` at its Nth call, once arm(N) was called; `process` names it where it is
        started by the one that gets this environment."""
        options = os.environ.get("ASAN_OPTIONS", "")
        env = {**self.place.env, "ASAN_OPTIONS": options + (":" if options else "") + "verify_asan_link_order=0",
               "LD_PRELOAD": os.path.join(self.place.bin, "e2e_daemon_preload.so"), "PREREG_CRASH": self.place.path("armed"),
               "PREREG_FIRED": self.place.path("fired"), "PREREG_CRASH_AT": "writes", "PREREG_FAULT": how}
        return {**env, "PREREG_CRASH_IN": process} if process else env

    def arm(self, nth):
        os.rename(self.place.write("armed.new", str(nth)), self.place.path("armed"))

    def disarm(self):
        os.remove(self.place.path("armed"))

    def fired(self):
        """Where the fault was; "" before."""
        try:
            with open(self.place.path("fired"), encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def serve_hurt(self, how, process=None, **more):
        """A daemon that answers, or has met the fault already: `preregd submit` would start another, one without faults, where none answers."""
        outside, self.place.env = self.place.env, {**self.hurt(how, process), **more}
        self.place.serve_without_waiting()
        self.place.env = outside
        self.place.wait_for(lambda: self.fired() or self.gone() or self.place.run("preregctl", "status").returncode == OK, 120,
                            "the daemon answers or meets the fault")

    def calls_of(self, process):
        """How many calls a process of that name makes in a run without faults, at most: (those that change a file, those of them that can
        be short). Counted in a run of its own, once; what the state folder held is gone."""
        if process not in self.n_calls:
            self.begin()
            counts = self.place.path("calls")
            self.place.write("calls", "")
            self.arm(NEVER)
            self.serve_hurt("fail", process, PREREG_CALLS=counts)
            self.finish()
            self.begin()
            with open(counts, encoding="utf-8", errors="replace") as f:
                calls = [line.split()[:2] for line in f]
            most = [max(Counter(pid for pid, kind in calls if kind in kinds).values(), default=0) for kinds in (("call", "data"), ("data",))]
            expect(min(most) > 0, f"calls of a {process}: {most}")
            self.n_calls[process] = most
        return self.n_calls[process]

    def wait_fired(self, drawn, seconds=300):
        """Until the fault was there; NotReached when the program finishes without it."""
        end = time.monotonic() + seconds
        submitted = False
        while not self.fired():
            if not submitted:
                submitted = self.place.run("preregd", "submit", self.grid).returncode == OK
            now = self.status()
            if now is not None and now["state"] == "finished" and not self.fired():
                raise NotReached(drawn)
            expect(time.monotonic() < end, f"no fault within {seconds} s: {now}")
            time.sleep(0.02)

    # ── what must hold ───────────────────────────────────────────────────────────────────────────

    def status(self):
        """The program's summary; None while there is no answer, or no program."""
        run = self.place.run("preregctl", "status", "--json")
        programs = json.loads(run.stdout)["programs"] if run.returncode == OK else []
        return programs[0] if programs else None

    def progress(self):
        """How many tasks are done; 0 while nobody answers."""
        now = self.status()
        return now["tasks"]["done"] if now else 0

    def wait_done(self, n_done, seconds=300):
        """A daemon that answers, and with a number a program that was submitted and of which so many tasks are done."""
        end, submitted = time.monotonic() + seconds, False
        while time.monotonic() < end:
            if n_done is None and self.place.run("preregctl", "status").returncode == OK:
                return
            submitted = n_done is not None and (submitted or self.place.run("preregd", "submit", self.grid).returncode == OK)
            now = self.status()
            if submitted and now is not None and (now["tasks"]["done"] >= n_done or now["paused_by"] is not None):
                return
            time.sleep(0.02)
        raise lab.Failed(f"waited {seconds} s for {n_done} tasks: {self.status()}")

    def wait_served(self, condition, what, seconds=300):
        """Until it holds of the program's summary, with a daemon that is started again where the fault ended it."""
        end = time.monotonic() + seconds
        while True:
            if self.gone():
                self.place.serve()
            now = self.status()
            if now is not None and condition(now):
                return
            expect(time.monotonic() < end, f"waited {seconds} s in vain: {what}: {now}")
            time.sleep(0.05)

    def note_pause(self):
        now = self.status() if not self.gone() else None
        if now is not None and now["paused_by"] is not None:
            self.said.add(now["paused_by"])

    def gone(self):
        """Whether no daemon runs; one that ended by itself must have said why, not have been aborted."""
        daemon = self.place.daemon
        if daemon is None or daemon.poll() is None:
            return daemon is None
        expect(daemon.returncode >= 0 or daemon.returncode == -9, f"the daemon ended by signal {-daemon.returncode}")
        return True

    def finish(self, seconds=300):
        """To the end: serves where nobody does, submits, resumes what is paused for a reason that a person mends."""
        place, end, submitted = self.place, time.monotonic() + seconds, False
        while True:
            if self.gone():
                place.serve()
                submitted = False
            now = self.status()
            if now is None or not submitted:
                run = place.run("preregd", "submit", self.grid)
                submitted = run.returncode == OK
                self.start_again(run.stderr)
            elif now["state"] == "finished":
                return
            elif now["paused_by"] is not None:
                self.said.add(now["paused_by"])
                if now["paused_by"] in ("lock", "host", "user"):
                    place.run("preregctl", "resume")
                self.start_again(now["paused_why"] or "")
            expect(time.monotonic() < end, f"not finished after {seconds} s: {now}")
            time.sleep(0.05)

    def start_again(self, why):
        """What a person does who is told to."""
        if "start preregd again" in why:
            self.said.add("state")
            self.place.run("preregctl", "stop")

    def ending(self):
        folder = self.place.program_folder()
        return self.place.verdict_bytes(), lab.results(folder)

    def check(self):
        """The run is over: as the undisturbed one, and its journal tells of nothing that may not happen."""
        verdict, results = self.ending()
        equal(sorted(results), sorted(self.calm[1]), "tasks with a result")
        for task, result in self.calm[1].items():
            equal(results[task], result, f"metrics, artifacts and items of {task}")
        if self.amended:
            verdict, calm = ({**json.loads(text), "head": None} for text in (verdict, self.calm[0]))
            equal(verdict, calm, "verdict.json but its head")
        else:
            equal(verdict, self.calm[0], "verdict.json")
        self.check_history()

    def check_receipt(self):
        """A receipt can be made, and a stranger verifies it."""
        out = self.place.path(f"receipt-{self.number}")
        self.place.ctl("export", self.place.program_folder(), "--out", out)
        for name in os.listdir(out):
            if name.endswith(".tar"):
                self.place.ctl("verify", os.path.join(out, name))
        shutil.rmtree(out)

    def check_history(self):
        place = self.place
        equal(place.status()[0]["history"], "verified", "the history")
        attempts = self.check_rows()
        with open(self.log, encoding="utf-8") as f:
            lines = [line.split() for line in f]
        begun = [attempt for word, _, attempt in lines if word == "begins"]
        equal(len(begun), len(set(begun)), "attempts that began, each once")
        equal([line for line in lines if line[0] == "doubled"], [], "tasks with two attempts alive")
        expect(set(begun) <= attempts, f"attempts ran that are not journalled: {set(begun) - attempts}")

    def check_rows(self):
        """What the journal tells of attempts: one at a time, none after the task was done. The ids of all."""
        live, done, ids = set(), set(), set()
        with open(os.path.join(self.place.program_folder(), "journal.jsonl"), encoding="utf-8") as f:
            rows = [json.loads(line) for line in f]
        for row in rows:
            task = row["task"]["index"] if "task" in row else None
            if row["event"] == "attempt_started":
                expect(task not in done, f"row {row['seq']}: an attempt of a task that was done")
                expect(task not in live, f"row {row['seq']}: a second attempt beside one at work")
                ids.add(row["attempt"]["id"])
                live.add(task)
            elif row["event"] == "attempt_ended":
                live.discard(task)
            if task is not None and row["task"]["state"] == "done":
                done.add(task)
        return ids
