"""`preregctl init --template pytorch|transformers|lm-eval` with the real libraries: the commands that init prints, to the verdict. The
environment of their stages is the one that this runs in. Skipped where a library is not in it."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time

import oracle  # noqa: F401

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from lib import lab  # noqa: E402
from lib.lab import OK, equal, expect  # noqa: E402


def run_template(place, name, *needs):
    for need in needs:
        if importlib.util.find_spec(need) is None:
            lab.skip(f"no {need} in this environment")
    folder = place.path(f"my_{name.replace('-', '_')}")
    shown = place.ctl("init", "--template", name, folder).stdout
    os.symlink(sys.prefix, os.path.join(folder, ".venv"))
    # prereg-train, which exports models for the harness, is not installed where workers look
    if name == "lm-eval":
        place.edit(os.path.join(folder, "grid.toml"), '["prereg-lm-eval", "lm_eval"]',
                   f'["prereg-lm-eval", "lm_eval", "--prereg-train", "{place.bin}/prereg-train"]')
    commands = re.findall(r"^  ((?:prereg-data|preregctl|preregd) .*?)(?: +#.*)?$", shown, re.MULTILINE)
    equal([c.split()[0] for c in commands], ["prereg-data", "preregctl", "preregctl", "preregctl", "preregd"], "commands that init prints")
    env = {**place.env, "PATH": place.bin + os.pathsep + place.env["PATH"], "PREREGD_RUN": "0"}
    began = time.monotonic()
    for command in commands:
        run = subprocess.run(["sh", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=900)
        expect(run.returncode == OK, f"{command}: exit {run.returncode}\n{run.stdout}{run.stderr}")
    expect("verdict: " in run.stdout + run.stderr, f"no verdict:\n{run.stdout}{run.stderr}")
    with open(os.path.join(folder, "grid.toml.lock"), encoding="utf-8") as f:
        packages = json.load(f)["locked"]["environments"][".venv"]["packages"]
    expect("torch" in packages, "PyTorch is not pinned")
    print(f"  {name}: {[line for line in (run.stdout + run.stderr).splitlines() if 'verdict: ' in line][0]}; "
          f"{time.monotonic() - began:.0f} s with check and lock, {len(packages)} packages pinned", flush=True)
    shutil.rmtree(os.path.join(folder, "data"))


def test_pytorch(place):
    run_template(place, "pytorch", "torch")


def test_transformers(place):
    run_template(place, "transformers", "torch", "transformers", "accelerate")


def test_lm_eval(place):
    run_template(place, "lm-eval", "torch", "transformers", "lm_eval")


sys.argv[1] = os.path.join(os.path.abspath(sys.argv[1]), "bin")
lab.main(test_pytorch, test_transformers, test_lm_eval)
