#!/usr/bin/env python3
"""`preregctl export --format`: what each format says of a program that ran, from the program and from its receipt alone; that none
says anything while scores are sealed, or of a receipt that does not follow. Their own libraries: tests/oracle/test_formats.py."""

import hashlib
import json
import os
import re
import shutil
import struct

from lib import lab
from lib.formats_program import prepare
from lib.lab import ANY, LOCK, OK, USAGE, equal, expect

FORMATS = ("hf-eval-results", "every-eval-ever", "neurips-checklist", "osf", "croissant", "ro-crate", "mlflow", "tensorboard")
CELL = "arm=a,seed=1"


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as f:
        return f.read()


def one_file(folder, ending):
    found = [os.path.join(at, f) for at, _, files in os.walk(folder) for f in files if f.endswith(ending)]
    expect(found, f"no {ending} in {folder}")
    return sorted(found)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def fields(data):
    """The fields of a protobuf: (number, value)."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            at += 1
            if data[at - 1] < 0x80:
                return value
            shift += 7
    while at < len(data):
        tag = varint()
        size = {1: 8, 5: 4}.get(tag & 7)
        if tag & 7 == 0:
            found.append((tag >> 3, varint()))
            continue
        size = varint() if size is None else size
        found.append((tag >> 3, data[at:at + size]))
        at += size
    return found


def scalars(path):
    """{tag: [(step, value)]} of an event file, its checksums checked."""
    with open(path, "rb") as f:
        data = f.read()
    equal(data[:12], bytes.fromhex("1800000000000000a37f4b22"), "the head of the first record")
    found, at, n = {}, 0, 0
    while at < len(data):
        size, crc = struct.unpack_from("<QI", data, at)
        event = data[at + 12:at + 12 + size]
        equal((crc, struct.unpack_from("<I", data, at + 12 + size)[0]), (masked(data[at:at + 8]), masked(event)), "checksums")
        event = dict(fields(event))
        if n == 0:
            equal(event[3], b"brain.Event:2", "version")
        else:
            value = dict(fields(dict(fields(event[5]))[1]))
            found.setdefault(value[1].decode(), []).append((event[2], struct.unpack("<f", value[2])[0]))
        at, n = at + 16 + size, n + 1
    return found


def check_hub(folder, program):
    files = one_file(folder, ".yaml")
    equal(len(files), 4, "a file for each cell")
    text = read(folder, CELL, ".eval_results", "acc.yaml")
    equal(re.sub(r'(date: )"[^"]*Z"', r'\1"T"', text), f"""- dataset:
    id: "cais/mmlu"
    task_id: "te\\"st"
  value: 0.75
  date: "T"
  notes: "score.acc of {CELL}, 100 items, standard error 0.0435; planned in advance: preregd formats, lock {program['root']}"
""", "the entry")


def check_every_eval(folder, program):
    log = json.loads(read(folder, f"{CELL}.json"))
    equal((log["schema_version"], log["model_info"]["id"]), ("0.3.0", f"{program['id']}/{CELL}"), "head")
    acc, loss = log["evaluation_results"]
    equal(acc["source_data"]["hf_repo"], "cais/mmlu", "the Hub's dataset")
    digest = hashlib.sha256(b'{"q":1}\n').hexdigest()
    equal(acc["source_data"]["additional_details"], {"sha256.items": digest}, "what was read")
    equal(acc["score_details"], {"score": 0.75, "uncertainty": {"standard_error": {"value": 0.0435}, "num_samples": 100}}, "score")
    equal((acc["metric_config"]["lower_is_better"], acc["metric_config"]["metric_unit"], acc["metric_config"]["max_score"]),
          (False, "proportion", 1), "metric")
    equal((loss["metric_config"]["lower_is_better"], loss["source_data"]["source_type"]), (True, "other"), "loss")


def check_croissant(folder, _program):
    entries = {e["@id"]: e for e in json.loads(read(folder, "croissant.json"))["distribution"]}
    equal(entries["items"]["sha256"], hashlib.sha256(b'{"q":1}\n').hexdigest(), "digest of a file")
    equal((entries["items"]["contentUrl"], entries["items"]["encodingFormat"]), ("items.jsonl", "application/jsonlines"), "file")
    equal((entries["folder"]["@type"], "sha256" in entries["folder"]), ("cr:FileSet", False), "a folder has no such digest")


def check_crate(folder, program):
    graph = {e["@id"]: e for e in json.loads(read(folder, "ro-crate-metadata.json"))["@graph"]}
    for part in graph["./"]["hasPart"]:
        with open(os.path.join(folder, part["@id"]), "rb") as f:
            equal(hashlib.sha256(f.read()).hexdigest(), graph[part["@id"]]["sha256"], part["@id"])
    equal(graph["#verdict"]["result"]["@id"], f"{program['id']}-receipt/verdict.json", "result")


def check_mlflow(folder, program):
    experiment = os.path.join(folder, "mlruns", program["root"][:16])
    runs = [r for r in os.listdir(experiment) if os.path.isdir(os.path.join(experiment, r))]
    equal(len(runs), 4, "runs")
    run = next(os.path.join(experiment, r) for r in runs if f'run_name: "{CELL}"' in read(experiment, r, "meta.yaml"))
    equal(sorted(os.listdir(run)), ["artifacts", "meta.yaml", "metrics", "params", "tags"], "what MLflow takes for a run")
    equal(read(run, "params", "train.seed"), "1", "a parameter")
    equal(read(run, "params", "arm"), "a", "a level")
    equal(read(run, "metrics", "score.acc").split()[1:], ["0.75", "0"], "a metric")
    equal(read(run, "metrics", "facts", "train.params_total").split()[1], "1234", "a fact")
    if "curves" in os.listdir(os.path.join(run, "metrics")):
        lines = [line.split()[1:] for line in read(run, "metrics", "curves", "train.loss").splitlines()]
        equal(lines, [["3.375", "10"], ["2.75", "20"], ["2.125", "30"]], "a curve")
    expect(any(re.fullmatch(r"train\.odd _name_.*-[0-9a-f]{8}", m) for m in os.listdir(os.path.join(run, "metrics"))), "an odd name")


def check_tensorboard(folder, _program):
    found = scalars(one_file(os.path.join(folder, CELL), ".preregd")[0])
    equal(found["final/score.acc"], [(0, 0.75)], "a metric")
    equal(found.get("train/loss", [(10, 3.375), (20, 2.75), (30, 2.125)]), [(10, 3.375), (20, 2.75), (30, 2.125)], "a curve")
    expect("final/train.odd \"name\"\n: #" in found, "a tag may be any text")


def check_texts(folder, _program):
    text = read(one_file(folder, "")[0])
    expect("\u202e" not in text and "\u2028" not in text and "\t" not in text, "a text of the plan is not harmless")
    expect("[x](javascript" not in text or "preregistration.txt" in one_file(folder, "")[0], "a link")
    for word in ("0.25", "score.acc") if "preregistration" in one_file(folder, "")[0] else ("standard error", "1 Claims", "attempts"):
        expect(word in text or word.replace("1 C", "1. C") in text, f"no {word}: {text}")


CHECKS = {"hf-eval-results": check_hub, "every-eval-ever": check_every_eval, "neurips-checklist": check_texts, "osf": check_texts,
          "croissant": check_croissant, "ro-crate": check_crate, "mlflow": check_mlflow, "tensorboard": check_tensorboard}


def all_files(folder):
    found = {}
    for at, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(at, name), "rb") as f:
                found[os.path.relpath(os.path.join(at, name), folder)] = f.read()
    return found


def check_receipt_alone(place, program, folder, tar):
    """A stranger with the receipt, folder or tar, makes the same but for the curves."""
    for name in FORMATS:
        made = place.ctl_json("export", "--format", name, folder, "-o", place.path("from_folder"))["folder"]
        CHECKS[name](made, program)
        again = place.ctl_json("export", "--format", name, tar, "-o", place.path("from_tar"))["folder"]
        equal(all_files(again), all_files(made), f"{name} of folder and tar")
        if name not in ("mlflow", "tensorboard"):
            equal(all_files(made), all_files(place.path("out", os.path.basename(made))), f"{name} of receipt and program")


def check_refusals(place, folder):
    run = place.ctl("export", "--format", "mlflow", "-o", place.path("out"), wanted=ANY)
    expect("nothing is replaced" in run.stderr, run.stderr)
    run = place.ctl("export", "--format", "mlfow", wanted=USAGE)
    expect("did you mean mlflow" in run.stderr, run.stderr)
    run = place.ctl("export", "--format", "osf", folder, "--items", wanted=USAGE)
    expect("is a receipt already" in run.stderr, run.stderr)
    place.edit(os.path.join(folder, "records.jsonl"), "0.625", "0.875")
    for name in FORMATS:
        run = place.ctl("export", "--format", name, folder, "-o", place.path("forged"), wanted=LOCK)
        expect("does not follow" in run.stderr and "records.jsonl" in run.stderr, run.stderr)
    expect(not os.path.exists(place.path("forged")), "something was written of a receipt that does not follow")


def test_formats(place):
    prepare(place)
    place.wait_for(lambda: any(t["state"] == "done" for t in place.tasks().values()), 30, "trained")
    for name in FORMATS:
        run = place.ctl("export", "--format", name, "-o", place.path("out"), wanted=ANY)
        expect("scores are sealed" in run.stderr, f"{name} before the end: {run.stderr}")
    expect(not os.path.exists(place.path("out")), "something was written of sealed scores")
    os.unlink(place.path("hold"))
    place.wait_finished(60)
    program = place.ctl_json("programs")["programs"][0]
    for name in FORMATS:
        answer = place.ctl_json("export", "--format", name, "-o", place.path("out"))
        expect(answer["folder"].endswith(f"-{name}") and answer["format"] == name, f"{answer}")
        CHECKS[name](answer["folder"], program)
    expect("train/loss" in scalars(one_file(place.path("out", f"{program['id']}-tensorboard", CELL), ".preregd")[0]), "no curve")
    receipt = place.ctl_json("export", "-o", place.path("receipt"))
    check_receipt_alone(place, program, receipt["folder"], receipt["tar"])
    place.ctl("verify", os.path.join(place.path("out"), f"{program['id']}-ro-crate", f"{program['id']}-receipt"))
    check_refusals(place, receipt["folder"])


def test_no_hub(place):
    """A dataset of the Hub is never invented: without one in the plan there is nothing to say."""
    folder = place.path("imported")
    paper = os.path.join(lab.TOP, "ops/programs/below_the_floor")
    place.ctl("replay", f"{paper}/grid.toml", f"{paper}/replay/records.json", "--out", folder, wanted=OK)
    run = place.ctl("export", "--format", "hf-eval-results", folder, "-o", place.path("out"), wanted=ANY)
    expect("none is guessed" in run.stderr and not os.path.exists(place.path("out")) or not os.listdir(place.path("out")), run.stderr)
    for name in FORMATS[1:]:
        place.ctl("export", "--format", name, folder, "-o", place.path("out"), wanted=ANY if name == "croissant" else OK)
    log = json.loads(read(one_file(place.path("out"), "dense,lr=0.001,seed=42.json")[0]))
    equal((log["eval_library"]["name"], log["source_metadata"]["source_type"]), ("unknown", "documentation"), "imported records")


lab.main(test_formats, test_no_hub)
