#!/usr/bin/env python3
"""Signed amendments: by whom they must be, with and without a file of allowed signers, and what is done to signatures afterwards."""

import json
import os
import shutil
import threading

from lib import lab
from lib.amending import BAND, GRID, amend, fingerprints, gate, lock_signature, raw_amend, read, resigned, serve_again, submitted, unloaded
from lib.lab import ANY, LOCK, OK, equal, expect
from lib.signers import allow, key

REQUIRED = '[lock]\nsign = "required"\n'




def test_signed(place):
    """[lock] sign = "required" with a file of allowed signers: no key, one that is not allowed, and one that is; what is exchanged or
    taken away afterwards is found at the next start, after a rebuild, by diff's neighbour verify, and before a spawn."""
    alice, bob, eve = (key(place, name) for name in ("alice", "bob", "eve"))
    place.env["PREREGD_ALLOWED_SIGNERS"] = allow(place, "alice", "bob")
    grid = submitted(place, "--key", alice, more=REQUIRED)
    amendments = os.path.join(place.program_folder(), "amendments")
    place.edit(grid, "<= 1.20", "<= 1.30")
    for arguments, word in (((), "must be signed, too: --key"), (("--key", eve), "not among the allowed"), (("--key", place.path("none")), "no such key file")):
        expect(word in amend(place, grid, *arguments, wanted=ANY).stderr, word)
        expect(not os.path.exists(amendments), f"{word}: something was written")
    equal(raw_amend(place, grid)["name"], "refused", "unsigned, by the socket")
    for wrong in (lock_signature(grid), {**lock_signature(grid), "fingerprint": "none"}, {}, "signed", 1):
        equal(raw_amend(place, grid, signature=wrong)["name"], "lock", f"a signature over another text, or none: {wrong!r:.40}")
    expect(not os.path.exists(amendments), "something was written")
    text = amend(place, grid, "--key", bob).stdout
    expect("signed by bob@lab (SHA256:" in text and place.env["PREREGD_ALLOWED_SIGNERS"] in text, f"who signed it is not said: {text}")
    path = os.path.join(amendments, "0001.json")
    good = open(path, encoding="utf-8").read()
    signed = json.loads(good)
    serve_again(place)
    equal(unloaded(place), "", "as it was signed")
    for what, change, word in (("taken away", None, "not signed"), ("by another key", resigned(place, signed, eve), "not among the allowed"),
                               ("over another text", {**signed["signature"], "armored": lock_signature(grid)["armored"]}, "0001.json")):
        place.kill_daemon()
        place.write(path, json.dumps({**signed, "signature": change}))
        for rebuilt in (False, True):
            if rebuilt:
                place.kill_daemon()
                place.run("preregctl", "rebuild")
            place.serve()
            expect(word in unloaded(place) and "0001.json" in unloaded(place), f"{what}, rebuilt: {rebuilt}: {unloaded(place)!r}")
    place.kill_daemon()
    place.write(path, good)
    place.env["PREREGD_ALLOWED_SIGNERS"] = allow(place, "alice", file="without_bob")  # he was struck out
    place.serve()
    expect("not among the allowed" in unloaded(place), unloaded(place))
    place.env["PREREGD_ALLOWED_SIGNERS"] = place.path("allowed_signers")
    serve_again(place)
    equal(unloaded(place), "", "as it was")
    gate(place, "train")
    gate(place, "score")
    place.wait_finished(60)
    receipt_of_signed(place, path, signed)


def receipt_of_signed(place, path, signed):
    """verify: by the allowed, by another, unsigned though the plan demands it."""
    def verify(*arguments, wanted=OK):
        run = place.ctl("verify", receipt, *arguments, wanted=wanted)
        return run.stdout + run.stderr
    place.ctl("export", "--out", place.path("receipt"))
    receipt = os.path.join(place.path("receipt"), next(n for n in os.listdir(place.path("receipt")) if not n.endswith(".tar")))
    listed = ("--allowed-signers", place.path("allowed_signers"))
    expect("amendment 1 is signed by bob@lab" in verify(*listed), "who signed it")
    place.write(os.path.join(receipt, "amendments", "0001.json"), json.dumps({**signed, "signature": None}))
    expect("0001.json" in verify(*listed, wanted=LOCK), "the sums hold no longer")
    shutil.rmtree(place.path("receipt"))
    place.kill_daemon()
    place.write(path, json.dumps({**signed, "signature": None}))
    run = place.run("preregctl", "export", "--out", place.path("receipt"))
    if run.returncode == OK:
        expect("amendment 1 is not signed, and the plan demands it" in verify(*listed, wanted=LOCK), "unsigned")
    else:
        expect("not signed" in run.stderr, run.stderr)


def test_signed_without_a_list(place):
    """Without a file of allowed signers: the key that locked it, no other. Where none is demanded: any that holds, and it is said."""
    alice, eve = key(place, "alice"), key(place, "eve")
    grid = submitted(place, "--key", alice, more=REQUIRED)
    place.edit(grid, "<= 1.20", "<= 1.30")
    expect("only the lock's own key may amend" in amend(place, grid, "--key", eve, wanted=ANY).stderr, "another key")
    expect("no file of allowed signers" in amend(place, grid, "--key", alice).stdout, "who vouches is not said")
    signed = read(place.program_folder(), "amendments", "0001.json")
    place.kill_daemon()
    place.write(os.path.join(place.program_folder(), "amendments", "0001.json"), json.dumps({**signed, "signature": resigned(place, signed, eve)}))
    place.serve()
    expect("only the lock's own key may amend" in unloaded(place), unloaded(place))


def test_signed_by_choice(place):
    """Nothing demands it: unsigned and signed by anybody; one that does not hold is refused all the same."""
    eve = key(place, "eve")
    other = fingerprints(place, key(place, "other"))[0].split()[1]
    grid = submitted(place)
    place.edit(grid, "<= 1.20", "<= 1.30")
    amend(place, grid)
    place.edit(grid, "<= 1.30", "<= 1.40")
    told = json.loads(amend(place, grid, "--key", eve, "--json").stdout)
    expect("no file of allowed signers" in told["note"], "who vouches is not said")
    equal(told["amendment"]["signature"]["fingerprint"], told["signed_by"], "the amendment as it was signed")
    expect(f"signed by the key {told['signed_by']}" in place.ctl("diff", grid).stdout, "diff says by whom")
    path = os.path.join(place.program_folder(), "amendments", "0002.json")
    signed = read(path)
    equal(signed["signature"]["fingerprint"], [line.split()[1] for line in fingerprints(place, eve)][0], "fingerprint")
    place.kill_daemon()
    place.write(path, json.dumps({**signed, "signature": {**signed["signature"], "fingerprint": other}}))
    place.serve()
    expect("0002.json" in unloaded(place) and other in unloaded(place), unloaded(place))


def test_exchanged_while_submitted(place):
    """The lock is exchanged for an unsigned one, and back, while it is submitted: what is kept is what was looked at."""
    alice = key(place, "alice")
    place.env["PREREGD_ALLOWED_SIGNERS"] = allow(place, "alice")
    submitted(place, "--key", alice, more=REQUIRED)
    for n in range(6):
        grid = place.write(f"x{n}/grid.toml", GRID.format(gates=place.path("gates"), band=BAND).replace("Which?", f"Which of {n}?") + REQUIRED)
        shutil.copy2(place.path("p/amend_worker.py"), place.path(f"x{n}"))
        place.ctl("lock", grid, "--key", alice)
        with open(grid + ".lock", encoding="utf-8") as f:
            signed = json.load(f)
        stopped = threading.Event()

        def exchange(grid=grid, signed=signed, stopped=stopped):
            while not stopped.is_set():
                for lock in ({**signed, "signature": None}, signed):
                    with open(grid + ".new", "w", encoding="utf-8") as f:
                        json.dump(lock, f)
                    os.replace(grid + ".new", grid + ".lock")
        thread = threading.Thread(target=exchange)
        thread.start()
        done = any(place.run("preregd", "submit", grid).returncode == OK for _ in range(100))
        stopped.set()
        thread.join()
        expect(done, "it was never submitted")
    for name in os.listdir(os.path.join(place.state, "programs")):
        expect(read(place.state, "programs", name, "grid.toml.lock")["signature"] is not None, f"{name}: an unsigned lock is kept")


lab.main(test_signed, test_signed_without_a_list, test_signed_by_choice, test_exchanged_while_submitted)
