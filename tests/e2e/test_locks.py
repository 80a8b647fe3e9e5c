#!/usr/bin/env python3
"""Signed and stamped locks through the executables: what `lock` writes and verifies, what `submit` refuses."""

import hashlib
import json
import os
import shutil
import subprocess

from lib import lab
from lib.lab import ANY, LOCK, OK, USAGE, equal, expect
from lib.signers import allow, authority, key, stamp, tool


def prepare(place):
    """micro, with no allowed signers of the user's own."""
    place.env["XDG_CONFIG_HOME"] = place.path("config")
    for name in ("PREREGD_ALLOWED_SIGNERS", "SSH_AUTH_SOCK", "SSH_ASKPASS_REQUIRE"):
        place.env.pop(name, None)
    return place.prepare("micro")


def require(place, grid):
    with open(grid, "a", encoding="utf-8") as f:
        f.write('\n[lock]\nsign = "required"\n')


def test_required(place):
    """A lock that must be signed: without a key, unsigned by hand, by somebody else, and as it should be."""
    grid = prepare(place)
    require(place, grid)
    alice, bob = key(place, "alice"), key(place, "bob")
    run = place.ctl("lock", grid, wanted=ANY)
    expect("--key" in run.stderr, f"the way out is not named: {run.stderr}")
    expect(not os.path.exists(grid + ".lock"), "a lock was written")
    answer = place.ctl_json("lock", grid, "--key", alice)
    expect(answer["signed_by"].startswith("SHA256:"), f"no fingerprint: {answer}")
    with open(grid + ".lock", encoding="utf-8") as f:
        signed = json.load(f)
    with open(grid + ".lock", "w", encoding="utf-8") as f:
        json.dump({**signed, "signature": None}, f)
    run = place.must(ANY, "preregd", "submit", grid)
    expect("not signed" in run.stderr, run.stderr)
    place.ctl("lock", "--verify", grid, wanted=ANY)
    place.ctl("lock", grid, "--key", bob)
    place.env["PREREGD_ALLOWED_SIGNERS"] = allow(place, "alice")
    place.ctl("stop")
    place.wait_for(lambda: "preregd" not in place.processes().values(), 20, "the daemon stops")
    run = place.must(ANY, "preregd", "submit", grid)
    expect("not among the allowed" in run.stderr, run.stderr)
    place.ctl("lock", grid, "--key", alice, wanted=ANY)  # bob's lies there
    place.ctl("lock", grid, "--key", bob, "--replace", wanted=ANY)  # he may not
    place.ctl("lock", grid, "--key", alice, "--replace")
    equal(place.ctl_json("lock", "--verify", grid)["principal"], "alice@lab", "principal")
    place.must(OK, "preregd", "submit", grid)
    equal(len(place.status()), 1, "programs")


def test_not_covered(place):
    """The root holds in all of these, and the signature in none."""
    grid = prepare(place)
    place.ctl("lock", grid, "--key", key(place, "alice"))
    with open(grid + ".lock", encoding="utf-8") as f:
        signed = json.load(f)
    changes = [{"time": "2020-01-01T00:00:00.000Z"}, {"git": None if signed["git"] else {"commit": "0" * 40, "clean": True}},
               {"proof": None}, {"tool": {"name": "preregd", "version": "9"}},
               {"signature": {**signed["signature"], "fingerprint": "SHA256:another"}},
               {"signature": {**signed["signature"], "namespace": "file"}},
               {"signature": {**signed["signature"], "armored": "A" * 100000}}]
    for change in changes:
        with open(grid + ".lock", "w", encoding="utf-8") as f:
            json.dump({**signed, **change}, f)
        for run in (place.ctl("lock", "--verify", grid, wanted=LOCK), place.must(LOCK, "preregd", "submit", grid)):
            expect("sign" in run.stderr, f"{change}: {run.stderr}")
    with open(grid + ".lock", "w", encoding="utf-8") as f:
        json.dump({**signed, "schema": 2}, f)
    for run in (place.ctl("lock", "--verify", grid, wanted=ANY), place.must(ANY, "preregd", "submit", grid)):
        expect("schema 2" in run.stderr and "reads 1" in run.stderr, f"of a newer version: {run.stderr}")
    place.ctl("stop")


def test_by_hand(place):
    """Unsigned locks that were put together by hand, root and all: told by name, and nothing is written over them in passing."""
    grid = prepare(place)
    place.ctl("lock", grid)
    with open(grid + ".lock", encoding="utf-8") as f:
        good = json.load(f)

    def locked(**changes):
        inner = {**good["locked"], **changes}
        text = json.dumps(inner, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return {**good, "locked": inner, "root": hashlib.sha256(text.encode()).hexdigest()}

    rows = [(good, None, OK), (locked(), None, OK), (locked(other=1), "locked.other", LOCK),
            (locked(data={**good["locked"]["data"], "extra": "0" * 64}), "data.extra", LOCK),
            (locked(files={**good["locked"]["files"], "sh": "0" * 64}), "files.sh", LOCK),
            (locked(solved={"none=1": {}}), "solved.none=1", LOCK), ({**good, "time": "2999-01-01T00:00:00.000Z"}, "2999", LOCK),
            ({**good, "git": {"commit": "\x1b[31m", "clean": True}}, "git", LOCK),
            (locked(data={**good["locked"]["data"], "\x1b]0;x\x07": "0" * 64}), "data.?]0;x?", LOCK)]
    for lock, word, code in rows:
        text = json.dumps(lock)
        place.write(os.path.relpath(grid + ".lock", place.folder), text)
        run = place.ctl("lock", "--verify", grid, wanted=code)
        expect(word is None or (word in run.stderr and "\x1b" not in run.stderr), f"{word}: {run.stderr!r}")
        if code != OK:
            place.must(LOCK, "preregd", "submit", grid)
            run = place.run("preregctl", "lock", grid, "--timestamp")
            expect(run.returncode in (ANY, LOCK) and "--replace" in run.stderr, f"{word}: {run.returncode} {run.stderr}")
            expect(not os.path.exists(grid + ".lock.tsq"), f"{word}: a request was written")
        with open(grid + ".lock", encoding="utf-8") as f:
            equal(f.read(), text, f"the lock ({word}) as it lay there")
    place.ctl("lock", grid, "--replace")
    place.ctl("lock", "--verify", grid)
    signed = place.ctl_json("lock", grid, "--key", key(place, "alice"), "--replace")
    with open(grid + ".lock", encoding="utf-8") as f:
        text = f.read().replace(good["tool"]["version"], "9.9.9")
    place.write(os.path.relpath(grid + ".lock", place.folder), text)
    run = place.ctl("lock", grid, wanted=LOCK)  # nothing to keep: the signature does not hold
    expect("signature does not hold" in run.stderr and signed["signed_by"], run.stderr)


def test_keys(place):
    """Keys that cannot sign leave no lock and nobody waiting."""
    grid = prepare(place)
    secret = key(place, "secret", "open sesame")
    for path, word in ((place.path("none"), "no such key file"), (secret, "passphrase"), (grid, "ssh-keygen")):
        run = place.ctl("lock", grid, "--key", path, wanted=ANY, timeout=120)
        expect(word in run.stderr, f"{path}: {run.stderr}")
        expect(not os.path.exists(grid + ".lock"), "a lock was written")
    place.ctl("lock", grid, "--verify", "--key", secret, wanted=USAGE)
    place.ctl("lock", grid, "--verify", wanted=LOCK)
    run = place.ctl("lock", grid, "--key", key(place, "alice"), "--allowed-signers", place.write("nobody", ""), wanted=ANY)
    expect("not among the allowed" in run.stderr, run.stderr)


def test_in_the_way(place):
    """Whatever lies where the lock belongs stays, byte by byte, and its own cause is named; --replace gives it up."""
    grid = prepare(place)
    alice, bob = key(place, "alice"), key(place, "bob")
    signer = place.ctl_json("lock", grid, "--key", alice)["signed_by"]
    with open(grid + ".lock", encoding="utf-8") as f:
        good = f.read()
    lock = json.loads(good)
    other = json.loads(good)
    other["locked"]["plan"]["program"]["question"] = "Another?"
    cases = (
        ("another's signature", good, 1, signer),
        ("no JSON", "garbage\n", LOCK, "not a lock"),
        ("empty", "", LOCK, "not a lock"),
        ("JSON of something else", "{}", LOCK, "is not a lock"),
        ("a newer version", json.dumps({**lock, "schema": 2}), 1, "another version"),
        ("changed by hand", json.dumps(other), LOCK, "changed after locking"),
        ("a signature of other bytes", json.dumps({**lock, "time": "2020-01-01T00:00:00.000Z"}), LOCK, "signature does not hold"),
        ("from the future", json.dumps({**lock, "time": "2199-01-01T00:00:00.000Z", "signature": None}), LOCK, "clock"),
    )
    for what, lies_there, code, word in cases:
        place.write(grid + ".lock", lies_there)
        run = place.ctl("lock", grid, "--key", bob, wanted=code)
        expect(word in run.stderr and "--replace" in run.stderr, f"{what}: {run.stderr}")
        expect(("locked already" in run.stderr) == (what == "another's signature"), f"{what}: {run.stderr}")
        with open(grid + ".lock", encoding="utf-8") as f:
            equal(f.read(), lies_there, what)
        expect(place.ctl_json("lock", grid, "--key", bob, "--replace")["signed_by"] not in (None, signer), what)
    place.write(grid + ".lock", good)
    with open(grid, encoding="utf-8") as f:
        plan = f.read()
    place.write(grid, plan.replace('question = "', 'question = "Another: ', 1))
    run = place.ctl("lock", grid, wanted=1)
    expect("other values" in run.stderr and signer in run.stderr, run.stderr)


def test_closed_streams(place):
    """Whoever starts us may have closed the standard streams: what is signed and checked is the lock all the same."""
    grid = prepare(place)
    alice = key(place, "alice")
    start = f"exec '{place.bin}/preregctl' lock"
    run = subprocess.run(["sh", "-c", f"{start} '{grid}' --key '{alice}' <&-"], env=place.env, capture_output=True, timeout=60)
    equal(run.returncode, OK, "lock without standard input")
    place.ctl("lock", "--verify", grid)
    with open(grid + ".lock", encoding="utf-8") as f:
        signed = json.load(f)
    with open(grid + ".lock", "w", encoding="utf-8") as f:
        json.dump({**signed, "time": "2020-01-01T00:00:00.000Z"}, f)
    for closed in ("<&-", "<&- >&-"):
        run = subprocess.run(["sh", "-c", f"{start} --verify '{grid}' {closed}"], env=place.env, capture_output=True, timeout=60)
        equal(run.returncode, LOCK, f"a tampered lock with {closed}: {run.stderr}")


def test_git(place):
    """The commit and whether the tree was clean; nothing outside a repository."""
    if not shutil.which("git"):
        lab.skip("no git here")
    grid = prepare(place)
    folder = os.path.dirname(grid)
    equal(place.ctl_json("lock", grid)["git"], None, "git outside a repository")
    os.remove(grid + ".lock")
    git = ["git", "-C", folder, "-c", "user.name=t", "-c", "user.email=t@t"]
    tool(place, *git, "init", "-q")
    tool(place, *git, "add", ".")
    tool(place, *git, "commit", "-q", "-m", "all")
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    equal(place.ctl_json("lock", grid)["git"], {"commit": head, "clean": True}, "git of a clean tree")
    answer = place.ctl_json("lock", grid, "--timestamp", "--key", key(place, "alice"))
    equal(answer["git"], {"commit": head, "clean": True}, "git beside the lock of before")
    with open(grid, "a", encoding="utf-8") as f:
        f.write("# a comment\n")
    os.remove(grid + ".lock")
    equal(place.ctl_json("lock", grid)["git"], {"commit": head, "clean": False}, "git of a changed tree")


def test_timestamp(place):
    """The request beside the lock, the response put there later, and what a lock that is stamped does not lose."""
    if not shutil.which("openssl"):
        lab.skip("no openssl here")
    grid = prepare(place)
    run = place.ctl("lock", grid, "--timestamp")
    expect("curl" in run.stdout and os.path.getsize(grid + ".lock.tsq") > 40, run.stdout)
    authority(place)
    equal(place.ctl_json("lock", "--verify", grid)["stamped"], None, "stamped")
    place.ctl("lock", "--verify", grid, "--ca", place.path("ca.pem"), wanted=ANY)  # nothing to believe it of
    stamp(place, grid)
    answer = place.ctl_json("lock", "--verify", grid, "--ca", place.path("ca.pem"))
    expect(answer["stamped"].startswith("20") and "Test authority" in answer["authority"], f"{answer}")
    place.ctl("lock", "--verify", grid, wanted=LOCK)  # nobody knows this authority
    place.ctl("lock", grid)  # the same again changes nothing
    place.ctl("lock", "--verify", grid, "--ca", place.path("ca.pem"))
    run = place.ctl("lock", grid, "--key", key(place, "alice"), wanted=ANY)
    expect(".tsr" in run.stderr, run.stderr)
    place.ctl("lock", grid, "--key", place.path("alice"), "--replace")
    expect(not os.path.exists(grid + ".lock.tsr"), "the stamp of other bytes stayed")
    with open(grid + ".lock.tsr", "wb") as f:
        f.write(b"\x30\x03no")
    place.ctl("lock", "--verify", grid, "--ca", place.path("ca.pem"), wanted=LOCK)


if not shutil.which("ssh-keygen"):
    lab.skip("no ssh-keygen here")
lab.main(test_required, test_not_covered, test_by_hand, test_keys, test_in_the_way, test_closed_streams, test_git, test_timestamp)
