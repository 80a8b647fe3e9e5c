#!/usr/bin/env python3
"""GSM8K's filters and its exact match on texts that hold every kind of number, against lm-evaluation-harness 0.4.3.

    test_filters.py BUILD_FOLDER

The harness runs its own task over a model that says what it is told; a small model generates nothing that a filter finds."""

import json
import os
import random
import subprocess
import sys
import tempfile

import harness  # before what fetches
import oracle
from lm_eval.api.model import LM

ITEMS = 1319
PIECES = ["#### ", "####", "### ", "-", "$", ",", ".", "..", "...", "%", " ", "\n", "\n\n", "\t", "\u00a0", "\u2028", "x", "The answer is ",
          "£", "é", "\u0663", "½", "1", "7", "18", "72", "1,234", "1,234.50", "$5.", "-0", "3.14.15", ",,", "$,", "-$9", "$-9", "5-3", "١٢", "\\",
          "#### -", "#### 5", "#### 1,0", "\n#### ", "A: ", "<<2*3=6>>"]


class Canned(LM):
    """Says the texts in the order of the items."""

    def __init__(self, texts):
        super().__init__()
        self.texts = texts

    def generate_until(self, requests):
        return [self.texts[request.doc_id] for request in requests]

    def loglikelihood(self, requests):
        raise NotImplementedError

    def loglikelihood_rolling(self, requests):
        raise NotImplementedError


def make_texts(answers, seed):
    """The right answer in many dresses, and pieces at random."""
    rng, texts = random.Random(seed), []
    for answer in answers:
        right = answer.rsplit("#### ", 1)[1]
        dressed = rng.choice([right, right.replace(",", ""), "$" + right, right + ".", right + ".0", right + " ", right + ".\n", "-" + right, "0" + right])
        noise = "".join(rng.choice(PIECES) for _ in range(rng.randrange(12)))
        texts.append(rng.choice([noise, " #### " + dressed, f" The answer is {dressed}", answer, noise + "\n#### " + dressed, f"#### {dressed}{noise}",
                                 f"{noise} {dressed}", f"{noise} {dressed}\n"]))
    return texts


def compare(sample, line):
    """The harness's samples of one item, one a filter."""
    wrong = []
    for key, name in (("strict", "strict-match"), ("flexible", "flexible-extract")):
        theirs, ours = sample[name], (line[key], float(line[f"exact_match:{key}"]))
        if ours != theirs:
            wrong.append(f"{name}: {ours}, the harness's {theirs}, text {line['text']!r}")
    return wrong


def by_filter(samples, names):
    """item -> filter -> (what it found, exact match): samples come filter by filter."""
    out, seen = {}, {}
    for s in samples:
        k = seen[s["doc_id"]] = seen.get(s["doc_id"], -1) + 1
        out.setdefault(s["doc_id"], {})[names[k]] = (s["filtered_resps"][0], float(s["exact_match"]))
    return out


def check(build, folder, items, texts, manager):
    results = harness.lm_eval.simple_evaluate(model=Canned(texts), tasks=["local_gsm8k"], task_manager=manager, bootstrap_iters=0,
                                              log_samples=True, verbosity="ERROR")
    theirs = by_filter(results["samples"]["local_gsm8k"], ["strict-match", "flexible-extract"])
    oracle.write_task(folder, {"task": "gsm8k", "data": "items", "model": "items", "shots": 0}, {"items": items})
    said = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run([os.path.join(build, "tests/judge_texts"), folder], input=said, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    lines = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    wrong = [w for i, line in enumerate(lines) for w in compare(theirs[i], line)]
    found = {key: sum(line[f"exact_match:{key}"] for line in lines) for key in ("strict", "flexible")}
    print(f"{len(lines)} texts: right by the strict filter {found['strict']}, by the flexible one {found['flexible']}; {len(wrong)} differences")
    if len(lines) != len(texts) or not 0 < found["strict"] < found["flexible"] < len(texts):
        sys.exit("the texts test nothing")
    return wrong


def main():
    harness.quiet()
    build = os.path.abspath(sys.argv[1])
    items = oracle.shared_data("gsm8k", "test.jsonl")
    with open(items, encoding="utf-8") as f:
        answers = [json.loads(line)["answer"] for line in f]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        harness.define(folder, "local_gsm8k", "gsm8k", items, items)
        manager = harness.find_tasks(folder)
        for seed in range(3):
            wrong += check(build, folder, items, make_texts(answers, seed), manager)
    for text in wrong[:20]:
        print("  " + text)
    sys.exit(1 if wrong else 0)


main()
