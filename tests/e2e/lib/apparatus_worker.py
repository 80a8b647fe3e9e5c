#!/usr/bin/env python3
"""Quick worker of apparatus programs. Trains by writing one number; scores whatever folder it is given by that number,
and goes on while the file of its parameter `hold` is there, a second run while HOLD.end is. What HOLD.shift has is added to the score of a second run;
"none" ends it."""

import hashlib
import json
import os
import sys
import time

if "--describe" in sys.argv:
    sys.exit(64)
with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
    task = json.load(f)
params, stage = task["params"], task["stage"]
with open(os.environ["PREREG_EVENTS"], "ab", buffering=0) as events:
    events.write(b'{"type":"section","name":"step"}\n')
result = {"protocol": 1, "attempt": task["attempt"], "facts": {"threads": 1, "blas": "OpenBLAS 0.3, core Haswell"}}
if stage == "train":
    result["facts"]["threads"] = 1e300  # no number of threads: not believed
    with open("model.json", "w", encoding="utf-8") as f:
        json.dump({"skill": 0.6}, f)
    with open("model.json", "rb") as f:
        raw = f.read()
    result["metrics"] = {"loss": {"value": 3.0}}
    result["artifacts"] = [{"path": "model.json", "sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)}]
else:
    if (task["cell"] is None) != ("apparatus" in task):
        sys.exit(64)
    while os.path.exists(params["hold"]) and task["cell"] is None:
        time.sleep(0.05)
    while os.path.exists(params["hold"] + ".end") and "@end" in os.environ["PREREG_TASK"]:
        time.sleep(0.05)
    with open(os.path.join(task["inputs"]["train"], "model.json"), "rb") as f:
        raw = f.read()
    skill = json.loads(raw)["skill"]
    if task["cell"] is not None:
        result["inputs"] = {"train": hashlib.sha256(raw).hexdigest()}
    if "@end" in os.environ["PREREG_TASK"] and os.path.exists(params["hold"] + ".shift"):
        with open(params["hold"] + ".shift", encoding="utf-8") as f:
            shift = f.read()
        if shift == "none":
            sys.exit(64)  # an evaluator that is gone
        skill += float(shift)  # one that has changed since
    score = {"value": skill, "n": 100} if skill is not None else {"value": None, "why": "it says nothing"}
    result["metrics"] = {"acc": score}
with open("result.tmp", "w", encoding="utf-8") as f:
    json.dump(result, f)
os.replace("result.tmp", "result.json")
