#!/usr/bin/env python3
"""In lm_eval's place where the harness is not installed: its command line, its bars and log lines, its cache of replies, and its
results and samples files as 0.4.3 or (FAKE_SHAPE=later) as 0.4.12 lays them out. Its replies are digests.

Tasks: quiz (a group of quiz_a and quiz_b, four choices), sums (generation, two filters), page (rolling, no standard error).
FAKE_PAUSE: seconds a request takes. FAKE_FAULT: nan, disagree, no_results, no_samples, partial, torn, crash.
"""

import argparse
import contextlib
import datetime
import hashlib
import json
import math
import os
import sqlite3
import sys
import time

LATER = os.environ.get("FAKE_SHAPE") == "later"
PAUSE = float(os.environ.get("FAKE_PAUSE", "0"))
FAULT = os.environ.get("FAKE_FAULT", "")
SIZES = {"quiz_a": 12, "quiz_b": 8, "sums": 6, "page": 2}
FILTERS = {"sums": ["strict-match", "flexible-extract"]}
LOGGED = {task: names[::-1] if LATER else names for task, names in FILTERS.items()}  # their order in the samples file


def options():
    parser = argparse.ArgumentParser()
    for name in ("model", "model_args", "tasks", "output_path", "include_path", "device", "gen_kwargs", "use_cache"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--num_fewshot", type=int)
    parser.add_argument("--batch_size", default="1")
    parser.add_argument("--limit", type=float)
    parser.add_argument("--log_samples", action="store_true")
    return parser.parse_args()


def log(text):
    print(f"2026-01-01:00:00:00,000 INFO     [fake.py:1] {text}", file=sys.stderr, flush=True)


def fraction(*parts):
    return int(hashlib.sha256(" ".join(map(str, parts)).encode()).hexdigest()[:8], 16) / 2**32


class Replies:
    def __init__(self, prefix):
        self.db = sqlite3.connect(prefix + "_rank0.db") if prefix else None
        self.have = {}
        if self.db is not None:
            self.db.execute("CREATE TABLE IF NOT EXISTS unnamed (key TEXT PRIMARY KEY, value BLOB)")
            self.db.commit()
            self.have = {key: json.loads(value) for key, value in self.db.execute("SELECT key, value FROM unnamed")}

    def answer(self, requests):
        """[(key, function)] -> replies, one after the other, each kept as soon as it is there."""
        left = [request for request in requests if request[0] not in self.have]
        if self.db is not None:
            log(f"Cached requests: {len(requests) - len(left)}, Requests remaining: {len(left)}")
        for n, (key, reply) in enumerate(left):
            time.sleep(PAUSE)
            self.have[key] = reply()
            if self.db is not None:
                self.db.execute("INSERT OR REPLACE INTO unnamed VALUES (?, ?)", (key, json.dumps(self.have[key])))
                self.db.commit()
            percent = 100 * (n + 1) // len(left)
            print(f"\rRunning requests: {percent:3d}%|####      | {n + 1}/{len(left)} [00:00<00:01, 9.9it/s]", end="",
                  file=sys.stderr, flush=True)
        print(file=sys.stderr, flush=True)
        return [self.have[key] for key, _ in requests]


def choices(task, n, replies):
    asked = [(f"{task} {d} {c}", lambda d=d, c=c: [-1 - 9 * fraction(task, d, c), False]) for d in range(n) for c in range(4)]
    flat, samples = replies.answer(asked), []
    for d in range(n):
        ll = [reply[0] for reply in flat[4 * d:4 * d + 4]]
        if FAULT == "nan" and d == 1:
            ll[2] = math.nan
        acc = 1.0 if max(range(4), key=lambda c: ll[c]) == d % 4 else 0.0
        said = [[str(x), "False"] for x in ll]
        samples.append({"doc_id": d, "doc": {"query": f"q{d}", "gold": d % 4}, "target": str(d % 4) if LATER else d % 4,
                        "arguments": {f"gen_args_{c}": {"arg_0": f"q{d}", "arg_1": f" {c}"} for c in range(4)},
                        "resps": [[reply] for reply in said], "filtered_resps": said,
                        **({"filter": "none", "metrics": ["acc"]} if LATER else {}),
                        "doc_hash": "d", "prompt_hash": "p", "target_hash": "t", "acc": acc, "acc_norm": acc, "acc_bytes": acc})
    return samples


def generations(task, n, replies):
    texts = replies.answer([(f"{task} {d}", lambda d=d: f" it is {d}\n#### {d + d % 2}") for d in range(n)])
    samples = []
    for chosen in LOGGED[task]:
        for d in range(n):
            answer = str(d + d % 2) if chosen == "strict-match" else str(d)
            samples.append({"doc_id": d, "doc": {}, "target": f"#### {d}", "arguments": {"gen_args_0": {"arg_0": "q", "arg_1": {}}},
                            "resps": [[texts[d]]], "filtered_resps": [answer], **({"filter": chosen} if LATER else {}),
                            "doc_hash": "d", "prompt_hash": "p", "target_hash": "t", "exact_match": float(answer == str(d))})
    return samples


def pages(task, n, replies):
    said = replies.answer([(f"{task} {d}", lambda d=d: -100 - 10 * fraction(task, d)) for d in range(n)])
    return [{"doc_id": d, "doc": {}, "target": "", "arguments": {"gen_args_0": {"arg_0": "text"}}, "resps": [[str(said[d])]],
             "filtered_resps": [str(said[d])], "doc_hash": "d", "prompt_hash": "p", "target_hash": "t",
             "word_perplexity": [said[d], 20]} for d in range(n)]


def mean_and_error(values):
    mean = sum(values) / len(values)
    return mean, math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values)) if len(values) > 1 else "N/A"


def record_of(task, samples):
    record = {}
    if task == "page":
        value = math.exp(-sum(s["word_perplexity"][0] for s in samples) / 40)
        record = {"word_perplexity,none": value, "word_perplexity_stderr,none": "N/A"}
    for chosen in FILTERS.get(task, ["none"]) if task != "page" else []:
        metric = "exact_match" if task in FILTERS else "acc"
        own = samples if chosen == "none" else samples[LOGGED[task].index(chosen) * len(samples) // 2:][:len(samples) // 2]
        value, error = mean_and_error([s[metric] for s in own])
        record[f"{metric},{chosen}"] = value + (0.25 if FAULT == "disagree" else 0.0)
        record[f"{metric}_stderr,{chosen}"] = error
    n = len({s["doc_id"] for s in samples})
    return {"name": task, "alias": task, "sample_len": n, **record} if LATER else {**record, "alias": task}


def group_of(name, samples):
    values = [s["acc"] for task in ("quiz_a", "quiz_b") for s in samples[task]]
    record = {"acc,none": sum(values) / len(values), "acc_stderr,none": 0.01}
    return {"name": name, "alias": name, "sample_count": {"acc,none": len(values)}, **record} if LATER else {**record, "alias": name}


def write_results(args, names, samples, sizes):
    results = {task: record_of(task, samples[task]) for task in samples}
    results = {name: group_of(name, samples) if name == "quiz" else None for name in names if name == "quiz"} | results
    out = {"results": results, "group_subtasks": {"quiz": ["quiz_a", "quiz_b"]} if "quiz" in names else {t: [] for t in samples},
           "configs": {t: {"task": t, **({"filter_list": [{"name": f} for f in FILTERS[t]]} if t in FILTERS else {})} for t in samples},
           "versions": {task: 1.0 for task in samples}, "n-shot": {task: args.num_fewshot or 0 for task in samples},
           "n-samples": {task: {"original": SIZES[task], "effective": sizes[task]} for task in samples},
           "config": {"model": "hf", "model_args": args.model_args, "limit": args.limit, "model_num_parameters": 4711},
           "date": time.time(), **({"lm_eval_version": "0.4.12"} if LATER else {})}
    folder = os.path.join(args.output_path, "model")
    os.makedirs(folder)
    now = datetime.datetime.now().isoformat().replace(":", "-")
    if FAULT != "no_results":
        with open(os.path.join(folder, f"results_{now}.json"), "w", encoding="utf-8") as f:
            json.dump(out, f, indent=2)
    if FAULT == "partial":
        del samples["quiz_a"][1]["acc"]
    for task in samples if FAULT != "no_samples" else []:
        with open(os.path.join(folder, f"samples_{task}_{now}.jsonl"), "w", encoding="utf-8") as f:
            f.writelines(json.dumps(sample) + "\n" for sample in samples[task])
            f.write("{\n" if FAULT == "torn" else "")


def main():
    args = options()
    folder = dict(pair.split("=") for pair in args.model_args.split(","))["pretrained"]
    if not os.path.isfile(os.path.join(folder, "config.json")):
        sys.exit(f"fake lm_eval: no model in {folder}")
    names = args.tasks.split(",")
    unknown = [name for name in names if name not in ("quiz", *SIZES)]
    if unknown:
        log(f"Tasks were not found: {', '.join(unknown)}")
        sys.exit(1)
    tasks = [task for name in names for task in (["quiz_a", "quiz_b"] if name == "quiz" else [name])]
    sizes = {task: min(SIZES[task], int(args.limit or SIZES[task])) for task in tasks}
    for task in tasks:
        log(f"Building contexts for {task} on rank 0...")
        print(f"\r100%|##########| {sizes[task]}/{sizes[task]} [00:00<00:00, 9.9it/s]", file=sys.stderr, flush=True)
    log("Running loglikelihood requests")
    replies = Replies(args.use_cache)
    ask = {"sums": generations, "page": pages}
    samples = {task: ask.get(task, choices)(task, sizes[task], replies) for task in tasks}
    if FAULT == "crash":
        sys.exit("fake lm_eval: as asked for")
    write_results(args, names, samples, sizes)
    print("|quiz|acc|0.9999|")  # the harness prints a table of scores
    if replies.db is not None:
        with contextlib.closing(replies.db):
            pass


main()
