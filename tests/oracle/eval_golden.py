"""Digests of what lm-evaluation-harness sends to a model with GPT-2's tokenizer, for tests that have no Python
(tests/unit/worker/golden/test_eval_requests.c). tests/oracle/requests.h says what a digest is of."""

import hashlib
import json
import os
import random
import struct
import tempfile

import eval_oracle
import harness
import oracle

CORE = "core/eval_data/"
# name: task, items, pool or None, other parameters; files below ../shared/data
CASES = {
    "arc_easy": ("arc_easy", CORE + "world_knowledge/arc_easy.jsonl", None, {}),
    "arc_easy_5": ("arc_easy", CORE + "world_knowledge/arc_easy.jsonl", CORE + "world_knowledge/arc_challenge.jsonl",
                   {"shots": 5, "limit": 1000}),
    "arc_challenge": ("arc_challenge", CORE + "world_knowledge/arc_challenge.jsonl", None, {}),
    "piqa": ("piqa", CORE + "commonsense_reasoning/piqa.jsonl", None, {}),
    "piqa_3": ("piqa", CORE + "commonsense_reasoning/piqa.jsonl", CORE + "commonsense_reasoning/piqa.jsonl", {"shots": 3}),
    "boolq": ("boolq", CORE + "reading_comprehension/boolq.jsonl", None, {}),
    "copa": ("copa", CORE + "commonsense_reasoning/copa.jsonl", None, {}),
    "copa_4": ("copa", CORE + "commonsense_reasoning/copa.jsonl", CORE + "commonsense_reasoning/copa.jsonl", {"shots": 4}),
    "openbookqa": ("openbookqa", CORE + "commonsense_reasoning/openbook_qa.jsonl", None, {}),
    "lambada_openai": ("lambada_openai", CORE + "language_understanding/lambada_openai.jsonl", None, {}),
    "winogrande": ("winogrande", "winogrande/dev.jsonl", None, {}),
    "winogrande_5": ("winogrande", "winogrande/dev.jsonl", "winogrande/train_s.jsonl", {"shots": 5}),
    "hellaswag": ("hellaswag", "hellaswag/hellaswag_val.jsonl", None, {}),
    "hellaswag_10": ("hellaswag", "hellaswag/hellaswag_val.jsonl", "hellaswag/hellaswag_val.jsonl", {"shots": 10, "limit": 200}),
    "hellaswag_cut": ("hellaswag", "hellaswag/hellaswag_val.jsonl", None, {"context": 100, "limit": 1000}),
    "gsm8k_5": ("gsm8k", "gsm8k/test.jsonl", "gsm8k/train.jsonl", {"shots": 5, "limit": 200}),
    "mmlu_5": ("mmlu", "mmlu", None, {"shots": 5, "items": {"count": 1000, "seed": 4}}),
    "mmlu_0": ("mmlu", "mmlu", None, {"items": {"count": 1000, "seed": 5}}),
}


def digest_request(digest, model, arguments):
    if isinstance(arguments[1], dict):
        context, continuation = arguments[0], ""
        (ids, cut), n = model.prompt(context, eval_oracle.MAX_TOKENS), 0
    else:
        context, continuation = arguments
        ids, n, cut = model.fed((context, continuation))
    digest.update(context.encode() + b"\0" + continuation.encode() + b"\0")
    digest.update(struct.pack(f"<3I{len(ids)}I", len(ids), len(ids) - n, cut, *ids))


def chosen(samples, params):
    """The items a run is about, in its order."""
    if "items" in params:
        drawn = random.Random(params["items"]["seed"]).sample(range(len(samples)), params["items"]["count"])
        return [samples[i] for i in sorted(drawn)]
    return samples[:params.get("limit", len(samples))]


def define(folder, name, task, items, pool, params):
    """The task's names in the harness, in the order of our items."""
    source = harness.columns(task, folder) if task in harness.CORE else oracle.shared_data(items)
    if pool is not None:
        own = next((t for t, (file, _) in harness.CORE.items() if CORE + file == pool), None)
        pool = harness.columns(own, folder) if own else oracle.shared_data(pool)
    if task == "mmlu":
        subjects = sorted(harness.subjects())
        harness.define_mmlu(folder, name, source, subjects, params.get("shots", 0))
        return [f"{name}_{s}" for s in subjects]
    return [harness.define(folder, name, task, source, pool, params.get("shots", 0))]


def digest_case(path, name, case):
    task, items, pool, params = case
    with tempfile.TemporaryDirectory() as folder:
        names = define(folder, f"golden_{name}", task, items, pool, params)
        model = harness.Recorder(pretrained=path, device="cpu", dtype="float32", blind=True, max_length=params.get("context", 1024))
        found = harness.run(model, harness.find_tasks(folder), names, limit=params.get("limit"))["samples"]
    samples, digest, requests = [], hashlib.sha256(), 0
    for one in names:
        by_id = {s["doc_id"]: s for s in found[one]}
        samples += [by_id[i] for i in sorted(by_id)]
    for sample in chosen(samples, params):
        for arguments in sample["arguments"]:
            digest_request(digest, model, arguments)
            requests += 1
    data = {"items": items, **({"pool": pool} if pool else {})}
    params = {"task": task, "data": "items", "model": "items", **({"fewshot_data": "pool"} if pool else {}), **params}
    return {"params": params, "data": data, "requests": requests, "sha256": digest.hexdigest()}


def write(path):
    """path: an exported model with GPT-2's tokenizer, of which only the tokenizer counts."""
    golden = {"tokenizer": "tokenizers/gpt2/tokenizer.json", "context": 1024, "cases": {}}
    for name, case in CASES.items():
        golden["cases"][name] = digest_case(path, name, case)
        print(f"{name}: {golden['cases'][name]['requests']} requests", flush=True)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "../golden/eval_requests.json"), "w", encoding="utf-8") as f:
        json.dump(golden, f, indent=1)
        f.write("\n")
    return 0
