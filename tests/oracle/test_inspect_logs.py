#!/usr/bin/env python3
"""Logs that Inspect itself writes, in its default format and as JSON: both give the same verdict, whatever Inspect did to the file."""

import glob
import os
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
sys.argv[1] = os.path.join(sys.argv[1], "bin")

import inspect_ai  # noqa: E402
from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.log import read_eval_log, write_eval_log  # noqa: E402
from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: E402
from inspect_ai.scorer import match  # noqa: E402
from inspect_ai.solver import generate  # noqa: E402

from lib import lab  # noqa: E402
from lib.lab import equal, expect  # noqa: E402
from lib.quiz_program import PROGRAM  # noqa: E402

RIGHT = {"dense": 11, "moe": 29}
ZSTD = 93


def output(text):
    """With a usage: without one Inspect counts tokens, for which it asks the network."""
    made = ModelOutput.from_content("mockllm/model", text)
    made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return made


def evaluate(place, arch, folder, **more):
    """40 questions to a model that knows some of the answers; the path of the log."""
    answers = [output("yes" if i < RIGHT[arch] else "no") for i in range(40)] * more.get("epochs", 1)
    task = inspect_ai.Task(dataset=[Sample(id=f"q/{i}", input=f"question {i}", target="yes", metadata={"text": "x" * 2000}) for i in range(40)],
                           solver=generate(), scorer=match(), name="quiz")
    model = get_model("mockllm/model", custom_outputs=answers, memoize=False)
    inspect_ai.eval(task, model=model, log_dir=place.path(folder, arch), display="none", **more)
    found = glob.glob(place.path(folder, arch, "*.eval"))
    equal(len(found), 1, f"logs of {arch}")
    return found[0]


def verdict(place, name, pattern, wanted=lab.OK):
    answer = place.ctl_json("import", "grid.toml", "--pattern", pattern, "-o", name, wanted=wanted)
    return answer["verdict"]["gates"], [(f["format"], f["checked"]) for f in answer["files"]], answer["warnings"]


def test_default_format(place):
    place.write("grid.toml", PROGRAM)
    for arch in RIGHT:
        path = evaluate(place, arch, "logs")
        with zipfile.ZipFile(path) as z:
            methods = {entry.compress_type for entry in z.infolist()}
        print(f"  inspect-ai {inspect_ai.__version__}: {os.path.getsize(path)} bytes, methods of zip {sorted(methods)}", flush=True)
        equal(methods, {ZSTD}, "how Inspect packs its logs")
        write_eval_log(read_eval_log(path), place.path("json", arch + ".json"), format="json")
    gates, receipts, warnings = verdict(place, "out", "logs/{arch}/*.eval")
    equal(receipts, [("Inspect log", "match: 2 figures from 40 samples")] * 2, "receipts")
    equal({g["cell"]: (g["score"], g["n"]) for g in gates}, {f"arch={a}": (n / 40, 40) for a, n in RIGHT.items()}, "scores")
    equal(verdict(place, "again", "json/{arch}.json"), (gates, receipts, warnings), "the same logs as JSON")
    # a header that was written again, in place of the first
    for path in glob.glob(place.path("logs/*/*.eval")):
        write_eval_log(read_eval_log(path, header_only=True), path, header_only=True)
    equal(verdict(place, "edited", "logs/{arch}/*.eval"), (gates, receipts, warnings), "after Inspect wrote the headers again")


def test_epochs(place):
    """Not recomputed, which is said; the figures are those of the log."""
    place.write("grid.toml", PROGRAM)
    for arch in RIGHT:
        evaluate(place, arch, "logs", epochs=2)
    gates, receipts, warnings = verdict(place, "out", "logs/{arch}/*.eval")
    equal({g["n"] for g in gates}, {40}, "items")
    expect(all("several epochs" in checked for _, checked in receipts), f"{receipts}")
    expect(any("several epochs" in w for w in warnings), f"{warnings}")


def test_limited(place):
    """A limit of Inspect's is a limited run."""
    place.write("grid.toml", PROGRAM.replace("items = 40, ", ""))
    for arch in RIGHT:
        evaluate(place, arch, "logs", limit=20)
    run = place.ctl("import", "grid.toml", "--pattern", "logs/{arch}/*.eval", "-o", "out", wanted=lab.ANY)
    expect("a limited run (limit 20" in run.stderr, run.stderr)


lab.main(test_default_format, test_epochs, test_limited)
