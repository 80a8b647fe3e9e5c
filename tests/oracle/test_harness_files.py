#!/usr/bin/env python3
"""Samples and results files of prereg-eval against those that lm-evaluation-harness 0.4.3 writes of the same model and items.

    test_harness_files.py BUILD_FOLDER [TASK...]

A small model with GPT-2's tokenizer is trained and exported. Samples must have the same bytes but for log-likelihoods (and what
follows from those where two options nearly tie), results the same keys, names, counts and hashes, and values as close as the
log-likelihoods are. What export-harness makes of the attempt must be the attempt's own files, under the harness's names.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import harness
import oracle

import lm_eval.tasks
from lm_eval.loggers import EvaluationTracker

LIMIT = 1e-4  # between log-likelihoods
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
SUBJECTS = ("abstract_algebra", "anatomy", "jurisprudence")
ITEMS = {"hellaswag": 60, "winogrande": 60, "gsm8k": 8, "boolq": 20, "lambada_openai": 40, "arc_easy": 60, "piqa": 40, "copa": 40,
         "openbookqa": 40, "commonsense_qa": 40, "mmlu": 60}
WIKITEXT = [" = Robert Boulter = \n \n Robert Boulter is an English film , television and theatre actor . \n", " a b \n c\n"]
# Of the harness alone, of the moment, or of its command line, which this does not go through.
OWN = {"configs", "config", "git_hash", "date", "pretty_env_info", "transformers_version", "upper_git_hash", "tokenizer_pad_token",
       "model_source", "model_name", "fewshot_as_multiturn", "model_name_sanitized", "start_time", "end_time", "total_evaluation_time_seconds"}


def run(build, *words, folder, **env):
    done = subprocess.run([os.path.join(build, "bin", words[0]), *words[1:]], cwd=folder, capture_output=True, text=True,
                          env=dict(os.environ, PREREG_EVENTS="events.jsonl", OPENBLAS_NUM_THREADS="1", **env))
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def make_model(build, scratch):
    folder, out = os.path.join(scratch, "train"), os.path.join(scratch, "model")
    oracle.write_task(folder, {"layers": 2, "width": 32, "heads": 4, "ffn": 48, "context": 1024, "batch_tokens": 2048, "lr": 0.01,
                               "seed": 3, "init_std": 0.1, "tokenizer": "gpt2", "vocab": 50257, "data": "text",
                               "horizon": {"contract": "fixed", "tokens": 16384}},
                      {"text": oracle.shared_data("tinystories", "valid.txt"),
                       "gpt2": oracle.shared_data("tokenizers", "gpt2", "tokenizer.json")})
    run(build, "prereg-train", folder=folder, PREREG_TASK="task.json")
    run(build, "prereg-train", "export", "--hf", out, folder, folder=scratch)
    return out


def mmlu_data(scratch):
    for split in ("dev", "test"):
        os.makedirs(os.path.join(scratch, "mmlu", split))
        for subject in SUBJECTS:
            name = f"{subject}_{split}.csv"
            shutil.copy(oracle.shared_data("mmlu", split, name), os.path.join(scratch, "mmlu", split, name))
    return os.path.join(scratch, "mmlu")


def define(task, config, scratch):
    """The task for the harness; our data for it, shots and viability."""
    if task == "mmlu":
        data = mmlu_data(scratch)
        harness.define_mmlu(config, task, data, SUBJECTS, 5)
        return data, {"shots": 5, "groups": list(SUBJECTS)}
    if task == "gsm8k":
        data = oracle.shared_data("gsm8k")
        harness.define(config, task, task, os.path.join(data, "test.jsonl"), os.path.join(data, "train.jsonl"), 5)
        return data, {"viability": {"items": 0, "least": 0}}
    if task == "wikitext":
        data = harness.write_jsonl(os.path.join(scratch, "pages.jsonl"), [{"page": page} for page in WIKITEXT])
    elif task in harness.CORE:
        data = harness.columns(task, scratch)
    else:
        data = oracle.shared_data(task, {"hellaswag": "hellaswag_val.jsonl", "winogrande": "dev.jsonl"}[task])
    shots = 2 if task == "boolq" else 0
    harness.define(config, task, task, data, shots=shots)
    return data, {"shots": shots}


def theirs(task, model, config, scratch, limit):
    """The harness's own files: samples by task, and the results file's text."""
    manager = lm_eval.tasks.TaskManager(include_path=config, include_defaults=False)
    results = lm_eval.simple_evaluate(model=model, tasks=[task], task_manager=manager, bootstrap_iters=1000, limit=limit,
                                      log_samples=True, verbosity="ERROR")
    samples = results.pop("samples")
    tracker = EvaluationTracker(output_path=os.path.join(scratch, "theirs"))
    tracker.general_config_tracker.model_name_sanitized = "m"
    tracker.save_results_aggregated(results=results, samples=samples)
    for name in results["configs"]:
        tracker.save_results_samples(task_name=name, samples=samples[name])
    return read_files(os.path.join(scratch, "theirs", "m"), "_2*")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def read_files(folder, stamp):
    """({task: samples}, results)"""
    samples = {}
    for path in glob.glob(os.path.join(folder, f"samples_*{stamp}.jsonl")):
        name = os.path.basename(path).removeprefix("samples_").removesuffix(".jsonl")
        samples[re.sub(r"_\d{4}-\d\d-\d\dT[-0-9.]*$", "", name)] = read(path)
    found = glob.glob(os.path.join(folder, f"results{stamp}.json"))
    if len(found) != 1:
        sys.exit(f"{folder}: results files {found}")
    return samples, read(found[0])


def ours(build, task, model, data, params, scratch):
    folder, out = os.path.join(scratch, "ours"), os.path.join(scratch, "exported")
    oracle.write_task(folder, {"task": task, "data": "items", "model": "model", "samples": True, "bootstrap": 1000, **params},
                      {"items": data, "model": model})
    run(build, "prereg-eval", folder=folder, PREREG_TASK="task.json")
    run(build, "prereg-eval", "export-harness", folder, "-o", out, folder=scratch)
    samples, results = read_files(os.path.join(folder, "harness"), "")
    exported, exported_results = read_files(os.path.join(out, os.listdir(out)[0]), "_2*")
    dated = re.sub(r'"date": [0-9.]+', '"date": null', exported_results)
    if exported != samples or dated != results:
        sys.exit(f"{task}: export-harness gives other files than the attempt has")
    return samples, results


def compare_samples(name, left, right):
    """The worst difference of two log-likelihoods, and how many lines were judged otherwise."""
    a, b = left.splitlines(), right.splitlines()
    worst, judged, metrics = 0.0, 0, re.compile(r'"target_hash": "\w+", .*$')
    if len(a) != len(b):
        sys.exit(f"{name}: {len(a)} lines of {len(b)}")
    for n, (x, y) in enumerate(zip(a, b), 1):
        tails = [metrics.search(line).group(0) for line in (x, y)]
        heads = [metrics.sub("", line) for line in (x, y)]
        if [NUMBER.split(h) for h in heads][0] != NUMBER.split(heads[1]):
            sys.exit(f"{name}: line {n}:\n{x}\nagainst\n{y}")
        for p, q in zip(NUMBER.findall(heads[0]), NUMBER.findall(heads[1])):
            worst = max(worst, abs(float(p) - float(q)))
        if NUMBER.split(tails[0]) != NUMBER.split(tails[1]):
            sys.exit(f"{name}: line {n}: {tails}")
        judged += any(abs(float(p) - float(q)) > LIMIT for p, q in zip(NUMBER.findall(tails[0]), NUMBER.findall(tails[1])))
    if worst > LIMIT:
        sys.exit(f"{name}: log-likelihoods differ by {worst}")
    return worst, judged, len(a)


def near(key, x, y, judged, path):
    if isinstance(x, dict) and isinstance(y, dict):
        if list(x) != list(y) if key in ("results", "groups") else set(x) != set(y):
            sys.exit(f"{path}: {list(x)} against {list(y)}")
        for member in x:
            near(key, x[member], y[member], judged, f"{path}.{member}")
    elif isinstance(x, float) and isinstance(y, (int, float)):
        # One item judged otherwise moves a mean by its share; perplexities follow their log-likelihoods.
        if judged == 0 and abs(x - y) > 1e-4 * max(1.0, abs(y)):
            sys.exit(f"{path}: {x} against {y}")
    elif x != y:
        sys.exit(f"{path}: {x!r} against {y!r}")


def compare_results(task, left, right, judged):
    a, b = json.loads(left), json.loads(right)
    if list(a) != list(b):
        sys.exit(f"{task}: keys {list(a)} against {list(b)}")
    # The order of members follows from that of files in a folder there; the shots of a group are those of whichever was read last.
    for results in (a, b):
        results["group_subtasks"] = {name: sorted(members) for name, members in results["group_subtasks"].items()}
        results["n-shot"] = {name: k for name, k in results["n-shot"].items() if name in results["configs"]}
    for key in a:
        if key not in OWN:
            near(key, a[key], b[key], judged, f"{task}: {key}")
    if set(a["config"]) != set(b["config"]) - {"model_peft"}:
        sys.exit(f"{task}: config {sorted(a['config'])} against {sorted(b['config'])}")
    if a["config"]["model_num_parameters"] != b["config"]["model_num_parameters"]:
        sys.exit(f"{task}: {a['config']} against {b['config']}")


def check(build, task, folder, model, scratch):
    config = os.path.join(scratch, "config")
    os.makedirs(config)
    data, params = define(task, config, scratch)
    if task in ITEMS:
        params["limit"] = ITEMS[task]
    a, a_results = ours(build, task, folder, data, params, scratch)
    b, b_results = theirs(task, model, config, scratch, ITEMS.get(task))
    if set(a) != set(b):
        sys.exit(f"{task}: samples of {sorted(a)} against {sorted(b)}")
    done = [compare_samples(name, a[name], b[name]) for name in sorted(a)]
    judged = sum(d[1] for d in done)
    compare_results(task, a_results, b_results, judged)
    print(f"{task}: {len(done)} samples files, {sum(d[2] for d in done)} lines, log-likelihoods within "
          f"{max(d[0] for d in done):.1e}, {judged} judged otherwise", flush=True)


def main():
    harness.quiet()
    build, tasks = os.path.abspath(sys.argv[1]), sys.argv[2:] or [*ITEMS, "wikitext"]
    with tempfile.TemporaryDirectory() as made:
        folder = make_model(build, made)
        model = harness.Plain(pretrained=folder, device="cpu", dtype="float32", batch_size=1)
        for task in tasks:
            with tempfile.TemporaryDirectory() as scratch:
                check(build, task, folder, model, scratch)


main()
