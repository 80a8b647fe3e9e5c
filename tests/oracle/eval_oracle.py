"""One evaluation on both sides: prereg-eval and lm-evaluation-harness, item by item.

Both get the same model (exported by prereg-train) and the same files. What is compared, in this order: texts and token ids
of every request, log-likelihoods, greedy flags, predictions, generations, metrics and their standard errors."""

import dataclasses
import json
import math
import os
import subprocess
import sys

import torch

import harness
import oracle

LIMIT = 1e-4       # of a log-likelihood, in nats
NEAR = 1e-4        # two scores or logits closer than this are a near tie
SHOWN = 5          # differences printed of each kind
ITERATIONS = 1000  # of the bootstrap, both sides
MAX_TOKENS = 256   # of a generation
CONTEXT = 1024     # of the models
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclasses.dataclass
class Case:
    """A task as both sides are asked it."""
    name: str              # of the harness's task
    task: str
    data: str              # what prereg-eval is given
    theirs: str            # the harness's task, or group
    members: dict = None   # groups: the harness's member tasks by our group's name
    shots: int = 0
    pool: str = None
    limit: int = 0
    context: int = 0       # 0: the model's
    params: dict = dataclasses.field(default_factory=dict)


class Tally:
    """What a case came to, printed as one line."""

    def __init__(self):
        self.items = self.requests = self.tokens = self.cut = self.near = self.greedy_near = self.rounded = 0
        self.worst = self.relative = self.exact = 0.0
        self.wrong = []

    def fault(self, text):
        self.wrong.append(text)


def run_program(build, program, *words, folder=None):
    env = {**os.environ, **THREADS, "PREREG_TASK": "task.json", "PREREG_EVENTS": "events.jsonl"}
    done = subprocess.run([os.path.join(build, program), *words], cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{program} {' '.join(words)} in {folder}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def train(build, folder, params, data):
    """Trains a model and exports it for transformers; gives the exported folder."""
    task, out = os.path.join(folder, "train"), os.path.join(folder, "hf")
    oracle.write_task(task, params, data)
    run_program(build, "bin/prereg-train", folder=task)
    run_program(build, "bin/prereg-train", "export", "--hf", out, task)
    return out


def read_lines(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def ask_ours(build, folder, model, case, blind=False):
    """(requests by item, items.jsonl by item or None, result.json or None)."""
    params = {"task": case.task, "data": "items", "model": "model", "shots": case.shots, **case.params}
    data = {"items": case.data, "model": model}
    if case.task == "gsm8k":
        params.update(max_tokens=MAX_TOKENS, viability={"items": 0})
    if case.task == "lambada_openai":
        params["bootstrap"] = ITERATIONS
    if case.pool is not None:
        params["fewshot_data"], data["pool"] = "pool", case.pool
    if case.limit:
        params["limit"] = case.limit
    if case.context:
        params["context"] = case.context
    work = os.path.join(folder, case.name)
    oracle.write_task(work, params, data)
    requests = {}
    for line in run_program(build, "tests/eval_requests", work, model, str(CONTEXT)).split("\n")[:-1]:
        line = json.loads(line)
        requests.setdefault(line["item"], []).append(line)
    if blind:
        return requests, None, None
    run_program(build, "bin/prereg-eval", folder=work)
    items = {line["item"]: line for line in read_lines(os.path.join(work, "items.jsonl"))[1:]}
    with open(os.path.join(work, "result.json"), encoding="utf-8") as f:
        return requests, items, json.load(f)


def join(case, requests, results):
    """Pairs (our item's number, the harness's sample), in our order."""
    if case.members is None:
        samples = {s["doc_id"]: s for s in results["samples"][case.theirs]}
        return [(i, samples[i]) for i in sorted(samples)], len(samples) == len(requests)
    pairs, at, whole = [], {}, True
    for i in sorted(requests):
        group = requests[i][0]["group"]
        samples = results["samples"][case.members[group]]
        k = at[group] = at.get(group, -1) + 1
        pairs.append((i, next(s for s in samples[k:k + 1] if s["doc_id"] == k)))
    for group, name in case.members.items():
        whole = whole and at.get(group, -1) + 1 == len(results["samples"][name])
    return pairs, whole


def check_requests(model, pairs, requests, tally):
    """Texts and token ids as they go in, of every request."""
    for i, sample in pairs:
        ours, theirs = requests.get(i, []), sample["arguments"]
        if len(ours) != len(theirs):
            tally.fault(f"item {i}: {len(ours)} requests, the harness makes {len(theirs)}")
            continue
        for k, (mine, yours) in enumerate(zip(ours, theirs)):
            check_request(model, f"item {i}, request {k}", mine, yours, tally)
    tally.items += len(pairs)


def check_request(model, where, mine, yours, tally):
    tally.requests += 1
    if len(yours) == 1:  # rolling: windows
        windows = model.windows(yours[0])
        if (mine["continuation"], mine["windows"]) != (yours[0], windows):
            tally.fault(f"{where}: {mine} against {yours[0]!r}, {windows}")
        tally.tokens += sum(len(ids) - 1 for ids, _ in windows)
        return
    if isinstance(yours[1], dict):
        text, continuation = yours[0], ""
        ids, cut = model.prompt(text, MAX_TOKENS)
        n = 0
    else:
        text, continuation = yours
        ids, n, cut = model.fed((text, continuation))
    tally.tokens += len(ids) - (n > 0)
    tally.cut += cut > 0
    if (mine["context"], mine["continuation"]) != (text, continuation):
        tally.fault(f"{where}: the texts differ:\n    ours  {mine['context']!r} + {mine['continuation']!r}\n"
                    f"    their {text!r} + {continuation!r}")
    elif (mine["tokens"], mine["first"], mine["cut"]) != (ids, len(ids) - n, cut):
        tally.fault(f"{where}: the tokens differ:\n    ours  {mine['tokens']} {mine['first']} {mine['cut']}\n"
                    f"    their {ids} {len(ids) - n} {cut}")


def best(scores):
    """(index of the first greatest, distance to the next)."""
    top = max(range(len(scores)), key=lambda i: scores[i])
    rest = [s for i, s in enumerate(scores) if i != top]
    return top, scores[top] - max(rest) if rest else math.inf


def check_scores(model, pairs, items, tally):
    """Log-likelihoods, greedy flags, predictions. True: every prediction is the same."""
    same = True
    for i, sample in pairs:
        line = items[i]
        theirs = [r[0] for r in sample["resps"]]
        for k, (ll, greedy) in enumerate(theirs):
            difference = abs(line["ll"][k] - ll)
            tally.worst = max(tally.worst, difference)
            tally.relative = max(tally.relative, difference / max(1.0, abs(ll)))
            if not difference <= LIMIT:
                check_sum(model, f"item {i}, request {k}", sample["arguments"][k], (line["ll"][k], ll), tally)
            if bool(line["greedy"][k]) != greedy:
                check_greedy(model, f"item {i}, request {k}", sample["arguments"][k], tally)
        same = check_prediction(i, line, sample, [ll for ll, _ in theirs], tally) and same
    return same


def check_sum(model, where, texts, scores, tally):
    """The harness adds its log-probabilities in float32: of a sum of -1,000 the last bit is 6e-5. Added in float64, they are close."""
    ids, n, _ = model.fed(tuple(texts))
    each = torch.log_softmax(model.logits(ids[:-1]), dim=-1)[-n:].gather(1, torch.tensor(ids[-n:])[:, None])
    exact = float(each.double().sum())
    tally.rounded += 1
    tally.exact = max(tally.exact, abs(scores[0] - exact))
    if not abs(scores[0] - exact) <= LIMIT:
        tally.fault(f"{where}: log-likelihood {scores[0]!r}, the harness's {scores[1]!r}, in float64 {exact!r}")


def check_greedy(model, where, texts, tally):
    """A flag may differ where some token's logit is beaten, or beats, by less than NEAR."""
    ids, n, _ = model.fed(tuple(texts))
    logits = model.logits(ids[:-1])[-n:]
    chosen = logits.gather(1, torch.tensor(ids[-n:])[:, None])[:, 0]
    top = logits.topk(2, dim=1).values
    margin = torch.where(chosen >= top[:, 0], chosen - top[:, 1], top[:, 0] - chosen)
    tally.greedy_near += 1
    if not float(margin.min()) <= NEAR:
        tally.fault(f"{where}: greedy differs, no logits closer than {float(margin.min())}")


def check_prediction(i, line, sample, theirs, tally):
    same = True
    for metric, scores in (("acc", theirs), ("acc_norm", None)):
        if metric not in sample or metric not in line:
            continue
        if scores is None:
            lengths = [len(a[1]) - 1 for a in sample["arguments"]]
            scores = [ll / n for ll, n in zip(theirs, lengths)]
        _, margin = best(scores) if len(scores) > 1 else (0, math.inf)
        tally.near += margin <= NEAR
        if line[metric] != sample[metric]:
            same = False
            if not margin <= NEAR:
                tally.fault(f"item {i}: {metric} {line[metric]}, the harness's {sample[metric]}, best two {margin} apart")
    return same


def check_generations(model, pairs, items, tally):
    """Texts, filters and matches; where a text differs, the logits at the first other token are a near tie."""
    same = True
    for i, sample in pairs:
        line, text = items[i], sample["resps"][0][0]
        if line["text"] != text:
            same = False
            margin = generation_margin(model, sample["arguments"][0][0], line["text"], text)
            tally.near += 1
            if not margin <= NEAR:
                tally.fault(f"item {i}: generates {line['text']!r}, the harness {text!r}; logits {margin} apart")
    return same


def generation_margin(model, prompt, ours, theirs):
    """How far apart the two likeliest logits are where the texts part."""
    start, _ = model.prompt(prompt, MAX_TOKENS)
    a, b = model.tok_encode(ours), model.tok_encode(theirs)
    n = next((k for k, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    top = model.logits(start + a[:n])[-1].topk(2).values
    return float(top[0] - top[1])


def check_value(what, ours, theirs, tally):
    if isinstance(theirs, str) or theirs is None:
        good = ours is None
    else:
        good = ours is not None and math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12)
    if not good:
        tally.fault(f"{what}: {ours}, the harness's {theirs}")


def check_metrics(case, results, result, same, loose, tally):
    """Aggregates and their standard errors; with a prediction that differs they have nothing to agree on."""
    names = {"acc": "acc,none", "acc_norm": "acc_norm,none", "perplexity": "perplexity,none",
             "word_perplexity": "word_perplexity,none", "byte_perplexity": "byte_perplexity,none",
             "bits_per_byte": "bits_per_byte,none", "exact_match:strict": "exact_match,strict-match",
             "exact_match:flexible": "exact_match,flexible-extract"}
    groups = {"": case.theirs, **{f":{g}": n for g, n in (case.members or {}).items()}}
    if case.members:
        groups.update({f":{g}": f"{case.theirs}_{g}" for g in harness.GROUPS if f"{case.theirs}_{g}" in results["results"]})
    compared = 0
    for suffix, theirs in groups.items():
        for ours, key in names.items():
            record = results["results"][theirs]
            if key not in record:
                continue
            metric = result["metrics"].get(ours + suffix)
            if metric is None:
                tally.fault(f"no metric {ours}{suffix}")
                continue
            compared += 1
            if not same:
                continue
            value, se = record[key], record[key.replace(",", "_stderr,")]
            if loose:  # of log-likelihoods, which are only close
                for what, a, b in (("value", metric["value"], value), ("se", metric.get("se"), se)):
                    if not (b == "N/A" and a is None or b != "N/A" and a is not None and math.isclose(a, b, rel_tol=1e-4)):
                        tally.fault(f"{ours}{suffix}, {what}: {a}, the harness's {b}")
            else:
                check_value(ours + suffix, metric["value"], value, tally)
                check_value(f"{ours}{suffix}, standard error", metric.get("se"), se, tally)
    if compared == 0:
        tally.fault("no metric was compared")


def compare(build, folder, model, path, case, results, blind=False):
    tally = Tally()
    requests, items, result = ask_ours(build, folder, path, case, blind)
    pairs, whole = join(case, requests, results)
    if not whole:
        tally.fault("another number of items")
    check_requests(model, pairs, requests, tally)
    if not blind:
        kind = check_generations if case.task == "gsm8k" else check_rolling if case.task == "wikitext" else check_scores
        same = kind(model, pairs, items, tally)
        loose = case.task in ("lambada_openai", "wikitext")
        check_metrics(case, results, result, same, loose, tally)
        if "cut" in next(iter(items.values())) and sum(line["cut"] > 0 for line in items.values()) and not tally.cut:
            tally.fault("items.jsonl has cut tokens, the harness cut none")
    report(case, tally, blind)
    return tally


def check_rolling(model, pairs, items, tally):
    for i, sample in pairs:
        ll = sample["resps"][0][0]
        difference = abs(items[i]["ll"][0] - ll)
        tally.worst, tally.relative = max(tally.worst, difference), max(tally.relative, difference / max(1.0, abs(ll)))
        if not difference <= LIMIT * max(1.0, abs(ll) / 100.0):
            tally.fault(f"item {i}: log-likelihood {items[i]['ll'][0]!r}, the harness's {ll!r}")
    return True


def report(case, tally, blind):
    scores = "" if blind else (f", ll within {tally.worst:.1e} (relative {tally.relative:.1e}), near ties {tally.near}, "
                               f"greedy near ties {tally.greedy_near}")
    if tally.rounded:
        scores += f", {tally.rounded} over {LIMIT} by the harness's float32 sum (in float64 within {tally.exact:.1e})"
    print(f"{case.name}: {tally.items} items, {tally.requests} requests, {tally.tokens} tokens, {tally.cut} truncated{scores}"
          f"{', FAULTS ' + str(len(tally.wrong)) if tally.wrong else ''}", flush=True)
    for text in tally.wrong[:SHOWN]:
        print("  " + text, flush=True)
