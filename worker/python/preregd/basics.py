"""What the helper rests on: faults with their exit codes, files written whole, digests as a lock holds them, JSON, parameters.

Standard library only, Python 3.9 or later. `pack` puts this text in front of that of worker.py, so neither may use a name twice.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import os
import re
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar, Union

PROTOCOL = 1
DONE, USAGE, DATA, UNMEASURABLE, AGAIN = 0, 64, 65, 69, 75
NOT_PLAIN = re.compile("[^\n\t -~\xa0-\U0010ffff]|[\u2028-\u202e\u2066-\u2069\ud800-\udfff]")  # as base/text.c has it
Json = Dict[str, Any]          # an object of JSON
FaultList = List[Tuple[str, str]]  # (key, why)
D = TypeVar("D")               # of a default


class Fault(Exception):
    """Ends the worker with one line on standard error and an exit code of the protocol."""
    code = 1


class UsageFault(Fault):
    """Bad parameters: never retried."""
    code = USAGE


class DataFault(Fault):
    """Input data that are not what they must be: never retried."""
    code = DATA


class NotMeasurable(Fault):
    """The number does not exist, e.g. a model that cannot generate: the task ends blocked, with the reason."""
    code = UNMEASURABLE


class Stopped(Fault):
    """Asked to stop, and everything done so far is kept: run me again."""
    code = AGAIN


def sync(path: str) -> None:
    """fsync of a file or a folder."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_file(path: str, data: bytes) -> None:
    """Writes bytes whole or not at all: beside it, synced, renamed, the folder synced."""
    part = path + ".part"
    with open(part, "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    os.replace(part, path)
    sync(os.path.dirname(path) or os.curdir)


def digest_file(path: str) -> str:
    """SHA-256 of a regular file's bytes, as 64 hex digits."""
    state = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            state.update(block)
    return state.hexdigest()


def files_below(folder: str) -> List[str]:
    """Relative paths of the regular files in a folder, sorted by their bytes. A link or a special file is a DataFault."""
    found: List[str] = []
    for place, folders, names in os.walk(folder):
        for name in [n for n in folders if os.path.islink(os.path.join(place, n))] + names:
            path = os.path.join(place, name)
            if os.path.islink(path) or not os.path.isfile(path):
                raise DataFault(f"{path} is not a regular file")
            found.append(os.path.relpath(path, folder))
    return sorted(found, key=os.fsencode)


def digest_path(path: str) -> str:
    """The digest that a lock holds: of a file its SHA-256, of a folder the SHA-256 of its lines `<sha256>  <relative path>`."""
    if not os.path.isdir(path):
        return digest_file(path)
    lines = [digest_file(os.path.join(path, name)).encode() + b"  " + os.fsencode(name) + b"\n" for name in files_below(path)]
    return hashlib.sha256(b"".join(lines)).hexdigest()


def tell(text: str) -> None:
    """Text of anywhere on standard error: a terminal shows it and must never obey it (base/terminal.h)."""
    print(NOT_PLAIN.sub("?", re.sub("\r\n?", "\n", text)), file=sys.stderr, flush=True)


def to_line(value: object) -> str:
    """Compact JSON of a value, one line without its line feed. NaN and infinity are a ValueError: they are not JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def from_json(text: str) -> Any:
    """A JSON value, read strictly: NaN, infinity and a key that comes twice are a ValueError."""
    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    def once(pairs: Sequence[Tuple[str, Any]]) -> Json:
        found: Json = {}
        for key, value in pairs:
            if key in found:
                raise ValueError(f"the key \"{key}\" comes twice")
            found[key] = value
        return found
    return json.loads(text, parse_constant=refuse, object_pairs_hook=once)


def seconds_of(value: Any) -> Optional[float]:
    """The task's `checkpoint`: seconds, "300s" (ms, s, min, h) or "auto", which is None."""
    if value is None or value == "auto":
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
        return float(value)
    m = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|min|h)", value) if isinstance(value, str) else None
    if m is None:
        raise UsageFault('checkpoint: expected seconds, "300s" or "auto"')
    return float(m.group(1)) * {"ms": 0.001, "s": 1, "min": 60, "h": 3600}[m.group(2)]


NEEDED: Any = object()


class Params:
    """A stage's parameters, read strictly: every getter notes its fault and reading goes on, so that finish() says all of them
    at once; a key that nobody asked for is a fault that names the nearest known one.

    After a fault a getter returns its default, or something of the right type; what follows finish() sees good values only.
    """

    def __init__(self, values: Json, faults: Optional[FaultList] = None, prefix: str = "") -> None:
        self.values, self.prefix = values, prefix
        self.faults: FaultList = [] if faults is None else faults  # shared with nested tables
        self.known: List[str] = []
        self.nested: List[Params] = []
        self.finished = False

    def fault(self, key: str, why: str) -> None:
        self.faults.append((self.prefix + key, why))

    def _take(self, key: str, default: Any, is_right: Callable[[Any], bool], expected: str, instead: Any) -> Any:
        if key not in self.known:
            self.known.append(key)
        value = self.values.get(key)
        if value is None:
            if default is not NEEDED:
                return default
            self.fault(key, "is required")
        elif is_right(value):
            return value
        else:
            self.fault(key, f"expected {expected}")
        return instead if default is NEEDED else default

    def _within(self, key: str, value: Any, low: float, high: float, default: Any) -> Any:
        if value is default or low <= value <= high:
            return value
        self.fault(key, f"{value:g} is not in {low:g} .. {high:g}")
        return low if default is NEEDED else default

    def has(self, key: str) -> bool:
        """Whether the key is there and not null; makes it known."""
        return self._take(key, None, lambda v: True, "", None) is not None

    def integer(self, key: str, low: int, high: int, default: D = NEEDED) -> Union[int, D]:
        """A whole number in low .. high, both included."""
        value = self._take(key, default, lambda v: is_number(v) and float(v).is_integer(), "a whole number", low)
        value = self._within(key, value, low, high, default)
        return value if value is default else int(value)

    def number(self, key: str, low: float, high: float, default: D = NEEDED) -> Union[float, D]:
        """A number in low .. high, both included."""
        value = self._take(key, default, is_number, "a number", low)
        value = self._within(key, value, low, high, default)
        return value if value is default else float(value)

    def flag(self, key: str, default: D = NEEDED) -> Union[bool, D]:
        value: Union[bool, D] = self._take(key, default, is_flag, "true or false", False)
        return value

    def text(self, key: str, default: D = NEEDED) -> Union[str, D]:
        value: Union[str, D] = self._take(key, default, lambda v: isinstance(v, str), "a string", "")
        return value

    def texts(self, key: str, default: D = NEEDED) -> Union[List[str], D]:
        """A list of strings; one string is a list of one."""
        value = self._take(key, default, lambda v: isinstance(v, str) or is_texts(v), "a string or a list of strings", [])
        return [value] if isinstance(value, str) else value

    def choice(self, key: str, names: Sequence[str], default: D = NEEDED) -> Union[str, D]:
        """One of `names`."""
        value = self.text(key, default)
        if value is not default and value not in names:
            self.fault(key, f"\"{str(value)[:40]}\" is not one of {', '.join(names)}")
            return names[0] if default is NEEDED else default
        return value

    def values_of(self, key: str, default: D = NEEDED) -> Union[Json, D]:
        """A nested table with any names, each a string, number or truth value."""
        def is_right(table: Any) -> bool:
            return isinstance(table, dict) and all(isinstance(v, (str, bool)) or is_number(v) for v in table.values())
        value: Union[Json, D] = self._take(key, default, is_right, "a table of strings, numbers and truth values", {})
        return value

    def table(self, key: str) -> Params:
        """The Params of a nested table, which may be left out; its keys are named as "key.inner"."""
        values = self._take(key, {}, lambda v: isinstance(v, dict), "a table", {})
        self.nested.append(Params(values, self.faults, f"{self.prefix}{key}."))
        return self.nested[-1]

    def _find_unknown(self) -> None:
        for key in self.values:
            if key not in self.known:
                near = difflib.get_close_matches(key, self.known, 1)
                self.faults[:] = [f for f in self.faults if not near or f != (self.prefix + near[0], "is required")]  # as this fault says
                self.fault(key, "unknown parameter" + (f"; did you mean \"{near[0]}\"?" if near else ""))
        for table in self.nested:
            table._find_unknown()

    def finish(self) -> None:
        """Every key has been asked for: raises UsageFault when anything was wrong, with a line for each fault."""
        if not self.finished:
            self._find_unknown()
        self.finished = True
        if self.faults:
            raise UsageFault("\n".join(f"params.{key}: {why}" for key, why in self.faults))


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)
