"""The Python workers with what they are for: a training script of PyTorch's under the daemon, killed and not, and lm_eval itself on an
exported model, beside our own evaluation of the same items. Skipped where lm_eval is not in the environment."""

import json
import os
import signal
import subprocess
import sys

import oracle

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from lib import lab  # noqa: E402
from lib.lab import OK, equal, expect  # noqa: E402
from lib.workers import finish_killing  # noqa: E402

VENV = os.path.dirname(sys.executable)
HARNESS = os.path.join(VENV, "lm_eval")
N_ITEMS = 40
LIMIT = 1e-4

# A stage more in ops/programs/python_worker
TORCH = """
[stage.torch]
command = ["prereg-python", "train_torch.py"]
env     = {{ PATH = "{venv}:/usr/bin:/bin" }}
params  = {{ reach = "$reach", steps = 600, batch = 64, lr = 0.003, seed = "$seed" }}
[measure]
torch = {{ metric = "torch.val_loss", better = "lower", counted = false }}
"""

TASK = """task: {name}
dataset_path: json
dataset_name: null
dataset_kwargs: {{data_files: {{test: $data.{name}}}}}
output_type: multiple_choice
test_split: test
doc_to_text: "{{{{query}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: gold
metric_list:
  - {{metric: acc, aggregation: mean, higher_is_better: true}}
  - {{metric: acc_norm, aggregation: mean, higher_is_better: true}}
metadata: {{version: 1.0}}
"""

HARNESS_STAGE = """
[stage.harness]
after   = ["train"]
command = ["prereg-lm-eval", "{harness}", "--prereg-train", "{bin}/prereg-train"]
params  = {{ tasks = "grammar", include = "tasks", version = "0.4.3", limit = {n}, metrics = ["acc", "acc_norm"] }}
[measure]
harness = {{ metric = "harness.acc", items = {n}, chance = 0.25, floor = 0.40, counted = false }}
"""


def test_torch(place):
    """The script trains under the daemon; killed on the way it ends in the same model."""
    grid = place.prepare("python_worker")
    place.edit(grid, "\n[measure]\n", TORCH.format(venv=VENV))
    place.edit(grid, 'checkpoint = "200ms"', 'checkpoint = "200ms"\n[run.torch]\ncheckpoint = "200ms"')
    place.ctl("lock", grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(300)
    calm = lab.results(place.program_folder())
    equal(len([task for task in calm if task.endswith("/torch")]), 4, "trained models")
    place.end_all()
    place.state = place.path("state-killed")
    place.env["PREREGD_STATE"] = place.state
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    killed = finish_killing(place, 300, 3)
    again = lab.results(place.program_folder())
    of_torch = {task: n for task, n in killed.items() if task.endswith("/torch")}
    expect(of_torch, "no training of PyTorch's was killed")
    for task in calm:
        equal(again[task], calm[task], f"metrics and model of {task}")
    losses = [calm[task][0]["val_loss"]["value"] for task in sorted(calm) if task.endswith("/torch")]
    print(f"  torch: losses {losses}; killed {sum(of_torch.values())} workers of {len(of_torch)} tasks, the same models after",
          flush=True)


def items_of(place, cell, stage):
    folder = os.path.realpath(os.path.join(place.program_folder(), "cells", cell, stage, "result.json"))
    with open(os.path.join(os.path.dirname(folder), "items.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f][1:]


def test_harness(place):
    """lm_eval as a stage beside prereg-eval: the same items, log-likelihoods within 1e-4, the same scores."""
    grid = place.prepare("micro")
    place.write("micro/tasks/grammar.yaml", TASK.format(name="grammar"))
    place.edit(grid, "levels    = [1, 2, 3]", "levels    = [1]")
    place.edit(grid, "[stage.train]", 'tasks = "tasks"\n\n[stage.train]')
    place.edit(grid, "limit = 60 }\n[stage.giving]", f"limit = {N_ITEMS} }}\n[stage.giving]")
    place.edit(grid, "items = 60, chance = 0.25", f"items = {N_ITEMS}, chance = 0.25")
    place.edit(grid, "\n[measure]\n", HARNESS_STAGE.format(harness=HARNESS, bin=place.bin, n=N_ITEMS))
    place.ctl("check", grid)
    place.ctl("lock", grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(600)
    equal({task["state"] for task in place.tasks().values()}, {"done"}, "states")
    results = lab.results(place.program_folder())
    for cell in sorted({task.split("/")[0] for task in results}):
        ours, theirs = results[f"{cell}/grammar"][0], results[f"{cell}/harness"][0]
        apart = max(abs(a - b) for x, y in zip(items_of(place, cell, "grammar"), items_of(place, cell, "harness"), strict=True)
                    for a, b in zip(x["ll"], y["ll"], strict=True))
        print(f"  {cell}: acc {theirs['acc']['value']} and {ours['acc']['value']}, acc_norm {theirs['acc_norm']['value']} and "
              f"{ours['acc_norm']['value']}, log-likelihoods {apart:.1e} apart, n {theirs['acc']['n']}", flush=True)
        expect(apart <= LIMIT, f"log-likelihoods of {cell} are {apart} apart")
        for name in ("acc", "acc_norm"):
            equal(theirs[name]["value"], ours[name]["value"], f"{name} of {cell}")
            expect(abs(theirs[name]["se"] - ours[name]["se"]) < 1e-12, f"standard error of {name}: {theirs[name]}, {ours[name]}")


def by_hand(place, name, model, resume, stop_after=None):
    """prereg-lm-eval on all items, ended by SIGTERM once so many requests are answered; (folder, exit code, requests resumed from)."""
    folder = place.path(name)
    os.makedirs(folder)
    task = {"protocol": 1, "attempt": name, "attempt_no": 1 + len(resume), "threads": 1, "stage": "harness", "resume": resume,
            "params": {"tasks": "grammar", "include": "tasks"}, "inputs": {"train": model},
            "data": {"tasks": {"path": place.path("tasks")}, "grammar": {"path": place.path("data/grammar.jsonl")}}}
    place.write(f"{name}/task.json", json.dumps(task))
    env = {**place.env, "PREREG_TASK": "task.json", "PREREG_EVENTS": "events.jsonl",
           "PATH": f"{place.bin}:{os.environ['PATH']}", "TQDM_MININTERVAL": "0.05"}
    with open(os.path.join(folder, "stderr.log"), "wb") as log:
        child = subprocess.Popen([os.path.join(place.bin, "prereg-lm-eval"), HARNESS], cwd=folder, env=env, stderr=log)
    if stop_after is not None:
        place.wait_for(lambda: child.poll() is not None or any(e.get("done", 0) >= stop_after for e in events(folder)), 120,
                       "requests are answered")
        child.send_signal(signal.SIGTERM)
    code = child.wait(timeout=240)
    return folder, code, [e["step"] for e in events(folder) if e["type"] == "resumed"]


def events(folder):
    if not os.path.exists(os.path.join(folder, "events.jsonl")):
        return []
    with open(os.path.join(folder, "events.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


def test_harness_resumed(place):
    """Stopped among its requests, the harness's own cache of replies takes the next attempt on; the items are the same bytes."""
    place.must(OK, "prereg-data", "demo", "--seed", "1", "--out", place.path("data"), "--bytes", "100000")
    place.write("tasks/grammar.yaml", TASK.format(name="grammar"))
    oracle.write_task(place.path("train"), {"layers": 6, "width": 128, "heads": 4, "ffn": 256, "context": 128, "batch_tokens": 256,
                                            "tokenizer": "bytes", "data": "corpus", "lr": 0.003, "seed": 1,
                                            "horizon": {"contract": "fixed", "tokens": 5120}},
                      {"corpus": place.path("data/corpus.txt")})
    place.must(OK, "prereg-train", cwd=place.path("train"), env={**place.env, "PREREG_TASK": "task.json"})
    calm, code, _ = by_hand(place, "calm", place.path("train"), [])
    equal(code, 0, "exit code undisturbed")
    first, code, _ = by_hand(place, "first", place.path("train"), [], 100)
    equal(code, 75, "exit code after SIGTERM")
    second, code, resumed = by_hand(place, "second", place.path("train"), [first])
    equal((code, len(resumed)), (0, 1), "exit code and resumptions of the next attempt")
    expect(100 <= resumed[0] < 1152, f"resumed from {resumed}")
    found = []
    for folder in (calm, second):
        with open(os.path.join(folder, "items.jsonl"), "rb") as f:
            found.append(f.read())
    expect(found[1] == found[0], f"items.jsonl of {calm} and {second} differ")
    print(f"  lm_eval 0.4.3, stopped at {resumed[0]} of 1152 requests, went on there; items.jsonl the same bytes", flush=True)


if not os.path.exists(HARNESS):
    oracle.skip(f"no {HARNESS}")
sys.argv[1] = os.path.join(os.path.abspath(sys.argv[1]), "bin")
lab.main(test_torch, test_harness, test_harness_resumed)
