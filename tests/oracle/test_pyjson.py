#!/usr/bin/env python3
"""base/json/pyjson.h against Python's json module: random documents, laid out again by both.

    test_pyjson.py BUILD_FOLDER

A document is written with random escapes and spaces, read by both, and written on one line and indented by two.
"""

import json
import math
import os
import random
import struct
import subprocess
import sys

DOCUMENTS = 4000
FLOATS = 60000
PLAIN = 'ab"\\/\b\f\n\r\t\x01\x1f\x7f\x80é\u2028東\uffff🙂 '


def any_float(rng):
    kind = rng.randrange(5)
    if kind == 0:
        return math.ldexp(1.0, rng.randrange(-1074, 1024))
    if kind == 1:
        return rng.randrange(10**rng.randrange(1, 18)) / 10**rng.randrange(0, 22)
    if kind == 2:
        return float(rng.choice(["1e16", "9999999999999998", "1e15", "1e-4", "0.0001", "9.999e-05", "1e22", "1e23",
                                 "5e-324", "1.7976931348623157e308", "0.0", "12.0", "-0.0", "123456789012345680.0"]))
    if kind == 3:
        return struct.unpack("f", rng.randbytes(4))[0]
    return struct.unpack("d", rng.randbytes(8))[0]


def finite(rng):
    while True:
        value = any_float(rng) * rng.choice([1, 1, -1])
        if math.isfinite(value):
            return value


def text(rng):
    return "".join(rng.choice(PLAIN) if rng.random() < 0.7 else chr(rng.choice([rng.randrange(1, 0xD800), rng.randrange(0xE000, 0x110000)]))
                   for _ in range(rng.randrange(12)))


def document(rng, depth):
    kind = rng.randrange(9 if depth > 0 else 7)
    if kind == 0:
        return rng.choice([True, False, None])
    if kind == 1:
        return rng.choice([0, 1, -1, 10**15, 2**53 + 1, -2**63, 10**40, rng.randrange(-1000, 1000)])
    if kind <= 3:
        return finite(rng)
    if kind <= 6:
        return text(rng)
    if kind == 7:
        return [document(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {text(rng): document(rng, depth - 1) for _ in range(rng.randrange(4))}


def written(rng, value):
    """JSON text of the value in some other way than Python's own."""
    separators = rng.choice([(",", ":"), (" , ", " : "), (", ", ": ")])
    return json.dumps(value, ensure_ascii=rng.random() < 0.5, separators=separators).replace("/", rng.choice(["/", "\\/"]))


def relay(build, lines, indent):
    done = subprocess.run([os.path.join(build, "tests", "relay_json"), "indent" if indent else "line"], input="\n".join(lines).encode() + b"\n",
                          capture_output=True)
    if done.returncode != 0:
        sys.exit(f"relay_json: exit {done.returncode}: {done.stderr.decode()}")
    return done.stdout.decode().split("\0")[:-1]


def main():
    build, rng = os.path.abspath(sys.argv[1]), random.Random(5)
    values = [document(rng, 4) for _ in range(DOCUMENTS)] + [finite(rng) for _ in range(FLOATS)]
    lines = [written(rng, value) for value in values]
    lines += ["-0", "1E5", "1e-0", "100000000000000000000", "[ ]", "{ }", "[[],{},[{}]]", '{"a":{"b":[]}}']
    values += [json.loads(line) for line in lines[len(values):]]
    for indent in (0, 2):
        got = relay(build, lines, indent)
        if len(got) != len(values):
            sys.exit(f"{len(got)} texts of {len(values)}")
        for line, value, ours in zip(lines, values, got):
            theirs = json.dumps(value, ensure_ascii=False, indent=indent or None)
            if ours != theirs:
                sys.exit(f"{line}\nbecomes {ours!r}\nnot     {theirs!r}")
    print(f"{len(values)} documents, on one line and indented: the same bytes")


main()
