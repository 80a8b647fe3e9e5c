"""preregd_worker from inside: parameters, tasks, digests, events, items, checkpoints, results."""

import contextlib
import io
import json
import math
import os
import subprocess
import unittest

import place
import preregd_worker as prereg


class ParamsTest(place.Case):
    # parameters, what is asked, what finish() says (None: nothing)
    CASES = [
        ({"n": 3}, lambda p: p.integer("n", 1, 5), None),
        ({"n": 3.0}, lambda p: p.integer("n", 1, 5), None),
        ({"n": 6}, lambda p: p.integer("n", 1, 5), "params.n: 6 is not in 1 .. 5"),
        ({"n": 2.5}, lambda p: p.integer("n", 1, 5), "params.n: expected a whole number"),
        ({"n": True}, lambda p: p.integer("n", 0, 5), "params.n: expected a whole number"),
        ({}, lambda p: p.integer("n", 1, 5), "params.n: is required"),
        ({"n": None}, lambda p: p.integer("n", 1, 5), "params.n: is required"),
        ({"lr": "fast"}, lambda p: p.number("lr", 0, 1), "params.lr: expected a number"),
        ({"lr": 1.5}, lambda p: p.number("lr", 0, 1), "params.lr: 1.5 is not in 0 .. 1"),
        ({"b": 1}, lambda p: p.flag("b"), "params.b: expected true or false"),
        ({"t": 1}, lambda p: p.text("t"), "params.t: expected a string"),
        ({"t": ["a", 1]}, lambda p: p.texts("t"), "params.t: expected a string or a list of strings"),
        ({"c": "blu"}, lambda p: p.choice("c", ["blue", "red"]), "params.c: \"blu\" is not one of blue, red"),
        ({"horizn": 1}, lambda p: p.integer("horizon", 1, 5, 2), "params.horizn: unknown parameter; did you mean \"horizon\"?"),
        ({"h": {"tokns": 1}}, lambda p: p.table("h").integer("tokens", 1, 5, 1),
         "params.h.tokns: unknown parameter; did you mean \"tokens\"?"),
        ({"h": 3}, lambda p: p.table("h"), "params.h: expected a table"),
        ({"a": {"x": [1]}}, lambda p: p.values_of("a"), "params.a: expected a table of strings, numbers and truth values"),
    ]

    def test_faults(self):
        for values, ask, wanted in self.CASES:
            with self.subTest(values=values):
                params = prereg.Params(values)
                ask(params)
                try:
                    params.finish()
                    said = None
                except prereg.UsageFault as fault:
                    said = str(fault)
                self.assertEqual(said, wanted)

    def test_values(self):
        params = prereg.Params({"n": 3.0, "lr": 1, "t": "x", "c": "red", "h": {"tokens": 7}})
        self.assertEqual(params.integer("n", 1, 5), 3)
        self.assertIsInstance(params.integer("n", 1, 5), int)
        self.assertIsInstance(params.number("lr", 0, 1), float)
        self.assertEqual(params.texts("t"), ["x"])
        self.assertEqual(params.choice("c", ["blue", "red"]), "red")
        self.assertEqual(params.table("h").integer("tokens", 1, 9), 7)
        self.assertIsNone(params.integer("absent", 1, 5, None))
        params.finish()

    def test_all_at_once(self):
        params = prereg.Params({"a": 1, "b": "x"})
        params.integer("c", 1, 2)
        params.number("b", 0, 1)
        with self.assertRaises(prereg.UsageFault) as caught:
            params.finish()
        self.assertEqual(len(str(caught.exception).split("\n")), 3)
        with self.assertRaises(prereg.UsageFault) as again:
            params.finish()
        self.assertEqual(str(again.exception), str(caught.exception))


class TaskTest(place.Case):
    CASES = [
        ("{", "Expecting"),
        ("[]", "expected an object"),
        ('{"protocol":2,"params":{}}', "task protocol 2: this worker speaks 1"),
        ('{"protocol":1}', "params: expected an object"),
        ('{"protocol":1,"params":[]}', "params: expected an object"),
        ('{"protocol":1,"params":{},"params":{}}', "comes twice"),
        ('{"protocol":1,"params":{"x":NaN}}', "NaN is not JSON"),
        ('{"protocol":1,"params":{},"threads":"1"}', "threads: expected a whole number"),
        ('{"protocol":1,"params":{},"threads":true}', "threads: expected a whole number"),
        ('{"protocol":1,"params":{},"resume":[1]}', "resume: expected an array of folders"),
        ('{"protocol":1,"params":{},"data":{"x":"p"}}', "data.x: expected an object with a path"),
        ('{"protocol":1,"params":{},"data":{"x":{"path":"p","sha256":"AB"}}}', "data.x.sha256: expected 64 hex digits"),
    ]

    def test_faults(self):
        for text, wanted in self.CASES:
            with self.subTest(text=text):
                with self.assertRaises(prereg.UsageFault) as caught:
                    prereg.read_task(self.write("bad.json", text))
                self.assertIn(wanted, str(caught.exception))
                self.assertIn("bad.json", str(caught.exception))
        with self.assertRaises(prereg.UsageFault):
            prereg.read_task(self.path("absent.json"))

    def test_what_is_absent(self):
        task = prereg.read_task(self.write("t.json", '{"protocol":1,"params":{},"new_member":1}'))
        self.assertEqual((task["threads"], task["resume"], task["attempt"], task["data"]), (1, [], "", {}))

    def test_checkpoint(self):
        for value, wanted in (("auto", None), (None, None), (2, 2.0), ("300s", 300.0), ("200ms", 0.2), ("1.5h", 5400.0)):
            self.assertEqual(prereg.seconds_of(value), wanted)
        for value in ("soon", -1, True, [], "3 s"):
            with self.assertRaises(prereg.UsageFault):
                prereg.seconds_of(value)


class DigestTest(place.Case):
    def test_folder_is_what_the_shell_says(self):
        for name in ("b.txt", "a/z", "a.b", "ä", "B"):
            self.write(f"data/{name}", name * 3)
        script = "cd \"$1\" && find . -type f | LC_ALL=C sort | sed 's|^\\./||' | tr '\\n' '\\0' | xargs -0 sha256sum | sha256sum"
        run = subprocess.run(["sh", "-c", script, "sh", self.path("data")], capture_output=True, text=True, check=True)
        self.assertEqual(prereg.digest_path(self.path("data")), run.stdout.split()[0])

    def test_links_are_refused(self):
        self.write("data/a", "a")
        os.symlink("a", self.path("data/b"))
        with self.assertRaises(prereg.DataFault):
            prereg.digest_path(self.path("data"))

    def test_verified(self):
        path = self.write("corpus.txt", "abc")
        good = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        worker = prereg.Worker(prereg.read_task(self.task(data={"corpus": {"path": path, "sha256": good}})))
        self.assertEqual((worker.data("corpus"), worker.read), (path, {"corpus": good}))
        self.write("corpus.txt", "abd")
        worker = prereg.Worker(worker.task)
        with self.assertRaises(prereg.DataFault):
            worker.data("corpus")
        with self.assertRaises(prereg.UsageFault) as caught:
            worker.data("corpse")
        self.assertIn("there are: corpus", str(caught.exception))
        os.remove(path)
        with self.assertRaises(prereg.DataFault):
            worker.data("corpus")


class EventsTest(place.Case):
    def test_lines(self):
        events = prereg.Events("events.jsonl")
        events.section("setup")
        events.section("setup")
        events.section("step")
        for done in range(101):
            events.progress(done, 100)
        events.note("ä" * 10000)
        said = place.lines("events.jsonl")
        self.assertEqual([e["type"] for e in said], ["section", "section", "progress", "progress", "note"])
        self.assertEqual([e["done"] for e in said if e["type"] == "progress"], [0, 100])
        self.assertEqual(len(said[-1]["text"]), prereg.NOTE_MAX)
        with self.assertRaises(ValueError):
            events.say("note", text="x" * prereg.LINE_MAX)
        with self.assertRaises(ValueError):
            events.say("note", value=math.nan)
        with self.assertRaises(ValueError):
            events.section("training")
        self.assertEqual(len(place.lines("events.jsonl")), 5)

    def test_terminal_is_not_obeyed(self):
        """Notes of a run by hand go to standard error, whatever a task's text holds."""
        cases = [("a\x1b[2Jb\x07", "a?[2Jb?"), ("one\rtwo\r\nthree\tfour", "one\ntwo\nthree\tfour"),
                 ("\x7f\x9b\u2028\u202e\u2066\ud800", "??????"), ("ä\xa0€\u200e😀~", "ä\xa0€\u200e😀~")]
        for text, wanted in cases:
            with self.subTest(text=ascii(text)), contextlib.redirect_stderr(io.StringIO()) as out:
                prereg.Events(None).note(text)
                self.assertEqual(out.getvalue(), f"note: {wanted}\n")

    def test_one_write_a_line(self):
        written = []
        events = prereg.Events("events.jsonl")
        true_write = os.write
        self.addCleanup(setattr, os, "write", true_write)
        os.write = lambda fd, raw: written.append(bytes(raw)) or true_write(fd, raw)
        events.note("a\nb")
        self.assertEqual(len(written), 1)
        self.assertEqual(written[0].count(b"\n"), 1)

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with self.assertRaises(OSError):
            prereg.Events("/dev/full").note("x")


class ItemsTest(place.Case):
    def worker(self, **members):
        return prereg.Worker(prereg.read_task(self.task(**members)))

    def test_taken_over(self):
        items = self.worker().items(model="m")
        for i in items.remaining(3):
            items.append(acc=i)
        with open("items.jsonl", "rb") as f:
            whole = f.read()
        with open("items.jsonl", "ab") as f:
            f.write(b'{"item":3,"acc":3}')  # torn: its line feed is missing
        self.attempt("two")
        again = self.worker(resume=[self.path("one")], attempt="a-2").items(model="m")
        self.assertEqual(again.lines, [{"item": i, "acc": i} for i in range(3)])
        with open("items.jsonl", "rb") as f:
            self.assertEqual(f.read(), whole)
        self.assertEqual([i for i in again.remaining(5) if again.append(acc=i) is None], [3, 4])
        self.attempt("three")
        other = self.worker(resume=[self.path("two")]).items(model="another")
        self.assertEqual(other.lines, [])
        other = self.worker(resume=[self.path("two")], params={"x": 1}).items(model="m")
        self.assertEqual(other.lines, [])

    def test_a_hole(self):
        worker = self.worker()
        header = worker.items(model="m").header
        self.write("one/items.jsonl", header + '\n{"item":0}\n{"item":2}\n{"item":3}\n')
        self.assertEqual(worker.items(model="m").lines, [{"item": 0}])
        self.write("one/items.jsonl", header + '\n{"item":0}\n\n{"item":1}\n')
        self.assertEqual(worker.items(model="m").lines, [{"item": 0}])

    def test_stop(self):
        worker = self.worker()
        items = worker.items(model="m")
        with self.assertRaises(prereg.Stopped):
            for i in items.remaining(10):
                items.append(acc=1)
                worker.stop_asked = i == 4
        self.assertEqual(len(place.lines("items.jsonl")), 6)

    def test_forgotten_line(self):
        items = self.worker().items()
        with self.assertRaises(RuntimeError):
            for _ in items.remaining(2):
                pass


class CheckpointTest(place.Case):
    def worker(self, resume=(), **members):
        return prereg.Worker(prereg.read_task(self.task(resume=[self.path(r) for r in resume], **members)))

    @staticmethod
    def save(text):
        def write(folder):
            os.mkdir(os.path.join(folder, "deep"))
            with open(os.path.join(folder, "deep", "state"), "w", encoding="utf-8") as f:
                f.write(text)
        return write

    def load(self, folder):
        with open(os.path.join(folder, "deep", "state"), encoding="utf-8") as f:
            self.loaded = f.read()

    def test_newest_whole(self):
        worker = self.worker()
        for step in (1, 2, 3, 4):
            worker.checkpoint(step, self.save(f"state {step}"))
        self.assertEqual(sorted(os.listdir("checkpoint")), ["step-000000003", "step-000000004"])
        self.attempt("two")
        self.assertEqual((self.worker(["one"]).resume(self.load), self.loaded), (4, "state 4"))
        with open(self.path("one/checkpoint/step-000000004/deep/state"), "r+", encoding="utf-8") as f:
            f.write("x")
        self.assertEqual((self.worker(["one"]).resume(self.load), self.loaded), (3, "state 3"))
        os.remove(self.path("one/checkpoint/step-000000003/manifest.json"))
        self.assertEqual(self.worker(["one"]).resume(self.load), 0)

    def test_over_attempts(self):
        self.worker().checkpoint(7, self.save("seven"))
        self.attempt("two")
        self.worker(["one"]).checkpoint(5, self.save("five"))
        self.attempt("three")
        self.assertEqual((self.worker(["two", "one"]).resume(self.load), self.loaded), (7, "seven"))
        self.assertEqual(self.worker(["two", "one"], params={"lr": 1}).resume(self.load), 0)
        self.assertEqual(self.worker(["absent"]).resume(self.load), 0)

    def test_torn(self):
        """A save that dies leaves the checkpoint before."""
        worker = self.worker()
        worker.checkpoint(1, self.save("one"))

        def die(folder):
            self.save("two")(folder)
            raise OSError(28, "no space")
        with self.assertRaises(OSError):
            worker.checkpoint(2, die)
        self.assertEqual((self.worker().resume(self.load), self.loaded), (1, "one"))
        with self.assertRaises(ValueError):
            worker.checkpoint(3, lambda folder: prereg.write_file(os.path.join(folder, "manifest.json"), b"{}"))
        worker.checkpoint(4, self.save("four"))
        self.assertEqual(self.worker().resume(self.load), 4)

    def test_steps(self):
        worker, saved = self.worker(checkpoint=0), []
        for step in worker.steps(0, 5, lambda folder: saved.append(1) or self.save("s")(folder)):
            self.assertLess(step, 5)
        self.assertEqual(len(saved), 4)  # not after the last
        self.attempt("two")
        again = self.worker(["one"], checkpoint=0)
        start = again.resume(self.load)
        self.assertEqual((start, again.n_steps), (4, 4))
        self.assertGreater(again.spent, 0)
        with self.assertRaises(prereg.Stopped):
            for _ in again.steps(start, 5, self.save("end")):
                again.stop_asked = True
        self.assertEqual((self.worker().resume(self.load), self.loaded), (5, "end"))


class ResultTest(place.Case):
    def test_sealed_points(self):
        """No point of a metric that the plan seals; a list that is absent, as from an earlier daemon, seals all of the stage."""
        cases = [({"sealed": True, "sealed_metrics": ["acc@0.5", "f1"]}, ["loss"]), ({"sealed": True}, []),
                 ({"sealed": False, "sealed_metrics": []}, ["loss", "acc", "acc:part"]), ({}, ["loss", "acc", "acc:part"])]
        for members, wanted in cases:
            events = self.write("events.jsonl", "")
            os.environ["PREREG_EVENTS"] = events
            worker = prereg.Worker(prereg.read_task(self.task(**members)))
            for name in ("loss", "acc", "acc:part", "loss"):
                worker.point(1, name, 0.5)
            said = place.lines(events)
            self.assertEqual([e["name"] for e in said if e["type"] == "point"], [*wanted, *wanted[:1]])
            self.assertEqual(len([e for e in said if e["type"] == "note"]), 3 - len(wanted))
        with self.assertRaisesRegex(prereg.UsageFault, "sealed_metrics: expected a list of names"):
            prereg.read_task(self.task(sealed_metrics=[1]))

    def test_result(self):
        worker = prereg.Worker(prereg.read_task(self.task()))
        self.write("one/model.bin", "abc")
        worker.will_measure("a", "b", "c", "d")
        worker.metric("a", 0.5, n=10, se=0.1)
        worker.metric("b", math.inf, n=10, se=math.nan)
        worker.no_metric("c", "not_reached", ">4864")
        worker.no_metric("d", "not_reached", bound=">0.5", n=100)
        worker.fact("x", math.nan)
        worker.artifact("model.bin")
        worker.finish()
        with open("result.json", encoding="utf-8") as f:
            result = json.load(f)
        self.assertEqual(result["attempt"], "a-1")
        self.assertEqual(result["metrics"], {"a": {"value": 0.5, "n": 10, "se": 0.1},
                                             "b": {"value": None, "why": "not_finite", "n": 10},
                                             "c": {"value": None, "why": "not_reached", "bound": ">4864"},
                                             "d": {"value": None, "why": "not_reached", "bound": ">0.5", "n": 100}})
        self.assertEqual(result["facts"]["x"], {"value": None, "why": "not_finite"})
        self.assertEqual(result["artifacts"], [{"path": "model.bin", "bytes": 3, "sha256":
                         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}])
        self.assertNotIn("items", result)
        self.assertFalse([name for name in os.listdir() if name.endswith(".part")])

    def test_artifact_folder(self):
        worker = prereg.Worker(prereg.read_task(self.task()))
        self.write("one/model/shards/b.bin", "b")
        self.write("one/model/shards/a.bin", "a")
        self.write("one/model/config.json", "{}")
        worker.artifact("model")
        self.assertEqual([a["path"] for a in worker.artifacts], ["model/config.json", "model/shards/a.bin", "model/shards/b.bin"])
        self.assertEqual(worker.artifacts[1], {"path": "model/shards/a.bin", "bytes": 1, "sha256": prereg.digest_file("model/shards/a.bin")})
        os.makedirs("empty")
        os.symlink("shards", "model/linked")
        for folder, why in (("empty", "holds no file"), ("model", "linked")):
            with self.assertRaisesRegex(prereg.DataFault, why):
                worker.artifact(folder)
        self.assertEqual(len(worker.artifacts), 3)

    def test_promised_and_missing(self):
        worker = prereg.Worker(prereg.read_task(self.task()))
        worker.will_measure("acc")
        with self.assertRaises(RuntimeError):
            worker.finish()
        self.assertFalse(os.path.exists("result.json"))


if __name__ == "__main__":
    unittest.main()
