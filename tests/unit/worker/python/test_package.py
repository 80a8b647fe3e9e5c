"""The package around the helper: its wheel, its names, the copy that is packed into an executable, and results' refusals."""

import base64
import hashlib
import os
import re
import subprocess
import sys
import unittest
import zipfile

import place

sys.path.insert(0, place.WORKERS)
import preregd  # noqa: E402
import preregd_worker  # noqa: E402
import wheel_backend  # noqa: E402
from preregd import results, worker  # noqa: E402


class WheelTest(place.Case):
    def build(self, folder, **env):
        """The bytes of a wheel that is built in a process of its own."""
        out = self.path(folder)
        run = subprocess.run([sys.executable, "-B", os.path.join(place.WORKERS, "wheel_backend.py"), out], check=True, text=True,
                             capture_output=True, env={**os.environ, **env})
        with open(os.path.join(out, run.stdout.strip()), "rb") as f:
            return f.read()

    def test_same_bytes(self):
        first = self.build("one", SOURCE_DATE_EPOCH="1700000000")
        self.assertEqual(first, self.build("two", SOURCE_DATE_EPOCH="1700000000", TZ="Asia/Tokyo"))
        self.assertNotEqual(first, self.build("three", SOURCE_DATE_EPOCH="1600000000"))
        self.build("four", SOURCE_DATE_EPOCH="0")  # before a zip file's first year

    def test_record(self):
        """Every file of the wheel is in its RECORD with its digest, and all modules are in the wheel."""
        self.build("one")
        with zipfile.ZipFile(self.path("one", "preregd-0.1.0-py3-none-any.whl")) as wheel:
            names = wheel.namelist()
            record = next(name for name in names if name.endswith("/RECORD"))
            rows = [line.split(",") for line in wheel.read(record).decode().splitlines()]
            self.assertEqual([row[0] for row in rows], names)
            for name, digest, size in rows[:-1]:
                data = wheel.read(name)
                wanted = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
                self.assertEqual((digest, size), (wanted, str(len(data))), name)
        modules = {"preregd/" + n for n in os.listdir(os.path.join(place.WORKERS, "preregd")) if not n.startswith("__pyc")}
        self.assertLessEqual(modules | {"preregd_worker.py"}, set(names))
        self.assertIn("preregd/py.typed", names)

    def test_version(self):
        with open(os.path.join(place.TOP, "CMakeLists.txt"), encoding="utf-8") as f:
            version = re.search(r"project\(preregd VERSION ([\d.]+)", f.read()).group(1)
        self.assertEqual(wheel_backend.project()[0]["version"], version)


class NamesTest(place.Case):
    def test_one_helper(self):
        """Whatever name it is imported by: a fault of one is a fault of the other."""
        self.assertIs(preregd_worker, worker)
        self.assertIs(preregd.Stopped, preregd_worker.Stopped)
        for name in preregd.__all__:
            self.assertIs(getattr(preregd, name), getattr(worker, name), name)

    def packed(self, text):
        """Runs a worker that has the helper in front of it, where another package of that name is installed. The error output."""
        self.task()
        self.write("installed/preregd/__init__.py", "raise SystemExit('the installed package')")
        self.write("script.py", text)
        subprocess.run(["sh", os.path.join(place.WORKERS, "pack"), self.path("packed"), self.path("script.py")], check=True)
        run = subprocess.run([sys.executable, self.path("packed")], capture_output=True, text=True,
                             env={**os.environ, "PREREG_TASK": "task.json", "PYTHONPATH": self.path("installed")})
        return run.returncode, run.stderr

    def test_packed(self):
        """All names of a packed helper are one module; the package that is installed is not used."""
        code, err = self.packed("from __future__ import annotations\nimport preregd, preregd_worker, preregd.worker\n"
                                "assert preregd_worker is preregd.worker and preregd.Stopped is preregd_worker.Stopped\n"
                                "preregd.run(lambda w: None, lambda w, p: w.metric('x', 1))\n")
        self.assertEqual((code, err), (0, ""))

    def test_packed_module(self):
        """Modules of the package are in it, to their last line, and a traceback shows the line."""
        self.write("installed/torch.py", "class Tensor: pass\n")
        code, err = self.packed("import preregd.torch\npreregd.worker.name_tracebacks()\npreregd.torch.Checkpoint(generators=1)\n")
        self.assertEqual(code, 1)
        self.assertIn('packed/preregd.torch", line ', err)
        self.assertIn('raise TypeError(f"{name}: a part of a checkpoint has', err)
        code, err = self.packed("import inspect, preregd.torch, sys\nwith open(sys.argv[0]) as f: pass\n"
                                "sys.stderr.write(inspect.getsource(preregd.torch))\n")
        with open(os.path.join(place.WORKERS, "preregd", "torch.py"), encoding="utf-8") as f:
            self.assertEqual((code, err), (0, f.read()))


class ResultsTest(place.Case):
    def test_refusals(self):
        os.makedirs(self.path("program", "report"))
        with self.assertRaisesRegex(results.Sealed, "has no verdict yet"):
            results.Program(self.path("program"))
        self.write("program/report/verdict.json", "{}")
        with self.assertRaisesRegex(results.ResultsError, "absent: No such file"):
            results.Program(self.path("program"), preregctl=self.path("absent"))
        self.write("ctl", "#!/bin/sh\necho 'preregctl report: another root' >&2\nexit 3\n")
        os.chmod(self.path("ctl"), 0o755)
        with self.assertRaisesRegex(results.ResultsError, "another root"):
            results.Program(self.path("program"), preregctl=self.path("ctl"))

    def test_points(self):
        """A step that was repeated counts once; what precedes an attempt that began at the start does not count."""
        self.write("stage/attempt-100-e/result.json", "{}")
        os.symlink(self.path("stage/attempt-100-e/result.json"), self.path("stage/result.json"))
        point = '{{"type":"point","step":{},"name":"loss","value":{}}}\n'
        self.write("stage/attempt-01-a/events.jsonl", point.format(9, 9.5))
        self.write("stage/attempt-02-b/events.jsonl", point.format(0, 3.0) + point.format(1, 2.0) + '{"type":"point","ste')
        self.write("stage/attempt-03-c/events.jsonl", '{"type":"resumed","step":1}\n' + point.format(1, 2.0) + point.format(2, 2.5))
        self.write("stage/attempt-04-d/events.jsonl", '{"type":"note"}\n')  # killed before it said where it begins
        self.write("stage/attempt-11-d/events.jsonl", '{"type":"resumed","step":2}\n' + point.format(2, "null"))
        self.write("stage/attempt-100-e/events.jsonl", '{"type":"resumed","step":3}\n' + point.format(3, 1.5))
        self.write("stage/attempt-101-f/events.jsonl", point.format(3, 1.0))
        self.assertEqual(results._points(self.path("stage"), "loss"), {0: 3.0, 1: 2.0, 2: None, 3: 1.5})


if __name__ == "__main__":
    unittest.main()
