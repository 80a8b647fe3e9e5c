#!/usr/bin/python3
"""Writes what a terminal would obey into its log and its result."""

import json
import os
import sys

if "--describe" in sys.argv:
    sys.exit(64)
with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
    task = json.load(f)
sys.stderr.write("\033]0;owned\007\033[2J of the log\n")
if task["params"]["seed"] == 3:
    sys.exit(64)
result = {"protocol": 1, "attempt": task["attempt"], "metrics": {"acc": {"value": None, "why": "\033[8mhidden"}},
          "facts": {}, "read": {}, "artifacts": []}
with open("result.json", "w", encoding="utf-8") as f:
    json.dump(result, f)
