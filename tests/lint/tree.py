"""What every lint shares: which files belong to the tree, and how breaches are printed."""

import argparse
import os
import subprocess
import sys

C_ENDINGS = (".c", ".h", ".cpp")


def arguments(doc):
    """Every lint takes --root, so that tests/lint/selftest can point it at a tree with a breach in it."""
    parser = argparse.ArgumentParser(description=doc)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(here)), help="the tree to look at")
    return parser


def files(root):
    """Paths relative to root: what git tracks or would track; in a tree without git, everything but build/."""
    try:
        out = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True, capture_output=True).stdout.decode()
        found = [p for p in out.split("\0") if p]
    except (OSError, subprocess.CalledProcessError):
        found = []
        for folder, subfolders, names in os.walk(root):
            subfolders[:] = [s for s in subfolders if s not in ("build", ".git")]
            found += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return sorted(p for p in set(found) if os.path.isfile(os.path.join(root, p)))


def c_files(root):
    return [p for p in files(root) if p.endswith(C_ENDINGS)]


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def is_script(root, path, *interpreters):
    """True when the first line names one of the interpreters."""
    with open(os.path.join(root, path), "rb") as f:
        first = f.readline(100)
    return first.startswith(b"#!") and any(i.encode() in first for i in interpreters)


def finish(name, breaches, n_looked_at):
    """Prints the breaches and a closing line; exits 1 when there are any, 2 when nothing was looked at."""
    for breach in breaches:
        print(breach)
    if n_looked_at == 0:
        print(f"{name}: found nothing to look at")
        sys.exit(2)
    print(f"{name}: {n_looked_at} looked at, {len(breaches)} breaches")
    sys.exit(1 if breaches else 0)
