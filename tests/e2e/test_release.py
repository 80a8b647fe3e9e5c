#!/usr/bin/env python3
"""[release] requires: a receipt is released once different reviewers have signed it in every role that the plan names, and `verify`
ends with 3 until then."""

import json
import os
import shutil

from lib import lab, signers
from lib.lab import LOCK, OK, USAGE, equal, expect

MICRO = os.path.join(lab.TOP, "ops/programs/micro/grid.toml")


def receipt(place):
    """Of an imported program with the plan of micro, which requires two roles."""
    with open(MICRO, encoding="utf-8") as f:
        grid = place.write("p/grid.toml", f.read() + '\n[release]\nrequires = ["scientific", "adversarial"]\n')
    found = []
    for arch in ("dense", "moe"):
        for seed in (1, 2, 3):
            score = {"acc": {"value": 0.6 if arch == "moe" else 0.5, "n": 60}}
            for stage, metrics, facts in (("train", {"val_loss": 2.0}, {"params_active": 100}), ("grammar", score, {}), ("giving", score, {})):
                found.append({"cell": f"arch={arch},seed={seed}", "stage": stage, "end": "done", "metrics": metrics, "facts": facts})
    records = place.write("records.json", json.dumps({"schema": 1, "program": "micro", "label": "made up", "records": found}))
    place.ctl_json("replay", grid, records, "--out", place.path("replayed"))
    with open(place.path("replayed/report/report.md"), encoding="utf-8") as f:
        expect("scientific, adversarial. They sign a receipt" in f.read(), "the report does not say what release requires")
    return place.ctl_json("export", place.path("replayed"), "--out", place.path("out"))["folder"]


def release(place, folder, *trust, wanted):
    answer = place.ctl_json("verify", folder, *trust, wanted=wanted)
    equal((answer["holds"], answer["fault"]), (True, None), "what follows, released or not")
    return answer["release"], answer["signatures"]


def test_release(place):
    place.env["XDG_CONFIG_HOME"] = place.path("config")
    for name in ("PREREGD_ALLOWED_SIGNERS", "SSH_AUTH_SOCK", "SSH_ASKPASS_REQUIRE"):
        place.env.pop(name, None)
    folder = receipt(place)
    sara, adam, eve = (signers.key(place, n) for n in ("sara", "adam", "eve"))
    trust = ("--allowed-signers", signers.allow(place, "sara", "adam"))
    found, signed = release(place, folder, *trust, wanted=LOCK)
    equal((found["requires"], found["missing"], found["released"], signed),
          (["scientific", "adversarial"], ["scientific", "adversarial"], False, []), "unsigned")
    said = place.ctl("verify", folder, *trust, wanted=LOCK).stdout
    expect("NOT RELEASED  no allowed signer signed it as: scientific, adversarial" in said, said)
    run = place.ctl("sign", folder, "--key", sara, "--role", "scientist", wanted=USAGE)
    expect('did you mean scientific?' in run.stderr, run.stderr)
    place.ctl("sign", folder, "--key", sara)  # in no role
    equal(release(place, folder, *trust, wanted=LOCK)[0]["missing"], ["scientific", "adversarial"], "signed in no role")
    path = place.ctl_json("sign", folder, "--key", sara, "--role", "scientific")["signature"]
    expect(os.path.basename(path).startswith("scientific-"), path)
    equal(release(place, folder, *trust, wanted=LOCK)[0]["missing"], ["adversarial"], "signed in one role")
    place.ctl("sign", folder, "--key", eve, "--role", "adversarial")
    equal(release(place, folder, *trust, wanted=LOCK)[0]["missing"], ["adversarial"], "signed by a key that is not allowed")
    place.ctl("sign", folder, "--key", sara, "--role", "adversarial")
    found, _ = release(place, folder, *trust, wanted=LOCK)
    expect(found["missing"] == [] and "one reviewer signed in more than one role" in found["why"], f"one reviewer in two roles: {found}")
    second = signers.key(place, "second")
    with open(second + ".pub", encoding="utf-8") as f:
        place.edit(trust[1], "sara@lab", f"sara@lab {' '.join(f.read().split()[:2])}\nsara@lab")
    own = place.ctl_json("sign", folder, "--key", second, "--role", "adversarial")["signature"]
    found, signed = release(place, folder, *trust, wanted=LOCK)
    expect("another key and another principal" in found["why"], f"one reviewer with two keys: {found}")
    equal([s["principal"] for s in signed if s["role"] == "adversarial" and s["allowed"]], ["sara@lab", "sara@lab"], "whose keys")
    os.unlink(own)
    place.ctl("sign", folder, "--key", adam, "--role", "adversarial")
    for path in (folder, folder + ".tar"):
        found, signed = release(place, path, *trust, wanted=OK)
        equal((found["released"], found["why"]), (True, None), path)
        equal(sorted((s["role"] or "", s["principal"] or "") for s in signed),
              [("", "sara@lab"), ("adversarial", ""), ("adversarial", "adam@lab"), ("adversarial", "sara@lab"), ("scientific", "sara@lab")],
              "signatures")
        said = place.ctl("verify", path, *trust, wanted=OK).stdout
        expect("\nreleased  " in said and "as its reviewer: adversarial, an allowed signer" in said, said)
    found, _ = release(place, folder, wanted=LOCK)
    expect("--allowed-signers FILE names whom you trust" in found["why"], f"for a reader who trusts nobody: {found}")
    check_roles(place, folder, trust)


def check_roles(place, folder, trust):
    """A signature in one role is none in another, and an allowed signer may be limited to one."""
    signatures = os.path.join(folder, "signatures")
    copy = place.path("copy")
    shutil.copytree(folder, copy)
    name = next(n for n in os.listdir(signatures) if n.startswith("scientific-"))
    os.rename(os.path.join(copy, "signatures", name), os.path.join(copy, "signatures", name.replace("scientific", "statistical")))
    answer = place.ctl_json("verify", copy, *trust, wanted=LOCK)
    expect("signature does not hold" in answer["fault"]["what"], f"under another role's name: {answer['fault']}")
    with open(trust[1], encoding="utf-8") as f:
        lines = f.read().replace("adam@lab ", 'adam@lab namespaces="preregd,preregd-statistical" ')
    found, _ = release(place, folder, "--allowed-signers", place.write("limited", lines), wanted=LOCK)
    expect(not found["released"], f"adam may not sign as adversarial: {found}")


if not shutil.which("ssh-keygen"):
    lab.skip("no ssh-keygen here")
lab.main(test_release)
