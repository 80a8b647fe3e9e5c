#!/usr/bin/env python3
"""Receipts through the executables: made of programs that ran, were amended, signed and stamped, and of imported ones; verified as
folder and tar, tampered with, and signed by reviewers."""

import json
import os
import re
import shutil
import subprocess

from lib import lab
from lib.forging import forge
from lib import signers
from lib.lab import ANY, LOCK, OK, equal, expect
from lib.two_arms import DESIGN, READING

GRID = """[program]
name = "receipted"
schema = 1
question = "Does it follow?"
""" + DESIGN + """[stage.train]
command = ["./apparatus_worker.py"]
params = {{ arm = "$arm", seed = "$seed" }}
[stage.score]
after = ["train"]
command = ["./apparatus_worker.py"]
params = {{ hold = "{hold}" }}
""" + READING + """[validity]
threads_match = {{ condition = "ratio(fact.train.threads, arm, 'b', 'a') <= 1.20", on_fail = "flag" }}
[instrument.bayes]
kind = "bayes"
contrast = "arm"
priors = {{ wide = 0.02 }}
[apparatus.reference]
stage = "score"
model = "reference"
expect = {{ metric = "score.acc", value = 0.7, within = 0.01 }}
"""
BAYES = "[instrument.bayes]"
MICRO = os.path.join(lab.TOP, "ops/programs/micro/grid.toml")


def prepare(place):
    """The path of a grid.toml; evaluations are held back until the file `hold` is gone. No signers of the user's own."""
    place.env["XDG_CONFIG_HOME"] = place.path("config")
    for name in ("PREREGD_ALLOWED_SIGNERS", "SSH_AUTH_SOCK", "SSH_ASKPASS_REQUIRE"):
        place.env.pop(name, None)
    place.write("p/reference/model.json", json.dumps({"skill": 0.705}))
    shutil.copy2(os.path.join(lab.LIB, "apparatus_worker.py"), place.path("p"))
    place.write("hold", "")
    return place.write("p/grid.toml", GRID.format(hold=place.path("hold")))


def finish(place):
    os.unlink(place.path("hold"))
    place.wait_finished(60)


def export(place, *more, out="out"):
    answer = place.ctl_json("export", *more, "--out", place.path(out))
    equal(len(answer["sums_sha256"]), 64, "digest of SHA256SUMS")
    return answer["folder"], answer["tar"]


def verify(place, path, *more, level, outcome="up"):
    answer = place.ctl_json("verify", path, *more)
    equal((answer["holds"], answer["fault"], answer["level"], answer["outcome"]), (True, None, level, outcome), f"verify {path}")
    return answer


def fault(place, path, *more, file, what):
    answer = place.ctl_json("verify", path, *more, wanted=LOCK)
    equal((answer["holds"], answer["level"], answer["outcome"]), (False, None, None), "what is said beside a fault")
    expect(answer["fault"]["file"] == file and what in answer["fault"]["what"], f"wanted {file}: {what}: {answer['fault']}")


def tampered(place, folder, name, old, new):
    """A copy in which one file says something else."""
    copy = place.path("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    place.edit(os.path.join(copy, name), old, new)
    return copy


def test_executed(place):
    """Signed, stamped and amended, with an apparatus check: each level with what establishes it."""
    grid = prepare(place)
    alice, bob = signers.key(place, "alice"), signers.key(place, "bob")
    trust = ("--allowed-signers", signers.allow(place, "alice"))
    place.ctl("lock", grid, "--key", alice, "--timestamp")
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: all(t["state"] == "done" for n, t in place.tasks().items() if n.endswith("/train")), 30, "trained")
    place.edit(grid, "<= 1.20", "<= 1.30")
    place.ctl("amend", grid, "--reason", "steps are measured anew", "--key", alice)
    expect("scores" in place.ctl("export", "--out", place.path("early"), wanted=ANY).stderr, "sealed scores are exported")
    expect(not os.path.exists(place.path("early")), "something was written of sealed scores")
    finish(place)
    folder, tar = export(place)
    for path in (folder, tar):
        answer = verify(place, path, level="self-consistent")
        equal((answer["counts"]["tasks"], answer["counts"]["amendments"], answer["records"]), (8, 1, "executed"), "counts")
    expect("is not replaced; -o names another folder" in place.ctl("export", "--out", place.path("out"), wanted=ANY).stderr,
           "a receipt is replaced")
    expect("no result has items" in place.ctl("export", "--items", "--out", place.path("itemless")).stderr,
           "nothing is said of missing items")
    verify(place, folder, *trust, level="self-consistent")  # nobody vouches for the records yet
    check_tampering(place, folder)
    for key in (bob, alice):
        signature = place.ctl_json("sign", folder, "--key", key)["signature"]
        expect(os.path.exists(signature), f"no {signature}")
    signatures = os.path.join(folder, "signatures")
    for name in os.listdir(signatures):
        for n in range(50):
            shutil.copy2(os.path.join(signatures, name), os.path.join(signatures, f"again-{n}-{name}"))
    said = verify(place, folder, *trust, level="signed")["established"]
    equal(sum("whole receipt" in s for s in said), 2, f"two keys signed, under 102 names: {said}")
    for name in os.listdir(signatures):
        if name.startswith("again-"):
            os.unlink(os.path.join(signatures, name))
    for path in (folder, tar):
        said = verify(place, path, *trust, level="signed")["established"]
        expect(any("alice@lab" in s and "whole receipt" in s for s in said), f"alice's signature: {said}")
        expect(any("nothing here vouches" in s for s in said), f"bob's signature: {said}")
    only_bob = ("--allowed-signers", signers.allow(place, "bob", file="only_bob"))
    fault(place, folder, *only_bob, file="grid.toml.lock", what="not among the allowed")
    check_post_hoc(place, grid, alice, folder)


def check_tampering(place, folder):
    copy = tampered(place, folder, "records.jsonl", '"stage":"score"', '"stage":"scare"')
    fault(place, copy, file="records.jsonl", what="SHA-256")
    run = place.ctl("sign", copy, "--key", place.path("alice"), wanted=LOCK)
    expect("records.jsonl" in run.stderr, f"signing what does not follow: {run.stderr}")
    expect(not os.path.exists(os.path.join(copy, "signatures")), "it was signed")
    expect("DOES NOT FOLLOW" in place.ctl("verify", copy, wanted=LOCK).stdout, "the text of a fault")


def check_post_hoc(place, grid, key, before):
    """An instrument amended after the verdict: a receipt of its own, and the verdict keeps the head that it had."""
    with open(os.path.join(before, "verdict.json"), "rb") as f:
        verdict = f.read()
    place.edit(grid, "wide = 0.02", "wide = 0.03")
    place.ctl("amend", grid, "--reason", "another prior", "--key", key)
    place.wait_finished(30)
    folder, tar = export(place, out="after")
    with open(os.path.join(folder, "verdict.json"), "rb") as f:
        equal(f.read(), verdict, "verdict.json after an amendment post hoc")
    for path in (folder, tar):
        equal(verify(place, path, level="self-consistent")["counts"]["amendments"], 2, "amendments")
    verify(place, before, level="self-consistent")


def test_stamped(place):
    """The authority's answer came after the submission, and lies beside the lock that was submitted."""
    if not shutil.which("openssl"):
        lab.skip("no openssl here")
    grid = prepare(place)
    alice = signers.key(place, "alice")
    trust = ("--allowed-signers", signers.allow(place, "alice"), "--ca", signers.authority(place))
    place.ctl("lock", grid, "--key", alice, "--timestamp")
    signers.stamp(place, grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.edit(grid, "wide = 0.02", "wide = 0.03")
    place.ctl("amend", grid, "--reason", "another prior", "--key", alice)
    finish(place)
    folder, tar = export(place)
    place.ctl("sign", folder, "--key", alice)
    for path in (folder, tar):
        said = verify(place, path, *trust, level="time-stamped")["established"]
        expect(any("Test authority" in s and "before the first attempt" in s for s in said), f"the stamp: {said}")
    for path in (folder, tar):
        said = place.ctl("verify", path, "--ca", alice + ".pub", wanted=LOCK).stdout
        expect("grid.toml.lock.tsr: " in said and "/proc" not in said and "prereg-verify" not in said, f"where it was read: {said}")
    verify(place, folder, *trust[:2], level="signed")
    forged_signatures(place, folder, trust)
    if shutil.which("jq") and shutil.which("bash"):
        by_hand(place, folder, trust[1], trust[3])
    else:
        print("skipped in part: no jq, or no bash, for the steps of VERIFY.md")
    os.rename(grid + ".lock.tsr", grid + ".lock.tsr.away")
    with open(grid + ".lock.tsr", "wb") as f:
        f.write(b"a stamp of other bytes")
    said = place.ctl("export", "--out", place.path("mistaken"), wanted=LOCK).stderr
    expect("not a time stamp of this grid.toml.lock" in said and not os.listdir(place.path("mistaken")), f"a stamp of other bytes: {said}")
    os.unlink(grid + ".lock.tsr")
    unstamped, _ = export(place, out="unstamped")
    expect(not os.path.exists(os.path.join(unstamped, "grid.toml.lock.tsr")), "a stamp from nowhere")


def changed(place, folder, name, change):
    """A copy, forged, without the reviewers' signatures, in which `change` was made of a file's bytes."""
    copy = place.path("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("signatures"))
    path = os.path.join(copy, name)
    with open(path, "rb") as f:
        old = f.read()
    new = change(old)
    expect(new != old, f"nothing was changed in {name}")
    with open(path, "wb") as f:
        f.write(new)
    forge(copy)
    return copy


def of_json(change):
    def do(text):
        o = json.loads(text)
        change(o)
        return (json.dumps(o, indent=2, ensure_ascii=False) + "\n").encode()

    return do


def other_letter(text):
    """The armored signature with one letter of its last bytes changed."""
    lines = text.split("\n")
    row = lines.index("-----END SSH SIGNATURE-----") - 2
    lines[row] = lines[row][:8] + ("B" if lines[row][8] != "B" else "C") + lines[row][9:]
    return "\n".join(lines)


def forged_signatures(place, folder, trust):
    """Signatures and stamps that are not what they were, by a forger who makes the sums anew."""

    def spoilt(o):
        o["signature"]["armored"] = other_letter(o["signature"]["armored"])

    first = "amendments/0001.json"
    with open(os.path.join(folder, first), encoding="utf-8") as f:
        amendments = json.load(f)["signature"]
    for name, change, what in (
        ("grid.toml.lock", of_json(spoilt), "signature"),
        ("grid.toml.lock", of_json(lambda o: o.update(signature=amendments)), "signature"),
        ("grid.toml.lock", of_json(lambda o: o.update(time="2020-01-01T00:00:00.000Z")), "signature"),
        ("grid.toml.lock", of_json(lambda o: o["tool"].update(name="another")), "signature"),
        (first, of_json(spoilt), "signature"),
        (first, of_json(lambda o: o.update(reason="another")), "changed after it was made"),
        (first, of_json(lambda o: o.update(level="nothing_run")), "changed after it was made"),
        ("grid.toml.lock.tsr", lambda b: b[:-9] + bytes([b[-9] ^ 1]) + b[-8:], ""),
        ("grid.toml.lock.tsr", lambda b: b[: len(b) // 2], ""),
    ):
        fault(place, changed(place, folder, name, change), *trust, file=name, what=what)
    unsigned = changed(place, folder, "grid.toml.lock", of_json(lambda o: o.update(signature=None)))
    said = place.ctl("verify", unsigned, *trust[:2], wanted=OK).stdout
    expect(said.startswith("self-consistent") and "Who made the plan" in said, f"a lock without its signature: {said}")
    mine = os.path.join(folder, "signatures", os.listdir(os.path.join(folder, "signatures"))[0])
    with open(mine, encoding="utf-8") as f:
        signature = f.read()
    for text in (other_letter(signature), "", amendments["armored"]):
        with open(mine, "w", encoding="utf-8") as f:
            f.write(text)
        fault(place, folder, *trust, file=os.path.relpath(mine, folder), what="")
    with open(mine, "w", encoding="utf-8") as f:
        f.write(signature)
    os.rename(mine, mine + ".away")
    os.rename(mine + ".away", os.path.join(folder, "signatures", "another-name.sig"))
    verify(place, folder, *trust, level="time-stamped")  # the name says nothing; whose it is, is in it
    os.rename(os.path.join(folder, "signatures", "another-name.sig"), mine)


def by_hand(place, folder, allowed, ca):
    """Each command of VERIFY.md as a stranger would type it."""
    with open(os.path.join(folder, "VERIFY.md"), encoding="utf-8") as f:
        steps = f.read().split("## By hand")[1].split("To sign as a reviewer")[0]
    commands = [re.sub(r"^ {7}", "", line) for line in steps.split("\n") if line.startswith("       ")]
    name = "signatures/" + os.listdir(os.path.join(folder, "signatures"))[0]
    script = "set -e\n" + "\n".join(commands)
    for word, meant in (("ALLOWED_SIGNERS", allowed), ("WHO\n", "\n"), ("-I WHO", "-I alice@lab"), ("signatures/NAME.sig", name), ("CA.pem", ca)):
        script = script.replace(word, meant)
    run = subprocess.run(["bash", "-c", script], cwd=folder, env=place.env, capture_output=True, text=True, check=False)
    equal(run.returncode, 0, f"VERIFY.md by hand: {run.stdout} {run.stderr}")
    said = run.stdout.split("\n")
    expect("bad" not in said and not any(word in run.stdout for word in ("FAILED", "does not follow")), f"VERIFY.md by hand: {run.stdout}")
    equal(sum("Good \"preregd\" signature" in line for line in said), 3, f"signatures of receipt, lock and amendment: {run.stdout}")
    digests = [line.split(" ")[0] for line in said if re.match(r"^[0-9a-f]{64}( |$)", line)]
    expect(len(digests) >= 8 and digests[0::2] == digests[1::2], f"digests that are the same: {digests}")
    place.ctl("verify", folder)  # nothing was written into it


def test_imported(place):
    """Records from elsewhere go into a receipt that never says that they were executed."""
    found = []
    for arch in ("dense", "moe"):
        for seed in (1, 2, 3):
            score = {"acc": {"value": 0.6 if arch == "moe" else 0.5, "n": 60}}
            for stage, metrics, facts in (("train", {"val_loss": 2.0}, {"params_active": 100}), ("grammar", score, {}), ("giving", score, {})):
                found.append({"cell": f"arch={arch},seed={seed}", "stage": stage, "end": "done", "metrics": metrics, "facts": facts})
    records = place.write("records.json", json.dumps({"schema": 1, "program": "micro", "label": "made up", "records": found}))
    outcome = place.ctl_json("replay", MICRO, records, "--out", place.path("replayed"))["verdict"]["outcome"]
    folder, tar = export(place, place.path("replayed"))
    for path in (folder, tar):
        answer = verify(place, path, level="self-consistent", outcome=outcome)
        equal(answer["records"], "made up", "what the records are called")
        expect(any("Nothing was run by preregd" in s for s in answer["not_shown"]), f"{answer['not_shown']}")
    expect(not os.path.exists(os.path.join(folder, "journal.jsonl")), "an imported program has no journal")
    fault(place, tampered(place, folder, "records.json", "0.6", "0.7"), file="records.json", what="SHA-256")


KINDS_WORKER = """#!/usr/bin/env python3
import json, os, sys, time
if "--describe" in sys.argv:
    sys.exit(64)
with open(os.environ["PREREG_TASK"], encoding="utf-8") as f:
    task = json.load(f)
p, score = task["params"], {"value": 0.6, "n": 100}
if task["stage"] == "score":
    while os.path.exists(p["hold"]):
        time.sleep(0.05)
    if (p["arm"], p["seed"]) == ("b", 2):
        if p["last"] == "crashes":
            sys.exit(1)
        if p["last"] == "null":
            score = {"value": None, "why": "it says nothing"}
    if (p["last"], p["arm"]) == ("varies", "b"):
        score["value"] += 0.02 * p["seed"]
result = {"protocol": 1, "attempt": task["attempt"], "facts": {"threads": 1}, "metrics": {"acc": score, "loss": {"value": 3.0}}}
with open("result.tmp", "w", encoding="utf-8") as f:
    json.dump(result, f)
os.replace("result.tmp", "result.json")
"""


def kind_of_program(place, name, last="scores", within=1.2, on_fail="flag", bayes=True, submit=True):
    """A finished-to-be program whose last cell's score comes as `last` says; scores are held back. Without `bayes`, no prior is locked."""
    place.write(f"{name}/worker.py", KINDS_WORKER, 0o755)
    place.write("hold", "")
    text = GRID.format(hold=place.path("hold")).split("[apparatus.")[0].replace("./apparatus_worker.py", "./worker.py")
    text = text if bayes else text.split(BAYES)[0]
    text = text.replace('name = "receipted"', f'name = "{name}"').replace("<= 1.20", f"<= {within}").replace('on_fail = "flag"', f'on_fail = "{on_fail}"')
    text = text.replace("params = { hold =", f'params = {{ arm = "$arm", seed = "$seed", last = "{last}", hold =')
    grid = place.write(f"{name}/grid.toml", text + "[exclusion]\nbudget = 0.5\n[run.score]\ncrashes = 1\n")
    if submit:
        place.ctl("lock", grid)
        place.must(OK, "preregd", "submit", grid)
    return grid


def test_kinds(place):
    """Whatever became of a program, its receipt follows and says what was lost, given up or opened."""
    place.env["XDG_CONFIG_HOME"] = place.path("config")
    place.serve()
    for name, more, act, outcome, said in (
        ("void", {"within": 0.5, "on_fail": "void"}, None, "VOID", "done 8"),
        ("unknown", {"last": "null"}, None, "INDETERMINATE", "done 8"),
        ("excluded", {"last": "crashes"}, None, None, "blocked 1 + never run 0; of 4 counted tasks 1 are excluded (budget 2)"),
        ("cancelled", {}, ("cancel", "arm=b,seed=2/score"), "INDETERMINATE", "0 are excluded (budget 2); tasks were cancelled by a person"),
        ("unblinded", {}, ("unblind", "--reason", "a look"), "up", "done 8"),
    ):
        grid = kind_of_program(place, name, **more)
        of = () if name == "unblinded" else ("--program", name)
        if act is not None:
            place.ctl(*act[:1], *((name,) if name == "unblinded" else ()), *act[1:], *of)
        if name == "unblinded":  # and run otherwise from here on
            place.edit(grid, "crashes = 1", "crashes = 2")
            place.must(OK, "preregd", "submit", grid)
        finish(place)
        folder, tar = export(place, name)
        for path in (folder, tar):
            answer = place.ctl_json("verify", path)
            equal((answer["holds"], answer["level"]), (True, "self-consistent"), name)
            expect(outcome is None or answer["outcome"] == outcome, f"{name}: {answer['outcome']}")
            expect(any(said in s for s in answer["established"]), f"{name}: {answer['established']}")
            opened = any("the scores were opened before the end" in s for s in answer["not_shown"])
            equal(opened, name == "unblinded", f"{name}: {answer['not_shown']}")
        again, tar_again = export(place, name, out="again")
        for a, b in ((tar, tar_again), (os.path.join(folder, "SHA256SUMS"), os.path.join(again, "SHA256SUMS"))):
            with open(a, "rb") as f, open(b, "rb") as g:
                expect(f.read() == g.read(), f"{name}: exported twice, and not the same bytes")


def test_names(place):
    """Levels whose names cannot be folders' names; and no path, host or user of this machine in any file of a receipt."""
    place.env["XDG_CONFIG_HOME"] = place.path("config")
    place.env["USER"] = place.env["LOGNAME"] = "someones-name"
    place.serve()
    grid = kind_of_program(place, "odd", submit=False)
    odd = ("meta/llama 3", "a level with a name of more than two hundred bytes " * 4)
    place.edit(grid, f'hold = "{place.path("hold")}"', 'hold = "no-such-file"')
    for old, new in zip(("a", "b"), odd):
        for quote in "\"'":
            place.edit(grid, quote + old + quote, quote + new + quote)
    place.ctl("lock", grid)
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(60)
    folders = os.listdir(os.path.join(place.program_folder(), "cells"))
    expect(not any("/" in f or len(f.encode()) > 255 for f in folders) and len(folders) == 4, f"{folders}")
    folder, tar = export(place)
    for path in (folder, tar):
        equal(place.ctl_json("verify", path)["holds"], True, "odd names")
    host = os.uname().nodename
    for top, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(top, name), encoding="utf-8") as f:
                text = f.read()
            for word in (place.folder, place.bin, lab.TOP, "someones-name", f'"{host}"', f">{host}<", f"| {host} |"):
                expect(word not in text, f"{name} says {word}")
    named, _ = export(place, "--with-host", out="named")
    with open(os.path.join(named, "environment.jsonl"), encoding="utf-8") as f:
        expect(all(json.loads(line)["host"] == host for line in f), "the name of the host with --with-host")
    equal(place.ctl_json("verify", named)["holds"], True, "with the names of hosts")


def another_factor(o):
    measure = o["contrasts"][0]["measures"][0]
    measure["bf10"] = 0.71 if measure["bf10"] is None else measure["bf10"] * 1.01


def test_priors(place):
    """Priors named or changed when the verdict stands: its Bayes factors are those of the plan that it was computed with."""
    place.env["XDG_CONFIG_HOME"] = place.path("config")
    place.serve()
    added = '[instrument.bayes]\nkind = "bayes"\ncontrast = "arm"\npriors = { wide = 0.02 }\n'
    for name, before, after, plan in (
        ("added", (), [("[exclusion]", added + "[exclusion]")], "amendments/0000.toml"),
        ("changed", ("wide = 0.02", "wide = 0.03"), [("wide = 0.03", "wide = 0.04"), ("wide = 0.04", "wide = 0.05")], "amendments/0001.toml"),
    ):
        grid = kind_of_program(place, name, last="varies", bayes=name != "added")
        if before:
            place.edit(grid, *before)
            place.ctl("amend", grid, "--reason", "another prior")
        finish(place)
        first, _ = export(place, name, out="before")
        for edit in after:
            place.edit(grid, *edit)
            expect("post hoc" in place.ctl("amend", grid, "--reason", "other priors").stdout, f"{name}: not marked as post hoc")
        place.wait_finished(60)
        folder, tar = export(place, name)
        with open(os.path.join(folder, "verdict.json"), "rb") as f, open(os.path.join(first, "verdict.json"), "rb") as g:
            text = f.read()
            equal(text, g.read(), f"{name}: verdict.json after an amendment post hoc")
        measure = json.loads(text)["contrasts"][0]["measures"][0]
        equal(measure["bf10"] is None, name == "added", f"{name}: {measure}")
        for path in (folder, tar):
            equal(verify(place, path, level="self-consistent")["counts"]["amendments"], len(before) // 2 + len(after), "amendments")
        fault(place, changed(place, folder, "verdict.json", of_json(another_factor)), file="verdict.json", what="contrasts[0].measures[0].bf10")
        # The plan of that time, in whose place no later one comes.
        fault(place, changed(place, folder, plan, lambda b: b.replace(b"floor = 0.5", b"floor = 0.4")), file=plan, what="floor")
        copy = changed(place, folder, plan, lambda b: b + b"\n")
        os.unlink(os.path.join(copy, plan))
        forge(copy)
        fault(place, copy, file=plan, what="is missing")
    programs = os.path.join(place.state, "programs")
    lost_verdict(place, next(os.path.join(programs, p) for p in os.listdir(programs) if p.startswith(name)))


def lost_verdict(place, folder):
    """The daemon writes the same bytes again, of the plan that held then."""
    path = os.path.join(folder, "report", "verdict.json")
    with open(path, "rb") as f:
        text = f.read()
    os.remove(path)
    place.ctl("stop")
    place.wait_for(lambda: place.daemon.poll() is not None, 30, "the daemon stops")
    place.serve()
    place.wait_for(lambda: os.path.exists(path), 30, "verdict.json is written again")
    with open(path, "rb") as f:
        equal(f.read(), text, "the verdict that was lost")


if not shutil.which("ssh-keygen"):
    lab.skip("no ssh-keygen here")
lab.main(test_executed, test_stamped, test_imported, test_kinds, test_names, test_priors)
