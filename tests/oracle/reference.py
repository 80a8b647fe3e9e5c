"""The whole training step written once more from docs/models.md, in PyTorch float64, without regard to speed.

It is the reference where transformers has none (raw weights, shared experts, dense first blocks, z-loss, choice biases, noise, capacities) or
computes parts in float32 whatever the model's type (norms, rotary tables, router probabilities). Experts are all evaluated on all
tokens and weighed, so it shares no idea with the grouped products of the engine; gradients are autograd's, updates torch.optim's.
"""

import math

import torch

import oracle
import philox


def rms_norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotate(x, theta):
    """x (B, heads, T, D): dimension i turns with dimension i + D / 2."""
    length, dim = x.shape[-2], x.shape[-1]
    rate = theta ** (-torch.arange(0, dim // 2, dtype=torch.float64) * 2 / dim)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * rate[None, :]
    a, b = x[..., :dim // 2], x[..., dim // 2:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def swiglu(x, gate, up, down):
    return (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T


class Routing:
    """What one mixture did with one pass."""

    def __init__(self, logits, bias, model, factor=0.0):
        """factor: of the capacity; 0 outside training, and where nothing is dropped."""
        self.p = torch.softmax(logits, -1)
        self.lse = torch.logsumexp(logits, -1)
        chosen = torch.topk(logits + bias, model["top_k"], -1).indices
        self.mask = torch.zeros_like(logits).scatter_(-1, chosen, 1.0)
        self.weights = self.p * self.mask
        if model["renormalise"]:
            self.weights = self.weights / self.weights.sum(-1, keepdim=True)
        self.counts = self.mask.sum(0).detach()
        kept = self.within_capacity(chosen, factor)
        self.dropped = float((self.mask - kept).sum())
        self.weights = self.weights * kept
        share = self.counts / self.counts.sum()
        self.balance = model["experts"] * (share * self.p.mean(0)).sum()
        self.z = self.lse.pow(2).mean()

    def within_capacity(self, chosen, factor):
        """The mask without what is dropped: all first choices are served before all second ones, earlier tokens before later."""
        kept, (n, choices) = torch.zeros_like(self.mask), chosen.shape
        room = [max(1, math.ceil(factor * (n * choices / self.mask.shape[1]))) if factor > 0 else n] * self.mask.shape[1]
        for k in range(choices):
            for token, expert in enumerate(chosen[:, k].tolist()):
                if room[expert] > 0:
                    room[expert] -= 1
                    kept[token, expert] = 1.0
        return kept


class Reference:
    def __init__(self, dump, params):
        self.model, self.params, self.steps = dump.model, params, dump.layout["steps"]
        self.theta, self.eps = dump.layout["rope_theta"], dump.layout["norm_eps"]
        self.w = {name: torch.from_numpy(value.copy()).double().requires_grad_()
                  for name, value in dump.tensors("init.bin").items()}
        self.bias = torch.zeros(self.model["layers"], max(1, self.model["experts"]), dtype=torch.float64)
        self.micro = dump.layout["micro_batch"]
        for name, w in self.w.items():
            if ".experts." in name:
                w.experts = self.model["experts"]
        self.opt = oracle.optimiser(self.w.items(), params)

    def attention(self, x, at):
        m = self.model
        heads, groups, dim = m["heads"], m["kv_heads"], m["width"] // m["heads"]
        batch, length, _ = x.shape

        def project(name, n):
            return (x @ self.w[f"{at}.self_attn.{name}_proj.weight"].T).view(batch, length, n, dim).transpose(1, 2)

        q, k, v = rotate(project("q", heads), self.theta), rotate(project("k", groups), self.theta), project("v", groups)
        k, v = (t.repeat_interleave(heads // groups, dim=1) for t in (k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(dim)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        y = torch.softmax(scores.masked_fill(future, -math.inf), -1) @ v
        return y.transpose(1, 2).reshape(batch, length, -1) @ self.w[f"{at}.self_attn.o_proj.weight"].T

    def feed_forward(self, x, at, layer, routings, first_token):
        m = self.model
        if m["experts"] == 0 or layer < m["dense_layers"]:
            return swiglu(x, *(self.w[f"{at}.mlp.{part}_proj.weight"] for part in ("gate", "up", "down")))
        at = f"{at}.block_sparse_moe"
        logits = (x @ self.w[f"{at}.gate.weight"].T).flatten(0, 1)
        if first_token is not None and self.params.get("router_noise", 0.0) > 0:
            logits = logits + self.params["router_noise"] * torch.from_numpy(
                philox.router_normals(self.params["seed"], layer, first_token, *logits.shape))
        factor = 0.0 if first_token is None else self.params.get("capacity_factor", 0.0)
        routing = Routing(logits, self.bias[layer], m, factor)
        routings.append(routing)
        gate_up = self.w[f"{at}.experts.gate_up"].view(m["experts"], 2, m["expert_ffn"], m["width"])
        down = self.w[f"{at}.experts.down"].view(m["experts"], m["width"], m["expert_ffn"])
        weights = routing.weights.view(*x.shape[:2], -1)
        y = sum(weights[..., e, None] * swiglu(x, gate_up[e, 0], gate_up[e, 1], down[e]) for e in range(m["experts"]))
        if m["shared"] > 0:
            y = y + swiglu(x, *(self.w[f"{at}.shared.{part}"] for part in ("gate", "up", "down")))
        return y

    def forward(self, tokens, first_token=None):
        """Logits (B, T, V) and the mixtures' routings. first_token: of a pass of training, counted over the whole run; routers have
        noise and experts their capacity there alone."""
        x, routings = self.w["model.embed_tokens.weight"][tokens], []
        for layer in range(self.model["layers"]):
            at = f"model.layers.{layer}"
            x = x + self.attention(rms_norm(x, self.w[f"{at}.input_layernorm.weight"], self.eps), at)
            normed = rms_norm(x, self.w[f"{at}.post_attention_layernorm.weight"], self.eps)
            x = x + self.feed_forward(normed, at, layer, routings, first_token)
        x = rms_norm(x, self.w["model.norm.weight"], self.eps)
        head = self.w["model.embed_tokens.weight" if self.model["tie_embeddings"] else "lm_head.weight"]
        return x @ head.T, routings

    def accumulate(self, tokens, targets, step):
        """Adds the gradients of one step, pass by pass; the mean cross-entropy, and per mixture what the routers did."""
        p, n_seqs, total, passes = self.params, len(tokens), 0.0, []
        alpha = p.get("balance_loss", 0.0) * (1 + (p.get("balance_anneal", 1.0) - 1) * step / max(1, self.steps - 1))
        for at in range(0, n_seqs, self.micro):
            part = slice(at, min(at + self.micro, n_seqs))
            logits, routings = self.forward(tokens[part], (step * n_seqs + part.start) * self.model["context"])
            entropy = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets[part].flatten())
            loss = entropy
            if routings:
                loss = loss + alpha * torch.stack([r.balance for r in routings]).mean()
                loss = loss + p.get("router_z_loss", 0.0) * torch.stack([r.z for r in routings]).mean()
            share = (part.stop - part.start) / n_seqs
            (share * loss).backward()
            total += share * entropy.item()
            passes.append(routings)
        return total, [list(layer) for layer in zip(*passes)]

    def move_biases(self, mixtures):
        """Loss-free balancing: experts under the mean load rise by the rate, those over it fall."""
        for layer, passes in enumerate(mixtures, self.model["dense_layers"]):
            counts = sum(r.counts for r in passes)
            self.bias[layer] += self.params.get("bias_update_rate", 0.0) * torch.sign(counts.mean() - counts)

    def update(self, mixtures, step):
        oracle.optimiser_step(self.opt, self.params, step, self.steps, oracle.clip_exactly)
        self.move_biases(mixtures)

    def moments(self):
        """First and second ones, the latter of what has them."""
        both = {name: self.opt.moments(w) for name, w in self.w.items()}
        return {name: m for name, (m, _) in both.items()}, {name: v for name, (_, v) in both.items() if v is not None}
