"""prereg-lm-eval: lm-evaluation-harness itself as an evaluation worker.

    prereg-lm-eval [LM_EVAL] [--prereg-train FILE]      the task of $PREREG_TASK
    prereg-lm-eval ... --describe TASK

LM_EVAL is the harness's command, a path or a name in $PATH ("lm_eval" unless said). A model of ours is exported for it by prereg-train
(FILE, or in $PATH); a folder of transformers is taken as it stands. Named by their paths in a stage's command, both are pinned:

    command = ["prereg-lm-eval", "/opt/venv/bin/lm_eval", "--prereg-train", "/usr/local/bin/prereg-train"]

It runs offline with --log_samples, says the harness's own progress, and turns its results and samples files (any 0.4.x) into
result.json and items.jsonl. docs/python-workers.md has the parameters and what can be resumed.
"""

from __future__ import annotations

import collections
import contextlib
import json
import math
import os
import re
import resource
import select
import shutil
import sqlite3
import subprocess
import sys
from typing import Any, Counter, Deque, Dict, Iterator, List, Match, Optional, Sequence, Tuple

from preregd import worker as prereg

OUT = "harness"                 # the harness's own files
MODEL = "model"                 # exported or linked: a path without the "=" and "," that model_args could not take
CACHE = "cache"                 # replies so far, for the next attempt
REPLIES = "cache/replies"       # the harness adds _rank0.db
OWN_FLAGS = ("--model", "--model_args", "--tasks", "--output_path", "--log_samples", "--use_cache", "--include_path", "--limit",
             "--num_fewshot", "--batch_size", "--max_batch_size", "--device", "--gen_kwargs", "--predict_only",
             "-m", "-a", "-t", "-o", "-s", "-c", "-L", "-f", "-b", "-x")
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
           "HF_HUB_DISABLE_TELEMETRY": "1", "PYTHONDONTWRITEBYTECODE": "1", "TQDM_MININTERVAL": "1"}
# What the harness's own tasks yield; of others and of groups only the parameter `metrics` says it beforehand.
BOTH = ("acc", "acc_norm")
METRICS = {"hellaswag": BOTH, "arc_easy": BOTH, "arc_challenge": BOTH, "piqa": BOTH, "openbookqa": BOTH, "sciq": BOTH,
           "winogrande": ("acc",), "boolq": ("acc",), "copa": ("acc",), "commonsense_qa": ("acc",),
           "lambada_openai": ("perplexity", "acc"), "wikitext": ("word_perplexity", "byte_perplexity", "bits_per_byte"),
           "gsm8k": ("exact_match:strict", "exact_match:flexible")}
FILTERS = {"none": "", "strict-match": ":strict", "flexible-extract": ":flexible"}
SAMPLE_KEYS = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash",
               "target_hash"}
Scores = Dict[Tuple[str, str], Tuple[Optional[float], Optional[float]]]  # (metric, filter) -> (value, standard error)
MEANS = ("acc", "acc_norm", "acc_bytes", "exact_match")   # metrics that are the mean of their items
ASK = """import importlib.metadata as m, importlib.util as u, json
found = {}
for name in ("lm_eval", "torch", "transformers"):
    try:
        found[name] = m.version(name)
    except m.PackageNotFoundError:
        pass
spec = u.find_spec("lm_eval")
found["folder"] = spec.submodule_search_locations[0] if spec else None
print(json.dumps(found))"""


# ── what is asked ────────────────────────────────────────────────────────────────────────────────

def find_program(name: str, what: str, hint: str) -> str:
    """The path of an executable by path or name. UsageFault when there is none."""
    path = os.path.abspath(name) if "/" in name else shutil.which(name)
    if path is None or not os.access(path, os.X_OK):
        raise prereg.UsageFault(f"no program \"{name}\" ({what}){'' if '/' in name else ' in $PATH'}: {hint}")
    return path


def words_of(arguments: Sequence[str]) -> Tuple[str, str]:
    """(LM_EVAL, FILE of prereg-train) of the command's words."""
    rest, train = list(arguments), "prereg-train"
    if "--prereg-train" in rest:
        at = rest.index("--prereg-train")
        if at + 1 == len(rest):
            raise prereg.UsageFault("--prereg-train takes a file")
        train = rest[at + 1]
        del rest[at:at + 2]
    if len(rest) > 1 or any(word.startswith("-") for word in rest):
        raise prereg.UsageFault(f"unknown word {rest[-1]!r}; prereg-lm-eval --help says what there is")
    return (rest[0] if rest else "lm_eval"), train


def interpreter_of(script: str) -> Optional[List[str]]:
    """The argv of the Python that a console script runs in, read off its first lines; None when it is not such a script."""
    with open(script, "rb") as f:
        first, second = f.readline(4096).decode(errors="replace"), f.readline(4096).decode(errors="replace")
    long_path = re.match(r"'''exec' \"?([^\" ]+)\"? ", second)  # what pip writes when the path is too long for a first line
    if first.startswith("#!/bin/sh") and long_path:
        return [long_path.group(1)]
    return first[2:].split() if first.startswith("#!") and "python" in first else None


def ask_harness(script: str) -> prereg.Json:
    """Versions of harness, torch and transformers, and "folder" of the harness's package, as far as they can be had without
    importing it: {} for a program that is not a script of Python's."""
    python = interpreter_of(script)
    if python is None:
        return {}
    try:
        run = subprocess.run([*python, "-c", ASK], capture_output=True, text=True, timeout=60, check=True)
        found: prereg.Json = json.loads(run.stdout)
        return found
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}


def read_params(params: prereg.Params) -> prereg.Json:
    p: prereg.Json = {"tasks": params.texts("tasks"), "include": params.text("include", None), "model": params.text("model", None),
         "model_args": params.values_of("model_args", {}), "shots": params.integer("shots", 0, 64, None),
         "limit": params.number("limit", 0, 2**53 - 1, None), "batch_size": params.integer("batch_size", 1, 4096, 1),
         "device": params.text("device", "cpu"), "gen_kwargs": params.text("gen_kwargs", None),
         "version": params.text("version", None), "metrics": params.texts("metrics", None),
         "arguments": params.texts("arguments", [])}
    if not p["tasks"] and not params.faults:
        params.fault("tasks", "names none")
    if any("," in task for task in p["tasks"]):
        params.fault("tasks", "a name holds a comma; give a list")
    if p["limit"] == 0:
        params.fault("limit", "0 leaves nothing to measure")
    for key, value in p["model_args"].items():
        if key == "pretrained":
            params.fault("model_args", "pretrained is the model of the task")
        elif re.search(r"[,=]", f"{key}{value}"):
            params.fault("model_args", f"{key}: the harness takes no \",\" and no \"=\" in a value")
    for word in p["arguments"]:
        flag = word.split("=")[0]
        if not flag.startswith("--"):
            flag = flag[:2]  # "-oFOLDER" is "-o FOLDER"
        if any(own == flag or (flag.startswith("--") and own.startswith(flag)) for own in OWN_FLAGS):
            params.fault("arguments", f"{flag} is set by the worker")
    return p


def setup(w: prereg.Worker) -> prereg.Json:
    p = read_params(w.params)
    for key in ("include", "model"):
        if p[key] is not None and p[key] not in w.task["data"] and (key == "include" or p[key] not in w.task["inputs"]):
            if key == "include" or not w.describing:
                w.params.fault(key, f"the task has no {'data' if key == 'include' else 'input or data'} \"{p[key]}\"")
    w.params.finish()
    name, p["train"] = words_of(w.arguments)
    p["lm_eval"] = find_program(name, "lm-evaluation-harness", "install lm_eval, and name it in the stage's command or its "
                                "folder in the stage's env.PATH")
    p["harness"] = ask_harness(p["lm_eval"])
    if p["version"] is not None and p["version"] != p["harness"].get("lm_eval"):
        raise prereg.UsageFault(f"params.version: {p['lm_eval']} is lm_eval {p['harness'].get('lm_eval', 'of no known version')}, "
                                f"not {p['version']}")
    for package in ("lm_eval", "transformers", "torch"):
        if package in p["harness"]:
            w.fact(package, p["harness"][package])
    w.fact("limit", p["limit"] if p["limit"] is not None else "none")
    if p["metrics"] is None and all(task in METRICS for task in p["tasks"]):
        names = [(metric, task) for task in p["tasks"] for metric in METRICS[task]]
        p["metrics"] = [m if len(p["tasks"]) == 1 else f"{m}:{t}" for m, t in names]
    w.will_measure(*(p["metrics"] or []))
    return p


# ── what the harness is given ────────────────────────────────────────────────────────────────────

def find_model(w: prereg.Worker, p: prereg.Json) -> str:
    """The folder of the model: of the stage or the name in [data] that params.model names, else of the only input, else "train"."""
    if p["model"] in w.task["inputs"]:
        return str(w.input(p["model"]))
    if p["model"] is not None:
        return w.data(p["model"])
    return str(w.input(None if len(w.task["inputs"]) == 1 else "train"))


def prepare_model(w: prereg.Worker, p: prereg.Json) -> str:
    """Puts the model at MODEL, by a link or an export, and returns its digest."""
    drop_model()
    folder = os.path.realpath(find_model(w, p))
    places = [os.path.join(folder, name) for name in ("", "hf", "model")]
    theirs = [place for place in places if os.path.exists(os.path.join(place, "config.json"))]
    if theirs:
        os.symlink(os.path.normpath(theirs[0]), MODEL)
        return prereg.digest_path(os.path.realpath(MODEL))
    if not any(os.path.exists(os.path.join(place, "model.json")) for place in places):
        raise prereg.DataFault(f"{folder} holds neither config.json nor model.json: no model")
    train = find_program(p["train"], "which exports our models", "name it behind --prereg-train in the stage's command")
    run = subprocess.run([train, "export", "--hf", MODEL, folder], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if run.returncode != 0:
        fault = {prereg.USAGE: prereg.UsageFault, prereg.DATA: prereg.DataFault, prereg.UNMEASURABLE: prereg.NotMeasurable}
        raise fault.get(run.returncode, prereg.Fault)(f"export of {folder}: {run.stderr.strip()[-1000:]}")
    return prereg.digest_path(MODEL)


def drop_model() -> None:
    if os.path.islink(MODEL):
        os.unlink(MODEL)
    shutil.rmtree(MODEL, ignore_errors=True)


def copy_tasks(w: prereg.Worker, p: prereg.Json) -> None:
    """The task descriptions of params.include under tasks/, with `$data.NAME` in a YAML file made the path of that name in [data],
    and `$harness` the folder of the harness's package: a description can be locked without saying where things lie."""
    source = w.data(p["include"])
    shutil.rmtree("tasks", ignore_errors=True)
    token = re.compile(r"\"?\$(?:data\.([a-z][a-z0-9_]*)|(harness))((?:/[\w.+-]+)*)\"?")
    for name in prereg.files_below(source):
        target = os.path.join("tasks", name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(os.path.join(source, name), "rb") as f:
            raw = f.read()
        if name.endswith(("yaml", "yml")):
            def path_of(m: Match[str], name: str = name) -> str:
                if m.group(1) and m.group(1) not in w.task["data"]:
                    raise prereg.UsageFault(f"{name}: the task has no data \"{m.group(1)}\"")
                base = w.data(m.group(1)) if m.group(1) else p["harness"].get("folder")
                if base is None:
                    raise prereg.UsageFault(f"{name}: $harness: where the package of {p['lm_eval']} is installed is not known")
                return json.dumps(base + m.group(3))
            raw = token.sub(path_of, raw.decode()).encode()
        with open(target, "wb") as out:
            out.write(raw)


def command_of(p: prereg.Json) -> List[str]:
    values = {"dtype": "float32", **p["model_args"]}
    argv: List[str] = [p["lm_eval"], "--model", "hf",
            "--model_args", ",".join([f"pretrained={MODEL}", *(f"{key}={value}" for key, value in values.items())]),
            "--tasks", ",".join(p["tasks"]), "--device", p["device"], "--batch_size", str(p["batch_size"]),
            "--output_path", OUT, "--log_samples"]
    if p["include"] is not None:
        argv += ["--include_path", "tasks"]
    if p["shots"] is not None:
        argv += ["--num_fewshot", str(p["shots"])]
    if p["limit"] is not None:
        argv += ["--limit", f"{p['limit']:.17g}"]
    if p["gen_kwargs"] is not None:
        argv += ["--gen_kwargs", p["gen_kwargs"]]
    if keeps_replies(p):
        argv += ["--use_cache", REPLIES]
    return argv + list(p["arguments"])


def environment(w: prereg.Worker) -> Dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PREREG_")}
    threads = str(w.threads)
    given = {**OFFLINE, "HF_HOME": os.path.abspath("hf_home"), "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    return {**given, **own}


# ── replies so far ───────────────────────────────────────────────────────────────────────────────

def keeps_replies(p: prereg.Json) -> bool:
    """Only one request a pass makes a reply independent of which were asked before the attempt was broken off."""
    return bool(p["batch_size"] == 1)


def is_sound(path: str) -> Optional[int]:
    """The number of replies in a database of the harness's, or None."""
    try:
        with contextlib.closing(sqlite3.connect(path)) as db:
            if db.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                return None
            return int(db.execute("SELECT count(*) FROM unnamed").fetchone()[0])
    except sqlite3.Error:
        return None


def take_replies(w: prereg.Worker, key: str) -> None:
    """Puts the replies of the newest earlier attempt under the same key (the harness's own key forgets the model) at REPLIES."""
    kept = key.encode()
    for folder in [CACHE, *(os.path.join(f, CACHE) for f in w.task["resume"])]:
        try:
            with open(os.path.join(folder, "key.json"), "rb") as f:
                if f.read() != kept:
                    w.note(f"replies in {folder} are of another model, data or setting and are not used")
                    continue
        except OSError:
            continue
        if folder != CACHE:
            shutil.rmtree(CACHE, ignore_errors=True)
            shutil.copytree(folder, CACHE)  # with its journal, if it was torn: sqlite mends the copy
        n = is_sound(REPLIES + "_rank0.db")
        if n:
            w.events.say("resumed", step=n)
            return
        w.note(f"replies in {folder} cannot be used")
    shutil.rmtree(CACHE, ignore_errors=True)
    os.mkdir(CACHE)
    prereg.write_file(os.path.join(CACHE, "key.json"), kept)


# ── the run ──────────────────────────────────────────────────────────────────────────────────────

class Progress:
    """Reads the harness's standard error: bars become progress, other lines are passed on."""
    BAR = re.compile(r"(?:(?P<name>[^|]*?):)?\s*\d+%\|[^|]*\|\s*(?P<done>\d+)/(?P<total>\d+)\s*\[")

    def __init__(self, worker: prereg.Worker) -> None:
        self.worker, self.rest = worker, ""
        self.tail: Deque[str] = collections.deque(maxlen=40)
        self.asking = False                    # of the model, as against building prompts
        self.base = 0                          # requests of earlier bars
        self.bar: Tuple[Optional[str], int, int] = (None, 0, 0)  # name, done and total of this one

    def feed(self, raw: bytes) -> None:
        *lines, self.rest = re.split(r"[\r\n]", self.rest + raw.decode(errors="replace"))
        for line in lines:
            m = self.BAR.match(line)
            if m is not None:
                self._take_bar((m.group("name") or "").strip(), int(m.group("done")), int(m.group("total")))
            elif line.strip():
                self._take_line(line)

    def _take_line(self, line: str) -> None:
        self.tail.append(line)
        prereg.tell(line[:2000])
        if re.search(r"Running \w+ requests", line):
            self.asking = True
            self.worker.section("eval")
        cached = re.search(r"Cached requests: (\d+), Requests remaining", line)
        if cached:
            self.base += int(cached.group(1))

    def _close_bar(self) -> None:
        self.base, self.bar = self.base + self.bar[2], (None, 0, 0)

    def _take_bar(self, name: str, done: int, total: int) -> None:
        if not self.asking or not (name == "" or name.startswith("Running")):
            self.worker.progress(self.base + self.bar[1], unit="request")  # it moves, but these are not requests
            return
        if self.bar[0] is not None and (self.bar[0], self.bar[2]) != (name, total):
            self._close_bar()
        self.bar = (name, done, total)
        self.worker.progress(self.base + done, self.base + total, "request")


def end_child(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def run_harness(w: prereg.Worker, p: prereg.Json) -> None:
    """Runs it to its end. Its standard output, which shows scores, goes to a file of its own."""
    shutil.rmtree(OUT, ignore_errors=True)
    os.mkdir(OUT)
    progress = Progress(w)
    with open(os.path.join(OUT, "stdout.txt"), "wb") as out:
        child = subprocess.Popen(command_of(p), env=environment(w), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE)
    assert child.stderr is not None
    try:
        while True:
            ready, _, _ = select.select([child.stderr], [], [], 0.2)
            raw = os.read(child.stderr.fileno(), 65536) if ready else None
            if raw:
                progress.feed(raw)
            if w.stop_asked:
                raise prereg.Stopped("stopped; what it had answered is kept" if keeps_replies(p) else "stopped")
            if raw == b"" or (raw is None and child.poll() is not None):
                break
        child.wait()
    finally:
        if child.poll() is None:
            end_child(child)
        child.stderr.close()
    if child.returncode != 0:
        said = "\n".join(progress.tail)
        missing = re.search(r"Tasks? (?:were )?not found: (.*)", said)
        if missing:
            raise prereg.UsageFault(f"params.tasks: the harness does not know {missing.group(1)[:300]}")
        raise prereg.Fault(f"lm_eval ended with {child.returncode}; its last words are above")


# ── what it leaves ───────────────────────────────────────────────────────────────────────────────

def find_outputs() -> Tuple[str, Dict[str, str]]:
    """(path of the results file, task -> path of its samples file), the newest of each."""
    results, samples = [], {}
    for place, _, names in os.walk(OUT):
        for name in sorted(names):
            m = re.fullmatch(r"samples_(.+)_(\d{4}-\d\d-\d\dT.*)\.jsonl", name)
            if m:
                samples[m.group(1)] = os.path.join(place, name)
            elif re.fullmatch(r"results_\d{4}-\d\d-\d\dT.*\.json", name):
                results.append(os.path.join(place, name))
    if not results:
        raise prereg.Fault("lm_eval ended well and left no results file")
    return max(results, key=os.path.basename), samples


def load_json(path: str) -> Any:
    """A file of the harness's: NaN and infinity are let through."""
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except ValueError as error:
        raise prereg.DataFault(f"{path}: {error}") from None


def samples_of(path: str) -> Iterator[prereg.Json]:
    """The samples of a file, one after the other: all of them at once would be several times its size."""
    number = 0
    with open(path, encoding="utf-8") as f:
        try:
            for number, line in enumerate(f, 1):
                yield json.loads(line)
        except ValueError as error:
            raise prereg.DataFault(f"{path}: line {number}: {error}") from None


def split_key(key: str) -> Optional[Tuple[str, str, bool]]:
    """ "acc_stderr,none" -> ("acc", "none", True); None for a key that is not a metric (alias, name, sample_len, " ")."""
    metric, comma, chosen = key.partition(",")
    if not comma:
        return None
    is_error = metric.endswith("_stderr")
    return (metric[:-len("_stderr")] if is_error else metric), chosen, is_error


def our_name(metric: str, chosen: str, label: str = "") -> str:
    """The metric's name in result.json: acc, exact_match:strict, acc:stem."""
    return metric + FILTERS.get(chosen, f":{chosen}") + (f":{label}" if label else "")


def label_of(task: str, wanted: Sequence[str], there: prereg.Json) -> str:
    """What follows a metric's name: nothing for the only task asked for; its members lose its name in front of theirs."""
    if len(wanted) == 1 and wanted[0] in there:
        if task == wanted[0]:
            return ""
        return task[len(wanted[0]) + 1:] if task.startswith(wanted[0] + "_") else task
    return task


def is_score(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Results:
    """A results file of any 0.4.x."""

    def __init__(self, path: str) -> None:
        raw = load_json(path)
        if not isinstance(raw, dict) or not isinstance(raw.get("results"), dict):
            raise prereg.DataFault(f"{path} holds no results")
        self.raw = raw
        self.records = {**raw["results"], **(raw.get("groups") or {})}
        self.members = raw.get("group_subtasks") or {}

    def metrics(self, task: str) -> Scores:
        """(metric, filter) -> (value, standard error or None) of a task or group; a value that is not a number is None."""
        found: Dict[Tuple[str, str], Optional[float]] = {}
        errors: Dict[Tuple[str, str], Optional[float]] = {}
        for key, value in self.records[task].items():
            parts = split_key(key)
            if parts is not None:
                (errors if parts[2] else found)[parts[0], parts[1]] = value if is_score(value) else None
        return {key: (value, errors.get(key)) for key, value in found.items()}

    def leaves(self, task: str) -> List[str]:
        members = [m for m in self.members.get(task) or [] if m != task]
        return [leaf for m in members for leaf in self.leaves(m)] if members else [task]

    def count(self, task: str, counted: Dict[str, int]) -> Optional[int]:
        """The items behind a task or group; counted: task -> items in its samples file. None when nothing says it."""
        sizes = []
        for leaf in dict.fromkeys(self.leaves(task)):
            said = (self.raw.get("n-samples") or {}).get(leaf) or {}
            sizes.append(counted.get(leaf, said.get("effective", self.records.get(leaf, {}).get("sample_len"))))
        return None if None in sizes else sum(sizes)

    def filters(self, task: str) -> List[str]:
        """Names of a task's filters, in their order."""
        listed = ((self.raw.get("configs") or {}).get(task) or {}).get("filter_list")
        return [f.get("name", "none") for f in listed] if listed else ["none"]


def finite(value: Any) -> Any:
    """A number, list or text that JSON can say: NaN and infinity become null."""
    if isinstance(value, (list, tuple)):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def reply_of(sample: prereg.Json) -> prereg.Json:
    """ll and greedy of each request, or the text that was generated. The harness writes numbers as text (0.4.3) or as numbers."""
    replies = [request[0] if isinstance(request, list) and request else request for request in sample.get("resps") or []]
    if replies and all(isinstance(r, list) and len(r) == 2 for r in replies):
        return {"ll": [finite(float(r[0])) for r in replies], "greedy": [int(str(r[1]) == "True") for r in replies]}
    try:
        return {"ll": [finite(float(r)) for r in replies]} if sample_is_rolling(sample) else {"text": replies[0] if replies else None}
    except (TypeError, ValueError):
        return {"text": replies[0] if replies else None}


def sample_is_rolling(sample: prereg.Json) -> bool:
    """A request of one text alone: nothing is generated, and there is no continuation."""
    arguments = sample.get("arguments")
    first = arguments.get("gen_args_0") if isinstance(arguments, dict) else (arguments or [None])[0]
    return first is not None and len(first) == 1


def read_items(task: str, path: str, filters: Sequence[str]) -> Dict[int, prereg.Json]:
    """doc_id -> the item's line, of a samples file; a document has a line there for each filter."""
    items: Dict[int, prereg.Json] = {}
    seen: Counter[int] = collections.Counter()
    for sample in samples_of(path):
        doc = sample["doc_id"]
        nth, seen[doc] = seen[doc], seen[doc] + 1
        chosen = sample.get("filter", filters[nth] if nth < len(filters) else f"filter{nth}")
        line = items.setdefault(doc, {"task": task, "doc": doc, **reply_of(sample)})
        target = sample.get("target")
        if re.fullmatch(r"-?\d{1,9}", str(target)):
            line["gold"] = int(str(target))
        if "text" in line:
            answer = sample.get("filtered_resps")
            line[FILTERS.get(chosen, f":{chosen}")[1:] or "answer"] = answer[0] if isinstance(answer, list) and answer else answer
        for key in sorted(sample.keys() - SAMPLE_KEYS):
            line[our_name(key, chosen)] = finite(sample[key])
    return {doc: items[doc] for doc in sorted(items)}


def check_mean(task: str, items: Dict[int, prereg.Json], metrics: Scores) -> None:
    """What the harness reports must be the mean of what it logged."""
    for (metric, chosen), (value, _) in metrics.items():
        scores: List[Any] = [line.get(our_name(metric, chosen)) for line in items.values()]
        if metric in MEANS and value is not None and any(is_score(s) for s in scores):
            if not all(is_score(s) for s in scores):
                raise prereg.DataFault(f"{task}: some of its samples have no {metric}")
            mean = sum(scores) / len(scores)
            if not abs(mean - value) <= 1e-9:
                raise prereg.DataFault(f"{task}: {metric} is {value} in the results file and {mean} in the samples file")


def say_metrics(w: prereg.Worker, p: prereg.Json, results: Results, counted: Dict[str, int]) -> None:
    for task in results.records:
        label = label_of(task, p["tasks"], results.records)
        for (metric, chosen), (value, error) in results.metrics(task).items():
            name = our_name(metric, chosen, label)
            if value is None:
                w.no_metric(name, "not_a_number")
            else:
                w.metric(name, value, results.count(task, counted), error)
    missing = [name for name in p["metrics"] or [] if name not in w.metrics]
    if missing:
        raise prereg.UsageFault(f"params.metrics: the harness yields no {', '.join(missing)}; it yields {', '.join(w.metrics)}")


def say_facts(w: prereg.Worker, results: Results) -> None:
    raw = results.raw
    for task, n in (raw.get("n-samples") or {}).items():
        if n.get("effective") != n.get("original"):
            w.note(f"limit: {n.get('effective')} of {n.get('original')} items of {task}")
            w.fact(f"items_of_{task}", f"{n.get('effective')} of {n.get('original')}")
    if isinstance(raw.get("lm_eval_version"), str):
        w.facts.setdefault("lm_eval", raw["lm_eval_version"])
    parameters: Any = (raw.get("config") or {}).get("model_num_parameters")
    if is_score(parameters) and parameters > 0:
        w.fact("params_total", parameters)
    w.fact("task_versions", prereg.to_line(raw.get("versions") or {}))
    w.fact("peak_rss_bytes", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)


def collect(w: prereg.Worker, p: prereg.Json, key: str) -> None:
    """result.json's metrics, items.jsonl and artifacts from the harness's files. Whatever their shape is, a DataFault says it."""
    path, samples = find_outputs()
    try:
        read_outputs(w, p, key, path, samples)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise prereg.DataFault(f"{path} or a samples file beside it is not as lm_eval writes it: {error!r}") from error


def read_outputs(w: prereg.Worker, p: prereg.Json, key: str, path: str, samples: Dict[str, str]) -> None:
    results = Results(path)
    leaves = [task for task in results.records if task in samples]
    lines, counted = [key], {}
    for task in results.records:
        if results.metrics(task) and results.leaves(task) == [task] and task not in samples:
            raise prereg.Fault(f"lm_eval left no samples file of {task}")
    for task in leaves:
        items = read_items(task, samples[task], results.filters(task))
        check_mean(task, items, results.metrics(task))
        counted[task] = len(items)
        lines += [prereg.to_line({"item": len(lines) - 1 + i, **line}) for i, line in enumerate(items.values())]
    say_metrics(w, p, results, counted)
    say_facts(w, results)
    prereg.write_file("items.jsonl", "".join(line + "\n" for line in lines).encode())
    w.items_path = "items.jsonl"
    for source, target in [(path, f"{OUT}/results.json"), *((samples[t], f"{OUT}/samples_{t}.jsonl") for t in leaves)]:
        os.replace(source, target)
        w.artifact(target)
    for place, _, _ in os.walk(OUT, topdown=False):
        if not os.listdir(place):
            os.rmdir(place)


def work(w: prereg.Worker, p: prereg.Json) -> None:
    model = prepare_model(w, p)
    if p["include"] is not None:
        copy_tasks(w, p)
    versions = {name: value for name, value in p["harness"].items() if name != "folder"}
    key = prereg.to_line({"key": w.task_key(), "model": model, "versions": versions})
    if keeps_replies(p):
        take_replies(w, key)
    run_harness(w, p)
    collect(w, p, key)
    for folder in ("hf_home", "tasks", CACHE):
        shutil.rmtree(folder, ignore_errors=True)
    drop_model()


if __name__ == "__main__":
    if sys.argv[1:2] in (["--help"], ["-h"]):
        print(__doc__.strip())
        sys.exit(prereg.DONE)
    prereg.run(setup, work)
