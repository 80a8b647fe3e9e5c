#!/usr/bin/env python3
"""The exit code of a file of tests, some of which fail or are skipped: a skipped test hides nothing, and nothing that ran is not a pass."""

import os
import subprocess
import sys

from lib import lab
from lib.lab import equal, expect

FILE = """import sys
sys.path.insert(0, {here!r})
from lib import lab
def test_passes(place):
    pass
def test_fails(place):
    lab.expect(False, "as it is meant to")
def test_errs(place):
    return None < 1
def test_skipped(place):
    lab.skip("no moon here")
lab.main({tests})
"""
CASES = (("passes", 0), ("fails", 1), ("skipped", lab.SKIP), ("passes skipped", 0), ("skipped passes", 0), ("fails skipped", 1),
         ("skipped fails", 1), ("skipped skipped", lab.SKIP), ("errs passes", 1), ("", lab.SKIP))


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, timeout=240, env={**os.environ, **more})


def test_exit_code(place):
    bin_folder = os.path.abspath(sys.argv[1])
    for tests, wanted in CASES:
        path = place.write("file.py", FILE.format(here=lab.HERE, tests=", ".join(f"test_{t}" for t in tests.split())))
        ran = run(sys.executable, path, bin_folder)
        equal(ran.returncode, wanted, f"exit code of a file of tests with ({tests}): {ran.stdout}{ran.stderr}")
        for test in set(tests.split()):
            expect(f"test_{test}: " in ran.stdout, f"({tests}): nothing is said of {test}: {ran.stdout}")
    ran = run(sys.executable, path, bin_folder, "test_misspelt")
    expect(ran.returncode == 1 and "no such test: test_misspelt" in ran.stderr, f"exit {ran.returncode}: {ran.stderr}")


def test_no_harm_is_possible(place):
    """Without root there is no small disk to fill: the run that was asked for is skipped, not passed."""
    if os.geteuid() != 0:
        lab.skip("only root can give up being root")
    unprivileged = ["/usr/bin/env", "unshare", "--user", sys.executable]
    probe = run(*unprivileged, "-c", "")
    if probe.returncode != 0:
        lab.skip(f"no user namespace: {probe.stderr.strip()}")
    ran = run(*unprivileged, os.path.join(lab.HERE, "test_harm.py"), os.path.abspath(sys.argv[1]), PREREGD_HARM="full_work")
    equal(ran.returncode, lab.SKIP, f"exit code of a run of harm that is not possible: {ran.stdout}{ran.stderr}")


lab.main(test_exit_code, test_no_harm_is_possible)
