#!/usr/bin/env python3
"""Runs the folders of fooled/, each one idea of how a plan, a file or a person could fool the program: `test_fooled.py BIN [FOLDER…]`.

fooled/README.md describes the format of `expect`.
"""

import os
import shlex
import shutil
import subprocess
import sys
import time

from lib import lab

FOLDERS = os.path.join(lab.HERE, "fooled")
COMMAND_SECONDS = 300  # a limit against hanging, not a measurement
UNTIL_SECONDS = 180


def read_steps(path):
    """[(line number, word, rest)] of an expect file."""
    steps = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if line and not line.startswith("#"):
                word, _, rest = line.partition(" ")
                steps.append((number, word, rest.strip()))
    return steps


def squeeze(text):
    return " ".join(text.split())


class Idea:
    """One folder's steps in a lab of its own."""

    def __init__(self, place, name):
        self.place, self.name = place, name
        self.folder = place.path(name)
        shutil.copytree(os.path.join(FOLDERS, name), self.folder)
        shutil.copy2(os.path.join(FOLDERS, "worker.py"), self.folder)
        self.env = {**place.env, "PATH": place.bin + os.pathsep + place.env["PATH"], "STATE": place.state}
        self.last = None  # (command, exit code, what it printed)
        self.exit_seen = True

    def shell(self, command):
        run = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=COMMAND_SECONDS, errors="replace")
        return run.returncode, run.stdout

    def end_command(self):
        """A command of which no exit code was named must have ended with 0."""
        if not self.exit_seen:
            self.expect_exit("0")

    def command(self, rest):
        self.end_command()
        self.last = (rest, *self.shell(rest))
        self.exit_seen = False

    def expect_exit(self, rest):
        self.exit_seen = True
        command, code, text = self.last
        lab.expect(str(code) in rest.split(), f"{command}: exit {code}, expected {rest}\n{text[-3000:]}")

    def says(self, rest):
        lab.expect(squeeze(rest) in squeeze(self.last[2]), f"{self.last[0]}: does not say {rest!r}:\n{self.last[2][-3000:]}")

    def never(self, rest):
        lab.expect(squeeze(rest) not in squeeze(self.last[2]), f"{self.last[0]}: must not say {rest!r}:\n{self.last[2][-3000:]}")

    def until(self, rest):
        """Repeats a command until it ends with 0."""
        self.end_command()
        end = time.monotonic() + UNTIL_SECONDS
        while True:
            self.last = (rest, *self.shell(rest))
            if self.last[1] == 0:
                return
            lab.expect(time.monotonic() < end, f"{rest}: still exit {self.last[1]} after {UNTIL_SECONDS} s\n{self.last[2][-3000:]}")
            time.sleep(0.1)

    def serve(self, _rest):
        self.end_command()
        self.place.serve()

    def needs(self, rest):
        """Skips the idea where a file of ../shared is absent."""
        if not os.path.exists(os.path.join(lab.SHARED, rest)):
            lab.skip(f"{self.name} needs {rest} in {lab.SHARED}")

    def run(self):
        words = {"$": self.command, "exit": self.expect_exit, "says": self.says, "never": self.never, "until": self.until,
                 "serve": self.serve, "needs": self.needs}
        for number, word, rest in read_steps(os.path.join(self.folder, "expect")):
            try:
                lab.expect(word in words, f"unknown word {word!r}; known are {', '.join(words)}")
                lab.expect(self.last or word not in ("exit", "says", "never"), f"{word!r} before the first command")
                words[word](rest)
            except (lab.Failed, subprocess.TimeoutExpired, OSError) as error:
                raise lab.Failed(f"fooled/{self.name}/expect:{number}: {error}") from error
        self.end_command()
        lab.expect(self.last, f"fooled/{self.name}/expect runs nothing")


def main():
    bin_folder, chosen = os.path.abspath(sys.argv[1]), sys.argv[2:]
    names = chosen or sorted(n for n in os.listdir(FOLDERS) if os.path.isdir(os.path.join(FOLDERS, n)))
    n_failed = n_skipped = 0
    for name in names:
        started, word = time.monotonic(), "ok"
        try:
            with lab.Lab(bin_folder) as place:
                Idea(place, name).run()
        except (lab.Failed, OSError) as error:
            word, n_failed = f"FAILED: {error}", n_failed + 1
        except lab.Skipped:
            word, n_skipped = "skipped", n_skipped + 1
        print(f"{shlex.quote(name)}: {word} ({time.monotonic() - started:.1f} s)", flush=True)
    sys.exit(lab.exit_code(n_failed, n_skipped, len(names)))


main()
