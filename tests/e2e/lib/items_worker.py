#!/usr/bin/env python3
"""Quick worker that scores items: twenty in two groups, right or wrong by arm, seed and number. Its parameter `lie` is
added to the score that it states, and to nothing else."""

import hashlib
import json
import os
import sys

if "--describe" in sys.argv:
    sys.exit(64)
with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
    task = json.load(f)
params = task["params"]
result = {"protocol": 1, "attempt": task["attempt"], "facts": {"threads": 1}}
if task["stage"] == "train":
    result["metrics"] = {"loss": {"value": 2.5}}
else:
    items = []
    for i in range(20):
        right = (7 * i + 3 * params["seed"]) % 10 < (8 if params["arm"] == "a" else 6)
        items.append({"item": i, "group": "odd" if i % 2 else "even", "acc": int(right)})
    with open("items.jsonl", "w", encoding="utf-8") as f:
        f.writelines(json.dumps(x) + "\n" for x in [{"engine": "items_worker"}, *items, {"item": 20, "group": "even", "fault": "empty"},
                                                        {"item": 21, "group": "even", "acc": 0, "fault": None}])
    with open("items.jsonl", "rb") as f:
        raw = f.read()
    mean = lambda xs: {"value": sum(xs) / len(xs), "n": len(xs)}
    acc = mean([x["acc"] for x in items])
    acc["value"] += params["lie"]
    result["metrics"] = {"acc": acc, "centered": {"value": 2 * acc["value"] - 1}}
    for group in ("odd", "even"):
        result["metrics"]["acc:" + group] = mean([x["acc"] for x in items if x["group"] == group])
    result["artifacts"] = [{"path": "items.jsonl", "sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)}]
    result["items"] = "items.jsonl"
with open("result.tmp", "w", encoding="utf-8") as f:
    json.dump(result, f)
os.replace("result.tmp", "result.json")
