"""prereg-lm-eval around a stand-in for the harness: both shapes of its files, faults, SIGTERM and the replies kept."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

import place
from preregd import lm_eval as worker
import preregd_worker as prereg

FAKE = os.path.join(place.HERE, "fake_lm_eval.py")


class LmEvalTest(place.Case):
    def setUp(self):
        super().setUp()
        self.write("hf/config.json", "{}")
        self.write("hf/model.safetensors", "weights")

    def start(self, params, *arguments, resume=(), env=None, inputs=None, data=None):
        self.task(params=params, resume=list(resume), data=data or {}, stage="quiz",
                  inputs={"train": self.path("hf")} if inputs is None else inputs)
        everything = {**os.environ, "PREREG_TASK": "task.json", "PREREG_EVENTS": "events.jsonl", "PYTHONPATH": place.WORKERS,
                      **(env or {})}
        argv = [sys.executable, "-B", "-m", "preregd.lm_eval", *(arguments or [FAKE])]
        return subprocess.Popen(argv, env=everything, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def finish(self, params, *arguments, wanted=0, **more):
        child = self.start(params, *arguments, **more)
        out, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, wanted, err)
        return out, err

    def result(self):
        with open("result.json", encoding="utf-8") as f:
            return json.load(f)

    def test_group(self):
        """A group and its members, in both shapes: the same metrics and items."""
        found = []
        for shape in ("0.4.3", "later"):
            self.attempt(shape)
            out, err = self.finish({"tasks": "quiz"}, env={"FAKE_SHAPE": shape})
            self.assertNotIn("0.9999", out + err)
            result = self.result()
            self.assertEqual({name: m["n"] for name, m in result["metrics"].items()}, {"acc": 20, "acc:a": 12, "acc:b": 8})
            items = place.lines("items.jsonl")[1:]
            self.assertEqual([line["item"] for line in items], list(range(20)))
            a = [line["acc"] for line in items if line["task"] == "quiz_a"]
            self.assertEqual(result["metrics"]["acc:a"]["value"], sum(a) / 12)
            self.assertEqual((len(items[0]["ll"]), items[5]["gold"]), (4, 1))
            self.assertEqual(list(items[0]), ["item", "task", "doc", "ll", "greedy", "gold", "acc", "acc_bytes", "acc_norm"])
            self.assertEqual([a["path"] for a in result["artifacts"]],
                             ["harness/results.json", "harness/samples_quiz_a.jsonl", "harness/samples_quiz_b.jsonl"])
            self.assertEqual(sorted(os.listdir()), ["events.jsonl", "harness", "items.jsonl", "result.json", "task.json"])
            found.append((result["metrics"], items))
        self.assertEqual(found[0], found[1])

    def test_filters(self):
        for shape in ("0.4.3", "later"):
            self.attempt(shape)
            self.finish({"tasks": ["sums"]}, env={"FAKE_SHAPE": shape})
            metrics = self.result()["metrics"]
            self.assertEqual((metrics["exact_match:strict"]["value"], metrics["exact_match:flexible"]["value"]), (0.5, 1.0))
            self.assertEqual(metrics["exact_match:strict"]["n"], 6)
            items = place.lines("items.jsonl")[1:]
            self.assertEqual(len(items), 6)
            self.assertEqual((items[1]["strict"], items[1]["flexible"], items[1]["exact_match:strict"],
                              items[1]["exact_match:flexible"]), ("2", "1", 0.0, 1.0))

    def test_several_tasks(self):
        self.finish({"tasks": ["quiz_a", "sums", "page"], "limit": 4, "metrics": ["acc:quiz_a"]})
        result = self.result()
        self.assertEqual(set(result["metrics"]), {"acc:quiz_a", "exact_match:strict:sums", "exact_match:flexible:sums",
                                                  "word_perplexity:page"})
        self.assertNotIn("se", result["metrics"]["word_perplexity:page"])
        self.assertEqual(result["facts"]["items_of_quiz_a"], "4 of 12")
        page = [line for line in place.lines("items.jsonl")[1:] if line["task"] == "page"]
        self.assertEqual([len(line["ll"]) for line in page], [1, 1])
        notes = [e["text"] for e in place.lines("events.jsonl") if e["type"] == "note"]
        self.assertIn("limit: 4 of 12 items of quiz_a", notes)

    def test_nan(self):
        self.finish({"tasks": "quiz"}, env={"FAKE_FAULT": "nan"})
        self.assertIsNone(place.lines("items.jsonl")[2]["ll"][2])

    def test_faults(self):
        cases = [
            ({"tasks": "absent"}, {}, 64, "does not know absent"),
            ({"tasks": "quiz", "metrics": ["acc_norm"]}, {}, 64, "yields no acc_norm; it yields acc"),
            ({"tasks": "quiz"}, {"FAKE_FAULT": "crash"}, 1, "its last words are above"),
            ({"tasks": "quiz"}, {"FAKE_FAULT": "disagree"}, 65, "in the results file"),
            ({"tasks": "quiz"}, {"FAKE_FAULT": "partial"}, 65, "quiz_a: some of its samples have no acc"),
            ({"tasks": "quiz"}, {"FAKE_FAULT": "torn"}, 65, ".jsonl: line 13: "),
            ({"tasks": "quiz"}, {"FAKE_FAULT": "no_results"}, 1, "left no results file"),
            ({"tasks": "quiz"}, {"FAKE_FAULT": "no_samples"}, 1, "left no samples file"),
            ({"tasks": "quiz", "version": "0.4.3"}, {}, 64, "not 0.4.3"),
            ({"tasks": "quiz", "taks": 1}, {}, 64, "did you mean \"tasks\"?"),
            ({"tasks": "quiz", "arguments": ["--outp", "x"]}, {}, 64, "--outp is set by the worker"),
            ({"tasks": "quiz", "arguments": ["-b", "2"]}, {}, 64, "-b is set by the worker"),
            ({"tasks": "quiz", "arguments": ["-oelsewhere"]}, {}, 64, "-o is set by the worker"),
            ({"tasks": "quiz", "model_args": {"dtype": "a,b"}}, {}, 64, "takes no \",\""),
            ({"tasks": "quiz", "model_args": {"pretrained": "x"}}, {}, 64, "pretrained is the model"),
            ({"tasks": "quiz", "limit": 0}, {}, 64, "limit"),
            ({"tasks": "a,b"}, {}, 64, "comma"),
            ({"tasks": []}, {}, 64, "names none"),
            ({"tasks": "quiz", "include": "yaml"}, {}, 64, "no data \"yaml\""),
            ({"tasks": "quiz", "model": "other"}, {}, 64, "no input or data \"other\""),
        ]
        for params, env, code, text in cases:
            with self.subTest(params=params, env=env):
                _, err = self.finish(params, wanted=code, env=env)
                self.assertIn(text, err)
                self.assertFalse(os.path.exists("result.json"))

    def test_no_harness(self):
        for arguments, text in (((self.path("absent"),), "no program"), (("--prereg-train",), "takes a file"),
                                ((FAKE, "x"), "unknown word 'x'"), (("--lm-eval", FAKE), "unknown word")):
            _, err = self.finish({"tasks": "quiz"}, *arguments, wanted=64)
            self.assertIn(text, err)
            self.assertEqual(err.count("\n"), 1)
        _, err = self.finish({"tasks": "quiz"}, "lm_eval", wanted=64, env={"PATH": self.folder})
        self.assertIn("no program \"lm_eval\" (lm-evaluation-harness) in $PATH", err)

    def test_no_model(self):
        os.makedirs(self.path("empty"))
        _, err = self.finish({"tasks": "quiz"}, wanted=65, inputs={"train": self.path("empty")})
        self.assertIn("no model", err)
        self.write("ours/model/model.json", "{}")
        _, err = self.finish({"tasks": "quiz"}, FAKE, "--prereg-train", self.path("absent"), wanted=64,
                             inputs={"train": self.path("ours")})
        self.assertIn("exports our models", err)
        refuses = self.write("refuses", "#!/bin/sh\necho 'export: shared: has no name there' >&2\nexit 69\n")
        os.chmod(refuses, 0o755)
        _, err = self.finish({"tasks": "quiz"}, FAKE, "--prereg-train", refuses, wanted=69, inputs={"train": self.path("ours")})
        self.assertIn("shared: has no name there", err)

    def test_describe(self):
        def described(params, **more):
            out, _ = self.finish(params, FAKE, "--describe", "task.json", inputs={}, **more)
            return json.loads(out)
        self.assertEqual(described({"tasks": "gsm8k"})["metrics"], ["exact_match:strict", "exact_match:flexible"])
        self.assertEqual(described({"tasks": ["copa", "boolq"]})["metrics"], ["acc:copa", "acc:boolq"])
        self.assertEqual(described({"tasks": "mine", "metrics": "acc"})["metrics"], ["acc"])
        self.assertNotIn("metrics", described({"tasks": "mine"}))
        self.assertEqual([e["key"] for e in described({"taks": "mine"})["errors"]], ["taks"])
        self.assertIn("not 0.4.3", described({"tasks": "mine", "version": "0.4.3"})["errors"][0]["why"])

    def wait_for_request(self, child, least):
        end = time.monotonic() + 30
        while time.monotonic() < end and child.poll() is None:
            if os.path.exists("events.jsonl") and any(e.get("done", 0) >= least for e in place.lines("events.jsonl")):
                return
            time.sleep(0.02)
        self.fail("no progress")

    def test_stopped_and_resumed(self):
        """SIGTERM: 75, the harness is gone; the next attempt asks only what was not answered. kill -9 the same."""
        resume, slow = [], {"FAKE_PAUSE": "0.02"}
        self.attempt("calm")
        self.finish({"tasks": "quiz"})
        with open("items.jsonl", "rb") as f:
            calm = f.read()
        for number, how in enumerate((signal.SIGTERM, signal.SIGKILL)):
            folder = self.attempt(f"try-{number}")
            child = self.start({"tasks": "quiz"}, resume=resume, env=slow)
            self.wait_for_request(child, 10 * (number + 1))
            if how == signal.SIGKILL:
                for pid in subprocess.run(["pgrep", "-P", str(child.pid)], capture_output=True, text=True).stdout.split():
                    os.kill(int(pid), how)
            child.send_signal(how)
            _, err = child.communicate(timeout=20)
            self.assertEqual(child.returncode, 75 if how == signal.SIGTERM else -9, err)
            self.assertFalse(os.path.exists("result.json"))
            resume.insert(0, folder)
        self.attempt("last")
        self.finish({"tasks": "quiz"}, resume=resume)
        said = place.lines("events.jsonl")
        taken = [e["step"] for e in said if e["type"] == "resumed"]
        self.assertEqual(len(taken), 1)
        self.assertGreaterEqual(taken[0], 20)
        self.assertEqual([e for e in said if e["type"] == "progress"][-1]["done"], 80)
        with open("items.jsonl", "rb") as f:
            self.assertEqual(f.read(), calm)
        self.attempt("other")
        self.write("hf/model.safetensors", "other weights")
        self.finish({"tasks": "quiz"}, resume=resume)
        self.assertFalse([e for e in place.lines("events.jsonl") if e["type"] == "resumed"])

    def test_torn_replies(self):
        """A database that is none is left alone."""
        self.finish({"tasks": "quiz"}, env={"FAKE_FAULT": "crash"}, wanted=1)
        with open("cache/replies_rank0.db", "r+b") as f:
            f.write(b"no database")
        self.attempt("two")
        self.finish({"tasks": "quiz"}, resume=[self.path("one")])
        self.assertIn("cannot be used", json.dumps(place.lines("events.jsonl")))
        self.assertEqual(self.result()["metrics"]["acc"]["n"], 20)

    def test_no_replies_in_batches(self):
        self.finish({"tasks": "quiz", "batch_size": 4}, env={"FAKE_FAULT": "crash"}, wanted=1)
        self.assertFalse(os.path.exists("cache"))


class BentFilesTest(place.Case):
    """Files of the harness's with something changed, seeded: either they are read, or one Fault says why not."""

    @staticmethod
    def bend(value, chance):
        """The value with one thing somewhere in it gone or of another kind."""
        if isinstance(value, dict) and value and chance.random() < 0.8:
            key = chance.choice(sorted(value))
            bent = BentFilesTest.bend(value[key], chance)
            return {k: (bent if k == key else v) for k, v in value.items() if k != key or chance.random() < 0.7}
        if isinstance(value, list) and value and chance.random() < 0.8:
            at = chance.randrange(len(value))
            return value[:at] + [BentFilesTest.bend(value[at], chance)] + value[at + 1:]
        return chance.choice([None, 7, -1.5, "x", "N/A", [], {}, [[]], {"a": 1}, True, float("nan")])

    def test_bent(self):
        self.write("model/config.json", "{}")
        argv = [sys.executable, "-B", FAKE, "--model_args", "pretrained=../model", "--tasks", "quiz,sums,page", "--output_path",
                "harness"]
        subprocess.run(argv, check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        results, samples = worker.find_outputs()
        whole = {results: worker.load_json(results), **{path: list(worker.samples_of(path)) for path in samples.values()}}
        outcomes, true_fsync = {"read": 0, "refused": 0}, os.fsync
        self.addCleanup(setattr, os, "fsync", true_fsync)
        os.fsync = lambda fd: None  # hundreds of files, none to keep
        for seed in range(400):
            chance = random.Random(seed)
            bent = chance.choice(sorted(whole))
            shutil.rmtree("harness")
            os.makedirs(os.path.dirname(results))
            for path, value in whole.items():
                value = self.bend(value, chance) if path == bent else value
                with open(path, "w", encoding="utf-8") as f:
                    f.write("".join(json.dumps(line) + "\n" for line in value) if path.endswith("l") and isinstance(value, list)
                            else json.dumps(value))
            w = prereg.Worker(prereg.read_task(self.task()))
            w.events.note = w.note = lambda text: None
            try:
                worker.collect(w, {"tasks": ["quiz", "sums", "page"], "metrics": None}, "{}")
                w.finish()
                place.lines("items.jsonl")
                outcomes["read"] += 1
            except prereg.Fault:
                outcomes["refused"] += 1
        self.assertGreater(min(outcomes.values()), 20, outcomes)


class PartsTest(place.Case):
    def test_tasks_name_data(self):
        self.write("yaml/a.yaml", 'files: {test: $data.quiz, dev: "$data.quiz/dev.jsonl"}\ninclude: $harness/tasks/x.yaml\n')
        self.write("yaml/utils.py", "x = '$data.quiz'\n")
        self.write("it s, odd/q", "")
        task = prereg.read_task(self.task(data={"yaml": {"path": self.path("yaml")}, "quiz": {"path": self.path("it s, odd")}}))
        w = prereg.Worker(task)
        worker.copy_tasks(w, {"include": "yaml", "harness": {"folder": "/opt/lm_eval"}, "lm_eval": "x"})
        with open("tasks/a.yaml", encoding="utf-8") as f:
            self.assertEqual(f.read(), f'files: {{test: "{self.path("it s, odd")}", dev: "{self.path("it s, odd")}/dev.jsonl"}}\n'
                                       'include: "/opt/lm_eval/tasks/x.yaml"\n')
        with open("tasks/utils.py", encoding="utf-8") as f:
            self.assertEqual(f.read(), "x = '$data.quiz'\n")
        self.assertEqual(set(w.read), {"yaml", "quiz"})
        self.write("yaml/a.yaml", "x: $data.absent")
        with self.assertRaises(prereg.UsageFault):
            worker.copy_tasks(prereg.Worker(task), {"include": "yaml", "harness": {}, "lm_eval": "x"})
        self.write("yaml/a.yaml", "x: $harness/y")
        with self.assertRaises(prereg.UsageFault):
            worker.copy_tasks(prereg.Worker(task), {"include": "yaml", "harness": {}, "lm_eval": "x"})

    def test_keys(self):
        for key, wanted in (("acc,none", ("acc", "none", False)), ("acc_stderr,none", ("acc", "none", True)), ("alias", None),
                            (" ", None), ("sample_len", None), ("exact_match,strict-match", ("exact_match", "strict-match", False))):
            self.assertEqual(worker.split_key(key), wanted)

    def test_interpreter(self):
        for text, wanted in (("#!/opt/v/bin/python3\n", ["/opt/v/bin/python3"]),
                             ("#!/usr/bin/env python3\n", ["/usr/bin/env", "python3"]),
                             ("#!/bin/sh\n'''exec' /a/very/long/python3.11 \"$0\" \"$@\"\n", ["/a/very/long/python3.11"]),
                             ("#!/bin/sh\nexec x\n", None), ("\x7fELF", None)):
            self.assertEqual(worker.interpreter_of(self.write("script", text)), wanted)

    def test_numbers_as_numbers(self):
        """Replies as numbers, a metric that is not a number, results of a group that has none of its own."""
        self.assertEqual(worker.finite([1.0, [float("nan"), "nan"]]), [1.0, [None, "nan"]])
        self.assertEqual(worker.reply_of({"resps": [[[-1.5, True]], [[-2.5, False]]]}), {"ll": [-1.5, -2.5], "greedy": [1, 0]})
        self.assertEqual(worker.reply_of({"resps": [["text"]], "arguments": {"gen_args_0": {"arg_0": "q", "arg_1": {}}}}),
                         {"text": "text"})
        self.write("one/r.json", json.dumps({"results": {"g": {" ": " ", "alias": "g"}, "g_a": {"alias": " - a", "acc,none": "N/A"}},
                                             "group_subtasks": {"g": ["g_a"]}, "n-samples": {"g_a": {"effective": 3}}}))
        results = worker.Results("r.json")
        self.assertEqual((results.metrics("g"), results.metrics("g_a")), ({}, {("acc", "none"): (None, None)}))
        self.assertEqual((results.count("g", {}), results.count("g_a", {"g_a": 2}), results.count("x", {})), (3, 2, None))
        self.write("one/r.json", "[]")
        with self.assertRaises(prereg.DataFault):
            worker.Results("r.json")
        self.write("one/r.json", '{"results": {')
        with self.assertRaises(prereg.DataFault):
            worker.Results("r.json")

    def test_progress(self):
        task = prereg.read_task(self.task())
        os.environ["PREREG_EVENTS"] = "events.jsonl"
        self.addCleanup(os.environ.pop, "PREREG_EVENTS")
        prereg.PROGRESS_GAP, gap = 0, prereg.PROGRESS_GAP
        self.addCleanup(setattr, prereg, "PROGRESS_GAP", gap)
        true_stderr, sys.stderr = sys.stderr, open(os.devnull, "w", encoding="utf-8")
        self.addCleanup(lambda: (sys.stderr.close(), setattr(sys, "stderr", true_stderr)))
        progress = worker.Progress(prereg.Worker(task))
        for raw in ("100%|###| 20/20 [00:00<00:00, 9it/s]\n", "x INFO Running loglikelihood requests\n", "Cached requests: 5, Requests",
                    " remaining: 15\nRunning loglikelihood requests:  33%|#  | 5/15 [00:01<00:0", "2, 5it/s]\rRunning loglikelihood "
                    "requests: 100%|###| 15/15 [00:03<00:00, 5it/s]\n", "x INFO Running generate_until requests\n",
                    "Running generate_until requests:  50%|#5 | 1/2 [00:00<?, ?it/s]\r", "bootstrapping: 10%|# | 1/10 [00:00<?]\r"):
            progress.feed(raw.encode())
        said = [(e["done"], e.get("total")) for e in place.lines("events.jsonl") if e["type"] == "progress"]
        self.assertEqual(said, [(0, None), (10, 20), (20, 20), (21, 22), (21, None)])


if __name__ == "__main__":
    unittest.main()
