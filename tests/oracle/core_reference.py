"""DCLM's CORE as llm-foundry 0.9.0 asks it, written again from what it does: prompts, draws, token ids. Plain Python; the
tokenizer is any object with encode(text, special) -> ids and an attribute end (its end-of-text id or None).

`foundry` asks llm-foundry's own dataset classes instead, where they can be imported."""

import hashlib
import json
import os
import random
import re
import struct

LIMIT = 2048  # tokens of context and answer together

ANSWER = "\nAnswer: "
# label, kind, file under eval_data, shots, what stands between context and answer, baselines (v2, v1) in percent
MEMBERS = [
    ("hellaswag_zeroshot", "choice", "language_understanding/hellaswag.jsonl", 0, " ", 25, 25),
    ("jeopardy", "text", "world_knowledge/jeopardy_all.jsonl", 10, ANSWER, 0, 0),
    ("bigbench_qa_wikidata", "text", "world_knowledge/bigbench_qa_wikidata.jsonl", 10, " ", 0, 0),
    ("arc_easy", "choice", "world_knowledge/arc_easy.jsonl", 10, ANSWER, 25, 25),
    ("arc_challenge", "choice", "world_knowledge/arc_challenge.jsonl", 10, ANSWER, 25, 25),
    ("copa", "choice", "commonsense_reasoning/copa.jsonl", 0, " ", 50, 50),
    ("commonsense_qa", "choice", "commonsense_reasoning/commonsense_qa.jsonl", 10, " ", 40.3, 20),
    ("piqa", "choice", "commonsense_reasoning/piqa.jsonl", 10, ANSWER, 50, 50),
    ("openbook_qa", "choice", "commonsense_reasoning/openbook_qa.jsonl", 0, " ", 25, 25),
    ("lambada_openai", "text", "language_understanding/lambada_openai.jsonl", 0, " ", 0, 0),
    ("hellaswag", "choice", "language_understanding/hellaswag.jsonl", 10, " ", 25, 25),
    ("winograd", "schema", "language_understanding/winograd_wsc.jsonl", 0, " ", 50, 50),
    ("winogrande", "schema", "language_understanding/winogrande.jsonl", 0, " ", 50, 50),
    ("bigbench_dyck_languages", "text", "symbolic_problem_solving/bigbench_dyck_languages.jsonl", 10, " ", 0, 0),
    ("agi_eval_lsat_ar", "choice", "symbolic_problem_solving/agi_eval_lsat_ar.jsonl", 3, " ", 25, 20),
    ("bigbench_cs_algorithms", "text", "symbolic_problem_solving/bigbench_cs_algorithms.jsonl", 10, " ", 0, 0),
    ("bigbench_operators", "text", "symbolic_problem_solving/bigbench_operators.jsonl", 10, " ", 0, 0),
    ("bigbench_repeat_copy_logic", "text", "symbolic_problem_solving/bigbench_repeat_copy_logic.jsonl", 10, " ", 0, 0),
    ("squad", "text", "reading_comprehension/squad.jsonl", 10, " ", 0, 0),
    ("coqa", "text", "reading_comprehension/coqa.jsonl", 0, " ", 0, 0),
    ("boolq", "choice", "reading_comprehension/boolq.jsonl", 10, ANSWER, 62, 62),
    ("bigbench_language_identification", "choice", "language_understanding/bigbench_language_identification.jsonl", 10, " ",
     25, 9.1),
]


def clean(text):
    """HellaSwag's, as its records became the file of CORE."""
    text = text.strip().replace(" [title]", ". ")
    return re.sub(r"\[.*?\]", "", text).replace("  ", " ")


def from_hellaswag(record):
    return {"query": clean(f"{record['activity_label']}: {record['ctx_a']} {record['ctx_b'].capitalize()}"),
            "choices": [clean(e) for e in record["endings"]], "gold": int(record["label"])}


def records(data, member):
    """The records of a member, or None where its file is not there. `data` has core/ and hellaswag/."""
    path = os.path.join(data, "core", "eval_data", member[2])
    raw = not os.path.exists(path) and member[0].startswith("hellaswag")
    if raw:
        path = os.path.join(data, "hellaswag", "hellaswag_val.jsonl")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    return [from_hellaswag(r) for r in rows] if raw else rows


def groups(rows):
    """Records with a category are a data set a category, by name; others are one."""
    if not rows or "category" not in rows[0]:
        return [("", rows)] if rows else []
    return [(c, [r for r in rows if r["category"] == c]) for c in sorted({r["category"] for r in rows})]


def draw(n, shots, own, rng):
    """Iterating over this is what orders the examples."""
    chosen = set(rng.sample(range(n), min(n - 1, shots)))
    if own in chosen:
        chosen.remove(own)
        other = own
        while other == own or other in chosen:
            other = rng.choice(range(n))
        chosen.add(other)
    return chosen


def requests(member, rows):
    """Per record its requests: (preamble, context, answer), before a tokenizer has its say."""
    _, kind, _, shots, delimiter, _, _ = member
    rows = [{k: v.strip() if isinstance(v, str) else v for k, v in r.items()} for r in rows]
    rng = random.Random(1234)

    def example(r):
        if kind == "choice":
            return r["query"] + delimiter + r["choices"][r["gold"]]
        if kind == "schema":
            return r["context_options"][r["gold"]] + delimiter + r["continuation"]
        return r["context"] + delimiter + r["continuation"]

    for i, r in enumerate(rows):
        preamble = "\n".join(example(rows[j]) for j in draw(len(rows), shots, i, rng)) if shots > 0 else ""
        lead = "\n" if preamble else ""
        if kind == "choice":
            yield [(preamble, (lead + r["query"] + delimiter).rstrip(), c) for c in r["choices"]]
        elif kind == "schema":
            end = delimiter.rstrip() if preamble else ""
            yield [(preamble, lead + c + end, r["continuation"]) for c in r["context_options"]]
        else:
            yield [(preamble, (lead + r["context"] + delimiter).rstrip(), r["continuation"])]


def tokens(tokenizer, asked, limit=LIMIT):
    """(ids, index of the answer's first) of one record's requests."""
    spaced = len(tokenizer.encode(" a", False)) == 1
    before = tokenizer.encode(asked[0][0], True)
    if tokenizer.end is not None and len(before) > 1 and before[-1] == tokenizer.end:
        before = before[:-1]
    kept = {}
    for _, context, answer in asked:
        if context not in kept:
            kept[context] = before + tokenizer.encode(context, False)
        ids = kept[context]
        answer = tokenizer.encode(" " + answer if spaced and not answer.startswith(" ") else answer, False)
        room = limit - len(answer)
        if len(ids) > room:
            ids = ids[len(ids) - room:]
        yield ids + answer, len(ids)


def chosen(kind, scores):
    """From (log-likelihood, tokens, greedy) of a record's requests: the index chosen; of a text, whether it is right."""
    if kind == "text":
        return scores[0][2]
    costs = [-ll / n for ll, n, _ in scores]
    return costs.index(min(costs))


def core(accuracies, version):
    """Centred accuracies by label and their plain mean; of a member, what its groups gave as lists of 0 and 1."""
    centred = {}
    for member in MEMBERS:
        if member[0] in accuracies:
            parts = [sum(p) / len(p) for p in accuracies[member[0]]]
            chance = 0.01 * member[5 if version == "v2" else 6]
            centred[member[0]] = (sum(parts) / len(parts) - chance) / (1 - chance)
    return centred, sum(centred.values()) / len(centred)


class Digests:
    """Of texts and of token ids, over all requests and over those of the first records."""

    FIRST = 40

    def __init__(self):
        self.texts, self.ids = hashlib.sha256(), hashlib.sha256()
        self.first_texts, self.first_ids = hashlib.sha256(), hashlib.sha256()
        self.items = self.requests = self.cut = 0

    def add(self, asked, tokenized):
        for text, (ids, at) in zip(asked, tokenized):
            parts = b"".join(part.encode("utf-8") + b"\0" for part in text)
            packed = struct.pack(f"<{len(ids) + 2}I", len(ids), at, *ids)
            self.texts.update(parts)
            self.ids.update(packed)
            if self.items < self.FIRST:
                self.first_texts.update(parts)
                self.first_ids.update(packed)
            self.requests += 1
        self.items += 1

    def line(self):
        return {"items": self.items, "requests": self.requests, "texts": self.texts.hexdigest(),
                "ids": self.ids.hexdigest(), "first_texts": self.first_texts.hexdigest(),
                "first_ids": self.first_ids.hexdigest()}


class Foundry:
    """llm-foundry's data sets with a tokenizer of transformers. Its padding to 2,048 tokens is left out, nothing else."""

    def __init__(self, tokenizer):
        import importlib.util
        import sys
        import types
        found = importlib.util.find_spec("llmfoundry")
        if found is None:
            raise ImportError("no module llmfoundry")
        root = os.path.dirname(found.origin)
        for name in ("llmfoundry", "llmfoundry.eval", "llmfoundry.eval.datasets"):  # whose __init__ import all the rest
            package = types.ModuleType(name)
            package.__path__ = [os.path.join(root, *name.split(".")[1:])]
            sys.modules[name] = package
        import datasets
        import llmfoundry.eval.datasets.in_context_learning_evaluation as evaluation
        import torch
        datasets.disable_caching()
        datasets.disable_progress_bars()
        evaluation.make_padded_input = lambda context, answer, *_, **__: torch.tensor(context + answer)
        self.classes = {"choice": evaluation.InContextLearningMultipleChoiceTaskDataset,
                        "schema": evaluation.InContextLearningSchemaTaskDataset,
                        "text": evaluation.InContextLearningLMTaskDataset}
        self.tokenizer = tokenizer

    def items(self, member, rows, folder):
        """Per record its requests' (ids, index of the answer's first)."""
        _, kind, _, shots, delimiter, _, _ = member
        source = os.path.join(folder, "source.jsonl")
        with open(source, "w", encoding="utf-8") as f:
            for r in rows:
                f.write(json.dumps(r, ensure_ascii=False) + "\n")
        copy = os.path.join(folder, "copy.jsonl")
        if os.path.exists(copy):
            os.remove(copy)
        data = self.classes[kind](dataset_uri=source, tokenizer=self.tokenizer, max_seq_len=LIMIT,
                                  pad_tok_id=self.tokenizer.eos_token_id, num_fewshot=shots, prompt_string="",
                                  example_delimiter="\n", continuation_delimiter=delimiter, destination_path=copy,
                                  prelimiter="", fewshot_random_seed=1234, hf_loading_vars={}, hf_parsing_map={},
                                  generation_kwargs={})
        for i in range(len(data)):
            r = data[i]
            if kind == "text":
                yield [(r["context"], r["continuation_indices"][0])]
            else:
                key = "query" if kind == "choice" else "context_options"
                yield [(ids, span[0]) for ids, span in zip(r[key], r["continuation_indices"])]
