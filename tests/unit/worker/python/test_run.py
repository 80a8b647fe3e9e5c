"""Whole workers as processes: exit codes, --describe, SIGTERM and kill -9 with the same bytes after, prereg-python's modules."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import place

COUNT = """
import json, os, time
import preregd_worker as prereg

def setup(w):
    p = {"steps": w.params.integer("steps", 1, 1000), "pause": w.params.number("pause", 0, 1, 0.0)}
    w.params.finish()
    w.will_measure("sum")
    w.will_take(p["steps"] * p["pause"])
    w.fact("steps", p["steps"])
    return p

def work(w, p):
    state = {"sum": 0.0}
    def save(folder):
        with open(os.path.join(folder, "state.json"), "w") as f:
            json.dump(state, f)
    def load(folder):
        with open(os.path.join(folder, "state.json")) as f:
            state.update(json.load(f))
    for step in w.steps(w.resume(load), p["steps"], save):
        state["sum"] += 1 / (step + 1)
        time.sleep(p["pause"])
    w.metric("sum", state["sum"], n=p["steps"])

prereg.run(setup, work)
"""

RAISES = """
import preregd_worker as prereg
def work(w, p):
    {body}
prereg.run(lambda w: None, work)
"""


class RunTest(place.Case):
    def setUp(self):
        super().setUp()
        self.runner = os.path.join(tempfile.mkdtemp(prefix="prereg-python-"), "prereg-python")
        self.addCleanup(shutil.rmtree, os.path.dirname(self.runner))
        self.pack(self.runner, os.path.join(place.WORKERS, "run_script.py"))

    @staticmethod
    def pack(out, script):
        subprocess.run(["sh", os.path.join(place.WORKERS, "pack"), out, script], check=True)

    def start(self, script, *words, arguments=(), env=None):
        """prereg-python on a script's text, in the attempt's folder."""
        path = self.write("worker.py", script)
        everything = {**os.environ, "PREREG_TASK": "task.json", "PREREG_EVENTS": "events.jsonl", **(env or {})}
        argv = [sys.executable, self.runner, path, *words, *arguments]
        return subprocess.Popen(argv, env=everything, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def finish(self, script, *words, **more):
        child = self.start(script, *words, **more)
        out, err = child.communicate(timeout=60)
        return child.returncode, out, err

    def metrics(self):
        with open("result.json", encoding="utf-8") as f:
            return json.load(f)["metrics"]

    def test_names_of_the_plan(self):
        """The copy that runs has a digest for a name; messages name the script as the plan does."""
        self.task(command=["prereg-python", "study/train.py", "--fast"])
        crash = RAISES.replace("{body}", "1 / 0  # here")
        code, _, err = self.finish(crash, arguments=["--fast"])
        self.assertEqual(code, 1)
        self.assertIn('File "study/train.py", line 4, in work\n    1 / 0  # here\n', err)
        self.assertIn("ZeroDivisionError", err)
        self.assertNotIn(self.folder, err)
        chained = RAISES.replace("{body}", "try:\n        1 / 0\n    except ArithmeticError:\n        raise KeyError('x')")
        _, _, err = self.finish(chained, arguments=["--fast"])
        self.assertEqual(err.count('File "study/train.py"'), 3, err)
        self.assertNotIn(self.folder, err)
        code, _, err = self.finish(RAISES.replace("{body}", "raise prereg.DataFault('torn')"), arguments=["--fast"])
        self.assertEqual((code, err), (65, "train.py: torn\n"))

    def test_done(self):
        self.task(params={"steps": 10})
        code, out, err = self.finish(COUNT)
        self.assertEqual((code, out, err), (0, "", ""))
        self.assertEqual(self.metrics(), {"sum": {"value": sum(1 / i for i in range(1, 11)), "n": 10}})
        said = [e["type"] for e in place.lines("events.jsonl")]
        self.assertEqual(said[:3], ["environment", "section", "section"])
        self.assertIn("progress", said)

    def test_environment(self):
        """What is imported is stated, in the first event and among the facts; our contract of arithmetic never."""
        module = "import sys, types\ndef ask(): return {text}\nsys.modules['torch'] = types.SimpleNamespace(backends=" \
            "types.SimpleNamespace(cpu=types.SimpleNamespace(get_cpu_capability=ask)))\n"
        for text, wanted in (("'AVX512'", "avx512"), ("'DEFAULT'", "baseline"), ("None", None)):
            self.task(params={"steps": 2})
            code, _, err = self.finish(module.format(text=text) + COUNT)
            self.assertEqual((code, err), (0, ""))
            said = place.lines("events.jsonl")[0]
            with open("result.json", encoding="utf-8") as f:
                facts = json.load(f)["facts"]
            for told in (said, facts):
                self.assertEqual((told.get("instructions"), "arithmetic" in told), (wanted, False), text)
            os.remove("events.jsonl")

    def test_exit_codes(self):
        self.task()
        for body, code, text in (
                ("raise prereg.DataFault('torn')", 65, "worker.py: torn"),
                ("raise prereg.DataFault('\\x1b[2Jx')", 65, "worker.py: ?[2Jx\n"), ("raise KeyError(1) from ValueError('\\x1b[2Jx')", 1, "ValueError: ?[2Jx\n"), ("raise prereg.NotMeasurable('mute')", 69, "mute"),
                ("raise prereg.UsageFault('a\\nb')", 64, "worker.py: a"), ("raise prereg.Stopped('later')", 75, "later"),
                ("raise KeyError('oops')", 1, "Traceback"), ("w.metric('x', 'abc')", 1, "Traceback"),
                ("w.data('absent')", 64, "no data"), ("w.input('absent')", 64, "no input"), ("pass", 0, "")):
            with self.subTest(body=body):
                got, _, err = self.finish(RAISES.replace("{body}", body))
                self.assertEqual(got, code, err)
                self.assertIn(text, err)
                self.assertEqual(os.path.exists("result.json"), code == 0)

    def test_usage(self):
        self.task(params={"stepz": 1, "pause": 2})
        code, _, err = self.finish(COUNT)
        self.assertEqual(code, 64)
        for text in ("params.pause: 2 is not in 0 .. 1", "params.stepz: unknown parameter; did you mean \"steps\"?"):
            self.assertIn(text, err)
        self.assertNotIn("is required", err)  # it follows from the misspelled name
        code, _, err = self.finish(COUNT, env={"PREREG_TASK": ""})
        self.assertEqual((code, "PREREG_TASK" in err), (64, True))

    def test_describe(self):
        self.task(params={"steps": 10, "pause": 0.5})
        code, out, err = self.finish(COUNT, arguments=["--describe", "task.json"])
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(json.loads(out), {"protocol": 1, "facts": {"steps": 10}, "errors": [], "metrics": ["sum"], "seconds": 5.0})
        self.assertFalse(os.path.exists("events.jsonl") or os.path.exists("result.json"))
        self.task(params={"stepz": 10})
        code, out, _ = self.finish(COUNT, arguments=["--describe", "task.json"])
        self.assertEqual((code, [e["key"] for e in json.loads(out)["errors"]]), (0, ["stepz"]))
        code, out, _ = self.finish(COUNT, arguments=["--describe", "absent.json"])
        self.assertEqual(len(json.loads(out)["errors"]), 1)

    def wait_for_steps(self, child):
        end = time.monotonic() + 30
        while time.monotonic() < end and child.poll() is None:
            if os.path.exists("events.jsonl") and any(e["type"] == "progress" for e in place.lines("events.jsonl")):
                time.sleep(0.2)
                return
            time.sleep(0.02)
        self.fail("the worker says no progress")

    def test_stopped_and_killed(self):
        """SIGTERM ends with 75 and a checkpoint, kill -9 with the last one; the end is the same."""
        params, resume = {"steps": 100, "pause": 0.01}, []
        wanted = {"sum": {"value": sum(1 / i for i in range(1, 101)), "n": 100}}
        for number, signal_number in enumerate((signal.SIGTERM, signal.SIGKILL, signal.SIGTERM)):
            folder = self.attempt(f"try-{number}")
            self.task(params=params, resume=resume, checkpoint="50ms", attempt_no=number + 1)
            child = self.start(COUNT)
            self.wait_for_steps(child)
            child.send_signal(signal_number)
            _, err = child.communicate(timeout=30)
            self.assertEqual(child.returncode, 75 if signal_number == signal.SIGTERM else -9, err)
            self.assertTrue(os.listdir("checkpoint"))
            resume.insert(0, folder)
        self.attempt("last")
        self.task(params=params, resume=resume)
        code, _, err = self.finish(COUNT)
        self.assertEqual((code, self.metrics()), (0, wanted), err)
        resumed = [e["step"] for e in place.lines("events.jsonl") if e["type"] == "resumed"]
        self.assertEqual(len(resumed), 1)
        self.assertGreater(resumed[0], 3)

    def test_forked_children_end(self):
        """A child forked from a worker (a data loader's, say) is ended by SIGTERM as any other."""
        self.task()
        code, _, err = self.finish(RAISES.replace("{body}", """
    import os, signal, time
    child = os.fork()
    if child == 0:
        time.sleep(20)
        os._exit(0)
    time.sleep(0.2)
    os.kill(child, signal.SIGTERM)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM"""))
        self.assertEqual(code, 0, err)

    def test_modules(self):
        self.task()
        net = self.write("0f3a", "import other\nVALUE = other.VALUE + 1\n")
        other = self.write("77be", "VALUE = 1\n")
        script = RAISES.replace("{body}", "import net; w.metric('x', net.VALUE); w.fact('words', ' '.join(w.arguments))")
        code, _, err = self.finish(script, "--module", "net", net, "--module", "other", other, "more", "words")
        self.assertEqual(code, 0, err)
        self.assertEqual(self.metrics(), {"x": {"value": 2.0}})
        with open("result.json", encoding="utf-8") as f:
            self.assertEqual(json.load(f)["facts"]["words"], "more words")
        self.assertEqual(sorted(os.listdir(self.folder)), ["0f3a", "77be", "one", "worker.py"])  # no bytecode beside them
        for words in (["--module", "net"], ["--module", "net", "absent"], ["--module", "a-b", net]):
            code, _, err = self.finish(script, *words)
            self.assertEqual((code, err.count("\n")), (64, 1), err)

    def test_packed(self):
        """Helper and worker in one file, as the installed ones are."""
        self.task(params={"steps": 3})
        packed = self.path("packed")
        self.pack(packed, self.write("plain.py", COUNT))
        subprocess.run([packed], env={**os.environ, "PREREG_TASK": "task.json"}, check=True, stderr=subprocess.DEVNULL)
        self.assertEqual(self.metrics()["sum"]["n"], 3)


if __name__ == "__main__":
    unittest.main()
