#!/usr/bin/env python3
"""Exported folders in transformers, transformers' folders in the worker, and llama2.c's checkpoint in PyTorch.

    test_export.py BUILD_FOLDER [--golden]

--golden writes what PyTorch says of stories260K to tests/golden/stories260k.json and does nothing else.
Logits after every prefix of a sequence: the greatest absolute difference must stay under LIMIT.
"""

import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import numpy
import torch
import transformers

import oracle

LIMIT = 1e-4
STEPS = 20
# name -> what differs from BASE. A large init_std and rate: weights far from symmetric, logits of some size.
BASE = {"layers": 2, "width": 32, "heads": 4, "ffn": 48, "context": 64, "batch_tokens": 512, "lr": 0.01, "seed": 3,
        "init_std": 0.1, "horizon": {"contract": "fixed", "tokens": 512 * STEPS}, "data": "text"}
MOE = {"ffn": None, "experts": 8, "top_k": 2, "expert_ffn": 24}
SHAPES = {
    "dense": {},
    "one layer, one head": {"layers": 1, "heads": 1},
    "grouped queries": {"heads": 8, "kv_heads": 2, "width": 64},
    "untied": {"tie_embeddings": False, "seed": 4},
    "padded vocabulary": {"vocab": 320},
    "wide": {"width": 128, "heads": 4, "ffn": 344, "layers": 4, "init_std": 0.02},
    "mixture": MOE,
    "mixture, untied, grouped": {**MOE, "tie_embeddings": False, "kv_heads": 2, "seed": 5},
    "mixture, one of four": {**MOE, "experts": 4, "top_k": 1},
    "mixture, all of four": {**MOE, "experts": 4, "top_k": 4, "balance_loss": 0.01, "router_z_loss": 0.001},
}


def run(build, program, *words, folder=None):
    env = dict(os.environ, PREREG_TASK="task.json", PREREG_EVENTS="events.jsonl", OPENBLAS_NUM_THREADS="1")
    done = subprocess.run([os.path.join(build, program), *words], cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{program} {' '.join(words)}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def our_logits(build, model, ids, scratch):
    tokens, out = os.path.join(scratch, "tokens"), os.path.join(scratch, "logits")
    numpy.array(ids, dtype=numpy.uint32).tofile(tokens)
    run(build, "tests/export_logits", model, tokens, out)
    return numpy.fromfile(out, dtype=numpy.float32).reshape(len(ids), -1)


def their_logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float().numpy()


def compare(name, ours, theirs):
    worst = float(numpy.abs(ours - theirs).max())
    print(f"{name}: max abs difference {worst:.2e}, logits up to {numpy.abs(theirs).max():.2f}")
    if not worst <= LIMIT:
        sys.exit(f"{name}: over {LIMIT}")


def check_tokenizer(folder, rng):
    tok = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    if tok.eos_token_id != 256 or tok.convert_tokens_to_ids("<|endoftext|>") != 256:
        sys.exit("the end-of-text token is not 256")
    texts = ["", " a  b\n\n\tc ", "naïve café — 東京 🙂", "don't", "\x00\x7f\x80ÿ"]
    texts += ["".join(chr(rng.choice([rng.randrange(1, 128), rng.randrange(0x80, 0xD800), rng.randrange(0xE000, 0x20000)]))
                      for _ in range(60)) for _ in range(50)]
    for text in texts:
        ids = tok(text)["input_ids"]
        if ids != list(text.encode()):
            sys.exit(f"{text!r} becomes {ids}")
        if tok.decode(ids) != text:
            sys.exit(f"{text!r} comes back as {tok.decode(ids)!r}")


def check_shape(build, name, change, scratch, rng):
    task, out = os.path.join(scratch, "task"), os.path.join(scratch, "hf")
    params = {k: v for k, v in {**BASE, **change}.items() if v is not None}
    oracle.write_task(task, params, {"text": oracle.shared_data("tinystories", "valid.txt")})
    run(build, "bin/prereg-train", folder=task)
    run(build, "bin/prereg-train", "export", "--hf", out, task)
    model = transformers.AutoModelForCausalLM.from_pretrained(out, local_files_only=True)
    wanted = "MixtralForCausalLM" if "experts" in params else "LlamaForCausalLM"
    if type(model).__name__ != wanted:
        sys.exit(f"{name}: loaded as {type(model).__name__}")
    ids = [rng.randrange(257) for _ in range(64)]
    theirs = their_logits(model, ids)
    compare(f"exported, {name}", our_logits(build, task, ids, scratch), theirs)
    compare(f"exported and read back, {name}", our_logits(build, out, ids, scratch), theirs)
    check_tokenizer(out, rng)


def check_bpe(build, scratch, rng):
    """A model with a vocabulary of its own: the tokenizer goes with it."""
    text = oracle.shared_data("tinystories", "valid.txt")
    vocabulary, task, out = (os.path.join(scratch, name) for name in ("vocabulary", "task", "hf"))
    run(build, "bin/prereg-data", "tokenizer", "--vocab", "400", "--out", vocabulary, text)
    if os.path.isdir(vocabulary):
        vocabulary = os.path.join(vocabulary, "tokenizer.json")
    oracle.write_task(task, {**BASE, "tokenizer": "vocabulary", "vocab": 400}, {"text": text, "vocabulary": vocabulary})
    run(build, "bin/prereg-train", folder=task)
    run(build, "bin/prereg-train", "export", "--hf", out, task)
    model = transformers.AutoModelForCausalLM.from_pretrained(out, local_files_only=True)
    tok = transformers.AutoTokenizer.from_pretrained(out, local_files_only=True)
    ids = tok("Once upon a time there was a little girl named Lily, and she didn't know what to do.")["input_ids"]
    if len(ids) > 60 or tok.eos_token_id is None or tok.eos_token_id != model.config.eos_token_id:
        sys.exit(f"bpe: {len(ids)} tokens, end of text {tok.eos_token_id}, config {model.config.eos_token_id}")
    compare("exported, with a BPE vocabulary", our_logits(build, task, ids, scratch), their_logits(model, ids))
    # The worker's own continuation is what transformers' greedy search gives after the same ids.
    ours = run(build, "bin/prereg-train", "generate", out, "--prompt", "Once upon", "--tokens", "20", "--ids")
    start = [tok.eos_token_id] + tok("Once upon")["input_ids"]
    theirs = model.generate(torch.tensor([start]), max_new_tokens=20, do_sample=False)[0].tolist()[1:]
    if theirs[-1] == tok.eos_token_id:
        theirs.pop()
    if [int(i) for i in ours.split()] != theirs:
        sys.exit(f"bpe: {ours} against {theirs}")


# Rows of (name, class of the config, its members, type, size of a shard).
THEIRS = [
    ("Llama, float32", transformers.LlamaConfig, {"num_key_value_heads": 2}, torch.float32, "1GB"),
    ("Llama, tied, shards", transformers.LlamaConfig, {"tie_word_embeddings": True}, torch.float32, "100KB"),
    ("Llama, bfloat16, theta 500000, eps 1e-6", transformers.LlamaConfig,
     {"rope_theta": 500000.0, "rms_norm_eps": 1e-6}, torch.bfloat16, "1GB"),
    ("Mixtral, float16", transformers.MixtralConfig,
     {"num_key_value_heads": 4, "num_local_experts": 8, "num_experts_per_tok": 2}, torch.float16, "1GB"),
    ("Mixtral, shards", transformers.MixtralConfig,
     {"num_key_value_heads": 1, "num_local_experts": 4, "num_experts_per_tok": 2}, torch.float32, "200KB"),
]


def check_theirs(build, row, scratch, rng):
    name, config, members, dtype, shard = row
    folder = os.path.join(scratch, "theirs")
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(config(
        hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, vocab_size=300,
        max_position_embeddings=128, initializer_range=0.1, **members)).to(dtype)
    model.save_pretrained(folder, max_shard_size=shard)
    sharded = os.path.exists(os.path.join(folder, "model.safetensors.index.json"))
    if sharded != (shard != "1GB"):
        sys.exit(f"{name}: not sharded as meant")
    if dtype != torch.float32:  # to() has rounded the rotary frequencies too, which no file holds
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, torch_dtype=torch.float32)
    ids = [rng.randrange(300) for _ in range(64)]
    compare(name, our_logits(build, folder, ids, scratch), their_logits(model, ids))


def check_trained(build, scratch, rng):
    """stories260K, a trained model of another layout, through the worker into transformers."""
    source = oracle.shared_data("models", "stories260K")
    out = os.path.join(scratch, "hf")
    run(build, "bin/prereg-train", "export", "--no-tokenizer", "--hf", out, source)
    model = transformers.AutoModelForCausalLM.from_pretrained(out, local_files_only=True)
    ids = [1] + [rng.randrange(512) for _ in range(200)]
    compare("stories260K in transformers", our_logits(build, source, ids, scratch), their_logits(model, ids))


class Llama2c:
    """llama2.c's model.py in its own layout: rotary pairs are neighbours."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.dim, hidden, self.layers, self.heads, self.kv, vocab, seq = struct.unpack("7i", f.read(28))
            flat = torch.from_numpy(numpy.frombuffer(f.read(), dtype=numpy.float32).copy())
        self.d = self.dim // self.heads
        at = 0
        parts = {}
        for name, shape in [("embed", (vocab, self.dim)), ("norm1", (self.layers, self.dim)),
                            ("q", (self.layers, self.dim, self.dim)), ("k", (self.layers, self.kv * self.d, self.dim)),
                            ("v", (self.layers, self.kv * self.d, self.dim)), ("o", (self.layers, self.dim, self.dim)),
                            ("norm2", (self.layers, self.dim)), ("w1", (self.layers, hidden, self.dim)),
                            ("w2", (self.layers, self.dim, hidden)), ("w3", (self.layers, hidden, self.dim)),
                            ("norm", (self.dim,))]:
            n = int(numpy.prod(shape))
            parts[name] = flat[at:at + n].view(shape)
            at += n
        self.p = parts
        angle = torch.outer(torch.arange(seq).double(), 10000.0 ** (-torch.arange(0, self.d, 2).double() / self.d))
        self.turn = torch.polar(torch.ones_like(angle), angle).to(torch.complex64)

    @staticmethod
    def norm(x, w):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * w

    def rotate(self, x, heads):
        x = torch.view_as_complex(x.view(x.shape[0], x.shape[1], heads, self.d // 2, 2))
        return torch.view_as_real(x * self.turn[:x.shape[1], None]).flatten(3).transpose(1, 2)

    def losses(self, ids):
        """(B, T + 1) -> the loss of each of the B T predictions."""
        logits = self.logits(ids[:, :-1])
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")

    def logits(self, ids):
        p, x = self.p, self.p["embed"][ids]
        for i in range(self.layers):
            h = self.norm(x, p["norm1"][i])
            q, k = self.rotate(h @ p["q"][i].T, self.heads), self.rotate(h @ p["k"][i].T, self.kv)
            v = (h @ p["v"][i].T).view(*h.shape[:2], self.kv, self.d).transpose(1, 2)
            k, v = (t.repeat_interleave(self.heads // self.kv, dim=1) for t in (k, v))
            a = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + a.transpose(1, 2).flatten(2) @ p["o"][i].T
            h = self.norm(x, p["norm2"][i])
            x = x + (torch.nn.functional.silu(h @ p["w1"][i].T) * (h @ p["w3"][i].T)) @ p["w2"][i].T
        return self.norm(x, p["norm"]) @ p["embed"].T


def read_pieces(path):
    with open(path, "rb") as f:
        raw = f.read()
    at, pieces = 4, []
    while at < len(raw):
        score, n = struct.unpack_from("<fi", raw, at)
        pieces.append((raw[at + 8:at + 8 + n], score))
        at += 8 + n
    return pieces


def encode(pieces, text):
    """run.c's encode(), joined by a scan over all neighbours."""
    rank = {piece: i for i, (piece, _) in reversed(list(enumerate(pieces)))}
    ids = [rank[b" "]]
    for c in text:
        raw = c.encode()
        ids += [rank[raw]] if raw in rank else [b + 3 for b in raw]
    while True:
        best = None
        for i in range(len(ids) - 1):
            joint = rank.get(pieces[ids[i]][0] + pieces[ids[i + 1]][0])
            if joint is not None and (best is None or pieces[joint][1] > best[0]):
                best = (pieces[joint][1], i, joint)
        if best is None:
            return ids
        ids[best[1]:best[1] + 2] = [best[2]]


def check_llama2c(build, scratch):
    """The loss of stories260K on a text, by another implementation of model and tokenizer."""
    source = oracle.shared_data("models", "stories260K")
    with open(oracle.shared_data("tinystories", "valid.txt"), encoding="utf-8") as f:
        lines = f.read()[:100000].split("\n\n")
    documents = ["\n".join(lines[i:i + 5]).strip() for i in range(0, len(lines) - 5, 5)]
    text = os.path.join(scratch, "text.txt")
    with open(text, "w", encoding="utf-8") as f:
        f.write("\n<|endoftext|>\n".join(documents))
    ours = json.loads(run(build, "bin/prereg-train", "loss", source, "--text", text))
    pieces, stream = read_pieces(os.path.join(source, "tok512.bin")), [1]
    for document in documents:
        stream += encode(pieces, document) + [1]
    model = Llama2c(os.path.join(source, "stories260K.bin"))
    n, ids, total = len(stream) - 1, torch.tensor(stream), 0.0
    with torch.no_grad():
        whole = n // 512
        windows = torch.stack([ids[i * 512:i * 512 + 513] for i in range(whole)])
        for part in windows.split(16):
            total += float(model.losses(part).double().sum())
        if n % 512:
            total += float(model.losses(ids[None, whole * 512:]).double().sum())
    print(f"stories260K: loss {ours['loss']:.6f}, PyTorch {total / n:.6f}, {n} tokens of {len(documents)} documents")
    if ours["tokens"] != n or ours["documents"] != len(documents):
        sys.exit(f"another number of tokens or documents: {ours}")
    if not abs(ours["loss"] - total / n) <= LIMIT:
        sys.exit(f"over {LIMIT}")


def write_golden():
    source = oracle.shared_data("models", "stories260K")
    pieces = read_pieces(os.path.join(source, "tok512.bin"))
    model = Llama2c(os.path.join(source, "stories260K.bin"))
    text = "Once upon a time, there was a naïve café — “yes”.\n\tThe end of 1234 stories! <s>  "
    ids = [1]
    with torch.no_grad():
        first = model.logits(torch.tensor([ids]))[0, 0]
        while len(ids) < 257:
            top = int(model.logits(torch.tensor([ids]))[0, -1].argmax())
            if top == 1:
                break
            ids.append(top)
        loss = float(model.losses(torch.tensor([ids])).double().mean())
    golden = {"text": text, "text_ids": encode(pieces, text), "greedy_ids": ids[1:], "greedy_loss": round(loss, 7),
              "first_logits": [round(float(x), 4) for x in first]}
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "../golden/stories260k.json"), "w", encoding="utf-8") as f:
        json.dump(golden, f, ensure_ascii=False)
        f.write("\n")


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if sys.argv[2:] == ["--golden"]:
        write_golden()
        return
    build, rng = os.path.abspath(sys.argv[1]), random.Random(11)
    for name, change in SHAPES.items():
        with tempfile.TemporaryDirectory() as scratch:
            check_shape(build, name, change, scratch, rng)
    for row in THEIRS:
        with tempfile.TemporaryDirectory() as scratch:
            check_theirs(build, row, scratch, rng)
    with tempfile.TemporaryDirectory() as scratch:
        check_bpe(build, scratch, rng)
    with tempfile.TemporaryDirectory() as scratch:
        check_trained(build, scratch, rng)
        check_llama2c(build, scratch)


main()
