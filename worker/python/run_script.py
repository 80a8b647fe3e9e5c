"""prereg-python: runs a Python worker whose files are pinned one by one.

    prereg-python SCRIPT [--module NAME FILE]... [ARGUMENT...]

SCRIPT runs as the main program; `import preregd` finds the helper, and `import NAME` the FILE of a --module. A lock pins each
file of a command by its digest and runs a copy under another name, which has no neighbours: what a script imports of its own is
named here, or packed into one file (python3 -m zipapp).

    command = ["prereg-python", "train.py", "--module", "net", "net.py"]
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import runpy
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple

import preregd_worker as prereg


class Modules(importlib.abc.MetaPathFinder):
    """Finds modules by their full names in the files they were given by."""

    def __init__(self, files: Dict[str, str]) -> None:
        self.files = files  # name -> path

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname not in self.files:
            return None
        loader = importlib.machinery.SourceFileLoader(fullname, self.files[fullname])
        return importlib.util.spec_from_file_location(fullname, self.files[fullname], loader=loader)


def take_modules(arguments: Sequence[str]) -> Tuple[Dict[str, str], List[str]]:
    """(name -> path, what is left) of the words behind the script. UsageFault when one is not as it must be."""
    files: Dict[str, str] = {}
    at = 0
    while list(arguments[at:at + 1]) == ["--module"]:
        words = arguments[at + 1:at + 3]
        if len(words) < 2 or not words[0].isidentifier():
            raise prereg.UsageFault("--module takes the name of a module and its file")
        if not os.path.isfile(words[1]):
            raise prereg.UsageFault(f"--module {words[0]}: {words[1]}: no such file")
        files[words[0]] = words[1]
        at += 3
    return files, list(arguments[at:])


def main() -> None:
    if sys.argv[1:2] in ([], ["--help"], ["-h"]):
        print((__doc__ or "").strip(), file=sys.stdout if sys.argv[1:] else sys.stderr)
        sys.exit(prereg.DONE if sys.argv[1:] else prereg.USAGE)
    script = sys.argv[1]
    try:
        if not os.path.exists(script):
            raise prereg.UsageFault(f"{script} does not exist")
        files, rest = take_modules(sys.argv[2:])
    except prereg.UsageFault as fault:
        prereg.tell(f"prereg-python: {fault}")
        sys.exit(fault.code)
    sys.dont_write_bytecode = True  # nothing is written beside pinned files
    sys.meta_path.insert(0, Modules(files))
    sys.argv = [script, *rest]
    prereg.name_tracebacks()
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
