#!/usr/bin/python3
"""train: leaves its arm's number in model.bin. score: the number that its input holds, and that input's digest."""

import hashlib
import json
import os
import sys
import time

if "--describe" in sys.argv:
    sys.exit(64)
with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
    task = json.load(f)
params = task["params"]
result = {"protocol": 1, "attempt": task["attempt"], "facts": {}, "read": {}}
model = task["inputs"].get("train")
if model is not None:
    with open(os.path.join(model, "model.bin"), "rb") as f:
        data = f.read()
    result.update(metrics={"acc": {"value": float(data), "n": 100}}, inputs={"train": hashlib.sha256(data).hexdigest()})
while not os.path.exists(params["go"]):
    with open(os.environ["PREREG_EVENTS"], "ab", buffering=0) as f:
        f.write(b'{"type":"section","name":"step"}\n')
    time.sleep(0.05)
if model is None:
    data = f"{float(params['models'][params['arm']]) + params['seed'] / 100:.2f}".encode()
    with open("model.bin", "wb") as f:
        f.write(data)
    artifact = {"path": "model.bin", "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    result.update(metrics={}, artifacts=[artifact])
with open("result.json.part", "w", encoding="utf-8") as f:
    json.dump(result, f)
os.rename("result.json.part", "result.json")
