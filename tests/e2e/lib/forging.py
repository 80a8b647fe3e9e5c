"""A receipt that somebody changed: what follows from its files alone is made anew."""

import hashlib
import json
import os


def forge(folder):
    """Subjects of the statement and sums made anew by whoever changed something."""

    def names():
        found = (os.path.relpath(os.path.join(at, name), folder) for at, _, files in os.walk(folder) for name in files)
        return sorted(n for n in found if n != "SHA256SUMS" and not n.startswith("signatures/"))

    def sha256(name):
        with open(os.path.join(folder, name), "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()

    path = os.path.join(folder, "statement.json")
    with open(path, encoding="utf-8") as f:
        statement = json.load(f)
    statement["subject"] = [{"name": n, "digest": {"sha256": sha256(n)}} for n in names() if n != "statement.json"]
    with open(path, "w", encoding="utf-8") as f:
        f.write(json.dumps(statement, indent=2, ensure_ascii=False) + "\n")
    with open(os.path.join(folder, "SHA256SUMS"), "w", encoding="utf-8") as f:
        f.writelines(f"{sha256(n)}  {n}\n" for n in names())


def read_json(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return json.load(f)


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def journal_rows(folder):
    with open(os.path.join(folder, "journal.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def forge_journal(folder, rows):
    """The journal with these rows in place of its own: chain, verdict's digest and everything that names a head follow, and then
    what `forge` makes. Numbers in rows are whole."""
    heads, prev, lines = {}, "0" * 64, []
    with open(os.path.join(folder, "verdict.json"), "rb") as f:
        verdict = hashlib.sha256(f.read()).hexdigest()
    for seq, row in enumerate(rows, 1):
        row = dict(row, seq=seq)
        was = row.pop("hash", None)
        if "verdict_digest" in row.get("status", {}):
            row["status"] = dict(row["status"], verdict_digest=verdict)
        text = json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        prev = heads[was] = hashlib.sha256((prev + text).encode()).hexdigest()
        lines.append(json.dumps(dict(row, hash=prev), sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n")
    with open(os.path.join(folder, "journal.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(lines)
    for name in ("coverage.json", "provenance.json", "statement.json"):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            text = f.read()
        for was, now in heads.items():
            text = text.replace(was, now) if was else text
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    forge(folder)
