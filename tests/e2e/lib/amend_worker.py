#!/usr/bin/env python3
"""Quick worker of the amended program: a stage goes on only when the file `<stage>.go` is in the folder of its program, and writes
its own params into result.json as facts. The first attempt at a score lacks the metric that `lacks` names."""

import json
import os
import sys
import time

if "--describe" in sys.argv:
    sys.exit(64)
with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
    task = json.load(f)
with open(os.environ["PREREG_EVENTS"], "ab", buffering=0) as events:
    events.write(b'{"type":"section","name":"step"}\n')
while not os.path.exists(os.path.join(task["params"]["gates"], task["stage"] + ".go")):
    time.sleep(0.02)
metrics = {"loss": {"value": 3.0}}
if task["stage"] == "score":
    metrics = {"acc_norm": {"value": 0.56, "n": 100}, "acc": {"value": 0.5, "n": 100}}
result = {"protocol": 1, "attempt": task["attempt"], "metrics": metrics,
          "facts": {"step_seconds": 1.0 if task["cell"]["factors"]["arm"] == "a" else 1.25, "shots": task["params"].get("shots", 0)}}
if task["stage"] == "score" and task["attempt_no"] == 1:
    metrics.pop(task["params"].get("lacks"), None)
with open("result.tmp", "w", encoding="utf-8") as f:
    json.dump(result, f)
os.replace("result.tmp", "result.json")
