#!/usr/bin/env python3
"""[[same_work]]: a work under several names runs once, and a contrast across them is 0 by construction; receipt, rebuild and rerun
know it; what is not one work is refused."""

import json
import os
import re

from lib import lab
from lib.lab import INVALID, OK, equal, expect
from lib.two_arms import decision

GRID = """[program]
name = "names"
schema = 1
question = "Does the budget matter?"
[[factor]]
name = "arm"
levels = ["a", "b"]
[[factor]]
name = "budget"
levels = ["small", "large"]
[[factor]]
name = "seed"
levels = [1, 2, 3]
replicate = true
[stage.train]
command = ["./worker.py"]
params = {{ arm = "$arm", seed = "$seed" }}
[stage.train.when.budget]
small = {{ reach = {{ per = "part", n = 4 }} }}
large = {{ reach = {{ per = "whole", n = 4 }} }}
[stage.score]
after = ["train"]
command = ["./worker.py"]
[measure]
acc = {{ metric = "score.acc", items = 100, chance = 0.25, floor = 0.3 }}
""" + decision("arm", ("b", "a"), no="otherwise") + """[exclusion]
budget = 0.5
{more}"""
CONTRASTS = """[contrast.budget]
between = { budget = ["large", "small"] }
[contrast.of_a]
between = { budget = ["large", "small"] }
where = { arm = "a" }
"""
SAME = '[[same_work]]\nacross = "budget"\nwhere = { arm = "a" }\n'

# For arm a a part is the whole. Every run leaves a line in `ran`.
WORKER = '''#!/usr/bin/python3
import hashlib, json, os, sys
task = json.load(open(sys.argv[2] if "--describe" in sys.argv else os.environ["PREREG_TASK"]))
params = task["params"]
reach = params.get("reach")
steps = None if reach is None else reach["n"] * (1 if params["arm"] == "a" or reach["per"] == "part" else 3)
if "--describe" in sys.argv:
    answer = {"protocol": 1, "metrics": ["acc"] if reach is None else ["loss"], "facts": {}}
    if reach is not None:
        answer["resolves"] = {"reach": steps}
    print(json.dumps(answer))
    sys.exit()
def write(name, data):
    with open(name + ".part", "wb") as f:
        f.write(data)
    os.replace(name + ".part", name)
with open(RAN, "a") as f:
    print(task["cell"]["name"], task["stage"], file=f)
result = {"protocol": 1, "attempt": task["attempt"], "facts": {}, "read": {}}
if reach is not None:
    os.mkdir("model")
    weights = json.dumps([params["arm"], params["seed"], steps]).encode()
    write("model/weights", weights)
    result["artifacts"] = [{"path": "model/weights", "sha256": hashlib.sha256(weights).hexdigest(), "bytes": len(weights)}]
    result["metrics"] = {"loss": {"value": None, "why": "not_reached"}}
else:
    weights = open(os.path.join(task["inputs"]["train"], "model/weights"), "rb").read()
    arm, seed, steps = json.loads(weights)
    items = b"{}\\n"
    write("items.jsonl", items)
    result["artifacts"] = [{"path": "items.jsonl", "sha256": hashlib.sha256(items).hexdigest(), "bytes": len(items)}]
    result["items"] = "items.jsonl"
    result["inputs"] = {"train": hashlib.sha256(weights).hexdigest()}
    result["metrics"] = {"acc": {"value": (40 + seed + (steps if arm == "b" else 0)) / 100, "n": 100}}
write("result.json", json.dumps(result).encode())
'''


def prepared(place, more, worker=WORKER, folder="names"):
    place.write(folder + "/worker.py", worker.replace("RAN", repr(place.path("ran"))))
    os.chmod(place.path(folder + "/worker.py"), 0o755)
    return place.write(folder + "/grid.toml", GRID.format(more=more).replace("[counter]", CONTRASTS + "[counter]"))


def finished(place):
    grid = prepared(place, SAME)
    place.ctl("lock", grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(60)
    return grid


def ran(place):
    with open(place.path("ran"), encoding="utf-8") as f:
        return sorted(f.read().splitlines())


def figures(verdict):
    return {(c["name"], m["measure"]): m for c in verdict["contrasts"] for m in c["measures"]}


def test_it_runs_once(place):
    """Nine cells of twelve run; the others have the same result, and the comparison of the two names is none."""
    finished(place)
    runs = ran(place)
    equal(len(runs), 18, "runs")
    expect(not [r for r in runs if "arm=a,budget=large" in r], "\n".join(runs))
    folder = place.program_folder()
    for stage in ("train", "score"):
        results = {}
        for budget in ("small", "large"):
            with open(os.path.join(folder, "cells", f"arm=a,budget={budget},seed=2", stage, "result.json"), "rb") as f:
                results[budget] = json.load(f)
        same = results["large"].pop("same_work")
        equal(same["attempt"], results["small"].pop("attempt"), "whose work it is")
        results["large"].pop("attempt")
        equal(results["large"], results["small"], f"the result of {stage}")
    with open(os.path.join(folder, "report", "verdict.json"), encoding="utf-8") as f:
        verdict = json.load(f)
    of_a, budget, arm = (figures(verdict)[name, "acc"] for name in ("of_a", "budget", "arm"))
    equal((of_a["mean"], of_a["n"], of_a["se"], of_a["ci_low"]), (0, 0, None, None), "within one work")
    # arm b gains 8 points from the large budget, arm a nothing by construction; both the same for every seed
    equal((round(budget["mean"], 9), budget["n"]), (0.04, 3), "over both arms")
    equal(arm["n"], 3, "replicates of arm")
    notes = "\n".join(verdict["notes"])
    expect("6 of 24 tasks are another name of a work" in notes and "contrast of_a in acc is 0 by construction" in notes, notes)
    expect("not independent" not in notes, notes)


def reused(place, receipt):
    """A successor that takes the names for works of their own gets the results of the works alone."""
    taken = f'[reuse]\nreceipt = "{receipt}"\ncells = "matching"\n'
    said = place.ctl("check", prepared(place, taken, folder="after")).stderr
    expect("9 of 12 cells are taken" in said and "arm=a,budget=large,seed=1 runs: stage train: params.reach" in said, said)


def test_receipt_and_rebuild(place):
    """The receipt holds, says what is another name, and a forged one does not; the state is rebuilt from the files; a name is rerun."""
    finished(place)
    folder = place.program_folder()
    answer = place.ctl_json("rerun", "arm=a,budget=large,seed=2")
    equal(answer["same"], True, "rerun of another name")
    receipt = place.ctl_json("export", "-o", place.path("out"))
    place.ctl("verify", receipt["folder"])
    reused(place, receipt["folder"])
    place.ctl("stop")
    place.wait_for(lambda: "preregd" not in place.processes().values(), 20, "the daemon stops")
    before = lab.results(folder)
    for name in os.listdir(place.state):
        if name.startswith("preregd.db"):
            os.remove(os.path.join(place.state, name))
    place.ctl("rebuild")
    equal(lab.results(folder), before, "the accepted results")
    place.serve()
    status = place.ctl_json("status")
    expect("unverified" not in json.dumps(status).lower() or '"history": "verified"' in json.dumps(status), json.dumps(status))


def test_what_is_not_one_work(place):
    """Refused by check where the worker says otherwise, or not enough; what could be declared is suggested."""
    grid = prepared(place, SAME.replace('"a"', '"b"'))
    said = place.ctl("check", grid, wanted=INVALID)
    text = said.stdout + said.stderr
    expect("stage train is not the same work in arm=b,budget=large,seed=1 as in arm=b,budget=small,seed=1: `reach` differs" in text, text)
    expect(re.search(r"grid\.toml:\d+:\d+: error: same_work", text), text)
    expect("factor.budget: arm=a,budget=large resolves to the same work as arm=a,budget=small" in text, text)
    place.ctl("lock", grid, wanted=INVALID)
    expect(not os.path.exists(grid + ".lock"), "it was locked")
    grid = prepared(place, SAME, WORKER.replace('answer["resolves"]', 'answer["reveals"]'))
    text = place.ctl("check", grid, wanted=INVALID).stderr
    expect("the worker does not say that it comes to the same" in text, text)
    grid = prepared(place, SAME)
    said = place.ctl("check", grid)
    expect("24 tasks (6 of them another name of a work)" in said.stdout, said.stdout)
    with open(grid, encoding="utf-8") as f:
        text = f.read()
    place.write("names/grid.toml", text.replace('"counter.k == 1"', '"contrast.of_a[acc].ci_low > 0"'))
    text = place.ctl("check", grid, wanted=INVALID).stderr
    expect("contrast.of_a[acc].ci_low is never known: its cells are one work" in text, text)


lab.main(test_it_runs_once, test_receipt_and_rebuild, test_what_is_not_one_work)
