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
