"""A small program that waits to be amended, and what people do to it, for tests."""

import json
import os
import shutil
import socket
import subprocess

from lib import lab
from lib.lab import ANY, OK, expect
from lib.signers import tool
from lib.two_arms import decision

BAND = "0.85 <= ratio(fact.train.step_seconds, arm, 'b', 'a') <= 1.20"
GRID = """[program]
name = "amended"
schema = 1
question = "Which?"
[[factor]]
name = "arm"
levels = ["a", "b"]
[stage.train]
command = ["./amend_worker.py"]
params = {{ gates = "{gates}", arm = "$arm" }}
[stage.score]
after = ["train"]
command = ["./amend_worker.py"]
params = {{ gates = "{gates}", shots = 5 }}
[measure]
winogrande = {{ metric = "score.acc_norm", items = 100, chance = 0.25, floor = 0.54 }}
""" + decision("arm", ("b", "a"), no="otherwise") + """[validity]
compute_match = {{ condition = "{band}", on_fail = "flag", timing = true }}
[instrument.bayes]
kind = "bayes"
contrast = "arm"
priors = {{ wide = 0.02 }}
"""


def submitted(place, *lock, more="", edit=("", "")):
    shutil.copy2(os.path.join(lab.LIB, "amend_worker.py"), place.write("p/none", "") and place.path("p"))
    grid = place.write("p/grid.toml", GRID.format(gates=place.path("gates"), band=BAND).replace(*edit) + more)
    os.makedirs(place.path("gates"), exist_ok=True)
    place.env["XDG_CONFIG_HOME"] = place.path("config")
    place.ctl("lock", grid, *lock)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    return grid


def gate(place, stage):
    place.write(f"gates/{stage}.go", "")


def amend(place, grid, *more, wanted=OK):
    return place.ctl("amend", grid, "--reason", "as published", *more, wanted=wanted)


def task_of(folder):
    """What an attempt was given: task.json, or, once it has ended well, a member of exit.json; None before either is there."""
    if os.path.exists(os.path.join(folder, "task.json")):
        return read(folder, "task.json")
    try:
        return read(folder, "exit.json")["task"]
    except FileNotFoundError:
        return None


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as f:
        text = f.read()
    try:
        return json.loads(text)
    except ValueError as error:
        raise lab.Failed(f"{os.path.join(*parts)}: {error}: {text[:200]!r}") from error


def raw(place, params, method="amend"):
    """One request on the socket; its result, or its error."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(os.path.join(place.state, "preregd.sock"))
        s.sendall(json.dumps({"schema": 1, "id": 1, "method": method, "params": params}).encode() + b"\n")
        answer = json.loads(s.makefile(encoding="utf-8").readline())
    return answer["result"] if answer["ok"] else answer["error"]


def raw_prepare(place, grid):
    return raw(place, {"path": grid, "reason": "by hand"})


def raw_amend(place, grid, **more):
    return raw(place, {"commit": raw_prepare(place, grid)["amendment"]["head"], **more})


def text_of(amendment):
    """What head and signature are over; no number in it needs more than json's own form."""
    body = {k: v for k, v in amendment.items() if k not in ("head", "signature")}
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def resigned(place, amendment, by):
    place.write("text", text_of(amendment))
    if os.path.exists(place.path("text.sig")):
        os.remove(place.path("text.sig"))
    tool(place, "ssh-keygen", "-Y", "sign", "-n", "preregd", "-f", by, place.path("text"))
    with open(place.path("text.sig"), encoding="utf-8") as f:
        return {"format": "sshsig", "namespace": "preregd", "fingerprint": fingerprints(place, by)[0].split()[1], "armored": f.read()}


def fingerprints(place, *keys):
    return [subprocess.run(["ssh-keygen", "-l", "-f", k + ".pub"], capture_output=True, text=True, check=True).stdout for k in keys]


def lock_signature(grid):
    return read(grid + ".lock")["signature"]


def refused(place, grid, old, new, *words):
    """The edit is refused by name, and taken back."""
    place.edit(grid, old, new)
    run = amend(place, grid, wanted=ANY)
    for word in words:
        expect(word in run.stderr, f"{new}: {run.stderr!r} does not say {word!r}")
    place.edit(grid, new, old)


def serve_again(place, stop=True):
    if stop:
        place.kill_daemon()
    place.serve()


def unloaded(place):
    """Why the only program is not loaded; "" when it is."""
    answer = place.ctl_json("status")
    return answer["unloaded"][0]["why"] if answer["unloaded"] else ""


def submit(place, grid, *words, wanted=OK):
    run = place.must(wanted, "preregd", "submit", grid)
    for word in words:
        expect(word in run.stdout + run.stderr, f"submit: {run.stdout!r}{run.stderr!r} do not say {word!r}")
