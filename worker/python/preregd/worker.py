"""The worker's side of preregd's file protocol, for any Python program. Standard library only, Python 3.9 or later.

A worker is two functions and one call:

    import preregd as prereg

    def setup(w):                                   # asked beforehand too (--describe); does no work
        p = {"steps": w.params.integer("steps", 1, 10**6), "lr": w.params.number("lr", 0, 1)}
        w.params.finish()                           # every fault at once, exit 64
        w.will_measure("val_loss")
        return p

    def work(w, p):
        net = Net(w.data("corpus"))                 # the path of pinned data, digest verified
        start = w.resume(net.load)                  # newest whole checkpoint of an earlier attempt, or 0
        for step in w.steps(start, p["steps"], net.save):
            net.train(step, p["lr"])                # progress, checkpoints and SIGTERM happen between steps
        w.metric("val_loss", net.loss(), n=1000)

    prereg.run(setup, work)

What it keeps for them: task.json is read strictly; one write(2) per event line; SIGTERM means checkpoint and exit 75; a checkpoint
is written whole or not at all and verified before use; result.json comes last, atomic and synced. Exit codes: 0 done, 64 bad
parameters, 65 bad data, 69 cannot be measured, 75 run me again; any other exception is a crash with its traceback on standard error.

docs/python-workers.md goes through it step by step; docs/worker-protocol.md is the contract. Times are in seconds.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import re
import resource
import shutil
import signal
import sys
import time
import traceback
from typing import Any, Callable, Dict, Iterator, List, NoReturn, Optional, Sequence, Set, Tuple, TypeVar

from preregd.basics import *  # pack puts that text in front of this one

SECTIONS = ("setup", "step", "checkpoint", "eval")
LINE_MAX = 65536          # bytes of an event, with its line feed
NOTE_MAX = 4000           # characters of a note; what is longer is cut
PROGRESS_GAP = 0.5        # between two progress lines, the first and the last excepted
CHECKPOINT_GAP = 10.0     # checkpoint = "auto": at least this far apart,
CHECKPOINT_SHARE = 0.02   # and not more of the run than this
KEPT = 2                  # checkpoints: the newest and the one before
Settings = TypeVar("Settings")    # what setup() hands to work()
Save = Callable[[str], object]    # writes its state as files into a folder; what it returns is dropped

# name: (type, what it is when absent, in words)
MEMBERS: Dict[str, Tuple[type, Any, str]] = {
    "program": (str, "", "a string"), "stage": (str, "", "a string"), "attempt": (str, "", "a string"),
    "attempt_no": (int, 1, "a whole number"), "threads": (int, 1, "a whole number"),
    "memory_bytes": (int, 0, "a whole number"), "params": (dict, None, "an object"), "inputs": (dict, {}, "an object"),
    "data": (dict, {}, "an object"), "cell": (dict, {}, "an object"), "peers": (dict, {}, "an object"),
    "resume": (list, [], "an array of folders"), "try": (dict, {}, "an object"),
}


def read_task(path: str) -> Json:
    """task.json as a dict with every member of MEMBERS in it. UsageFault names what is not as the protocol has it; members that
    are not in the list are left as they are."""
    try:
        with open(path, encoding="utf-8") as f:
            task = from_json(f.read())
    except (OSError, ValueError) as error:
        raise UsageFault(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(task, dict):
        raise UsageFault(f"{path}: expected an object")
    if task.get("protocol") != PROTOCOL:
        raise UsageFault(f"{path}: task protocol {task.get('protocol')!r}: this worker speaks {PROTOCOL}")
    for name, (kind, absent, words) in MEMBERS.items():
        value = task.get(name)
        if value is None and absent is not None:
            value = type(absent)(absent)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise UsageFault(f"{path}: {name}: expected {words}")
        task[name] = value
    if not is_texts(task["resume"]):
        raise UsageFault(f"{path}: resume: expected {MEMBERS['resume'][2]}")
    if not is_texts(task.get("sealed_metrics", [])):
        raise UsageFault(f"{path}: sealed_metrics: expected a list of names")
    for name, entry in task["data"].items():
        if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
            raise UsageFault(f"{path}: data.{name}: expected an object with a path")
        if not re.fullmatch(r"[0-9a-f]{64}", entry.get("sha256", "0" * 64)):
            raise UsageFault(f"{path}: data.{name}.sha256: expected 64 hex digits")
    return task


class Events:
    """Lines of JSON appended to the file that PREREG_EVENTS names, one write(2) each. Without it (a run by hand) notes go to
    standard error and nothing else is written. Never give it a score."""

    def __init__(self, path: Optional[str]) -> None:
        self.fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600) if path else None
        self.current: Optional[str] = None
        self.last = -math.inf

    def say(self, kind: str, **members: Any) -> None:
        if self.fd is None:
            return
        line = (to_line({"type": kind, **members}) + "\n").encode()
        if len(line) >= LINE_MAX:
            raise ValueError(f"an event of {len(line)} bytes: a line holds less than {LINE_MAX}")
        n = os.write(self.fd, line)
        if n != len(line):
            raise OSError(28, f"only {n} of {len(line)} bytes of an event were written")

    def section(self, name: str) -> None:
        """Entering setup, step, checkpoint or eval; each has its own deadline. Says so only when it changes."""
        if name not in SECTIONS:
            raise ValueError(f"no section \"{name}\"; there are {', '.join(SECTIONS)}")
        if name != self.current:
            self.current = name
            self.say("section", name=name)

    def progress(self, done: int, total: Optional[int] = None, unit: str = "step") -> None:
        """Real progress: moves the deadline. At most two lines a second, except the first and the last."""
        now = time.monotonic()
        if done == total or now - self.last >= PROGRESS_GAP:
            self.last = now
            self.say("progress", done=int(done), **({} if total is None else {"total": int(total)}), unit=unit)

    def note(self, text: object) -> None:
        cut = str(text)[:NOTE_MAX]
        if self.fd is None:
            tell(f"note: {cut}")
        self.say("note", text=cut)


class Items:
    """items.jsonl of an evaluation: a header line, then one line an item, written as it is done.

    `header` is a dict of everything the lines depend on (model, data, settings). Whole lines of an earlier attempt with the same
    header are taken over, so `lines` may begin filled; the work goes on at item len(lines).
    """
    NAME = "items.jsonl"

    def __init__(self, worker: Worker, header: Json) -> None:
        self.worker, self.header = worker, to_line(header)
        self.lines: List[Json] = []
        raw = self._take_over([os.curdir, *worker.task["resume"]])
        write_file(self.NAME, b"".join([self.header.encode() + b"\n", *raw]))
        self.fd = os.open(self.NAME, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        if self.lines:
            worker.events.say("resumed", step=len(self.lines))

    def _take_over(self, folders: Sequence[str]) -> List[bytes]:
        """The raw lines of the first of the folders that has the same header and any whole line."""
        for folder in folders:
            try:
                with open(os.path.join(folder, self.NAME), "rb") as f:
                    raw = f.read().split(b"\n")[:-1]  # what follows the last line feed is torn
            except OSError:
                continue
            if not raw or raw[0] != self.header.encode():
                self.worker.note(f"items of {folder} are of other data or settings and are not used")
                continue
            kept: List[bytes] = []
            for line in raw[1:]:
                item = self._read(line)
                if item is None or item.get("item") != len(kept):
                    break
                self.lines.append(item)
                kept.append(line + b"\n")
            if kept:
                return kept
        return []

    @staticmethod
    def _read(line: bytes) -> Optional[Json]:
        try:
            item = from_json(line.decode())
        except ValueError:
            return None
        return item if isinstance(item, dict) else None

    def append(self, **values: Any) -> None:
        """The next item's line: {"item": its number, from 0, ...}."""
        line = {"item": len(self.lines), **values}
        raw = (to_line(line) + "\n").encode()
        if os.write(self.fd, raw) != len(raw):
            raise OSError(28, f"{self.NAME} was not written whole")
        self.lines.append(line)

    def remaining(self, total: int, unit: str = "item") -> Iterator[int]:
        """Yields the number of each item up to `total` that has no line yet; the body must append() it. Says progress; asked to
        stop, the lines are synced and the worker ends with 75."""
        self.worker.section("eval")
        total = self.worker.cut_for_try("items", len(self.lines), total)
        self.worker.progress(len(self.lines), total, unit)
        while len(self.lines) < total:
            at = len(self.lines)
            began = time.perf_counter()
            yield at
            self.worker.tried_seconds += time.perf_counter() - began
            if len(self.lines) != at + 1:
                raise RuntimeError(f"item {at} got {len(self.lines) - at} lines")
            self.worker.progress(at + 1, total, unit)
            if self.worker.stop_asked and at + 1 < total:
                os.fsync(self.fd)
                raise Stopped(f"stopped after {at + 1} of {total} items")
        os.fsync(self.fd)


def stem(metric: str) -> str:
    return re.split("[@:]", metric)[0]


def imported(name: str, ask: Callable[[Any], str]) -> Optional[str]:
    """What a module that the worker has imported says; None when that is not known."""
    try:
        return ask(sys.modules[name])
    except (AttributeError, KeyError, TypeError):
        return None


class Worker:
    """One attempt at one task. The working directory is the attempt's own folder; nothing is written elsewhere."""

    def __init__(self, task: Json, describing: bool = False, arguments: Sequence[str] = ()) -> None:
        self.task, self.describing, self.arguments = task, describing, list(arguments)
        self.params = Params(task["params"])
        self.threads, self.memory_bytes = task["threads"], task["memory_bytes"]
        self.checkpoint_seconds = seconds_of(task.get("checkpoint"))
        self.factors = task["cell"].get("factors", {})
        self.events = Events(None if describing else os.environ.get("PREREG_EVENTS"))
        self.section, self.progress, self.note = self.events.section, self.events.progress, self.events.note  # see there
        self.expected: List[str] = []
        self.metrics: Json = {}
        self.facts: Json = {}
        self.read: Dict[str, str] = {}
        self.artifacts: List[Json] = []
        self.items_path: Optional[str] = None
        self.seconds: Optional[float] = None  # an estimate for the plan, see will_take()
        self.stop_asked = False
        self.withheld: Set[str] = set()       # names of points that the plan seals
        self.spent, self.n_steps = 0.0, 0
        self.tried: Optional[Tuple[int, int]] = None  # of `preregctl try`: (units done, units of the whole)
        self.tried_seconds = 0.0

    # what it is given

    def input(self, stage: Optional[str] = None) -> Any:
        """The folder of an earlier stage's result; without a name that of the only one. None under --describe, when there is
        none yet."""
        inputs = self.task["inputs"]
        if self.describing:
            return None
        if stage is None and len(inputs) == 1:
            return next(iter(inputs.values()))
        if stage not in inputs:
            raise UsageFault(f"the task has no input \"{stage}\"" if stage else f"which input? there are {len(inputs)}")
        return inputs[stage]

    def data(self, name: str) -> str:
        """The path of a name in [data], its digest verified (once) and reported as read. DataFault when it is not what was
        locked."""
        if name not in self.task["data"]:
            raise UsageFault(f"the task has no data \"{name}\"; there are: {', '.join(self.task['data']) or 'none'}")
        entry = self.task["data"][name]
        if not os.path.exists(entry["path"]):
            raise DataFault(f"data \"{name}\": {entry['path']} does not exist")
        if name not in self.read and not self.describing:
            self.read[name] = digest_path(entry["path"])
            if self.read[name] != entry.get("sha256", self.read[name]):
                raise DataFault(f"data \"{name}\": {entry['path']} is not what was locked")
        return str(entry["path"])

    # what it says

    def environment(self) -> None:
        """The first line: what this attempt computes with, so that it is known of one that leaves no result, too."""
        known = {"blas": imported("numpy", lambda m: "{name} {version}".format_map(m.__config__.CONFIG["Build Dependencies"]["blas"])),
                 "instructions": imported("torch", lambda m: m.backends.cpu.get_cpu_capability().lower().replace("default", "baseline"))}
        known = {name: text for name, text in known.items() if text}
        self.facts.update(known)
        self.events.say("environment", threads=self.threads, **known)

    def point(self, step: int, name: str, value: Any) -> None:
        """A point of a curve; gates nothing. A value that is not finite becomes null. One of a metric that the plan seals, of its
        mark or its part ("acc" for "acc@0.5"), is withheld, which a note says once."""
        value = float(value)
        sealed = self.task.get("sealed_metrics")
        if self.task.get("sealed") if sealed is None else stem(name) in map(stem, sealed):
            if name not in self.withheld:
                self.note(f"the plan seals {name}: its curve is not reported")
            self.withheld.add(name)
            return
        self.events.say("point", step=int(step), name=name, value=value if math.isfinite(value) else None)

    def will_measure(self, *names: str) -> None:
        """Names of metrics, for the check of the plan; a run that ends without one of them is a crash."""
        self.expected += [name for name in names if name not in self.expected]

    def will_take(self, seconds: float) -> None:
        """An estimate of the work's time on this machine, for the plan."""
        self.seconds = float(seconds)

    def metric(self, name: str, value: Any, n: Optional[int] = None, se: Any = None) -> None:
        """A score: `n` items behind it, `se` its standard error, both left out when unknown. NaN and infinity become null."""
        value = float(value)
        m: Json = {"value": value} if math.isfinite(value) else {"value": None, "why": "not_finite"}
        if n is not None:
            m["n"] = int(n)
        if se is not None and math.isfinite(float(se)):
            m["se"] = float(se)
        self.metrics[name] = m

    def no_metric(self, name: str, why: str, bound: Optional[str] = None, n: Optional[int] = None) -> None:
        """A score that there is none of: why, and its bound where it is censored, e.g. ">4864", of `n` items: a plan that says how
        many items there are takes no score and no bound without n."""
        m: Json = {"value": None, "why": why}
        if bound is not None:
            m["bound"] = bound
        if n is not None:
            m["n"] = int(n)
        self.metrics[name] = m

    def fact(self, name: str, value: Any) -> None:
        """A number, text or truth value about the run, e.g. params_total; in setup() also for the plan."""
        if isinstance(value, float) and not math.isfinite(value):
            value = {"value": None, "why": "not_finite"}
        self.facts[name] = value

    def artifact(self, path: str) -> None:
        """A file of this attempt, or each file of a folder, relative to the working directory: synced, its digest goes into the
        result. A folder without a file, a link or a special file is a DataFault."""
        if os.path.isdir(path):
            names = files_below(path)
            if not names:
                raise DataFault(f"artifact {path}: the folder holds no file")
            for name in names:
                self.artifact(os.path.join(path, name))
            return
        sync(path)
        sync(os.path.dirname(path) or os.curdir)
        self.artifacts.append({"path": path, "sha256": digest_file(path), "bytes": os.path.getsize(path)})

    def items(self, **header: Any) -> Items:
        """The Items of this attempt; see there."""
        self.items_path = Items.NAME
        return Items(self, {"key": self.task_key(), **header})

    def check_stop(self) -> None:
        """For loops without checkpoints: raises Stopped once SIGTERM has come."""
        if self.stop_asked:
            raise Stopped("stopped")

    # checkpoints

    def task_key(self) -> str:
        """A digest of what the state depends on: stage, parameters, factors, data, threads. Not the attempt."""
        data = {name: entry.get("sha256") for name, entry in self.task["data"].items()}
        key = {"stage": self.task["stage"], "params": self.task["params"], "factors": self.factors, "data": data,
               "threads": self.threads}
        return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()

    def checkpoint(self, step: int, save: Save) -> float:
        """Calls save(folder), which writes its state as files there; then all is synced, the manifest comes last, and the folder
        gets its name checkpoint/step-N. Whatever happens meanwhile, the checkpoint before stays. Returns the seconds it took."""
        began = time.monotonic()
        before = self.events.current
        self.section("checkpoint")
        part, path = "checkpoint/part", f"checkpoint/step-{step:09d}"
        shutil.rmtree(part, ignore_errors=True)
        os.makedirs(part)
        save(part)
        files = []
        for name in files_below(part):
            if name == "manifest.json":
                raise ValueError("manifest.json is the checkpoint's own file")
            full = os.path.join(part, name)
            sync(full)
            files.append({"path": name, "sha256": digest_file(full), "bytes": os.path.getsize(full)})
        for place, _, _ in os.walk(part):
            sync(place)
        manifest = {"step": step, "key": self.task_key(), "spent": self.spent, "steps": self.n_steps, "files": files}
        write_file(os.path.join(part, "manifest.json"), to_line(manifest).encode())
        shutil.rmtree(path, ignore_errors=True)
        os.rename(part, path)
        sync("checkpoint")
        took = time.monotonic() - began
        self.events.say("checkpoint", step=step, path=path, seconds=took, stall=took)
        for name in sorted(os.listdir("checkpoint"))[:-KEPT]:
            shutil.rmtree(os.path.join("checkpoint", name), ignore_errors=True)
        self.section(before or "step")
        return took

    def _whole(self, path: str) -> Optional[Json]:
        """The manifest of a checkpoint whose files are all what it says, or None."""
        try:
            with open(os.path.join(path, "manifest.json"), encoding="utf-8") as f:
                manifest: Json = from_json(f.read())
            if manifest["key"] != self.task_key():
                self.note(f"{path} is of other data or settings: not taken")
                return None
            intact = all(digest_file(os.path.join(path, file["path"])) == file["sha256"] for file in manifest["files"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            self.note(f"{path} is not whole: {error}")
            return None
        if not intact:
            self.note(f"{path} is not what its manifest says")
        return manifest if intact else None

    def resume(self, load: Save) -> int:
        """Finds the newest whole checkpoint of this task's attempts and calls load(folder). Returns the step to go on at; 0,
        without a call, when there is none."""
        found: List[Tuple[int, int, str]] = []
        for age, folder in enumerate([os.curdir, *self.task["resume"]]):
            place = os.path.join(folder, "checkpoint")
            names = os.listdir(place) if os.path.isdir(place) else []
            found += [(-int(n[5:]), age, os.path.join(place, n)) for n in names if re.fullmatch(r"step-\d{9,}", n)]
        for _, _, path in sorted(found):
            manifest = self._whole(path)
            if manifest is not None:
                load(path)
                self.spent, self.n_steps = manifest["spent"], manifest["steps"]
                self.events.say("resumed", step=manifest["step"])
                return int(manifest["step"])
        return 0

    def cut_for_try(self, kind: str, start: int, total: int) -> int:
        """How many of `total` steps or items there are in this run: under `preregctl try` a few. Its scores are thrown away."""
        most = self.task["try"].get(kind)
        if not isinstance(most, int) or isinstance(most, bool) or most < 1 or total - start <= 0:
            return total
        kept = min(total, start + most)
        done, whole = self.tried or (0, 0)
        self.tried = (done + kept - start, whole + total - start)
        return kept

    def steps(self, start: int, total: int, save: Optional[Save] = None, unit: str = "step") -> Iterator[int]:
        """Yields start, start + 1, ... total - 1. Between two steps it says progress, writes a checkpoint through save(folder)
        when one is due (the task's `checkpoint`), and asked to stop writes one and raises Stopped. Fact step_seconds: the mean of
        all steps so far, those of earlier attempts included."""
        pace = Pace(self, start, total, unit)
        for step in range(start, pace.total):
            pace.begin()
            yield step
            if pace.end(step + 1):
                pace.save(step + 1, save)

    # the ends

    def description(self, faults: FaultList) -> Json:
        """What --describe prints. faults: (key, why) pairs."""
        facts = {name: value for name, value in self.facts.items() if not isinstance(value, dict)}
        answer: Json = {"protocol": PROTOCOL, "facts": facts, "errors": [{"key": key, "why": why} for key, why in faults]}
        if self.expected:
            answer["metrics"] = self.expected
        if self.seconds is not None:
            answer["seconds"] = self.seconds
        return answer

    def finish(self) -> None:
        """result.json, last and whole."""
        missing = [name for name in self.expected if name not in self.metrics]
        if missing:
            raise RuntimeError(f"the worker said it would measure {', '.join(missing)}, and did not")
        if self.n_steps > 0:
            self.facts.setdefault("step_seconds", self.spent / self.n_steps)
        self.facts.setdefault("threads", self.threads)
        self.facts.setdefault("peak_rss_bytes", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        self.facts.setdefault("python", platform.python_version())
        result: Json = {"protocol": PROTOCOL, "attempt": self.task["attempt"], "metrics": self.metrics, "facts": self.facts,
                  "read": self.read, "artifacts": self.artifacts}
        if self.tried is not None:
            result["try"] = {"done": self.tried[0], "of": self.tried[1], "seconds": self.tried_seconds}
        if self.items_path is not None:
            sync(self.items_path)
            result["items"] = self.items_path
        write_file("result.json", (to_line(result) + "\n").encode())


class Pace:
    """What happens between two steps of a training, for a loop that steps() does not drive: progress, the mean of their seconds,
    checkpoints when they are due, SIGTERM. `total` is smaller than planned under `preregctl try`."""

    def __init__(self, worker: Worker, start: int, total: int, unit: str = "step") -> None:
        self.worker, self.unit = worker, unit
        worker.section("step")
        self.total = worker.cut_for_try("steps", start, total)
        worker.progress(start, self.total, unit)
        self.gap = CHECKPOINT_GAP if worker.checkpoint_seconds is None else worker.checkpoint_seconds
        self.due = time.monotonic() + self.gap
        self.began: Optional[float] = None

    def begin(self) -> None:
        """A step begins."""
        self.began = time.perf_counter()

    def end(self, done: int) -> bool:
        """A step has ended, and `done` are done: whether save() is to be called now."""
        if self.began is not None:
            took, self.began = time.perf_counter() - self.began, None
            self.worker.spent += took
            self.worker.tried_seconds += took
            self.worker.n_steps += 1
        self.worker.progress(done, self.total, self.unit)
        return self.worker.stop_asked or (time.monotonic() >= self.due and done < self.total)

    def save(self, done: int, save: Optional[Save]) -> None:
        """Writes a checkpoint through save(folder), if there is one; raises Stopped when that was asked."""
        took = self.worker.checkpoint(done, save) if save is not None else 0.0
        if self.worker.stop_asked:
            raise Stopped(f"stopped after {self.unit} {done} of {self.total}")
        if self.worker.checkpoint_seconds is None:
            self.gap = max(CHECKPOINT_GAP, took / CHECKPOINT_SHARE)
        self.due = time.monotonic() + self.gap


def describe(setup: Callable[[Worker], object], path: str, arguments: Sequence[str] = ()) -> None:
    """COMMAND --describe FILE: runs setup() alone and prints what it said as one JSON object."""
    worker: Optional[Worker] = None
    faults: FaultList = []
    try:
        worker = Worker(read_task(path), True, arguments)
        setup(worker)
        worker.params.finish()
    except Fault as fault:
        faults = (worker.params.faults if worker is not None else []) or [("", str(fault))]
    errors = [{"key": key, "why": why} for key, why in faults]
    text = to_line({"protocol": PROTOCOL, "errors": errors} if worker is None else worker.description(faults))
    print(NOT_PLAIN.sub("?", text) if sys.stdout.isatty() else text, flush=True)


def _with_names(part: Any, names: Dict[str, str], seen: Set[int]) -> None:
    """Puts the plan's names into a traceback and those that it was raised from."""
    if part is None or id(part) in seen:
        return
    seen.add(id(part))
    for frame in part.stack:
        frame.line  # read from the file that runs, before its name changes
        frame.filename = names.get(frame.filename, frame.filename)
    if getattr(part, "filename", None) in names:
        part.filename = names[part.filename]
    for inner in (part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or ())):
        _with_names(inner, names, seen)


def name_tracebacks() -> Dict[str, str]:
    """Tracebacks name the script as the plan does, not the copy of it that runs under a digest. Returns {path of a copy: the plan's
    word}: the words of this process and those of the task's "command" agree from their ends."""
    try:
        with open(os.environ.get("PREREG_TASK", ""), encoding="utf-8") as f:
            command = list(json.load(f)["command"])
    except (OSError, ValueError, LookupError, TypeError):
        command = []
    pairs = zip(reversed(getattr(sys, "orig_argv", sys.argv)), reversed(command))
    names = {here: word for here, word in pairs if here != word and os.path.isabs(here)}

    def on_exception(kind: Any, value: Any, trace: Any) -> None:
        whole = traceback.TracebackException(kind, value, trace)
        _with_names(whole, names, set())
        tell("".join(whole.format()).rstrip("\n"))
    sys.excepthook = on_exception
    return names


def _listen(worker: Worker) -> None:
    """SIGTERM and SIGINT set a flag that loops ask for between units; processes forked from here have the usual handlers."""
    def on_signal(_number: int, _frame: Any) -> None:
        worker.stop_asked = True
    stops = (signal.SIGTERM, signal.SIGINT)
    for number in stops:
        signal.signal(number, on_signal)

    def in_child() -> None:
        for number in stops:
            signal.signal(number, signal.SIG_DFL)
    os.register_at_fork(after_in_child=in_child)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)


def run(setup: Callable[[Worker], Settings], work: Callable[[Worker, Settings], object],
        arguments: Optional[Sequence[str]] = None) -> NoReturn:
    """The whole of a worker's main program: describes itself or does the task of PREREG_TASK; never returns.

    setup(worker) -> settings: reads parameters, says metrics and facts, does no work.
    work(worker, settings): does it and says its metrics. arguments: of the command, sys.argv's unless given.
    """
    name = os.path.basename(name_tracebacks().get(sys.argv[0], sys.argv[0]))
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[-2:-1] == ["--describe"]:
        describe(setup, words[-1], words[:-2])
        sys.exit(DONE)
    try:
        path = os.environ.get("PREREG_TASK")
        if not path:
            raise UsageFault("PREREG_TASK names no task.json; the protocol is in docs/worker-protocol.md")
        worker = Worker(read_task(path), False, words)
        _listen(worker)
        worker.environment()
        worker.section("setup")
        settings = setup(worker)
        worker.params.finish()
        work(worker, settings)
        worker.finish()
    except Fault as fault:
        tell("\n".join(f"{name}: {line}" for line in str(fault).split("\n")))
        sys.exit(fault.code)
    sys.exit(DONE)


# `import preregd_worker` means what is above, wherever it is: in the package, or in a packed worker, in front of the worker's own text.
sys.modules.setdefault("preregd_worker", sys.modules[__name__])
