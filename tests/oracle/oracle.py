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


def optimiser(named, params):
    """torch's AdamW over (name, parameter) pairs: matrices and embeddings decay, norms do not."""
    named = list(named)
    groups = [{"params": [p for _, p in named if p.dim() > 1], "weight_decay": params.get("weight_decay", 0.1)},
              {"params": [p for _, p in named if p.dim() == 1], "weight_decay": 0.0}]
    betas = (params.get("beta1", 0.9), params.get("beta2", 0.95))
    return torch.optim.AdamW(groups, lr=params["lr"], betas=betas, eps=params.get("eps", 1e-8))


def clip_exactly(weights, most):
    """clip_grad_norm_ without the 1e-6 it adds to the norm, which alone would put two float64 runs 1e-7 apart."""
    norm = math.sqrt(sum(float(p.grad.pow(2).sum()) for p in weights))
    if norm > most:
        for p in weights:
            p.grad.mul_(most / norm)


def optimiser_step(opt, params, step, steps, clip=torch.nn.utils.clip_grad_norm_):
    """Clips the global norm, sets the rate of this step, updates, clears the gradients."""
    clip([p for group in opt.param_groups for p in group["params"]], params.get("clip", 1.0) or math.inf)
    for group in opt.param_groups:
        group["lr"] = params["lr"] * rate_factor(params.get("schedule", {}), step, steps)
    opt.step()
    opt.zero_grad(set_to_none=True)
