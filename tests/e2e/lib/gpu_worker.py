#!/usr/bin/env python3
"""Writes down what it sees of GPUs and its own number, then waits for its file of params.until to be there."""

import hashlib
import json
import os
import sys
import time

if "--describe" in sys.argv:
    sys.exit(64)
with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
    task = json.load(f)
seen = {name: os.environ[name] for name in os.environ if "VISIBLE" in name or name.startswith("CUDA")}
seen["pid"] = os.getpid()
with open("seen.tmp", "w", encoding="utf-8") as f:
    json.dump(seen, f)
os.replace("seen.tmp", "seen.json")
with open(os.environ["PREREG_EVENTS"], "ab", buffering=0) as events:
    events.write(b'{"type":"section","name":"step"}\n')
while task["stage"] == "train" and not os.path.exists(task["params"]["until"]):
    time.sleep(0.02)
with open("seen.json", "rb") as f:
    raw = f.read()
result = {"protocol": 1, "attempt": task["attempt"], "facts": {},
          "metrics": {"acc" if task["stage"] == "score" else "loss": {"value": 0.6, "n": 100} if task["stage"] == "score" else {"value": 3.0}},
          "artifacts": [{"path": "seen.json", "sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)}]}
with open("result.tmp", "w", encoding="utf-8") as f:
    json.dump(result, f)
os.replace("result.tmp", "result.json")
