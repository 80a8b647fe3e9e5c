"""py_compile over every Python file of worker/python and ops/programs, without leaving anything behind."""

import os
import sys

import place

n = 0
for room in ("worker/python", "ops/programs"):
    for folder, _, names in os.walk(os.path.join(place.TOP, room)):
        for name in (name for name in names if name.endswith(".py")):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as f:
                compile(f.read(), path, "exec")
            n += 1
print(f"{n} files")
sys.exit(0 if n >= 5 else 1)
