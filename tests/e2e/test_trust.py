#!/usr/bin/env python3
"""What check and lock may execute: nothing of a program's own before its owner said so, and what was said is remembered."""

import json
import os
import pty
import select
import signal
import subprocess
import time

from lib import lab
from lib.amending import raw
from lib.lab import ANY, LOCK, OK, equal, expect

SECONDS = 120  # a limit against hanging


def worker(place, grid):
    """A worker of the program's own, and the file that it makes when it is executed."""
    ran = place.path("ran")
    place.write("micro/w.sh", f"#!/bin/sh\ntouch {ran}\nexit 64\n", 0o755)
    place.edit(grid, '["prereg-train"]', '["./w.sh"]')
    return ran


def alone(place):
    """The environment of somebody who has said nothing."""
    return {k: v for k, v in place.env.items() if k != "PREREGD_RUN"}


def on_terminal(place, answer, *arguments, before=lambda: None):
    """(exit code, what was on the terminal) of a command whose question is answered, once `before` has been called."""
    ours, its = pty.openpty()
    child = subprocess.Popen([os.path.join(place.bin, "preregctl"), *arguments], cwd=place.folder, env=alone(place), stdin=its,
                             stdout=its, stderr=its, start_new_session=True)
    os.close(its)
    text, asked, end = b"", False, time.monotonic() + SECONDS
    try:
        while time.monotonic() < end:
            if not select.select([ours], [], [], 1)[0]:
                continue
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            text += piece
            if not asked and b"[y/N]" in text:
                before()
                os.write(ours, answer.encode() + b"\n")
                asked = True
            if not piece:
                break
        return child.wait(SECONDS), text.decode(errors="replace")
    finally:
        child.kill()
        child.wait()
        os.close(ours)


def test_terminal(place):
    grid = place.prepare("micro")
    ran = worker(place, grid)
    code, text = on_terminal(place, "n", "check", grid)
    equal(code, ANY, f"check, answered with no: {text}")
    expect("stage.train: ./w.sh" in text and "nothing was executed" in text, text)
    expect(not os.path.exists(ran), "a worker was executed although the answer was no")
    place.must(ANY, "preregctl", "check", grid, env=alone(place))
    expect(not os.path.exists(ran), "a worker was executed without a terminal")
    code, text = on_terminal(place, "y", "check", grid)
    expect(os.path.exists(ran), f"the worker was not executed although the answer was yes: {text}")
    os.remove(ran)
    place.run("preregctl", "check", grid, env=alone(place))
    expect(os.path.exists(ran), "what was run before is asked again")


def test_interrupted(place):
    """A check that is interrupted ends the worker that it asks, and leaves nothing behind."""
    grid = place.prepare("micro")
    mark, temp = place.path("mark"), place.path("tmp")
    os.mkdir(temp)
    place.write("micro/w.sh", f"#!/bin/sh\necho $$ >{mark}.new; mv {mark}.new {mark}\nexec sleep 600\n", 0o755)
    place.edit(grid, '["prereg-train"]', '["./w.sh"]')
    for sig in (signal.SIGINT, signal.SIGTERM):
        child = subprocess.Popen([os.path.join(place.bin, "preregctl"), "check", grid], cwd=place.folder, env={**place.env, "TMPDIR": temp},
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        place.wait_for(lambda: os.path.exists(mark), SECONDS, "the worker is asked")
        with open(mark, encoding="utf-8") as f:
            worker = int(f.read())
        child.send_signal(sig)
        equal(child.wait(SECONDS), -sig, "how check ended")
        expect(not os.path.exists(f"/proc/{worker}"), "the worker lives")
        equal(os.listdir(temp), [], "what is left in TMPDIR")
        os.remove(mark)


def test_escapes(place):
    """What a stranger wrote reaches the terminal as text."""
    grid = place.prepare("micro")
    place.edit(grid, '["prereg-train"]', '["prereg-train", "\\u001b]0;owned\\u0007\\u001b[8m"]')
    run = place.must(ANY, "preregctl", "lock", grid, env=alone(place))
    expect("\x1b" not in run.stderr and "\x07" not in run.stderr, repr(run.stderr))
    code, text = on_terminal(place, "n", "lock", grid)
    equal(code, ANY, "lock, answered with no")
    expect("\x1b]" not in text and "\x07" not in text, repr(text))


def test_bundled(place):
    """Our workers need no question; what makes them run something else does."""
    grid = place.prepare("micro")
    place.must(OK, "preregctl", "check", grid, env=alone(place))
    place.must(OK, "preregctl", "lock", grid, env=alone(place))
    expect(not os.path.exists(os.path.join(place.state, "known-commands")), "bundled workers are in the list")
    for name, old, new in (("env", "[stage.train.params]", '[stage.train.env]\nLD_PRELOAD = "/tmp/x.so"\n[stage.train.params]'),
                           ("other", '["prereg-train"]', '["sh", "-c", "exit 64"]'),
                           ("script", '["prereg-train"]', '["prereg-python", "grid.toml"]'),
                           ("namesake", '["prereg-train"]', '["./prereg-train"]')):
        grid = place.prepare("micro", place.path(name))
        place.write(f"{name}/prereg-train", "#!/bin/sh\nexit 64\n", 0o755)
        place.edit(grid, old, new)
        for command in ("check", "lock"):
            run = place.must(ANY, "preregctl", command, grid, env=alone(place))
            expect("was never run here by you" in run.stderr and "--run" in run.stderr, f"{name}: {run.stderr}")
    place.must(OK, "preregctl", "check", "--no-run", grid, env=alone(place))
    place.must(OK, "preregctl", "check", "--run", grid, env=alone(place))
    place.must(OK, "preregctl", "lock", grid, env=alone(place))
    place.must(OK, "preregctl", "check", grid, env=alone(place))


def test_try(place):
    """try executes the stages themselves: also those that are never asked to describe themselves."""
    grid = place.prepare("micro")
    ran = worker(place, grid)
    place.edit(grid, "[stage.train.params]", "describe = false\n[stage.train.params]")
    run = place.run("preregctl", "check", grid, env=alone(place))
    expect("was never run here" not in run.stderr, run.stderr)
    run = place.must(ANY, "preregctl", "try", grid, env=alone(place))
    expect("stage.train: ./w.sh: was never run here by you" in run.stderr, run.stderr)
    expect(not os.path.exists(ran), "a worker was executed that nobody allowed")
    place.run("preregctl", "try", "--run", grid, env=alone(place))
    expect(os.path.exists(ran), "the worker was not executed although it may run")


def test_submit(place):
    """A lock that came with its program lets nothing run; who has locked here is not asked again."""
    elsewhere = {**place.env, "PREREGD_STATE": place.path("elsewhere")}
    grid = place.prepare("micro")
    ran = worker(place, grid)
    place.edit(grid, "[stage.train.params]", "describe = false\n[stage.train.params]")
    place.must(OK, "preregctl", "lock", grid, env=elsewhere)
    for program in ("preregd", "preregctl"):
        run = place.must(ANY, program, "submit", grid, env=alone(place))
        expect("stage.train: ./w.sh: was never run here by you" in run.stderr and "--run" in run.stderr, run.stderr)
    code, text = on_terminal(place, "n", "submit", grid)
    equal(code, ANY, f"submit, answered with no: {text}")
    expect("nothing was executed" in text and "started preregd" not in text, text)
    expect(not os.path.exists(ran), "a stage was executed that nobody allowed")
    place.write("micro/w.sh", f"#!/bin/sh\ntouch {ran}\nexit 65\n", 0o755)
    place.must(LOCK, "preregctl", "submit", grid, env=alone(place))  # drift is said before a question
    place.write("micro/w.sh", f"#!/bin/sh\ntouch {ran}\nexit 64\n", 0o755)
    os.makedirs(place.path("link"))
    os.symlink(grid, place.path("link", "grid.toml"))
    place.write("link/w.sh", "#!/bin/sh\nexit 0\n", 0o755)  # what lies beside a link is not what runs
    run = place.must(ANY, "preregd", "submit", place.path("link", "grid.toml"), env=alone(place))
    expect("was never run here by you" in run.stderr, run.stderr)
    code, text = on_terminal(place, "y", "submit", grid)
    equal(code, OK, f"submit, answered with yes: {text}")
    place.wait_for(lambda: os.path.exists(ran), SECONDS, "the stage is executed")
    place.must(OK, "preregd", "submit", grid, env=alone(place))

    grid = place.prepare("micro", place.path("mine"))
    place.write("mine/w.sh", "#!/bin/sh\nexit 64\n# mine\n", 0o755)
    place.edit(grid, '["prereg-train"]', '["./w.sh"]')
    place.edit(grid, "[stage.train.params]", "describe = false\n[stage.train.params]")
    run = place.must(ANY, "preregctl", "lock", grid, env=alone(place))
    expect("was never run here by you" in run.stderr, run.stderr)
    place.must(OK, "preregctl", "lock", "--run", grid, env=alone(place))
    place.must(OK, "preregctl", "submit", grid, env=alone(place))

    grid = place.prepare("micro", place.path("bundled"))
    place.must(OK, "preregctl", "lock", grid, env=elsewhere)
    place.must(OK, "preregd", "submit", grid, env=alone(place))


def test_replaced(place):
    """What is submitted is what was allowed: neither the lock nor the program is replaced while the question is open."""
    elsewhere = {**place.env, "PREREGD_STATE": place.path("elsewhere")}
    grid = place.prepare("micro")
    ran = worker(place, grid)
    place.edit(grid, "[stage.train.params]", "describe = false\n[stage.train.params]")
    place.must(OK, "preregctl", "lock", grid, env=elsewhere)
    allowed = {name: open(place.path("micro", name), encoding="utf-8").read() for name in ("grid.toml", "grid.toml.lock")}

    def replace():
        place.write("micro/x.sh", f"#!/bin/sh\ntouch {ran}\nexit 64\n# another\n", 0o755)
        place.edit(grid, "./w.sh", "./x.sh")
        place.must(OK, "preregctl", "lock", "--replace", grid, env=elsewhere)

    code, text = on_terminal(place, "y", "submit", grid, before=replace)
    equal(code, LOCK, f"submit of a lock that was replaced: {text}")
    expect("grid.toml.lock changed while it was being submitted" in text and "run submit again" in text, text)
    expect("./x.sh" not in text, f"the question was about what was put in its place: {text}")
    equal(place.status(), [], "programs of the daemon")
    expect(not os.path.exists(ran), "a stage was executed that nobody allowed")

    for name, was in allowed.items():
        place.write(f"micro/{name}", was)
    code, text = on_terminal(place, "y", "submit", grid)
    expect("[y/N]" not in text, f"what was allowed is asked again: {text}")
    equal(code, OK, f"submit of what was allowed: {text}")
    root = json.loads(allowed["grid.toml.lock"])["root"]
    equal([p["root"] for p in place.status()], [root], "programs of the daemon")
    answer = raw(place, {"path": grid, "root": "0" * 64}, "submit")
    equal((answer.get("name"), root[:16] in answer.get("message", "")), ("lock", True), "submit with another root")
    equal(raw(place, {"path": grid}, "submit").get("root"), root, "submit by a client that does not say what was allowed")
    equal(raw(place, {"path": grid, "root": 1}, "submit").get("name"), "syntax", "submit with a root that is not text")


def test_rate(place):
    """What models of these shapes cost here is measured once, by the workers, and the estimate goes by it."""
    grid = place.prepare("micro")
    rates = os.path.join(place.state, "machine-rates.json")

    def seconds():
        return place.ctl_json("check", grid)["proof"]["plan"]["seconds"]

    first = seconds()
    with open(rates, encoding="utf-8") as f:
        found = json.load(f)
    kinds = sorted({name.split(", contract ")[1].split()[1] for name in found})
    equal(kinds, ["score", "train"], "what was measured")
    for name, rates_of in found.items():
        expect(all(0 <= rate < 1 for rate in rates_of), f"{name}: {rates_of} seconds")
    equal(seconds() // 1, first // 1, "the estimate by what is kept")
    place.write("state/machine-rates.json", json.dumps({name: [100 * rate for rate in v] for name, v in found.items()}))
    expect(seconds() > 10 * first, "the estimate does not go by what is kept")
    for broken in ("[]", "{", json.dumps({name: "fast" for name in found}), json.dumps({name: [1e300] * 8 for name in found})):
        place.write("state/machine-rates.json", broken)
        seconds()


def test_narrow_core(place):
    """A core of OpenBLAS that halves the speed is reported by check, where OpenBLAS multiplies."""
    grid = place.prepare("micro")
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        wide = "avx512f" in f.read()
    expect("OPENBLAS_CORETYPE" not in place.ctl("check", grid).stderr or wide, "a note where no other core is faster")
    place.edit(grid, "[stage.train.params]", '[stage.train.env]\nOPENBLAS_CORETYPE = "Haswell"\n[stage.train.params]')
    expect("OpenBLAS's core" not in place.ctl("check", grid).stderr, "a note although the products are fixed")
    place.edit(grid, "[stage.train.params]", '[stage.train.params]\nproducts = "openblas"')
    said = place.ctl("check", grid).stderr
    if wide:
        expect("stage.train: OpenBLAS's core here is of AVX2" in said, said)


lab.main(test_rate, test_try, test_narrow_core, test_terminal, test_interrupted, test_escapes, test_bundled, test_submit, test_replaced)
