#!/usr/bin/python3
"""Waits for the file of its own cell."""

import json
import os
import sys
import time

if "--describe" in sys.argv:
    sys.exit(64)
with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
    task = json.load(f)
params = task["params"]
while not os.path.exists(os.path.join(params["go"], f"go-{params['arm']}{params['seed']}")):
    time.sleep(0.05)
with open("result.json.part", "w", encoding="utf-8") as f:
    json.dump({"protocol": 1, "attempt": task["attempt"], "metrics": {"acc": {"value": 0.6, "n": 100}}}, f)
os.rename("result.json.part", "result.json")
