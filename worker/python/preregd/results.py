"""What a program measured, for a notebook: records, means, verdict and curves of a program that has its verdict.

    from preregd.results import Program

    p = Program("first_light")              # a name or an id, as preregctl takes it; or the folder of a program
    p.verdict["outcome"]
    p.records()                             # a row for each measure and cell
    p.means()                               # a row for each measure and condition
    p.curves("loss")                        # a row for each cell, stage and step

With pandas installed the tables are DataFrames, else lists of dicts. Nothing is read before the program is unsealed: until it has
its verdict, opening it raises Sealed. `preregctl` must be in $PATH, or is named by `preregctl=`; it checks the verdict against the
lock before anything is read.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import tempfile
from typing import Any, Dict, List, Optional

NUMBERS = {"value", "mean", "se", "ci_low", "ci_high", "n"}
Rows = List[Dict[str, Any]]


class ResultsError(Exception):
    """What preregctl says of a program that it cannot read."""


class Sealed(ResultsError):
    """The program has no verdict yet, so its scores are sealed."""


def _plain(text: str) -> Any:
    """A level of a factor: a number where it is written as one."""
    return json.loads(text) if re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", text) else text


def _table(path: str) -> Rows:
    """A table of `preregctl report --csv`. What is open is None, with its reason in `why`."""
    texts = ("cell", "condition", "measure", "metric", "bound", "why")
    rows: Rows = []
    with open(path, encoding="utf-8", newline="") as f:
        for line in csv.DictReader(f):
            row: Dict[str, Any] = {}
            for name, text in line.items():
                if text == "":
                    row[name] = None
                elif name in NUMBERS:
                    row[name] = int(text) if name == "n" else float(text)
                else:
                    row[name] = text if name in texts else _plain(text)
            rows.append(row)
    return rows


def _frame(rows: Rows) -> Any:
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


class Program:
    """One program with a verdict. Raises Sealed while it has none."""

    def __init__(self, program: str, preregctl: str = "preregctl", state: Optional[str] = None) -> None:
        """`state`: another state folder than that of this user."""
        self._ctl, self._env = preregctl, {**os.environ, **({"PREREGD_STATE": state} if state else {})}
        if os.path.isdir(program):
            self.folder: str = os.path.realpath(program)
            self._cells = os.path.join(self.folder, "cells")
        else:
            found = json.loads(self._run("status", program, "--json"))["programs"][0]
            self.folder, self._cells = found["folder"], found["work"]
        path = os.path.join(self.folder, "report", "verdict.json")
        if not os.path.exists(path):
            raise Sealed(f"{program} has no verdict yet, and its scores are sealed until then (`preregctl status`)")
        with tempfile.TemporaryDirectory(prefix="preregd-results-") as folder:
            self._run("report", self.folder, "--csv", folder)  # refuses a verdict that is not of this lock
            self._records = _table(os.path.join(folder, "records.csv"))
            self._means = _table(os.path.join(folder, "means.csv"))
        with open(path, encoding="utf-8") as f:
            self.verdict: Dict[str, Any] = json.load(f)

    def _run(self, *words: str) -> str:
        try:
            run = subprocess.run([self._ctl, *words], env=self._env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        except OSError as error:
            raise ResultsError(f"{self._ctl}: {error.strerror}; name it by preregctl=") from None
        if run.returncode != 0:
            raise ResultsError(run.stderr.strip() or f"preregctl {words[0]} ended with {run.returncode}")
        return run.stdout

    def records(self) -> Any:
        """cell, factors, measure, metric, value, bound, n, se, why."""
        return _frame(self._records)

    def means(self) -> Any:
        """measure, condition, factors without replicates, mean, se, ci_low, ci_high, n, why."""
        return _frame(self._means)

    def curves(self, name: str = "loss") -> Any:
        """cell, factors, stage, step, value of every point of that name, of the attempts that led to each stage's result."""
        if not os.path.isdir(self._cells):
            raise ResultsError(f"{self._cells} is not there: name the program instead of its folder if [run] work is elsewhere")
        rows: Rows = []
        for folder in sorted(os.listdir(self._cells)):
            for stage in sorted(os.listdir(os.path.join(self._cells, folder))):
                place = os.path.join(self._cells, folder, stage)
                points = _points(place, name)
                cell = _cell(place) if points else {}
                rows += [{**cell, "stage": stage, "step": step, "value": points[step]} for step in sorted(points)]
        return _frame(rows)


def _cell(stage: str) -> Dict[str, Any]:
    """The name and the factors of the cell that the attempt with the result was of."""
    attempt = os.path.dirname(os.path.realpath(os.path.join(stage, "result.json")))
    with open(os.path.join(attempt, "exit.json"), encoding="utf-8") as f:
        cell = json.load(f)["task"]["cell"]
    return {"cell": cell["name"], **cell["factors"]}


def _points(stage: str, name: str) -> Dict[int, Optional[float]]:
    """step -> value, up to the attempt whose result is linked. What an attempt repeats of an earlier one is the same."""
    result = os.path.join(stage, "result.json")
    points: Dict[int, Optional[float]] = {}
    if not os.path.exists(result):
        return points
    last = _number(os.path.basename(os.path.dirname(os.path.realpath(result))))
    attempts = sorted((a for a in os.listdir(stage) if a.startswith("attempt-") and _number(a) <= last), key=_number)
    for attempt in attempts:
        path = os.path.join(stage, attempt, "events.jsonl")
        if not os.path.exists(path):
            continue
        begun, fresh = False, {}
        with open(path, encoding="utf-8", errors="replace") as f:
            for line in f:
                event = _event(line)
                begun = begun or event.get("type") == "resumed"
                if event.get("type") == "point" and event.get("name") == name and isinstance(event.get("step"), int):
                    fresh[event["step"]] = event.get("value")
        # An attempt that did not resume began at the start; one that ended before it said a thing began nothing
        points = {**points, **fresh} if begun or not fresh else fresh
    return points


def _number(attempt: str) -> int:
    """Of attempt-NUMBER-ID."""
    return int(attempt.split("-")[1])


def _event(line: str) -> Dict[str, Any]:
    """An event; {} for a line that is torn or not an object."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}
