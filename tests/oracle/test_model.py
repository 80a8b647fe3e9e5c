#!/usr/bin/env python3
"""Logits, every gradient and ten steps (AdamW, Muon, gradient descent) of the C engine against PyTorch and transformers, from the
same weights.

    test_model.py BUILD_FOLDER [--golden FILE]

Every case of tests/golden/model_cases.json is held against the float64 reference (reference.py): the engine's double build to 1e-11
or better, its float build to 1e-4. What transformers can express (dense models; mixtures whose every block is one, with renormalised
weights) is also held against LlamaForCausalLM and MixtralForCausalLM as they are, in float32, to 1e-4. All errors are relative, in the Euclidean
norm, over the worst tensor; the change of the parameters over the ten steps is looked at by itself. --golden writes the numbers
the ordinary tests keep (tests/golden/model_numbers.json), from the reference.

Balance loss: transformers pools all layers' tokens before the product and counts every one of the K choices as a share of one, so its figure is K
times ours for one layer and another function for more. One layer is compared as it is; for more its own function is called layer by layer.
"""

import argparse
import json
import os
import sys
import tempfile

import numpy
import torch

import oracle
import reference

DOUBLE = {"logits": 1e-13, "gradients": 1e-12, "losses": 1e-13, "parameters": 1e-11, "change": 1e-11, "moments": 1e-11,
          "routers": 1e-12, "bias": 1e-12}
SINGLE = {"logits": 1e-5, "gradients": 2e-5, "losses": 2e-6, "parameters": 1e-4, "change": 1e-3, "moments": 1e-3, "routers": 1e-4,
          "bias": 1e-6}
CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden/model_cases.json")
SAMPLES = 4


def apart(ours, theirs):
    """Relative distance; two zeros are equal."""
    ours, theirs = (numpy.asarray(x, dtype=numpy.float64).ravel() for x in (ours, theirs))
    size = numpy.linalg.norm(theirs)
    return float(numpy.linalg.norm(ours - theirs) / (size if size > 0 else 1.0))


def worst(ours, theirs):
    assert ours.keys() == theirs.keys(), sorted(ours.keys() ^ theirs.keys())
    return max(apart(ours[name], theirs[name]) for name in theirs)


def difference(after, before):
    return {name: after[name].astype(numpy.float64) - before[name] for name in after}


class Run:
    """Ten steps of somebody's: the same members whoever took them."""

    def __init__(self):
        self.losses, self.routers, self.moments, self.bias = [], [], None, None

    def errors(self, truth):
        """What both have, by its name in the tables of tolerances."""
        out = {"logits": apart(self.logits, truth.logits), "gradients": worst(self.gradients, truth.gradients),
               "losses": max(abs(a / b - 1) for a, b in zip(self.losses, truth.losses, strict=True)),
               "parameters": worst(self.parameters, truth.parameters),
               "change": worst(difference(self.parameters, truth.initial), difference(truth.parameters, truth.initial))}
        if self.moments is not None and truth.moments is not None:
            out["moments"] = max(worst(a, b) for a, b in zip(self.moments, truth.moments) if a or b)
        if self.routers and truth.routers:
            out["routers"] = max(apart(a, b) for a, b in zip(self.routers, truth.routers, strict=True))
        if self.bias is not None and truth.bias is not None:
            out["bias"] = apart(self.bias, truth.bias)
        return out


def arrays(named):
    return {name: value.detach().numpy().copy() for name, value in named.items()}


def run_engine(dump, params):
    run = Run()
    run.initial, run.parameters = dump.tensors("init.bin"), dump.tensors("params.bin")
    run.gradients, run.logits = dump.tensors("grad.bin"), dump.reals("logits.bin")
    run.losses = list(dump.doubles("losses.bin"))
    run.moments = dump.tensors("moment1.bin"), dump.second_moments(params)
    with open(os.path.join(dump.folder, "router.json"), encoding="utf-8") as f:
        for step in json.load(f):
            for layer in step:
                run.routers += [layer["counts"], layer["p_sum"], layer["z_sum"], layer["balance"], layer["dropped"]]
    if dump.model["experts"] > 0:
        run.bias = dump.reals("bias.bin").astype(numpy.float64)
    return run


def run_reference(dump, params):
    run, net = Run(), reference.Reference(dump, params)
    tokens, targets = dump.order()
    run.initial = arrays(net.w)
    with torch.no_grad():
        run.logits = torch.cat([net.forward(tokens[0][at:at + net.micro])[0] for at in range(0, len(tokens[0]), net.micro)]).numpy()
    for step in range(net.steps):
        loss, mixtures = net.accumulate(tokens[step], targets[step], step)
        run.losses.append(loss)
        for passes in mixtures:
            run.routers += [sum(r.counts for r in passes).numpy(), sum(r.p.detach().sum(0) for r in passes).numpy(),
                            sum(float(r.lse.detach().pow(2).sum()) for r in passes), float(passes[-1].balance.detach()),
                            sum(r.dropped for r in passes)]
        if step == 0:
            run.gradients = arrays({name: w.grad for name, w in net.w.items()})
        net.update(mixtures, step)
    run.parameters = arrays(net.w)
    run.moments = tuple(arrays(m) for m in net.moments())
    if dump.model["experts"] > 0:
        run.bias = net.bias.numpy().copy()
    return run


def from_transformers(named, model):
    """Transformers' tensors under our names: the inverse of oracle.to_transformers()."""
    out = {}
    for name, value in arrays(named).items():
        if ".experts." not in name:
            out[name] = value
    for layer in range(model["layers"] if model["experts"] > 0 else 0):
        at, halves, downs = f"model.layers.{layer}.block_sparse_moe.experts", [], []
        for e in range(model["experts"]):
            halves += [named[f"{at}.{e}.w1.weight"], named[f"{at}.{e}.w3.weight"]]
            downs.append(named[f"{at}.{e}.w2.weight"])
        out[f"{at}.gate_up"] = torch.cat(halves).detach().numpy().copy()
        out[f"{at}.down"] = torch.cat(downs).detach().numpy().copy()
    return out


def balance_by_transformers(out, model):
    from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func
    if model["layers"] == 1:
        return out.aux_loss / model["top_k"]
    parts = [load_balancing_loss_func((r,), model["experts"], model["top_k"]) for r in out.router_logits]
    return torch.stack(parts).mean() / model["top_k"]


def run_transformers(dump, params):
    run, net = Run(), oracle.transformers_model(dump)
    opt = oracle.optimiser(net.named_parameters(), params)
    (tokens, targets), micro, steps = dump.order(), dump.layout["micro_batch"], dump.layout["steps"]
    run.initial = from_transformers(dict(net.named_parameters()), dump.model)
    with torch.no_grad():
        run.logits = torch.cat([net(tokens[0][at:at + micro]).logits for at in range(0, len(tokens[0]), micro)]).numpy()
    for step in range(steps):
        total, n_seqs = 0.0, len(tokens[step])
        for at in range(0, n_seqs, micro):
            part = slice(at, min(at + micro, n_seqs))
            out = net(tokens[step][part])
            entropy = torch.nn.functional.cross_entropy(out.logits.flatten(0, 1), targets[step][part].flatten())
            loss = entropy
            if dump.model["experts"] > 0:
                loss = loss + params.get("balance_loss", 0.0) * balance_by_transformers(out, dump.model)
            share = (part.stop - part.start) / n_seqs
            (share * loss).backward()
            total += share * float(entropy)
        run.losses.append(total)
        if step == 0:
            run.gradients = from_transformers({n: p.grad for n, p in net.named_parameters()}, dump.model)
        oracle.optimiser_step(opt, params, step, steps)
    run.parameters = from_transformers(dict(net.named_parameters()), dump.model)
    return run


def transformers_has(params):
    if params.get("experts", 0) == 0:
        return True
    beyond = ("shared", "dense_layers", "router_z_loss", "bias_update_rate", "router_noise", "capacity_factor")
    return params.get("renormalise", True) and not any(params.get(key) for key in beyond)


def summary(array):
    """What is kept of an array: its norm, and elements spread evenly over it, the first and the last among them."""
    flat = numpy.asarray(array, dtype=numpy.float64).ravel()
    at = [j * (flat.size - 1) // (SAMPLES - 1) for j in range(SAMPLES)]
    return [float(numpy.linalg.norm(flat))] + [float(flat[i]) for i in at]


def golden(run, dump):
    tokens, targets = dump.order()
    kept = {"tokens": summary(tokens.numpy()), "targets": summary(targets.numpy()), "losses": run.losses, "logits": summary(run.logits)}
    for key in ("initial", "gradients", "parameters"):
        kept[key] = {name: summary(value) for name, value in getattr(run, key).items()}
    if run.bias is not None:
        kept["bias"] = run.bias.ravel().tolist()
    return kept


def lines(value, depth=0):
    """JSON with a line for every array."""
    if not isinstance(value, dict):
        return json.dumps(value)
    inner = ",\n".join(f"{' ' * (depth + 1)}{json.dumps(k)}: {lines(v, depth + 1)}" for k, v in value.items())
    return "{\n" + inner + "\n" + " " * depth + "}"


def show(what, errors, limits):
    print(f"  {what:34}" + "".join(f" {key} {value:.1e}" for key, value in errors.items()))
    return [f"{what}: {key} is {value:.3e} apart, {limits[key]:.0e} is allowed"
            for key, value in errors.items() if not value <= limits[key]]


def check_case(build, name, params, scratch, kept):
    dumps = {}
    for double in (False, True):
        folder = os.path.join(scratch, f"{name}{'_f64' if double else ''}")
        oracle.write_task(folder, params, {"text": os.path.join(scratch, "corpus.txt")})
        oracle.drive(build, "steps", folder, double)
        dumps[double] = oracle.Dump(folder)
    truth, single = run_reference(dumps[True], params), run_engine(dumps[False], params)
    kept[name] = golden(truth, dumps[True])
    fallen = truth.losses[0] - truth.losses[-1]
    print(f"{name}: loss {truth.losses[0]:.4f} -> {truth.losses[-1]:.4f}")
    found = [] if fallen > 0.2 else [f"{name}: the loss has hardly moved, by {fallen}"]
    found += show("double, reference float64", run_engine(dumps[True], params).errors(truth), DOUBLE)
    found += show("float, reference float64", single.errors(truth), SINGLE)
    if transformers_has(params):
        theirs = run_transformers(dumps[False], params)
        found += show("float, transformers float32", single.errors(theirs), SINGLE)
        show("(transformers, reference float64)", theirs.errors(truth), SINGLE)
    return [f"{name}, {line}" for line in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--golden", help="write the kept numbers to this file")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with open(CASES, encoding="utf-8") as f:
        cases = json.load(f)
    kept, found = {}, []
    with tempfile.TemporaryDirectory() as scratch:
        oracle.drive(args.build, "corpus", os.path.join(scratch, "corpus.txt"))
        for name, params in cases["cases"].items():
            found += check_case(args.build, name, dict(cases["common"], **params), scratch, kept)
    for line in found:
        print(f"FAILED {line}")
    if args.golden and not found:
        with open(args.golden, "w", encoding="utf-8") as f:
            f.write(lines(kept) + "\n")
    print(f"{len(kept)} cases, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
