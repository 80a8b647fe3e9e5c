#!/usr/bin/python3
"""A worker whose first run is what its params say, and whose later ones are what the files in its folder of gates say: `chance`
(something else comes out), `broken` (it fails), `set` (the instruction set that it
states), `asked` (it adds a line with its stage and the PREREG_CPU and so on that it finds), `slow` (it does not end, and says its
number in `slow.pid`). It starts when `<stage>.go` is there."""

import hashlib
import json
import os
import sys
import time


def write(name, data):
    with open(name + ".part", "wb") as f:
        f.write(data)
    os.replace(name + ".part", name)


def main():
    with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
        task = json.load(f)
    params, gates = task["params"], task["params"]["gates"]
    while not os.path.exists(os.path.join(gates, task["stage"] + ".go")):
        time.sleep(0.02)
    if os.path.exists(os.path.join(gates, "broken")):
        sys.exit("no such device: /dev/brain")
    if os.path.exists(os.path.join(gates, "asked")):
        with open("/proc/self/environ", encoding="utf-8") as f:  # os.environ hides that a name comes twice
            given = [v for v in f.read().split("\0") if v.startswith("PREREG_") and not v.startswith(("PREREG_TASK", "PREREG_EVENTS"))]
        with open(os.path.join(gates, "asked"), "a", encoding="utf-8") as f:
            print(task["stage"], *sorted(given), file=f)
    if os.path.exists(os.path.join(gates, "slow")):
        write(os.path.join(gates, "slow.pid"), str(os.getpid()).encode())
        time.sleep(600)
    seen = json.dumps([params["word"], task["cell"]["factors"]]).encode()
    for folder in (task.get("inputs") or {}).values():
        with open(os.path.join(folder, "weights"), "rb") as f:
            seen += f.read()
    chance = os.path.exists(os.path.join(gates, "chance"))
    if chance:
        seen += os.urandom(8)
    weights = hashlib.sha256(seen).hexdigest().encode()
    write("weights", weights)
    digest = hashlib.sha256(weights).hexdigest()
    metrics = {"acc": {"value": int(digest[:4], 16) / 65536, "n": 100}, "late": {"value": None, "why": "not_reached"}}
    if chance:
        metrics["turn\u202e\u009b31m"] = {"value": 1}
    facts = {"threads": 1, "at": time.time()}
    if os.path.exists(os.path.join(gates, "set")):
        with open(os.path.join(gates, "set"), encoding="utf-8") as f:
            facts.update(arithmetic=2, instructions=f.read())
    result = {"protocol": 1, "attempt": task["attempt"], "metrics": metrics, "facts": facts, "read": {},
              "artifacts": [{"path": "weights", "sha256": digest, "bytes": len(weights)}]}
    for name in task["data"]:
        result["read"][name] = task["data"][name]["sha256"]
    write("result.json", json.dumps(result).encode())


if "--describe" in sys.argv:
    sys.exit(64)
main()
