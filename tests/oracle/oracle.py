"""What the oracle tests share: tasks for the C driver, its dumps as arrays, and transformers' models with our weights."""

import json
import math
import os
import subprocess
import sys

import numpy
import torch

SKIPPED = 77
SHARED = os.environ.get("PREREGD_SHARED") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def shared_data(*parts):
    """A file of the shared data; the test is skipped where there is none."""
    path = os.path.abspath(os.path.join(SHARED, "data", *parts))
    if not os.path.exists(path):
        skip(f"no {path}")
    return path


def write_task(folder, params, data, threads=1):
    """data: name -> path."""
    os.makedirs(folder, exist_ok=True)
    task = {"protocol": 1, "attempt": "oracle", "attempt_no": 1, "threads": threads, "params": params,
            "data": {name: {"path": path} for name, path in data.items()}, "resume": []}
    with open(os.path.join(folder, "task.json"), "w", encoding="utf-8") as f:
        json.dump(task, f)


def drive(build, what, where, double=False):
    """Runs the C driver: "corpus" FILE, "inputs" FOLDER or "steps" FOLDER."""
    name = "oracle_driver_f64" if double else "oracle_driver"
    subprocess.run([os.path.join(build, "tests", name), what, where], check=True)


class Dump:
    """The files the driver left in a folder."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "layout.json"), encoding="utf-8") as f:
            self.layout = json.load(f)
        self.model = self.layout["model"]
        self.real = numpy.dtype(self.layout["real"])

    def reals(self, name):
        return numpy.fromfile(os.path.join(self.folder, name), dtype=self.real)

    def doubles(self, name):
        return numpy.fromfile(os.path.join(self.folder, name), dtype=numpy.float64)

    def tensors(self, name):
        """A file that lies like the parameters, as name -> (rows, cols) array, or (rows) for norms."""
        flat = self.reals(name)
        out = {}
        for t in self.layout["tensors"]:
            part = flat[t["offset"]:t["offset"] + t["rows"] * t["cols"]]
            out[t["name"]] = part if t["cols"] == 1 else part.reshape(t["rows"], t["cols"])
        return out

    def second_moments(self, params):
        """Those of the tensors that have them, which follow one another in the file."""
        flat, out, at = self.reals("moment2.bin"), {}, 0
        for t in self.layout["tensors"] if params.get("optimizer") != "sgd" else []:
            shape = (t["rows"], t["cols"]) if t["cols"] > 1 else (t["rows"],)
            if params.get("optimizer") == "muon" and matrices(t["name"], torch.empty(shape)) is not None:
                continue
            out[t["name"]] = flat[at:at + t["rows"] * t["cols"]].reshape(shape)
            at += t["rows"] * t["cols"]
        assert at == len(flat), (at, len(flat))
        return out

    def decays(self):
        return {t["name"]: t["decays"] for t in self.layout["tensors"]}

    def _ids(self, name):
        ids = numpy.fromfile(os.path.join(self.folder, name), dtype=numpy.uint32).astype(numpy.int64)
        return torch.from_numpy(ids)

    def order(self):
        """Tokens and targets of the whole run, (steps, sequences, context) each."""
        shape = (self.layout["steps"], self.layout["sequences"], self.model["context"])
        return self._ids("tokens.bin").view(shape), self._ids("targets.bin").view(shape)

    def held_out(self, source):
        """Windows of one context spread evenly over the held-out tokens: (windows, context) tokens and targets."""
        ids, context = self._ids(f"val_{source}.bin"), self.model["context"]
        total = (len(ids) - 1) // context
        used = max(1, min(self.layout["val_tokens"] // context, total))
        starts = [i * total // used * context for i in range(used)]
        return (torch.stack([ids[s:s + context] for s in starts]),
                torch.stack([ids[s + 1:s + 1 + context] for s in starts]))


def rate_factor(schedule, step, steps):
    """The factor on the peak rate at step 0 .. steps - 1, as docs/models.md has it."""
    warm = round(steps * schedule.get("warmup", 0.02))
    floor, kind, last = schedule.get("floor", 0.1), schedule.get("kind", "cosine"), steps - 1
    if step < warm:
        return (step + 1) / warm
    if kind == "cosine":
        return floor + (1 - floor) * (1 + math.cos(math.pi * (step - warm) / (last - warm))) / 2
    if kind == "wsd":
        falling = round(steps * schedule.get("decay", 0.2))
        if step >= steps - falling:
            return 1 - (1 - floor) * (step - (steps - falling) + 1) / falling
    return 1.0


def to_transformers(tensors, model):
    """Our tensors under transformers' names: stacked experts come apart, norms keep theirs."""
    out = {}
    for name, value in tensors.items():
        value = torch.from_numpy(value.copy())
        if name.endswith("experts.gate_up"):
            base, halves = name.removesuffix("gate_up"), value.view(model["experts"], 2, model["expert_ffn"], -1)
            for e in range(model["experts"]):
                out[f"{base}{e}.w1.weight"], out[f"{base}{e}.w3.weight"] = halves[e, 0], halves[e, 1]
        elif name.endswith("experts.down"):
            base, stacked = name.removesuffix("down"), value.view(model["experts"], model["width"], -1)
            for e in range(model["experts"]):
                out[f"{base}{e}.w2.weight"] = stacked[e]
        else:
            out[name] = value
    if "lm_head.weight" not in out:
        out["lm_head.weight"] = out["model.embed_tokens.weight"]
    return out


def transformers_model(dump, attention="eager"):
    """LlamaForCausalLM or MixtralForCausalLM with the initial weights of the dump, in float32."""
    import transformers
    m = dump.model
    shape = {"vocab_size": m["vocab"], "hidden_size": m["width"], "num_hidden_layers": m["layers"],
             "num_attention_heads": m["heads"], "num_key_value_heads": m["kv_heads"],
             "max_position_embeddings": m["context"], "rope_theta": dump.layout["rope_theta"], "rms_norm_eps": dump.layout["norm_eps"],
             "tie_word_embeddings": m["tie_embeddings"], "use_cache": False, "attn_implementation": attention,
             "attention_dropout": 0.0, "pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
    if m["experts"] > 0:
        config = transformers.MixtralConfig(**shape, intermediate_size=m["expert_ffn"], num_local_experts=m["experts"],
                                            num_experts_per_tok=m["top_k"], sliding_window=None,
                                            output_router_logits=True)
        net = transformers.MixtralForCausalLM(config)
    else:
        net = transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape, intermediate_size=m["ffn"]))
    net.load_state_dict(to_transformers(dump.tensors("init.bin"), m))
    return net


def decay_groups(named, decay):
    """Groups of torch's optimisers: matrices and embeddings decay, norms do not."""
    return [{"params": [p for _, p in named if p.dim() > 1], "weight_decay": decay},
            {"params": [p for _, p in named if p.dim() == 1], "weight_decay": 0.0}]


def matrices(name, value):
    """The matrices of a block's tensor, as a stack; None where Muon leaves it to AdamW. value.experts: of a stacked tensor."""
    if not name.startswith("model.layers.") or value.dim() == 1 or name.endswith("block_sparse_moe.gate.weight"):
        return None
    parts = value.experts * {"gate_up": 2, "down": 1}[name.rsplit(".", 1)[1]] if hasattr(value, "experts") else 1
    return value.view(parts, -1, value.shape[-1])


def orthogonalised(g):
    """Keller Jordan's zeropower_via_newtonschulz5 (https://github.com/KellerJordan/Muon), in the type of g instead of bfloat16."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.mT if g.shape[-2] > g.shape[-1] else g
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x.mT if g.shape[-2] > g.shape[-1] else x


class Muon(torch.optim.Optimizer):
    """His Muon over (name, parameter) pairs; PyTorch has one of its own from 2.9 on only."""

    def __init__(self, named, lr, decay, momentum, nesterov):
        self.names = {p: name for name, p in named}
        super().__init__([p for _, p in named], {"lr": lr, "weight_decay": decay, "momentum": momentum, "nesterov": nesterov})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                buffer = self.state[p].setdefault("momentum_buffer", torch.zeros_like(p))
                buffer.lerp_(p.grad, 1 - group["momentum"])
                update = p.grad.lerp(buffer, group["momentum"]) if group["nesterov"] else buffer
                name = self.names[p]
                if hasattr(p, "experts"):
                    update.experts = p.experts
                stack = matrices(name, update)
                update = orthogonalised(stack) * max(1, stack.shape[-2] / stack.shape[-1]) ** 0.5
                p.mul_(1 - group["lr"] * group["weight_decay"]).add_(update.reshape(p.shape), alpha=-group["lr"])


class Optimisers:
    """One or several of torch's optimisers, each with its peak rate, that share out the parameters."""

    def __init__(self, *parts):
        self.parts = parts
        self.param_groups = [group for opt, _ in parts for group in opt.param_groups]

    def moments(self, p):
        """First and second (or None) of a parameter."""
        state = next(opt.state[p] for opt, _ in self.parts if p in opt.state)
        return (state["exp_avg"], state["exp_avg_sq"]) if "exp_avg" in state else (state["momentum_buffer"], None)

    def step(self, factor):
        for opt, peak in self.parts:
            for group in opt.param_groups:
                group["lr"] = peak * factor
            opt.step()
            opt.zero_grad(set_to_none=True)


def optimiser(named, params):
    """The optimiser of the parameters over (name, parameter) pairs."""
    named, kind = list(named), params.get("optimizer", "adamw")
    if kind == "sgd":
        groups = decay_groups(named, params.get("weight_decay", 0.0))
        return Optimisers((torch.optim.SGD(groups, lr=params["lr"], momentum=params.get("momentum", 0.9),
                                           nesterov=params.get("nesterov", False)), params["lr"]))
    hidden = [(name, p) for name, p in named if kind == "muon" and matrices(name, p) is not None]
    rest = [(name, p) for name, p in named if not any(p is other for _, other in hidden)]
    decay, lr = params.get("weight_decay", 0.1), params.get("adamw_lr", 3e-4) if hidden else params["lr"]
    betas = (params.get("beta1", 0.9), params.get("beta2", 0.95))
    adamw = torch.optim.AdamW(decay_groups(rest, decay), lr=lr, betas=betas, eps=params.get("eps", 1e-8))
    if not hidden:
        return Optimisers((adamw, lr))
    muon = Muon(hidden, params["lr"], decay, params.get("momentum", 0.95), params.get("nesterov", True))
    return Optimisers((muon, params["lr"]), (adamw, lr))


def clip_exactly(weights, most):
    """clip_grad_norm_ without the 1e-6 it adds to the norm, which alone would put two float64 runs 1e-7 apart."""
    norm = math.sqrt(sum(float(p.grad.pow(2).sum()) for p in weights))
    if norm > most:
        for p in weights:
            p.grad.mul_(most / norm)


def optimiser_step(opt, params, step, steps, clip=torch.nn.utils.clip_grad_norm_):
    """Clips the global norm, sets the rate of this step, updates, clears the gradients."""
    clip([p for group in opt.param_groups for p in group["params"]], params.get("clip", 1.0) or math.inf)
    opt.step(rate_factor(params.get("schedule", {}), step, steps))
