"""What the tests of the Python workers share: a folder of its own for each test, and tasks in it."""

import json
import os
import shutil
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.abspath(os.path.join(HERE, *[os.pardir] * 4))
WORKERS = os.path.join(TOP, "worker", "python")
sys.path.insert(0, WORKERS)
sys.dont_write_bytecode = True


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="prereg-python-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.addCleanup(os.chdir, os.getcwd())
        self.attempt("one")

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def attempt(self, name):
        """Makes an attempt's folder and goes there."""
        os.makedirs(self.path(name), exist_ok=True)
        os.chdir(self.path(name))
        return self.path(name)

    def write(self, path, data):
        path = self.path(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        return path

    def task(self, **members):
        """Writes task.json here and gives its path."""
        task = {"protocol": 1, "attempt": "a-1", "attempt_no": 1, "params": {}, "threads": 1, **members}
        return self.write(os.path.join(os.getcwd(), "task.json"), json.dumps(task))


def lines(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]
