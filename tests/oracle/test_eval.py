#!/usr/bin/env python3
"""prereg-eval against lm-evaluation-harness 0.4.3, on every item of every task that the shared data hold.

    test_eval.py BUILD_FOLDER --model small|gpt2|moe [--full | --quick] [--only CASE...] [--golden]

small: a dense model with a vocabulary of its own, trained on TinyStories; everything. gpt2: a model of stories260K's shape with
the tokenizer of GPT-2; the requests of everything, scores of a part, with --full of everything. moe: a mixture, exported as Mixtral.
--golden writes the digests of gpt2's requests to tests/golden/eval_requests.json.
"""

import argparse
import dataclasses
import json
import os
import shutil
import sys
import tempfile

import harness  # before what fetches
import torch

import eval_golden
import eval_oracle
import oracle
from eval_oracle import Case

SUBJECTS = ("abstract_algebra", "anatomy", "business_ethics", "college_computer_science", "econometrics", "formal_logic",
            "global_facts", "human_sexuality", "jurisprudence", "machine_learning", "public_relations", "virology")
LONG = ("high_school_european_history", "high_school_us_history", "professional_law", "college_medicine")
SHAPES = {
    "small": {"layers": 3, "width": 64, "heads": 4, "ffn": 192, "context": 1024, "vocab": 4096, "steps": 300},
    "gpt2": {"layers": 5, "width": 64, "heads": 8, "kv_heads": 4, "ffn": 172, "context": 1024, "vocab": 50257, "steps": 12},
    "moe": {"layers": 2, "width": 48, "heads": 4, "experts": 4, "top_k": 2, "expert_ffn": 64, "context": 1024, "vocab": 4096,
            "steps": 60},
}
STEP_TOKENS = 2048
QUICK = 40

SCIQ = [("What is the outermost layer of the Sun's atmosphere called?", "corona", "photosphere", "chromosphere", "core",
         "  The corona is the outermost layer of the Sun's atmosphere. It is hotter than the surface."),
        ("Which gas do plants take in?", "carbon dioxide", "oxygen", "helium", "argon", ""),
        ("What is a naïve T cell’s job?", "meeting an antigen", "digesting fat", "moving bone", "making hair",
         "\tNaïve T cells leave the thymus.\nThey have not met their antigen – yet."),
        ("What do two negative charges do?", "repel", "attract", "nothing", "merge", "Like charges repel each other.")]
PAGES = [" = Robert Boulter = \n \n Robert Boulter is an English film , television and theatre actor . He had a guest @-@ starring role "
         "on the television series The Bill in 2000 . This was followed by a role in \" Herons \" ( 2001 ) , seen by 1 @,@ 500 people . \n",
         "Short .", "",
         " = = Costs = = \n " + " ".join(f"In {1900 + i} it took {i} @.@ {i % 7} % of the town 's money ; nobody 's sure ( or [ sure ] ) ."
                                         for i in range(110)) + " \n"]


def make_text(folder):
    """Stories, and GSM8K's training questions, so that generations have numbers and come to an end."""
    path = os.path.join(folder, "text.jsonl")
    with open(path, "w", encoding="utf-8") as out:
        with open(oracle.shared_data("tinystories", "train.jsonl"), encoding="utf-8") as f:
            for _, line in zip(range(3000), f):
                out.write(json.dumps({"text": json.loads(line)["text"]}) + "\n")
        with open(oracle.shared_data("gsm8k", "train.jsonl"), encoding="utf-8") as f:
            for row in map(json.loads, f):
                out.write(json.dumps({"text": f"Question: {row['question']}\nAnswer: {row['answer']}"}) + "\n")
    return path


def make_model(build, folder, kind):
    shape = dict(SHAPES[kind])
    tokens = STEP_TOKENS * shape.pop("steps")
    data = {"text": make_text(folder)}
    if kind == "gpt2":
        data["tokenizer"] = oracle.shared_data("tokenizers", "gpt2", "tokenizer.json")
    else:
        data["tokenizer"] = os.path.join(folder, "tokenizer.json")
        eval_oracle.run_program(build, "bin/prereg-data", "tokenizer", "--vocab", "4096", "--out", data["tokenizer"], data["text"])
    params = {**shape, "tokenizer": "tokenizer", "data": "text", "batch_tokens": STEP_TOKENS, "lr": 0.003, "seed": 1,
              "horizon": {"contract": "fixed", "tokens": tokens}}
    return eval_oracle.train(build, folder, params, data)


class Cases:
    """The tasks as both sides have them, their files in `folder`."""

    def __init__(self, folder):
        self.folder, self.list = folder, []
        self.made = {task: harness.columns(task, folder) for task in harness.CORE}
        self.made["sciq"] = harness.write_jsonl(os.path.join(folder, "sciq.jsonl"), [
            dict(zip(("question", "correct_answer", "distractor1", "distractor2", "distractor3", "support"), row)) for row in SCIQ])
        self.made["wikitext"] = harness.write_jsonl(os.path.join(folder, "wikitext.jsonl"), [{"page": p} for p in PAGES])
        self.made["hellaswag"] = oracle.shared_data("hellaswag", "hellaswag_val.jsonl")
        self.made["winogrande"] = oracle.shared_data("winogrande", "dev.jsonl")
        self.made["gsm8k"] = oracle.shared_data("gsm8k", "test.jsonl")

    def add(self, task, name=None, data=None, **how):
        """data: what ours gets where that is another file than the harness's."""
        case = Case(name or task, task, data or self.made[task], f"local_{name or task}", **how)
        harness.define(self.folder, case.theirs, task, self.made[task], case.pool, case.shots)
        self.list.append(case)

    def add_mmlu(self, name, subjects, shots, **how):
        source, mine = oracle.shared_data("mmlu"), os.path.join(self.folder, f"{name}_csv")
        for split in ("dev", "test"):
            os.makedirs(os.path.join(mine, split))
            for subject in subjects:
                file = f"{subject}_{split}.csv"
                shutil.copyfile(os.path.join(source, split, file), os.path.join(mine, split, file))
        theirs = harness.define_mmlu(self.folder, f"local_{name}", source, subjects, shots)
        self.list.append(Case(name, "mmlu", mine, theirs, {s: f"{theirs}_{s}" for s in subjects}, shots,
                              params={"groups": list(subjects)}, **how))


def plain_cases(cases, hellaswag=0, generations=200):
    for task in ("arc_easy", "arc_challenge", "piqa", "boolq", "copa", "openbookqa", "commonsense_qa", "sciq", "winogrande",
                 "lambada_openai", "wikitext"):
        cases.add(task)
    cases.add("hellaswag", limit=hellaswag)
    cases.add("gsm8k", shots=5, pool=oracle.shared_data("gsm8k", "train.jsonl"), limit=generations)


def shot_cases(cases):
    made = cases.made
    cases.add("arc_easy", "arc_easy_5", shots=5, pool=made["arc_challenge"])
    cases.add("arc_easy", "arc_easy_own_2", shots=2, limit=300)
    cases.add("piqa", "piqa_3", shots=3, pool=made["piqa"])
    cases.add("winogrande", "winogrande_5", shots=5, pool=oracle.shared_data("winogrande", "train_s.jsonl"))
    cases.add("hellaswag", "hellaswag_10", shots=10, pool=made["hellaswag"], limit=500)
    cases.add("boolq", "boolq_2", shots=2, pool=made["boolq"], limit=200)
    cases.add("copa", "copa_4", shots=4, pool=made["copa"])
    cases.add("openbookqa", "openbookqa_3", shots=3, pool=made["openbookqa"])
    cases.add("commonsense_qa", "commonsense_qa_7", shots=7, pool=made["commonsense_qa"], limit=300)


def core_form_cases(cases):
    """CORE's own records give the harness's prompts."""
    for task in ("arc_easy", "arc_challenge", "piqa", "boolq", "copa", "openbookqa", "lambada_openai"):
        cases.add(task, f"{task}_core_form", oracle.shared_data("core", "eval_data", harness.CORE[task][0]),
                  limit=0 if task == "copa" else 300)


def cut_cases(cases):
    """Prompts longer than the context."""
    cases.add("boolq", "boolq_cut", limit=300, context=96)
    cases.add("hellaswag", "hellaswag_cut", limit=1000, context=128)
    cases.add("arc_easy", "arc_easy_5_cut", shots=5, pool=cases.made["arc_challenge"], limit=300, context=96)
    cases.add("wikitext", "wikitext_cut", context=96)
    cases.add_mmlu("mmlu_5_cut", ("business_ethics", "formal_logic"), 5, context=96)


def cases_of(kind, full, folder):
    """[(cases, whether only the requests are compared)]"""
    cases = Cases(folder)
    if kind == "moe":
        for task in ("copa", "winogrande", "sciq", "openbookqa"):
            cases.add(task)
        cases.add("arc_easy", limit=300)
        cases.add("gsm8k", shots=5, pool=oracle.shared_data("gsm8k", "train.jsonl"), limit=10)
        cases.add_mmlu("mmlu_5", ("anatomy", "virology"), 5)
        return cases.list, []
    if kind == "small" or full:
        plain_cases(cases)
        shot_cases(cases)
        core_form_cases(cases)
        cut_cases(cases)
        cases.add_mmlu("mmlu_0", SUBJECTS[:4], 0)
        cases.add_mmlu("mmlu_5", SUBJECTS, 5)
        if kind == "small":
            return cases.list, []
    blind = Cases(folder)
    plain_cases(blind)
    shot_cases(blind)
    blind.add_mmlu("mmlu_blind", SUBJECTS + LONG, 5)
    if not full:
        for task, limit in (("arc_easy", 200), ("piqa", 200), ("boolq", 100), ("copa", 0), ("winogrande", 0), ("lambada_openai", 200),
                            ("hellaswag", 200)):
            cases.add(task, f"{task}_part", limit=limit)
        cases.add("gsm8k", "gsm8k_part", shots=5, pool=oracle.shared_data("gsm8k", "train.jsonl"), limit=10)
        cases.add_mmlu("mmlu_5", SUBJECTS[:2], 5)
    return cases.list, blind.list


def shorter(case):
    """Of a group so many of each member, as both sides count."""
    if case.members is not None:
        return dataclasses.replace(case, limit=QUICK)
    with open(case.data, encoding="utf-8") as f:
        return dataclasses.replace(case, limit=min(case.limit or QUICK, QUICK, sum(1 for _ in f)))


def ask_theirs(path, folder, cases, blind, batch):
    """(case, the harness's model, its results) of each."""
    models, manager = {}, harness.find_tasks(folder)
    for context in sorted({c.context for c in cases}):
        models[context] = harness.Recorder(pretrained=path, device="cpu", dtype="float32", batch_size=batch, blind=blind,
                                           **({"max_length": context} if context else {}))
    for case in cases:
        model = models[case.context]
        yield case, model, harness.run(model, manager, [case.theirs], eval_oracle.ITERATIONS, case.limit or None)
        model.tokens.clear()


def run_cases(build, scratch, path, args):
    wrong = 0
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        scored, blind = cases_of(args.model, args.full, folder)
        for cases, unscored in ((scored, False), (blind, True)):
            cases = [c for c in cases if not args.only or c.name in args.only]
            if args.quick:
                cases = [shorter(c) for c in cases]
            for case, model, results in ask_theirs(path, folder, cases, unscored, args.batch):
                tally = eval_oracle.compare(build, scratch, model, path, case, results, unscored)
                wrong += len(tally.wrong)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--model", choices=list(SHAPES), required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} items a case")
    parser.add_argument("--only", nargs="*", metavar="CASE")
    parser.add_argument("--batch", type=int, default=1, help="of the harness")
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("--work", help="a folder that stays; a model in it is used again")
    args = parser.parse_args()
    harness.quiet()
    torch.set_num_threads(1)
    build = os.path.abspath(args.build)
    with tempfile.TemporaryDirectory() as scratch:
        if args.work:
            os.makedirs(args.work, exist_ok=True)
            scratch = os.path.abspath(args.work)
        path = os.path.join(scratch, "hf")
        if not os.path.exists(path):
            path = make_model(build, scratch, args.model)
        wrong = eval_golden.write(path) if args.golden else run_cases(build, scratch, path, args)
    if wrong:
        sys.exit(f"{wrong} differences")


main()
