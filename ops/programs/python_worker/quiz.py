"""An evaluation as a worker, resumed item by item: which of some characters comes next in text that training did not see?"""

import math
import os
import random

import chars
import preregd_worker as prereg


def setup(w):
    p = {"items": w.params.integer("items", 1, 10**6), "choices": w.params.integer("choices", 2, 16),
         "seed": w.params.integer("seed", 0, 2**53 - 1)}
    w.params.finish()
    w.data("corpus")
    w.will_measure("acc")
    return p


def ask(model, ids, draw, n_choices):
    """One item: a held-out position, the character there and others to choose from."""
    at = draw.randrange(chars.split(ids), len(ids))
    others = [c for c in range(model.n) if c != ids[at]]
    choices = [ids[at], *draw.sample(others, n_choices - 1)]
    draw.shuffle(choices)
    p = model.probabilities(model.rows(ids, at))
    ll = [math.log(p[c]) for c in choices]
    gold, pred = choices.index(ids[at]), ll.index(max(ll))
    return {"at": at, "ll": ll, "gold": gold, "pred": pred, "acc": int(pred == gold)}


def work(w, p):
    folder = os.path.join(w.input("train"), "model")
    model = chars.Model.open(folder)
    _, ids = chars.read_text(w.data("corpus"))
    items = w.items(model=prereg.digest_path(folder))
    for i in items.remaining(p["items"]):
        items.append(**ask(model, ids, random.Random(f"{p['seed']} {i}"), p["choices"]))
    mean = sum(line["acc"] for line in items.lines) / p["items"]
    w.metric("acc", mean, n=p["items"], se=math.sqrt(mean * (1 - mean) / max(1, p["items"] - 1)))


prereg.run(setup, work)
