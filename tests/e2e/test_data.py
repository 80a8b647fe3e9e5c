#!/usr/bin/env python3
"""prereg-data by hand, and byte-level BPE from text to a score: train a vocabulary, pack, train, evaluate."""

import json
import os
import pty
import shutil
import subprocess

from lib import lab
from lib.lab import SHARED, equal, expect

USAGE, BAD_DATA = 64, 65
PARAMS = {"layers": 1, "width": 32, "heads": 2, "ffn": 48, "context": 32, "batch_tokens": 512, "lr": 0.003, "seed": 3,
          "horizon": {"contract": "fixed", "tokens": 10240}, "data": "text", "tokenizer": "words", "vocab": 320}
# Shards of tinystories/valid.txt: SHA-256 of what they hold, as tests/oracle/test_tokenizer.py holds the ids against Hugging
# Face's; and the digest of a vocabulary trained on it.
PAYLOADS = {
    "gpt2": "bff63239eaafbb4f53a554fdfca50d11c69ce97d2eb8482e53e1d729bc958422",
    "gpt2/tokenizer.json": "bff63239eaafbb4f53a554fdfca50d11c69ce97d2eb8482e53e1d729bc958422",
    "bpe32000_owt": "86184abfa9fda11bffe85ff257b54972321357013476793d49ac56380f2e91ec",
    "bpe32768_sharpgpt.json": "7c4a6be03b62c153f85960d32d3784732ebe6f046b20113b53b4465c51eff070",
}
TRAINED = "f5a47b24f04edd943b31ac283c2b0fa729c1b8704e51e2d4516b1eee4271517a"


def data(place, *words, wanted=0):
    return place.must(wanted, "prereg-data", *words)


def corpus(place):
    """The demo world and a vocabulary of 320 tokens trained on it."""
    folder = place.path("demo")
    data(place, "demo", "--seed", "1", "--bytes", "60000", "--out", folder)
    text, words = os.path.join(folder, "corpus.txt"), place.path("words.json")
    data(place, "tokenizer", "--vocab", "320", "--out", words, text)
    return text, words


def attempt(place, name, params, entries, inputs=None, worker="prereg-train", wanted=0):
    folder = place.path(name)
    os.makedirs(folder)
    task = {"protocol": 1, "attempt": name, "attempt_no": 1, "threads": 1, "params": params, "resume": [],
            "data": {key: {"path": path} for key, path in entries.items()}, "inputs": inputs or {}}
    place.write(f"{name}/task.json", json.dumps(task))
    env = {**place.env, "PREREG_TASK": "task.json", "PREREG_EVENTS": "events.jsonl"}
    return folder, place.must(wanted, worker, cwd=folder, env=env)


def result(folder):
    with open(os.path.join(folder, "result.json"), encoding="utf-8") as f:
        return json.load(f)


def test_from_text_to_score(place):
    text, words = corpus(place)
    shards = place.path("shards")
    data(place, "pack", "--tokenizer", words, "--out", shards, text)
    entries = {"text": text, "words": words}
    folder, _ = attempt(place, "of_text", PARAMS, entries)
    packed, _ = attempt(place, "of_shard", PARAMS, {**entries, "text": os.path.join(shards, "corpus.shard")})
    equal(result(folder)["metrics"], result(packed)["metrics"], "metrics of the text and of its shard")
    expect(set(result(folder)["read"]) == {"text", "words"}, f"what was read: {result(folder)['read']}")
    values = {k: v["value"] for k, v in result(folder)["metrics"].items()}
    expect(values["val_loss"] < 5.5, f"ln 320 is 5.77: {values}")
    # Bits per byte are those of the text: tokens / bytes of the held-out documents lies between.
    share = values["val_bits_per_byte"] / (values["val_loss"] / 0.6931471805599453)
    expect(0.2 < share < 0.6, f"{share} tokens a byte")
    os.remove(words)
    score = {"task": "choices", "data": "items", "limit": 20}
    items = os.path.join(place.path("demo"), "grammar.jsonl")
    scored, _ = attempt(place, "score", score, {"items": items}, {"train": folder}, "prereg-eval")
    expect(result(scored)["metrics"]["acc"]["n"] == 20, "no score without the task's tokenizer")
    with open(os.path.join(folder, "model/tokenizer.json"), "r+", encoding="utf-8") as f:
        whole = json.load(f)
        whole["model"]["merges"] = whole["model"]["merges"][:-1]
        f.seek(0)
        f.truncate()
        json.dump(whole, f)
    _, run = attempt(place, "other", score, {"items": items}, {"train": folder}, "prereg-eval", wanted=BAD_DATA)
    expect("not the one the model was trained with" in run.stderr, run.stderr)


def test_training_refusals(place):
    text, words = corpus(place)
    entries = {"text": text, "words": words}
    _, run = attempt(place, "small", {**PARAMS, "vocab": 319}, entries, wanted=USAGE)
    expect("vocab 319 is under the 320" in run.stderr, run.stderr)
    told = json.loads(place.must(0, "prereg-train", "--describe", place.path("small/task.json")).stdout)
    expect("319" in json.dumps(told["errors"]), f"--describe does not say: {told['errors']}")
    data(place, "pack", "--out", place.path("bytes"), text)
    shard = place.path("bytes/corpus.shard")
    _, run = attempt(place, "foreign", PARAMS, {**entries, "text": shard}, wanted=BAD_DATA)
    expect("another tokenizer" in run.stderr and shard in run.stderr, run.stderr)
    with open(shard, "rb") as f:
        body = f.read()
    with open(place.path("torn.shard"), "wb") as f:
        f.write(body[:-7])
    _, run = attempt(place, "torn", {**PARAMS, "tokenizer": "bytes"}, {**entries, "text": place.path("torn.shard")}, wanted=BAD_DATA)
    expect("torn" in run.stderr and "torn.shard" in run.stderr, run.stderr)
    bad = place.write("bad.jsonl", '{"text":"a"}\n{"text":"b"}\n{"test":"c"}\n')
    _, run = attempt(place, "line", {**PARAMS, "tokenizer": "bytes"}, {**entries, "text": bad}, wanted=BAD_DATA)
    expect("bad.jsonl: line 3" in run.stderr, run.stderr)
    _, run = attempt(place, "strange", PARAMS, {**entries, "words": text}, wanted=BAD_DATA)
    expect("no tokenizer.json" in run.stderr, run.stderr)


def test_tool(place):
    text, words = corpus(place)
    said = data(place, "inspect", "--tokenizer", words, text).stdout
    expect("320 tokens, end of text 0" in said and "lossless: every" in said and "bytes a token" in said, said)
    first = data(place, "sample", "--tokenizer", words, "--n", "3", "--length", "16", text).stdout
    equal(data(place, "sample", "--tokenizer", words, "--n", "3", "--length", "16", text).stdout, first, "the same sample")
    more = data(place, "sample", "--tokenizer", words, "--n", "1", "--from", "2", "--length", "16", text).stdout
    expect(first.endswith(more), f"position 2 alone: {more}")
    other = data(place, "sample", "--tokenizer", words, "--n", "3", "--length", "16", "--seed", "9", text).stdout
    expect(other != first, "another seed, the same sample")
    ids = data(place, "sample", "--tokenizer", words, "--n", "1", "--length", "16", "--as", "ids", text).stdout
    equal(len(ids.split("\n")[1].split()), 16, "ids of a sequence")
    documents = data(place, "sample", "--n", "1000000", text).stdout
    with open(text, encoding="utf-8") as f:
        whole = sorted(d.strip("\n") for d in f.read().split("<|endoftext|>") if d.strip("\n"))
    shown = sorted(d.split("\n", 1)[1].strip("\n") for d in documents.split("--- document ")[1:])
    equal(shown, whole, "all documents in another order")
    for words_of in ([], ["tokenizer", "--vocab", "320", text], ["tokenizer", "--vocab", "256", "--out", "x", text],
                     ["sample", text, text], ["sample", "--as", "words", text], ["inspect"], ["pack", "--out", "x"]):
        data(place, *words_of, wanted=lab.USAGE)
    run = data(place, "tokenizer", "--vocab", "320", "--out", words, text, wanted=lab.ANY)
    expect("there already" in run.stderr, run.stderr)
    data(place, "pack", "--out", place.path("bytes"), text)
    # Said before the source is read: what comes of it has no place to go.
    bad = place.write("other/corpus.jsonl", "no JSON\n")
    run = data(place, "pack", "--out", place.path("bytes"), bad, wanted=lab.ANY)
    expect("corpus.shard is there already" in run.stderr, run.stderr)
    run = data(place, "sample", "--from", str(len(whole)), text, wanted=lab.ANY)
    expect(f"position {len(whole)} of {len(whole)} documents" in run.stderr, run.stderr)
    full = subprocess.run(["sh", "-c", f'exec "{place.bin}/prereg-data" sample "{text}" >/dev/full'], capture_output=True, text=True)
    expect(full.returncode == lab.ANY and "standard output: No space left" in full.stderr, f"exit {full.returncode}: {full.stderr}")
    run = data(place, "tokenizer", "--vocab", "320", "--out", place.path("y"), place.path("bytes"), wanted=lab.ANY)
    expect("no text" in run.stderr and not os.path.exists(place.path("y")), run.stderr)


def test_golden(place):
    """Ids of real text under real vocabularies, by digest."""
    tokenizers = os.path.join(SHARED, "data/tokenizers")
    if not os.path.isdir(tokenizers):
        lab.skip(f"no {tokenizers}")
    text = os.path.join(SHARED, "data/tinystories/valid.txt")
    for name, payload in PAYLOADS.items():
        shards = place.path("shards")
        spec = os.path.join(tokenizers, name)
        data(place, "pack", "--tokenizer", spec, "--out", shards, text)
        said = data(place, "inspect", "--tokenizer", spec, os.path.join(shards, "valid.shard")).stdout
        expect(payload in said, f"{name}: {said}")
        shutil.rmtree(shards)
    said = data(place, "tokenizer", "--vocab", "2000", "--out", place.path("t.json"), text).stdout
    expect(TRAINED in said, said)
    run = data(place, "inspect", "--tokenizer", os.path.join(tokenizers, "bpe32768_ashlab.json"), wanted=lab.ANY)
    expect("NFKC + Strip" in run.stderr, run.stderr)


def read_to_end(terminal):
    """What was written to a terminal whose other end is closed: one read may give a part of it."""
    text = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            return text
        if not piece:
            return text
        text += piece


def test_hostile_texts(place):
    """Names and texts of a stranger's corpus reach a terminal as text; a pipe gets the bytes."""
    path = place.write("a\x1b]0;owned\x07.txt", "some \x1b[2Jtext\n")
    for words, shown in (("inspect", "?]0;owned?.txt"), ("sample", "some ?[2Jtext")):
        near, far = pty.openpty()
        run = subprocess.run([os.path.join(place.bin, "prereg-data"), words, path], stdout=far, stderr=far, check=False)
        os.close(far)
        said = read_to_end(near).decode()
        os.close(near)
        equal(run.returncode, 0, f"prereg-data {words}")
        expect(shown in said and "\x1b" not in said and "\x07" not in said, f"prereg-data {words} on a terminal: {said!r}")
    expect("\x1b[2J" in data(place, "sample", path).stdout, "a pipe does not get the text as it is")


lab.main(test_hostile_texts, test_from_text_to_score, test_training_refusals, test_tool, test_golden)
