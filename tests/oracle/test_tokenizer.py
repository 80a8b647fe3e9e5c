#!/usr/bin/env python3
"""Ids against Hugging Face tokenizers: test_tokenizer.py BUILD [--data FOLDER] [--quick]

Runs under a Python that has tokenizers (ops/check --oracle makes one); exits 77 where that or the data are absent.
BUILD holds tests/worker_encode and bin/prereg-data.
"""
import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

try:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
except ImportError:
    print("skipped: no tokenizers package")
    sys.exit(77)

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT4 = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
FIXED = [
    "", " ", "   ", "\n\n\n", "\t \n ", "Hello world, it's a test's  of   123 things.\n\n  ok\t\n x", " leading", "trailing ",
    "'ll've're'd'm's't 'S 'T 'LL", "I'm you're he'll I've I'd don't rock'n'roll ''s", "naïve café — “quote” 你好 １２３ ",
    "a<|endoftext|>b<|endoftext|> c <|endoftext", "<EOS> <user></s><BOS><PAD>", "ﬀ ſ's 'ſ K", "é" * 10, "🙂👍🏽 👩‍👩‍👧‍👦",
    "x\u3000\u3000y \u0085z\u180ez \u00a0\u00a0a\u2028b\u200bc\ufeffd", "\x00\x01\x1c\x1d\x1e\x1f\x7f", "1²³½Ⅷ٣ 12", "\r\n\r\n a\r b",
    "a" * 3000, " " * 3000, "ab" * 2000, "\n" * 999 + "x", "=" * 500, "é" * 1500, "好" * 1000, " \u00e9" * 500,
]


class Ours:
    """worker_encode over a pipe."""

    def __init__(self, build, spec):
        self.proc = subprocess.Popen([os.path.join(build, "tests", "worker_encode"), spec], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE)

    def __call__(self, text):
        body = text if isinstance(text, bytes) else text.encode("utf-8")
        self.proc.stdin.write(struct.pack("<I", len(body)) + body)
        self.proc.stdin.flush()
        n = struct.unpack("<I", self.read(4))[0]
        values = struct.unpack("<%dI" % (n + 1), self.read(4 * n + 4))
        return list(values[:-1]), bool(values[-1])

    def read(self, n):
        data = self.proc.stdout.read(n)
        if len(data) != n:
            sys.exit("worker_encode ended")
        return data

    def close(self):
        self.proc.stdin.close()
        self.proc.wait()


def load_theirs(path):
    """A tokenizer.json, or a folder with GPT-2's two files, as this library takes it."""
    if os.path.isdir(path):
        theirs = Tokenizer(models.BPE.from_file(os.path.join(path, "vocab.json"), os.path.join(path, "merges.txt")))
        theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        theirs.decoder = decoders.ByteLevel()
        theirs.add_special_tokens([AddedToken("<|endoftext|>", normalized=False, special=True)])
        return theirs
    with open(path, encoding="utf-8") as f:
        obj = json.load(f)
    # Merges as pairs came with version 0.20.
    obj["model"]["merges"] = [m if isinstance(m, str) else " ".join(m) for m in obj["model"]["merges"]]
    obj["truncation"] = obj["padding"] = None
    return Tokenizer.from_str(json.dumps(obj))


def random_texts(rng, n):
    """All kinds of characters, in runs as text has them."""
    spaces = " \t\n\r\v\f\u0085\u00a0\u1680\u2003\u2028\u202f\u205f\u3000"
    pools = [
        lambda: rng.choice("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"), lambda: rng.choice("0123456789"),
        lambda: rng.choice(spaces), lambda: " ", lambda: rng.choice("'.,;:!?-_()[]{}<>|@#$%^&*+=~`\"\\/"),
        lambda: chr(rng.randrange(0x80, 0x800)), lambda: chr(rng.randrange(0x800, 0xd800)),
        lambda: chr(rng.randrange(0xe000, 0x10000)), lambda: chr(rng.randrange(0x10000, 0x110000)),
        lambda: rng.choice(["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", " '", "<|endoftext|>", "<BOS>", "</s>"]),
    ]
    for _ in range(n):
        parts = []
        for _ in range(rng.randrange(1, 12)):
            pool = rng.choice(pools)
            parts.extend(pool() for _ in range(rng.choice([1, 1, 1, 2, 3, 7])))
        yield "".join(parts)


def every_character():
    """Each character of the planes that have any, where its class shows: after a blank, between letters, figures, marks."""
    for base in list(range(0, 0x40000, 64)) + list(range(0xe0000, 0xe0200, 64)) + [0xf0000, 0x10ffc0]:
        chars = [chr(c) for c in range(base, base + 64) if not 0xd800 <= c <= 0xdfff]
        if chars:
            yield "|".join("%sa%s %s1%s%s.%s  %s" % (c, c, c, c, c, c, c) for c in chars)


def data_texts(data):
    """(name, documents) of every text file of the folder."""
    for folder, _, names in sorted(os.walk(data)):
        if "/tokenizers" in folder or "/models" in folder:
            continue
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as f:
                yield os.path.relpath(path, data), f.read()


class Check:
    def __init__(self):
        self.n = self.n_bytes = self.wrong = 0

    def same(self, what, theirs, ours, texts):
        for text in texts:
            want = theirs.encode(text, add_special_tokens=False).ids
            got, _ = ours(text)
            self.n += 1
            self.n_bytes += len(text.encode("utf-8"))
            if want != got:
                self.wrong += 1
                if self.wrong <= 10:
                    print("DIFFERS %s: %r\n  theirs %s\n  ours   %s" % (what, text[:200], want[:40], got[:40]))

    def true(self, what, holds):
        self.n += 1
        if not holds:
            self.wrong += 1
            print("FAILED %s" % what)


def lines_of(text, size):
    """The text in parts of whole lines, as a caller would have documents."""
    at = 0
    while at < len(text):
        end = text.find("\n", at + size)
        end = len(text) if end < 0 else end
        yield text[at:end]
        at = end


def check_family(check, args, rng):
    for name in ("gpt2/tokenizer.json", "gpt2", "bpe32000_owt", "bpe32768_sharpgpt.json"):
        path = os.path.join(args.data, "tokenizers", name)
        theirs, ours = load_theirs(path), Ours(args.build, path)
        check.same(name, theirs, ours, FIXED)
        check.same(name, theirs, ours, random_texts(rng, 300 if args.quick else 20000))
        if not args.quick or name == "gpt2":
            check.same(name, theirs, ours, every_character())
        if not args.quick:
            for file, text in data_texts(args.data):
                check.same(name + " on " + file, theirs, ours, lines_of(text, 20000))
        lossless = "sharpgpt" not in name
        for _ in range(200):
            noise = bytes(rng.randrange(256) for _ in range(rng.randrange(40)))
            check.true("%s round trip of %r" % (name, noise), not lossless or ours(noise)[1])
        ours.close()
        print("%s: %d texts, %.1f MB so far, %d wrong" % (name, check.n, check.n_bytes / 1e6, check.wrong), flush=True)


def variants(base):
    """Other members of the family, made from GPT-2's vocabulary."""
    def split(pattern):
        return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}

    def sequence(*patterns, regex=False):
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": regex}
        return {"type": "Sequence", "pretokenizers": [split(p) for p in patterns] + [level]}

    def added(content, n, **flags):
        token = {"id": 50257 + n, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
                 "normalized": False, "special": False}
        return dict(token, **flags)

    for name, pre in (("llama3", sequence(LLAMA3)), ("gpt4", sequence(GPT4)), ("o200k", sequence(O200K)),
                      ("two splits", sequence(r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", regex=True)),
                      ("script", sequence(r"\p{Han}+|\p{Greek}+|\p{^L}+")), ("no regex", sequence())):
        yield name, dict(base, pre_tokenizer=pre)
    yield "added", dict(base, added_tokens=base["added_tokens"] + [
        added("<mask>", 0, lstrip=True), added("<r>", 1, rstrip=True), added("<both>", 2, lstrip=True, rstrip=True),
        added("<m", 3, normalized=True), added("ll o", 4, normalized=True), added("<mask><r>", 5), added("漢字", 6)])
    yield "ignore_merges", dict(base, model=dict(base["model"], ignore_merges=True, merges=base["model"]["merges"][:2000]))
    vocab = {k: v for k, v in base["model"]["vocab"].items() if not set(k) & set("qQzZĩé")}
    vocab = {k: i for i, k in enumerate(vocab)}
    merges = [m for m in base["model"]["merges"] if all(p in vocab for p in m.split(" ")) and m.replace(" ", "") in vocab]
    few = dict(base["model"], vocab=vocab, merges=merges)
    end = [dict(base["added_tokens"][0], id=vocab["<|endoftext|>"])]
    yield "bytes missing", dict(base, model=few, added_tokens=end)
    yield "unk", dict(base, model=dict(few, unk_token="!"), added_tokens=end)
    yield "unk fused", dict(base, model=dict(few, unk_token="!", fuse_unk=True), added_tokens=end)
    yield "merge given twice", dict(base, model=dict(base["model"], merges=base["model"]["merges"] + base["model"]["merges"][:50]))


def check_variants(check, args, rng):
    with open(os.path.join(args.data, "tokenizers/gpt2/tokenizer.json"), encoding="utf-8") as f:
        base = dict(json.load(f), truncation=None, padding=None)
    extra = ["a <mask> b<mask>\n <both> \u3000 <both>x", "<r>  \n x <r><mask><r> <mask", "<mask>ll <m hello all ll of all of", "qQ zé qqq  qaz é",
             "'LL 'Re I'M ſ's", "漢字とかな ελληνικά αβγ abc １２３４5678"]
    for name, obj in variants(base):
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
            json.dump(obj, f)
            f.flush()
            theirs, ours = Tokenizer.from_file(f.name), Ours(args.build, f.name)
            check.same(name, theirs, ours, FIXED + extra)
            check.same(name, theirs, ours, random_texts(rng, 200 if args.quick else 5000))
            if not args.quick:
                check.same(name, theirs, ours, every_character())
            ours.close()
        print("%s: %d texts, %d wrong" % (name, check.n, check.wrong), flush=True)


def train_theirs(documents, vocab):
    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab, min_frequency=2, show_progress=False, special_tokens=["<|endoftext|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    theirs.train_from_iterator(documents, trainer)
    return theirs


def check_training(check, args, rng):
    """The same text gives the same vocabulary and merges, and our file loads and encodes likewise there."""
    with open(os.path.join(args.data, "tinystories/valid.txt"), encoding="utf-8") as f:
        stories = [d.strip("\n") for d in f.read().split("\n<|endoftext|>\n")]
    # Few letters in short words: counts tie all the time, and tokens come about in more ways than one.
    ties = ["".join(rng.choice("aaabbc ") for _ in range(rng.randrange(1, 200))).strip("\n") for _ in range(300)]
    for name, documents, vocab in (("stories", stories, 2000 if args.quick else 8000), ("ties", ties, 3000)):
        documents = [d for d in documents if d]
        with tempfile.TemporaryDirectory() as folder:
            text, out = os.path.join(folder, "t.jsonl"), os.path.join(folder, "tokenizer.json")
            with open(text, "w", encoding="utf-8") as f:
                f.writelines(json.dumps({"text": d}) + "\n" for d in documents)
            subprocess.run([os.path.join(args.build, "bin", "prereg-data"), "tokenizer", "--vocab", str(vocab), "--out", out,
                            text], check=True, stdout=subprocess.DEVNULL)
            theirs = json.loads(train_theirs(documents, vocab).to_str())
            with open(out, encoding="utf-8") as f:
                ours = json.load(f)
            check.true(name + ": vocabulary", ours["model"]["vocab"] == theirs["model"]["vocab"])
            check.true(name + ": merges", ours["model"]["merges"] == theirs["model"]["merges"])
            encoder = Ours(args.build, out)
            check.same(name, Tokenizer.from_file(out), encoder, documents[:200] + FIXED)
            encoder.close()
        print("training on %s: %d tokens, %d wrong" % (name, len(ours["model"]["vocab"]), check.wrong), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--data", default=os.path.join(os.path.dirname(__file__), "../../../shared/data"))
    parser.add_argument("--quick", action="store_true", help="a tenth of it, without the data's text")
    args = parser.parse_args()
    if not os.path.isdir(os.path.join(args.data, "tokenizers")):
        print("skipped: no %s/tokenizers" % args.data)
        sys.exit(77)
    check, rng = Check(), random.Random(20)
    check_family(check, args, rng)
    check_variants(check, args, rng)
    check_training(check, args, rng)
    print("%d comparisons, %.1f MB of text, %d wrong" % (check.n, check.n_bytes / 1e6, check.wrong))
    sys.exit(1 if check.wrong else 0)


main()
