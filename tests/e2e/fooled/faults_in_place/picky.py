#!/usr/bin/python3
"""Describes itself, and finds fault with its parameters."""

import json
import sys

if sys.argv[1:2] != ["--describe"]:
    sys.exit(64)
with open(sys.argv[2], encoding="utf-8") as f:
    params = json.load(f)["params"]
errors = [{"key": k, "why": "unknown parameter"} for k in params if k not in ("seed", "arm", "shape", "width")]
errors += [{"key": "shape.depth", "why": "is odd"}] if params.get("shape", {}).get("depth", 0) % 2 else []
errors += [{"key": "width", "why": "is odd"}] if params.get("width", 0) % 2 else []
print(json.dumps({"protocol": 1, "metrics": [] if errors else ["acc"], "facts": {}, "params": {}, "errors": errors}))
