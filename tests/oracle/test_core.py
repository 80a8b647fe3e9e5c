#!/usr/bin/env python3
"""Every request of every task of CORE that has its data: test_core.py BUILD [--only MEMBER ...] [--golden FILE]

First the scores: a model with random weights is asked some records of every task by prereg-eval and by PyTorch.
Then texts and token ids that prereg-eval makes, against core_reference.py under GPT-2's tokenizer as Hugging Face has it; and
where llm-foundry can be imported (pip install --no-deps llm-foundry==0.9.0 mosaicml==0.23.5 and what they ask for), that
reference against llm-foundry's own data sets, token by token. --golden writes the digests that the ordinary test reads."""

import argparse
import json
import os
import shutil
import subprocess
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import core_reference as core  # noqa: E402
import oracle  # noqa: E402


class Gpt2:
    def __init__(self, folder):
        from transformers import GPT2TokenizerFast
        self.fast = GPT2TokenizerFast(vocab_file=os.path.join(folder, "vocab.json"),
                                      merges_file=os.path.join(folder, "merges.txt"))
        self.end = self.fast.eos_token_id

    def encode(self, text, special):
        return self.fast(text, add_special_tokens=special)["input_ids"]


def reference(member, rows, tokenizer, foundry):
    """The member's digests; says where llm-foundry asks something else."""
    digests, different = core.Digests(), 0
    for _, group in core.groups(rows):
        with tempfile.TemporaryDirectory() as folder:
            theirs = foundry.items(member, group, folder) if foundry else None
            for asked in core.requests(member, group):
                mine = list(core.tokens(tokenizer, asked))
                digests.add(asked, mine)
                if theirs is not None:
                    different += [(list(ids), at) for ids, at in next(theirs)] != mine
    return digests.line(), different


def ours(build, member, data, spec):
    found = os.path.exists(os.path.join(data, "core", "eval_data", member[2]))
    folder = os.path.join(data, "core" if found else "hellaswag")
    out = subprocess.run([os.path.join(build, "tests", "core_requests"), f"core_{member[0]}", folder, spec], check=True,
                         stdout=subprocess.PIPE, text=True)
    return json.loads(out.stdout)


def random_model(folder, spec):
    """A Llama with weights far from any symmetry and GPT-2's tokenizer, as transformers saves it."""
    import torch
    import transformers
    torch.manual_seed(5)
    net = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=50257, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=2048, initializer_range=0.1, tie_word_embeddings=True, bos_token_id=50256,
        eos_token_id=50256)).eval()
    net.save_pretrained(folder)
    shutil.copy(os.path.join(spec, "tokenizer.json"), folder)
    return net


def score(net, ids, first):
    """What the model makes of ids[first:]: log-likelihood, number, whether each was the likeliest."""
    import torch
    with torch.no_grad():
        hidden = net.model(torch.tensor([ids[:-1]]))[0][0, first - 1:]
        logits = net.lm_head(hidden)
    answer = torch.tensor(ids[first:])
    each = torch.log_softmax(logits, -1).gather(1, answer[:, None])
    return float(each.double().sum()), len(answer), bool((logits.argmax(-1) == answer).all())


def run_core(build, folder, data, count, version):
    """prereg-eval over `count` records of every group: its lines after the header, its metrics."""
    os.makedirs(folder)
    task = {"protocol": 1, "attempt": "core", "attempt_no": 1, "threads": 1, "resume": [],
            "params": {"task": "core", "data": "core", "more_data": "hellaswag", "model": "model", "limit": count,
                       "baselines": version},
            "data": {"core": {"path": os.path.join(data, "core")}, "hellaswag": {"path": os.path.join(data, "hellaswag")},
                     "model": {"path": os.path.join(folder, "..", "model")}}}
    with open(os.path.join(folder, "task.json"), "w", encoding="utf-8") as f:
        json.dump(task, f)
    env = {**os.environ, "PREREG_TASK": "task.json", "PREREG_EVENTS": "events.jsonl", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([os.path.join(build, "bin", "prereg-eval")], cwd=folder, env=env, check=True, stderr=subprocess.DEVNULL)
    with open(os.path.join(folder, "items.jsonl"), encoding="utf-8") as f:
        lines = [json.loads(line) for line in f][1:]
    with open(os.path.join(folder, "result.json"), encoding="utf-8") as f:
        return lines, json.load(f)


def compare_scores(build, data, spec, tokenizer, count, version):
    with tempfile.TemporaryDirectory() as folder:
        net = random_model(os.path.join(folder, "model"), spec)
        lines, result = run_core(build, os.path.join(folder, "run"), data, count, version)
    lines, worst, near, accuracies = iter(lines), 0.0, 0, {}
    for member in core.MEMBERS:
        for _, rows in core.groups(core.records(data, member) or []):
            right = []
            for row, asked in list(zip(rows, core.requests(member, rows)))[:count]:
                line = next(lines)
                theirs = [score(net, ids, first) for ids, first in core.tokens(tokenizer, asked)]
                assert line["tokens"] == [n for _, n, _ in theirs], f"{member[0]}: {line}"
                worst = max([worst] + [abs(a - b[0]) for a, b in zip(line["ll"], theirs)])
                ours = core.chosen(member[1], list(zip(line["ll"], line["tokens"], map(bool, line["greedy"]))))
                gold = row.get("gold", True)
                assert line["acc"] == (ours == gold), f"{member[0]}: {line}"
                near += ours != core.chosen(member[1], theirs)
                right.append(line["acc"])
            accuracies.setdefault(member[0], []).append(right)
    assert next(lines, None) is None and worst < 1e-4 and near == 0, f"greatest difference {worst:.1e}, {near} chosen otherwise"
    centred, mean = core.core(accuracies, version)
    metrics = result["metrics"]
    for label, value in centred.items():
        assert abs(metrics[f"centered:{label}"]["value"] - value) < 1e-12, label
    assert abs(metrics["core_partial"]["value"] - mean) < 1e-12
    assert (metrics["core"]["value"] is None) == (len(centred) < len(core.MEMBERS))
    assert result["facts"]["core_tasks_present"] == len(centred)
    print(f"scores: {count} records of each group, {len(centred)} tasks, log-likelihoods within {worst:.1e}, the same choices; "
          f"core_partial {mean:.6f} with baselines {version}", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--only", nargs="*", default=[])
    p.add_argument("--golden")
    args = p.parse_args()
    data, spec = oracle.shared_data(), oracle.shared_data("tokenizers", "gpt2")
    tokenizer, golden, failed = Gpt2(spec), {}, 0
    for version in ("v2", "v1"):
        compare_scores(args.build, data, spec, tokenizer, 6, version)
    try:
        foundry = core.Foundry(tokenizer.fast)
    except ImportError as e:
        foundry = None
        print(f"llm-foundry is not here ({e}): the reference alone")
    for member in core.MEMBERS:
        rows = core.records(data, member) if not args.only or member[0] in args.only else None
        if rows is None:
            continue
        line, different = reference(member, rows, tokenizer, foundry)
        got = ours(args.build, member, data, spec)
        cut = got.pop("cut")
        golden[member[0]] = line
        wrong = [k for k in line if line[k] != got[k]]
        failed += bool(wrong) + (different > 0)
        print(f"{member[0]}: {got['items']} items, {got['requests']} requests, {cut} cut: "
              + (f"{', '.join(wrong)} DIFFER" if wrong else "same")
              + ("" if foundry is None else f"; llm-foundry: {f'{different} items DIFFER' if different else 'same'}"), flush=True)
    if args.golden and not failed:
        with open(args.golden, "w", encoding="utf-8") as f:
            f.write(json.dumps({"first": core.Digests.FIRST, "tokenizer": "gpt2", "members": golden}, indent=1) + "\n")
    assert golden, "nothing was compared"
    assert failed == 0, f"{failed} members differ"


if __name__ == "__main__":
    main()
