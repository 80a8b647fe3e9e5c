"""Builds the wheel of this package with the standard library alone, so that `pip install` of this folder needs no network.

A build backend of PEP 517 for `preregd` only. The same sources give the same bytes: files are in the order of their names, stored
without compression, and dated SOURCE_DATE_EPOCH, or 1980 without it.

    python3 wheel_backend.py FOLDER      writes FOLDER/preregd-VERSION-py3-none-any.whl and prints its name
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
import time
import zipfile
from typing import Any, Dict, List, Optional, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
EARLIEST = 315532800  # 1980: a zip file holds no earlier time


def project() -> Tuple[Dict[str, str], Dict[str, List[str]]]:
    """The texts of [project], and the lists of [project.optional-dependencies], of pyproject.toml beside this file."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as f:
        tables = re.split(r"^\[([\w.-]+)\]$", f.read(), flags=re.M)
    of = dict(zip(tables[1::2], tables[2::2]))
    texts = dict(re.findall(r'^([\w-]+) = "([^"]*)"$', of["project"], flags=re.M))
    lists = re.findall(r"^([\w-]+) = \[([^\]]*)\]$", of["project.optional-dependencies"], flags=re.M)
    return texts, {name: re.findall(r'"([^"]*)"', words) for name, words in lists}


def metadata() -> str:
    texts, extras = project()
    lines = ["Metadata-Version: 2.1", f"Name: {texts['name']}", f"Version: {texts['version']}", f"Summary: {texts['description']}",
             f"Requires-Python: {texts['requires-python']}"]
    for extra, needs in extras.items():
        lines += [f"Provides-Extra: {extra}"] + [f'Requires-Dist: {need}; extra == "{extra}"' for need in needs]
    return "".join(line + "\n" for line in lines)


def sources() -> List[Tuple[str, bytes]]:
    """(path in the wheel, bytes) of what is installed."""
    folder = os.path.join(HERE, "preregd")
    paths = ["preregd_worker.py"] + ["preregd/" + n for n in os.listdir(folder) if n.endswith(".py") or n == "py.typed"]
    found = []
    for path in sorted(paths):
        with open(os.path.join(HERE, path), "rb") as f:
            found.append((path, f.read()))
    return found


def record_line(path: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}\n"


def build_wheel(wheel_directory: str, config_settings: Optional[Dict[str, Any]] = None,
                metadata_directory: Optional[str] = None) -> str:
    """Writes the wheel and returns its name (PEP 517)."""
    texts, _ = project()
    info = f"{texts['name']}-{texts['version']}.dist-info"
    files = sources() + [(f"{info}/METADATA", metadata().encode()),
                         (f"{info}/WHEEL", b"Wheel-Version: 1.0\nGenerator: preregd\nRoot-Is-Purelib: true\nTag: py3-none-any\n")]
    lines = [record_line(path, data) for path, data in files] + [f"{info}/RECORD,,\n"]
    files.append((f"{info}/RECORD", "".join(lines).encode()))
    seconds = max(EARLIEST, int(os.environ.get("SOURCE_DATE_EPOCH") or EARLIEST))
    name = f"{texts['name']}-{texts['version']}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_STORED) as wheel:
        for path, data in files:
            member = zipfile.ZipInfo(path, time.gmtime(seconds)[:6])
            member.external_attr = 0o100644 << 16
            wheel.writestr(member, data)
    return name


def get_requires_for_build_wheel(config_settings: Optional[Dict[str, Any]] = None) -> List[str]:
    """Nothing beyond the standard library."""
    return []


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit((__doc__ or "").strip())
    os.makedirs(sys.argv[1], exist_ok=True)
    print(build_wheel(sys.argv[1]))
