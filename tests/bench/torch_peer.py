#!/usr/bin/env python3
"""The models of prereg-train in PyTorch, as a careful user would write them, behind standard input.

Started by tests/bench/train. Prints one JSON object about itself, then answers each line of standard input with another:
`train N` and `forward N` (seconds of each of N passes, on the wall and of the processor), `memory`, `quit`. Runs with PyTorch 1.13 and later.
"""

import argparse
import json
import math
import os
import re
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

BALANCE = 0.01
LARGE_VOCAB = 16384
COMPILE_PASSES = 3  # after which it has seen that shapes vary
POOLS = re.compile(r"/lib(blas|openblas|mkl|gomp|iomp|omp|blis)[^/]*\.so[^/]*$")


def rms_norm(x, weight):
    if hasattr(F, "rms_norm"):
        return F.rms_norm(x, weight.shape, weight, 1e-5)
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * weight


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Attention(nn.Module):
    def __init__(self, m, fused):
        super().__init__()
        self.heads, self.kv_heads, self.size = m["heads"], m["kv_heads"], m["width"] // m["heads"]
        self.fused = fused
        self.qkv = nn.Linear(m["width"], (self.heads + 2 * self.kv_heads) * self.size, bias=False)
        self.out = nn.Linear(m["width"], m["width"], bias=False)

    def forward(self, x, cos, sin, mask):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, -1, self.size).transpose(1, 2).split(
            [self.heads, self.kv_heads, self.kv_heads], 1)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if self.kv_heads < self.heads:
            k = k.repeat_interleave(self.heads // self.kv_heads, 1)
            v = v.repeat_interleave(self.heads // self.kv_heads, 1)
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q * (1.0 / math.sqrt(self.size))) @ k.transpose(-2, -1)
            y = torch.softmax(scores + mask, -1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, c))


def swiglu(both):
    gate, up = both.chunk(2, -1)
    return F.silu(gate) * up


class Dense(nn.Module):
    def __init__(self, width, ffn):
        super().__init__()
        self.gate_up = nn.Linear(width, 2 * ffn, bias=False)
        self.down = nn.Linear(ffn, width, bias=False)

    def forward(self, x):
        return self.down(swiglu(self.gate_up(x))), None


class Mixture(nn.Module):
    """Tokens grouped by expert, one product an expert and matrix; every token through every expert is slower at all
    sizes measured here, compiled or not."""

    def __init__(self, m):
        super().__init__()
        self.e, self.k = m["experts"], m["top_k"]
        self.router = nn.Linear(m["width"], self.e, bias=False)
        self.gate_up = nn.Parameter(torch.empty(self.e, 2 * m["expert_ffn"], m["width"]))
        self.down = nn.Parameter(torch.empty(self.e, m["width"], m["expert_ffn"]))

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        with torch.autocast("cpu", enabled=False):  # the choice of experts stays float32, as ours does
            p = torch.softmax(self.router(x.float()), -1)
        weight, chosen = p.topk(self.k, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        load = torch.zeros(self.e).index_add(0, chosen.reshape(-1), torch.ones(chosen.numel())) / chosen.numel()
        balance = self.e * (load * p.mean(0)).sum()
        return self.by_expert(x, weight, chosen).view(shape), balance

    def by_expert(self, x, weight, chosen):
        flat = chosen.reshape(-1)
        order = flat.argsort()
        rows = torch.div(order, self.k, rounding_mode="floor")
        counts = torch.bincount(flat, minlength=self.e).tolist()
        parts = x.index_select(0, rows).split(counts)
        gates, downs = self.gate_up.unbind(0), self.down.unbind(0)
        done = [F.linear(swiglu(F.linear(part, gates[e])), downs[e]) for e, part in enumerate(parts) if counts[e]]
        scale = weight.reshape(-1).index_select(0, order).unsqueeze(-1)
        scaled = torch.cat(done) * scale
        return torch.zeros(x.shape, dtype=scaled.dtype).index_add(0, rows, scaled)


class Block(nn.Module):
    def __init__(self, m, dense, fused):
        super().__init__()
        self.norm_a, self.norm_f = nn.Parameter(torch.ones(m["width"])), nn.Parameter(torch.ones(m["width"]))
        self.attention = Attention(m, fused)
        self.ffn = Dense(m["width"], m["ffn"]) if dense else Mixture(m)

    def forward(self, x, cos, sin, mask):
        x = x + self.attention(rms_norm(x, self.norm_a), cos, sin, mask)
        y, balance = self.ffn(rms_norm(x, self.norm_f))
        return x + y, balance


class Model(nn.Module):
    def __init__(self, m, options):
        super().__init__()
        t, half = m["context"], m["width"] // m["heads"] // 2
        # In pieces the logits never exist as a whole: as fast, and less memory.
        self.chunked = m["vocab"] >= LARGE_VOCAB and hasattr(F, "linear_cross_entropy") and not options.compile
        self.embed = nn.Parameter(torch.empty(m["vocab"], m["width"]))
        self.head = self.embed if m["tie_embeddings"] else nn.Parameter(torch.empty(m["vocab"], m["width"]))
        fused = hasattr(F, "scaled_dot_product_attention")
        self.blocks = nn.ModuleList(Block(m, m["experts"] == 0 or i < m["dense_layers"], fused)
                                    for i in range(m["layers"]))
        self.norm = nn.Parameter(torch.ones(m["width"]))
        angle = torch.outer(torch.arange(t).float(), 10000.0 ** (-torch.arange(half).float() / half))
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        self.register_buffer("mask", torch.full((t, t), -math.inf).triu(1))
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, 0.0, 0.02)

    def forward(self, tokens, targets):
        x, balances = F.embedding(tokens, self.embed), []
        for block in self.blocks:
            x, balance = block(x, self.cos, self.sin, self.mask)
            if balance is not None:
                balances.append(balance)
        x = rms_norm(x, self.norm).view(-1, x.shape[-1])
        if self.chunked:
            loss = F.linear_cross_entropy(x, self.head, targets.view(-1), options=nn.LinearCrossEntropyOptions())
        else:
            loss = F.cross_entropy(F.linear(x, self.head).float(), targets.view(-1))
        return loss, loss + BALANCE * torch.stack(balances).mean() if balances else loss


def make_optimiser(model):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    norms = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": norms, "weight_decay": 0.0}]
    settings = {"lr": 1e-4, "betas": (0.9, 0.95), "eps": 1e-8}
    try:
        return torch.optim.AdamW(groups, fused=True, **settings), "fused"
    except (TypeError, RuntimeError):
        return torch.optim.AdamW(groups, foreach=True, **settings), "foreach"


def clocks():
    return time.perf_counter(), time.process_time()


def passed(since):
    return tuple(now - then for now, then in zip(clocks(), since))


class Session:
    def __init__(self, m, options):
        self.m, self.batch, self.autocast = m, options.batch, options.autocast
        torch.manual_seed(1)
        self.model = Model(m, options)
        self.parameters = list(self.model.parameters())
        self.optimiser, self.optimiser_name = make_optimiser(self.model)
        self.call = torch.compile(self.model) if options.compile else self.model
        self.generator = torch.Generator().manual_seed(1)

    def tokens(self):
        text = torch.randint(0, self.m["vocab"], (self.batch, self.m["context"] + 1), generator=self.generator)
        return text[:, :-1].contiguous(), text[:, 1:].contiguous()

    def train(self):
        tokens, targets = self.tokens()
        since = clocks()
        self.optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.autocast):
            loss, whole = self.call(tokens, targets)
        whole.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimiser.step()
        loss = loss.item()
        return passed(since), loss

    @torch.inference_mode()
    def forward(self):
        tokens, targets = self.tokens()
        since = clocks()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.autocast):
            loss = self.call(tokens, targets)[0].item()
        return passed(since), loss


def status_bytes(key):
    with open("/proc/self/status", encoding="ascii") as f:
        for line in f:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    return None


def libraries():
    with open("/proc/self/maps", encoding="utf-8") as f:
        return sorted({os.path.realpath(line.split()[-1]) for line in f if POOLS.search(line.strip())})


def show_kernels():
    """A product in bfloat16, of which oneDNN reports the kernel; run with ONEDNN_VERBOSE=1 and DNNL_VERBOSE=1."""
    capability = getattr(getattr(torch.backends, "cpu", None), "get_cpu_capability", lambda: "not known")()
    try:
        supported = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    except (AttributeError, RuntimeError):
        supported = "not known"
    print(f"about: PyTorch {torch.__version__}: capability {capability}, _is_mkldnn_bf16_supported {supported}", flush=True)
    torch.set_num_threads(1)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        F.linear(torch.ones(2048, 512), torch.ones(768, 512))


def answer(line, session, imported):
    words = line.split()
    if words[0] == "memory":
        return {"peak": status_bytes("VmHWM"), "imported": imported,
                "threads": len(os.listdir("/proc/self/task"))}
    one = {"train": session.train, "forward": session.forward}[words[0]]
    passes = [one() for _ in range(int(words[1]))]
    return {"wall": [p[0][0] for p in passes], "processor": [p[0][1] for p in passes], "losses": [p[1] for p in passes]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", help="JSON file of the shape, the keys of docs/models.md")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--autocast", action="store_true", help="the forward pass in bfloat16, as torch.autocast chooses")
    parser.add_argument("--kernels", action="store_true", help="say what a product in bfloat16 runs on")
    options = parser.parse_args()
    if options.kernels:
        return show_kernels()
    if options.model is None:
        parser.error("expected a model or --kernels")
    torch.set_num_threads(options.threads)
    with open(options.model, encoding="utf-8") as f:
        m = {"experts": 0, "dense_layers": 0, "tie_embeddings": True, **json.load(f)}
    m.setdefault("kv_heads", m["heads"])
    imported = status_bytes("VmHWM")
    session = Session(m, options)
    first = session.train()[1]
    for _ in range(COMPILE_PASSES if options.compile else 0):
        session.train()
    session.forward()
    print(json.dumps({"torch": torch.__version__, "python": sys.version.split()[0], "libraries": libraries(),
                      "threads": torch.get_num_threads(), "params": sum(p.numel() for p in session.parameters),
                      "optimiser": session.optimiser_name, "chunked_head": session.model.chunked,
                      "fused_attention": hasattr(F, "scaled_dot_product_attention"), "first_loss": first}), flush=True)
    for line in sys.stdin:
        if line.strip() == "quit":
            break
        print(json.dumps(answer(line, session, imported)), flush=True)
    return None


if __name__ == "__main__":
    main()
