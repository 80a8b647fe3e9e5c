"""An ordinary training script as a worker. What is preregd's: setup(), the lines with `w`, and the last one."""

import math
import os
import random
import statistics

import chars
import preregd_worker as prereg

VALIDATION = 2000  # positions


def setup(w):
    p = {"reach": w.params.integer("reach", 1, 4), "steps": w.params.integer("steps", 1, 10**6),
         "batch": w.params.integer("batch", 1, 4096), "lr": w.params.number("lr", 0, 10, 0.5),
         "seed": w.params.integer("seed", 0, 2**53 - 1)}
    w.params.finish()
    p["characters"], p["ids"] = chars.read_text(w.data("corpus"))
    if len(p["ids"]) - chars.split(p["ids"]) < VALIDATION:
        raise prereg.DataFault(f"data \"corpus\": {len(p['ids'])} characters are too few")
    w.will_measure("val_loss")
    w.fact("params_total", p["reach"] * len(p["characters"]) ** 2)
    w.fact("steps", p["steps"])
    w.fact("tokens", p["steps"] * p["batch"])
    return p


def work(w, p):
    model, ids = chars.Model(p["characters"], p["reach"]), p["ids"]
    end = chars.split(ids)
    start = w.resume(model.load)
    for step in w.steps(start, p["steps"], model.save):
        # Drawn anew from seed and step: no generator's state has to be kept.
        draw = random.Random(f"{p['seed']} {step}")
        positions = [draw.randrange(p["reach"], end) for _ in range(p["batch"])]
        loss = model.learn(ids, positions, p["lr"] * (1 - step / p["steps"]))
        if step % 50 == 0:
            w.point(step, "loss", loss)
    w.section("eval")
    losses = [-math.log(model.probabilities(model.rows(ids, at))[ids[at]]) for at in range(end, end + VALIDATION)]
    w.metric("val_loss", statistics.fmean(losses), n=VALIDATION, se=statistics.stdev(losses) / math.sqrt(VALIDATION))
    os.makedirs("model", exist_ok=True)
    model.save("model")
    w.artifact("model/table.bin")
    w.artifact("model/model.json")


prereg.run(setup, work)
