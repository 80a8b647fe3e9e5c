#!/usr/bin/python3
"""Waits for the file of its own cell; that of a, 2 needs more memory than the others."""

import json
import os
import sys
import time

ACC = {"a1": 0.7, "a2": 0.1, "b1": 0.6, "b2": 0.5}

if "--describe" in sys.argv:
    sys.exit(64)
with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
    task = json.load(f)
params = task["params"]
cell = f"{params['arm']}{params['seed']}"
held = b"x" * (200 << 20 if cell == "a2" else 1)
while not os.path.exists(os.path.join(params["go"], f"go-{cell}")):
    time.sleep(0.05)
with open("result.json.part", "w", encoding="utf-8") as f:
    json.dump({"protocol": 1, "attempt": task["attempt"], "metrics": {"acc": {"value": ACC[cell], "n": 100}}}, f)
os.rename("result.json.part", "result.json")
