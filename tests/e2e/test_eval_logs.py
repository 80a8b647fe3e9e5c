#!/usr/bin/env python3
"""`preregctl import` of Inspect's own format: .eval files give what the same logs give as JSON; damaged and hostile ones are refused."""

import hashlib
import json
import os
import zipfile

from lib import lab, zips
from lib.lab import ANY, equal, expect
from lib.quiz_program import PROGRAM

JSON_LOGS = ("--pattern", "logs/{arch}.json")
EVAL_LOGS = ("--pattern", "logs/{arch}.eval")


def log_of(arch, right, values=("C", "I")):
    """40 samples, of which so many are right, with what a scorer says of right and wrong."""
    mean = right / 40
    return {"version": 2, "status": "success", "plan": {},
            "eval": {"task": "quiz", "model": f"hf/{arch}", "created": "2026-01-02T03:04:05+00:00", "config": {"epochs": 1}},
            "results": {"total_samples": 40, "completed_samples": 40, "scores": [
                {"name": "choice", "scorer": "choice", "metrics": {
                    "accuracy": {"name": "accuracy", "value": mean},
                    "stderr": {"name": "stderr", "value": (mean * (1 - mean) / 39) ** 0.5}}}]},
            "samples": [{"id": i, "epoch": 1, "input": "?" * 400, "messages": [],
                         "scores": {"choice": {"value": values[i >= right], "explanation": "!" * 400}}} for i in range(40)]}


def entries(log, method):
    """As Inspect writes them: a journal, an ID with a slash, a sample in parts, a header and a sample that were written again."""
    def name(i):
        return f"samples/{i}{'/x' if i == 3 else ''}_epoch_1{'/sample' if i == 4 else ''}.json"
    samples = [(name(s["id"]), json.dumps(s).encode(), method) for s in log["samples"]]
    header = json.dumps({k: v for k, v in log.items() if k != "samples"}).encode()
    old = json.dumps({**log["samples"][39], "scores": {"choice": {"value": "P"}}}).encode()
    return [("_journal/start.json", b"{}", method), (name(39), old, method), ("header.json", b"{}", method), *samples,
            ("samples/4_epoch_1/events/0.json", b"[", method), ("summaries.json", b"[", method), ("reductions.json", b"", method),
            ("header.json", header, method)]


def write(place, name, data):
    path = place.path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def prepare(place):
    """The program and both logs as JSON, which are returned."""
    place.write("grid.toml", PROGRAM)
    logs = {"dense": log_of("dense", 11, (1, 0)), "moe": log_of("moe", 29)}
    for arch, log in logs.items():
        write(place, f"logs/{arch}.json", json.dumps(log).encode())
    return logs


def test_same_as_json(place):
    logs = prepare(place)
    first = place.ctl_json("import", "grid.toml", *JSON_LOGS, "-o", "json")
    equal(first["verdict"]["outcome"], "moe", "outcome of the logs as JSON")
    for method, more in ((zips.STORED, {}), (zips.DEFLATED, {"comment": b"of a lab"}), (zips.ZSTD, {"zip64": True})):
        for arch, log in logs.items():
            write(place, f"logs/{arch}.eval", zips.pack(entries(log, method), **more))
        answer = place.ctl_json("import", "grid.toml", *EVAL_LOGS, "-o", "out", "--replace")
        equal(answer["verdict"]["gates"], first["verdict"]["gates"], f"gates of method {method}")
        equal({(f["format"], f["checked"]) for f in answer["files"]}, {("Inspect log", "choice: 2 figures from 40 samples")}, "receipts")
        for f in answer["files"]:
            with open(place.path(f["path"]), "rb") as log:
                equal(f["sha256"], hashlib.sha256(log.read()).hexdigest(), f"digest of {f['path']}")


def test_most_entries_without_zip64(place):
    """As many entries as the older record can count, which is also what it says where ZIP64 has the number."""
    for arch, log in prepare(place).items():
        found = {name: data for name, data, _ in entries(log, zips.STORED)}
        with zipfile.ZipFile(place.path(f"logs/{arch}.eval"), "w") as out:
            for name, data in [*found.items(), *((f"_journal/summaries/{i}.json", b"{}") for i in range(65535 - len(found)))]:
                out.writestr(name, data)
    equal(place.ctl_json("import", "grid.toml", *EVAL_LOGS, "-o", "out")["verdict"]["outcome"], "moe", "outcome")


def test_other_samples(place):
    """A score that was changed in one sample's file."""
    logs = prepare(place)
    for arch, log in logs.items():
        write(place, f"logs/{arch}.eval", zips.pack(entries(log, zips.DEFLATED)))
    logs["moe"]["samples"][8]["scores"]["choice"]["value"] = "I"
    write(place, "logs/moe.eval", zips.pack(entries(logs["moe"], zips.ZSTD)))
    run = place.ctl("import", "grid.toml", *EVAL_LOGS, "-o", "out", wanted=lab.LOCK)
    expect("score choice" in run.stderr and "its samples give" in run.stderr, run.stderr)


def test_refused(place):
    logs = prepare(place)
    write(place, "logs/dense.eval", zips.pack(entries(logs["dense"], zips.DEFLATED)))
    whole = entries(logs["moe"], zips.DEFLATED)
    good, sample = zips.pack(whole), json.dumps({"scores": {}}).encode()

    def lying(method=zips.STORED, **lie):
        return zips.pack([*whole, ("samples/x_epoch_1.json", sample, method, lie)])
    bomb = zips.zstd_bomb(1 << 31)
    once = b"{}" + b" " * 2000
    shared = [(f"samples/{i}_epoch_1.json", once, zips.STORED, {"offset": 0, "packed": b"", "stated": len(once)}) for i in range(100, 300)]
    for data, *words in (
            (good[:-9], "damaged zip file", "not written to its end"),
            (good[:2000], "damaged zip file", "not written to its end"),
            (good[:4] + good[4:].replace(b"PK\3\4", b"PK\3\5"), "an entry lies outside"),
            (good.replace(b"PK\1\2", b"PK\1\3", 7), "its directory is not whole"),
            (lying(offset=len(good) * 2), "an entry lies outside"),
            (lying(offset=1 << 40, size=1 << 40), "more than 68719476736 bytes unpacked"),
            (lying(crc=1), "samples/x_epoch_1.json", "its checksum does not hold"),
            (lying(size=9), "samples/x_epoch_1.json", "more than the 9 bytes"),
            (lying(size=99), "samples/x_epoch_1.json", "its checksum does not hold"),
            (lying(flags=1), "encrypted"),
            (lying(method=12), "method 12 of zip"),
            (lying(zips.DEFLATED, packed=b"\xff"), "cannot be unpacked"),
            (lying(zips.ZSTD, packed=bomb, size=1 << 20), "more than the 1048576 bytes"),
            (lying(zips.ZSTD, packed=bomb, size=1 << 31), "2147483648 bytes unpacked, 268435456"),
            (zips.pack([("a", once, zips.STORED), *whole, *shared]), "share their bytes"),
            (zips.pack(whole[:1]), "whose run has not ended"),
            (zips.pack([("a.txt", b"a", 0)]), "without header.json"),
            (zips.pack([("header.json", b"[]", 0)]), "header.json is not an object"),
            (zips.pack([("header.json", b'{"results": {}}', 0)]), "not a log of Inspect")):
        write(place, "logs/moe.eval", data)
        run = place.ctl("import", "grid.toml", *EVAL_LOGS, "-o", "out", wanted=ANY)
        for word in ("logs/moe.eval", *words):
            expect(word in run.stderr, f"{word!r} is not in: {run.stderr}")
        expect(not os.path.exists(place.path("out")), "something was written")


lab.main(test_same_as_json, test_most_entries_without_zip64, test_other_samples, test_refused)
