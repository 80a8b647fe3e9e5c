#!/usr/bin/env python3
"""`cmake --install` into a folder: what is where, with the bytes of the build, and a program run from there to its verdict."""

import os
import re
import subprocess
import sys

from lib import lab
from lib.lab import equal, expect

BUILT = os.path.abspath(sys.argv[1])
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HELD = {
    "bin": {"preregd", "preregctl", "prereg-shim", "prereg-report", "prereg-gpus", "prereg-train", "prereg-eval", "prereg-data", "prereg-python",
            "prereg-lm-eval"},
    "share/man/man1": {f"{n}.1" for n in ("preregd", "preregctl", "prereg-train", "prereg-eval", "prereg-data", "prereg-python", "prereg-lm-eval")},
    "share/bash-completion/completions": {"preregctl", "preregd", "prereg-train", "prereg-eval", "prereg-data", "prereg-python", "prereg-lm-eval"},
    "share/zsh/site-functions": {"_preregctl", "_prereg-workers"},
    "share/fish/vendor_completions.d": {f"{n}.fish" for n in ("preregctl", "preregd", "prereg-train", "prereg-eval", "prereg-data", "prereg-python",
                                                               "prereg-lm-eval")},
    "share/systemd/user": {"preregd.service"},
    "lib/systemd/system": {"preregd@.service"},
}


def install(place, *arguments, prefix="/usr/local"):
    """Returns the folder of the prefix below DESTDIR."""
    build = os.path.dirname(BUILT)
    env = {**os.environ, "DESTDIR": place.path("root")}
    run = subprocess.run(["cmake", "--install", build, "--prefix", prefix, *arguments], env=env, capture_output=True, text=True)
    equal(run.returncode, 0, run.stdout + run.stderr)
    return place.path("root") + prefix


def test_install(place):
    home = install(place)
    for folder, names in HELD.items():
        equal(set(os.listdir(os.path.join(home, folder))), names, folder)
    for name in HELD["bin"]:
        with open(os.path.join(home, "bin", name), "rb") as a, open(os.path.join(BUILT, name), "rb") as b:
            expect(a.read() == b.read(), f"{name} is installed with other bytes than it was built with: it would have another root")
    for unit in ("share/systemd/user/preregd.service", "lib/systemd/system/preregd@.service"):
        with open(os.path.join(home, unit), encoding="utf-8") as f:
            expect("ExecStart=/usr/local/bin/preregd serve" in f.read(), unit)
    for name in ("README.md", "docs/README.md"):
        with open(os.path.join(home, "share/doc/preregd", name), encoding="utf-8") as a, open(os.path.join(TOP, name), encoding="utf-8") as b:
            text = a.read()
            equal(text, b.read(), name)
        for target in re.findall(r"\]\(((?:docs/)?[a-z-]+\.md)", text):
            expect(os.path.exists(os.path.join(home, "share/doc/preregd", os.path.dirname(name), target)), f"{name} leads to {target}")
    expect(not any(n.endswith(".pyc") for _, _, files in os.walk(home) for n in files), "compiled Python is installed")


def test_components(place):
    """Every installed file is in exactly one component."""
    all_files = files_below(install(place))
    parts = []
    for component in ("daemon", "workers", "python"):
        subprocess.run(["rm", "-rf", place.path("root")], check=True)
        parts += files_below(install(place, "--component", component))
    equal(sorted(parts), sorted(all_files), "files of the components")


def files_below(folder):
    return [os.path.relpath(os.path.join(f, n), folder) for f, _, names in os.walk(folder) for n in names]


def test_run(place):
    """From the installed files alone: prepare, lock, submit, verdict. The workers are beside the daemon."""
    home = install(place)
    env = {k: v for k, v in place.env.items() if k != "PREREGD_BIN"}
    env.update(PATH=f"{home}/bin:/usr/bin:/bin", PREREGD_STATE=place.state)
    place.bin = os.path.join(home, "bin")

    def call(*words):
        run = subprocess.run(words, cwd=place.folder, env=env, capture_output=True, text=True, timeout=500)
        equal(run.returncode, 0, f"{words}: {run.stdout}{run.stderr}")
        return run.stdout

    grid = call(f"{home}/share/preregd/programs/prepare", "python_worker").strip()
    equal(grid, place.path("python_worker", "grid.toml"), "where the program is")
    call("preregctl", "lock", grid)
    expect(re.search(r"^verdict: ", call("preregd", "submit", grid, "--wait"), re.M), "no verdict")
    call("preregctl", "verdict")


lab.main(test_install, test_components, test_run)
