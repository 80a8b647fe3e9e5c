#!/usr/bin/env python3
"""Receipts and archives from somebody who means harm: each is refused with its reason and exit 3, nothing is written, nothing outside is
read, and nothing of it reaches the terminal as it is."""

import io
import hashlib
import json
import os
import socket
import subprocess
import tarfile
import unicodedata

from lib import lab
from lib.lab import ANY, LOCK, OK, equal, expect

MICRO = os.path.join(lab.TOP, "ops/programs/micro/grid.toml")


def receipt(place):
    """A small one, of an imported program."""
    found = []
    for arch in ("dense", "moe"):
        for seed in (1, 2, 3):
            score = {"acc": {"value": 0.6 if arch == "moe" else 0.5, "n": 60}}
            for stage, metrics, facts in (("train", {"val_loss": 2.0}, {"params_active": 100}), ("grammar", score, {}), ("giving", score, {})):
                found.append({"cell": f"arch={arch},seed={seed}", "stage": stage, "end": "done", "metrics": metrics, "facts": facts})
    records = place.write("records.json", json.dumps({"schema": 1, "program": "micro", "label": "made up", "records": found}))
    place.ctl_json("replay", MICRO, records, "--out", place.path("replayed"))
    answer = place.ctl_json("export", place.path("replayed"), "--out", place.path("out"))
    place.env["TMPDIR"] = place.path("tmp")
    os.mkdir(place.env["TMPDIR"])
    return answer["folder"], answer["tar"]


def refused(place, path, what, code=LOCK):
    """With a reason, in words that can be shown; nothing stays behind."""
    before = sorted(os.listdir(place.folder))
    run = place.ctl("verify", path, wanted=code)
    said = run.stdout + run.stderr
    expect(what in said, f"{path}: wanted {what!r}: {said}")
    expect(all(c == "\n" or c.isprintable() for c in said), f"what is shown is not plain: {said!r}")
    equal(os.listdir(place.env["TMPDIR"]), [], "left in TMPDIR")
    equal(sorted(os.listdir(place.folder)), before, "files beside")
    if code == LOCK:
        answer = json.loads(place.ctl("verify", path, "--json", wanted=LOCK).stdout)
        equal((answer["holds"], answer["level"], answer["not_shown"]), (False, None, []), f"--json of {path}")
        expect(answer["fault"]["what"], f"no fault in {answer}")


def put(path, do):
    """A thing in a receipt's folder, for as long as it is looked at."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    do(path)
    return path


def test_folders(place):
    folder, _ = receipt(place)
    secret = place.write("secret", "x")
    outside = place.path("outside")
    os.mkdir(outside)
    place.write("outside/0001.json", "{}")

    def pipe_end(path):
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)

    things = (
        ("report.html.x", lambda p: os.symlink(secret, p), "is a link"),
        ("amendments", lambda p: os.symlink(outside, p), "is a link"),
        ("grid.toml.lock.tsq", lambda p: os.symlink("/nowhere", p), "is a link"),
        ("grid.toml.lock.tsr", os.mkfifo, "is not a file, but a device, pipe or socket"),
        ("s", pipe_end, "is not a file, but a device, pipe or socket"),
        ("a/b/c", os.mkdir, "no folder at this depth"),
        ("Records.json", lambda p: open(p, "w").close(), "only in the case of letters"),
        (unicodedata.normalize("NFD", "gríd.toml"), lambda p: open(p, "w").close(), "no receipt of this version has such a file"),
        ("x\n\x1b[31mred\x9b", lambda p: open(p, "w").close(), "no receipt of this version has such a file"),
        (b"\xff\xfe".decode("utf-8", "surrogateescape"), lambda p: open(p, "w").close(), "not UTF-8"),
        ("run.sh", lambda p: open(p, "w").close(), "no receipt of this version has such a file"),
        ("n" * 200, lambda p: open(p, "w").close(), "no receipt of this version has such a file"),
        ("grid.toml.lock.tsr", lambda p: os.truncate(os.open(p, os.O_CREAT | os.O_WRONLY), 1 << 40), "are read at most"),
    )
    for name, do, what in things:
        path = put(os.path.join(folder, name), do)
        refused(place, folder, what)
        if os.path.isdir(path) and not os.path.islink(path):
            os.removedirs(path)
        else:
            os.unlink(path)
    place.ctl("verify", folder)


def sum_anew(folder, name):
    """Puts the sum of a changed file into SHA256SUMS; returns what was there."""
    path = os.path.join(folder, "SHA256SUMS")
    with open(path, "rb") as f:
        was = f.read()
    with open(os.path.join(folder, name), "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    lines = [f"{digest}  {name}".encode() if line.endswith(b"  " + name.encode()) else line for line in was.split(b"\n")]
    with open(path, "wb") as f:
        f.write(b"\n".join(lines))
    return was


def test_files_in_place_of_others(place):
    """A file of the receipt itself that became something else."""
    folder, _ = receipt(place)
    nested = "[" * 70 + "]" * 70
    for name, do, what in (
        ("verdict.json", os.mkdir, "verdict.json: is missing"),
        ("statement.json", lambda p: open(p, "w").write(nested), "nested deeper"),
        ("statement.json", lambda p: open(p, "w").write('{"predicate": 1e999}'), "outside the range"),
        ("statement.json", lambda p: open(p, "w").write('{"a": 1, "a": 2}'), "is duplicated"),
        ("SHA256SUMS", lambda p: open(p, "w").write("x" * 500), "a line of more than"),
        ("SHA256SUMS", lambda p: open(p, "w").write("0" * 64 + "  /etc/passwd\n"), "leads out of the folder"),
        ("SHA256SUMS", lambda p: open(p, "w").close(), "is not listed"),
        ("grid.toml", lambda p: os.symlink("../../../etc/hostname", p), "is a link"),
        ("records.json", lambda p: os.truncate(os.open(p, os.O_CREAT | os.O_WRONLY), (1 << 30) + 1), "are read at most"),
    ):
        path = os.path.join(folder, name)
        os.rename(path, place.path("away"))
        do(path)
        if name == "statement.json":  # its sum comes first, and then the text
            refused(place, folder, "its SHA-256 is not the one")
            sums = sum_anew(folder, name)
        refused(place, folder, what)
        if os.path.isdir(path):
            os.rmdir(path)
        else:
            os.unlink(path)
        os.rename(place.path("away"), path)
        if name == "statement.json":
            with open(os.path.join(folder, "SHA256SUMS"), "wb") as f:
                f.write(sums)
    if os.geteuid() != 0:
        os.chmod(os.path.join(folder, "grid.toml"), 0)
        refused(place, folder, "Permission denied", ANY)
        os.chmod(os.path.join(folder, "grid.toml"), 0o644)
    place.ctl("verify", folder)


def test_many_files(place):
    folder, _ = receipt(place)
    os.mkdir(os.path.join(folder, "signatures"))
    for i in range(25001):
        os.close(os.open(os.path.join(folder, "signatures", f"{i}.sig"), os.O_CREAT | os.O_WRONLY))
    refused(place, folder, "too many files")


def member(name, kind=tarfile.REGTYPE, link="", size=0):
    m = tarfile.TarInfo(name)
    m.type, m.linkname, m.size = kind, link, size
    return m


def archive(place, members, form=tarfile.GNU_FORMAT, mode="w"):
    path = place.path("hostile.tar")
    with tarfile.open(path, mode, format=form) as t:
        for m in members:
            t.addfile(m, io.BytesIO(b"\0" * m.size))
    return path


def test_archives(place):
    folder, tar = receipt(place)
    place.ctl("verify", tar)
    ok = member("r/grid.toml", size=10)
    for members, what in (
        ([member("r/grid.toml", tarfile.SYMTYPE, "/etc/passwd")], "is a link"),
        ([ok, member("r/report.md", tarfile.LNKTYPE, "r/grid.toml")], "is a link"),
        ([member("r/amendments", tarfile.SYMTYPE, "/tmp"), member("r/amendments/0001.json", size=1)], "is a link"),
        ([member("r/grid.toml", tarfile.CHRTYPE)], "is not a plain file"),
        ([member("r/grid.toml", tarfile.BLKTYPE)], "is not a plain file"),
        ([member("r/grid.toml", tarfile.FIFOTYPE)], "is not a plain file"),
        ([member("../r/grid.toml")], "holds one folder"),
        ([member("r/../../grid.toml")], "leads out of the folder"),
        ([member("r/../grid.toml")], "leads out of the folder"),
        ([member("/etc/grid.toml")], "holds one folder"),
        ([member("grid.toml")], "holds one folder"),
        ([ok, member("s/report.md")], "holds one folder"),
        ([ok, ok], "twice"),
        ([member("r/GRID.toml")], "case of letters"),
        ([member("r/" + unicodedata.normalize("NFD", "gríd.toml"))], "no receipt of this version"),
        ([member("r/a/b/c/d")], "no receipt of this version"),
        ([member("r/x\n\x1b[31m")], "no receipt of this version"),
        ([member("r/" + "n" * 3000)], "no receipt of this version"),
        ([member("r/amendments/0001.json/0001.json")], "no receipt of this version"),
        ([member("r/grid.toml", tarfile.DIRTYPE), ok][:1], "holds nothing"),
        ([], "holds nothing"),
        ([member(f"r/{i}", tarfile.DIRTYPE) for i in range(25001)], "more entries"),
    ):
        for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            refused(place, archive(place, members, form), what)
    del folder


def test_no_archives(place):
    """Truncated, packed, claimed, and none at all."""
    _, tar = receipt(place)
    with open(tar, "rb") as f:
        good = f.read()
    for name, data, what in (
        ("cut", good[: len(good) // 2], "is not a complete tar archive"),
        ("cut in a head", good[:700], ""),
        ("empty", b"", ""),
        ("zeros", bytes(4096), "holds nothing"),
        ("words", b"not a tar at all\n" * 100, "is not a complete tar archive"),
        ("zip", b"PK\x03\x04" + bytes(600), "is not a complete tar archive"),
    ):
        path = place.path(name)
        with open(path, "wb") as f:
            f.write(data)
        refused(place, path, what)
    bomb = archive(place, [member("r/grid.toml", size=64 << 20)], mode="w:gz")
    expect(os.path.getsize(bomb) < 1 << 20, "no bomb")
    refused(place, bomb, "is not a complete tar archive")
    head = bytearray(member("r/records.json").tobuf(tarfile.GNU_FORMAT))
    for size, what in (((1 << 60), "are read at most"), ((1 << 30) - 1, "is not a complete tar archive"), (-5, "")):
        head[124:136] = (0x80 << 88 | size).to_bytes(12, "big") if size >= 0 else (256**12 + size).to_bytes(12, "big")
        head[148:156] = b" " * 8
        head[148:156] = b"%06o\0 " % sum(head)
        with open(place.path("claimed"), "wb") as f:
            f.write(bytes(head) + bytes(512))
        refused(place, place.path("claimed"), what)
    holes = place.write("r/grid.toml", "")
    os.truncate(holes, 8 << 20)
    subprocess.run(["tar", "-C", place.folder, "--sparse", "-cf", place.path("sparse"), "r"], check=True)
    expect(os.path.getsize(place.path("sparse")) < 1 << 20, "tar keeps no holes")
    refused(place, place.path("sparse"), "is not a plain file")
    os.mkfifo(place.path("pipe"))
    run = place.ctl("verify", place.path("pipe"), wanted=LOCK, timeout=120)
    expect("archive" in run.stdout, run.stdout)
    run = place.ctl("verify", "/dev/zero", wanted=LOCK, timeout=120)
    expect("holds nothing" in run.stdout, run.stdout)
    place.must(ANY, "preregctl", "verify", place.path("absent"))
    place.must(OK, "preregctl", "verify", tar)


lab.main(test_folders, test_files_in_place_of_others, test_many_files, test_archives, test_no_archives)
