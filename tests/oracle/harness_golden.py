#!/usr/bin/env python3
"""Writes tests/golden/harness_files.json: samples and results files of lm-evaluation-harness 0.4.3 over a few records made up here.

    harness_golden.py

The model is a function of the request's texts (answer() below, the same in tests/unit/worker/eval/harness/test_harness_files.c), so that files can
be compared byte for byte, numbers and all.
"""

import glob
import hashlib
import json
import os
import sys
import tempfile

import harness
import lm_eval.tasks
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker

HERE = os.path.dirname(os.path.abspath(__file__))
GENERATIONS = [" 2 + 2 = 4\n#### 4", " The answer is 7.", "", " It costs $1,234.50 \"now\"\n\té東", " 1\n#### 18", " 5\n#### 5."]

HELLASWAG = [
    {"ind": 4, "activity_label": "Cutting", "ctx_a": "A man [substeps] cuts.", "ctx_b": "he USES", "ctx": "A man cuts. he USES",
     "endings": ["a  saw.", "[step] It.  Then   stop.", "\"two\" éé", "nothing"], "label": "2"},
    {"ind": 9, "activity_label": "Café", "ctx_a": "[header] How to [title] Wait.", "ctx_b": "", "ctx": "[header] How to [title] Wait.",
     "endings": ["a/b\\c", "d\te", "ff", "東京 is far"], "label": "0"},
    {"ind": 9, "activity_label": "Sitting", "ctx_a": "One sits.", "ctx_b": "they", "ctx": "One sits. they",
     "endings": ["stand up.", "sit.", "sit down again, and stay there.", "go"], "label": "1"},
]
WINOGRANDE = [
    {"qID": "a-1", "sentence": "Ann thanked Bo since _ had helped.", "option1": "Ann", "option2": "Bo", "answer": "2"},
    {"qID": "b-1", "sentence": "The cup fits in the box, as the _ is small .", "option1": "cup", "option2": "box", "answer": "1"},
]
BOOLQ = [{"question": f"is {w} red", "passage": f"A {w} is {c}.\n\n(see \"{w}\")", "idx": i, "label": i % 2}
         for i, (w, c) in enumerate([("rose", "red"), ("leaf", "green"), ("sky", "blue"), ("brick", "red")])]
ARC = [{"id": f"Q{i}", "question": q, "choices": {"text": t, "label": list(labels)}, "answerKey": key}
       for i, (q, t, labels, key) in enumerate([
           ("What melts?", ["ice", "stone"], "AB", "A"), ("Where is up?", ["down there", "up", "left", "right"], "1234", "2")])]
COMMONSENSE = [{"id": f"c{i}", "question": f" Where is {w}? ", "question_concept": w,
                "choices": {"label": list("ABCDE"), "text": [w + "1", w + "2", "home", "é", "there"]}, "answerKey": k}
               for i, (w, k) in enumerate([("it", "B"), ("he", "E"), ("she", "A")])]
COPA = [{"premise": "It rained. ", "choice1": "He got wet.", "choice2": "É dry.", "question": "effect", "idx": 0, "label": 0},
        {"premise": "She fell.", "choice1": "It was dark.", "choice2": "The ice broke", "question": "cause", "idx": 1, "label": 1}]
LAMBADA = [{"text": "She gave the dog a bone"}, {"text": "Él dijo:  \"no quiero  café"}]
WIKITEXT = [{"page": " = Title = \n \n Some text , with 1 @,@ 000 words ( really ) .\n"}, {"page": " a b \n c\n"}]
GSM8K = [{"question": f"What is {a} + {b}?", "answer": f"It is <<{a}+{b}={a + b}>>{a + b}.\n#### {a + b}"} for a, b in [(2, 2), (9, 9), (2, 3), (3, 4), (1, 3), (0, 5), (1, 17), (6, 1)]]
MMLU = {
    ("anatomy", "dev"): [["Which is red?", "blood", "bone", "hair", "skin", "A"], ["Which is \"white\"?", "blood", "bone", "eye", "é", "B"]],
    ("anatomy", "test"): [[" How many ribs, really? ", "12", "24", "1", "2", "B"], ["Where is the heart?", "left", "right", "up", "down", "A"],
                          ["What beats?", "it", "this", "that", "all", "D"]],
    ("astronomy", "dev"): [["Which is hot?", "sun", "moon", "ice", "snow", "A"], ["Which is near?", "sun", "moon", "mars", "pluto", "B"]],
    ("astronomy", "test"): [["How far?", "1", "2", "3", "4", "C"], ["How big?", "much", "less", "more", "most", "D"]],
    ("jurisprudence", "dev"): [["What is law?", "a", "b", "c", "d", "C"], ["Who rules?", "one", "all", "none", "some", "B"]],
    ("jurisprudence", "test"): [["Who judges, then?", "x", "y", "z", "all of\nthem", "D"], ["Why?", "so", "no", "go", "do", "A"]],
}


def number(*texts):
    return int(hashlib.sha256("\0".join(texts).encode()).hexdigest()[:8], 16)


class Oracle(LM):
    """Answers as a function of what is asked."""

    def loglikelihood(self, requests):
        return [(-(v % 100000) / 1000, v % 3 == 0) for v in (number(*r.args) for r in requests)]

    def loglikelihood_rolling(self, requests):
        return [-(number(r.args[0]) % 100000) / 1000 for r in requests]

    def generate_until(self, requests):
        return [GENERATIONS[number(r.args[0]) % len(GENERATIONS)] for r in requests]


def jsonl(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


# task -> (files of our data folder, shots)
CASES = {
    "hellaswag": ({"val.jsonl": jsonl(HELLASWAG)}, 0),
    "winogrande": ({"dev.jsonl": jsonl(WINOGRANDE)}, 0),
    "boolq": ({"val.jsonl": jsonl(BOOLQ)}, 1),
    "arc_easy": ({"test.jsonl": jsonl(ARC)}, 0),
    "commonsense_qa": ({"val.jsonl": jsonl(COMMONSENSE)}, 0),
    "copa": ({"val.jsonl": jsonl(COPA)}, 0),
    "lambada_openai": ({"test.jsonl": jsonl(LAMBADA)}, 0),
    "wikitext": ({"test.jsonl": jsonl(WIKITEXT)}, 0),
    "gsm8k": ({"test.jsonl": jsonl(GSM8K), "train.jsonl": jsonl(GSM8K[::-1] + [{"question": "1?", "answer": "1\n#### 1"}])}, 2),
    "mmlu": ({f"{split}/{subject}_{split}.csv": "".join(",".join('"' + c.replace('"', '""') + '"' for c in r) + "\n" for r in rows)
              for (subject, split), rows in MMLU.items()}, 2),
}


def expected(task, files, shots, scratch):
    """Runs the harness on the same files; its samples files as text, and what of its results file is about scores."""
    data, config, out = (os.path.join(scratch, name) for name in ("data", "config", "out"))
    for name, text in files.items():
        path = os.path.join(data, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    os.makedirs(config)
    if task == "mmlu":
        harness.define_mmlu(config, task, data, sorted({subject for subject, _ in MMLU}), shots)
    else:
        pool = os.path.join(data, "train.jsonl")
        main = next(os.path.join(data, n) for n in files if n != "train.jsonl")
        harness.define(config, task, task, main, pool if os.path.exists(pool) else None, shots)
    manager = lm_eval.tasks.TaskManager(include_path=config, include_defaults=False)
    results = lm_eval.simple_evaluate(model=Oracle(), tasks=[task], task_manager=manager, bootstrap_iters=1000,
                                      log_samples=True, verbosity="ERROR")
    samples = results.pop("samples")
    tracker = EvaluationTracker(output_path=out)
    tracker.general_config_tracker.model_name_sanitized = "m"
    tracker.save_results_aggregated(results=results, samples=samples)
    texts = {}
    for name in results["configs"]:
        tracker.save_results_samples(task_name=name, samples=samples[name])
        with open(glob.glob(os.path.join(out, "m", f"samples_{name}_2*.jsonl"))[0], encoding="utf-8") as f:
            texts[name] = f.read()
    with open(glob.glob(os.path.join(out, "m", "results_*.json"))[0], encoding="utf-8") as f:
        written = json.load(f)
    scores = {key: written[key] for key in ("results", "groups", "group_subtasks", "versions", "n-shot", "higher_is_better",
                                            "n-samples", "task_hashes") if key in written}
    # The order of members follows from that of files in a folder there; the shots of groups are those of whichever was read last.
    scores["group_subtasks"] = {name: sorted(members) for name, members in scores["group_subtasks"].items()}
    scores["n-shot"] = {name: k for name, k in scores["n-shot"].items() if name in written["configs"]}
    return {"samples": texts, "scores": scores, "keys": list(written)}


def main():
    harness.quiet()
    cases = []
    for task, (files, shots) in CASES.items():
        with tempfile.TemporaryDirectory() as scratch:
            cases.append({"task": task, "shots": shots, "files": files, **expected(task, files, shots, scratch)})
    with open(os.path.join(HERE, "../golden/harness_files.json"), "w", encoding="utf-8") as f:
        json.dump(cases, f, ensure_ascii=False, indent=1)
        f.write("\n")
    print(f"{len(cases)} cases, {sum(len(c['samples']) for c in cases)} samples files")


if __name__ == "__main__":
    sys.exit(main())
