#!/usr/bin/env python3
"""Every request of every task of CORE that has its data: test_core.py BUILD [--only MEMBER ...] [--golden FILE]

Texts and token ids that prereg-eval makes, against core_reference.py under GPT-2's tokenizer as Hugging Face has it; and
where llm-foundry can be imported (pip install --no-deps llm-foundry==0.9.0 mosaicml==0.23.5 and what they ask for), that
reference against llm-foundry's own data sets, token by token. --golden writes the digests that the ordinary test reads."""

import argparse
import json
import os
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


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--only", nargs="*", default=[])
    p.add_argument("--golden")
    args = p.parse_args()
    data, spec = oracle.shared_data(), oracle.shared_data("tokenizers", "gpt2")
    tokenizer, golden, failed = Gpt2(spec), {}, 0
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
