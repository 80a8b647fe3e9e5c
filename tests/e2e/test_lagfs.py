#!/usr/bin/env python3
"""The file system of the tests of shared folders does what they rely on: a change of one mount is seen by the other after the delay."""

import errno
import fcntl
import os
import sys
import time

from lib import lab
from lib.hosts import DELAY_MS, Hosts
from lib.lab import equal, expect

BIN = os.path.abspath(sys.argv[1])
DELAY = DELAY_MS / 1000


def read(*parts):
    try:
        with open(os.path.join(*parts), encoding="utf-8") as f:
            return f.read()
    except OSError as error:
        return errno.errorcode[error.errno]


def write(text, *parts, mode="w"):
    with open(os.path.join(*parts), mode, encoding="utf-8") as f:
        f.write(text)


def late(check, at_once):
    """What holds at once on lagfs, whose delay is exact; NFS may be faster."""
    if at_once:
        check()


def changes(a, b, at_once):
    """What one mount sees of another's changes: all of it, after the delay."""
    write("first", a, "grows")
    write("first", a, "replaced")
    write("first", a, "overwritten")
    write("first", a, "removed")
    late(lambda: equal((read(b, "grows"), os.listdir(b)), ("ENOENT", []), "new names, at once"), at_once)
    equal(read(a, "grows"), "first", "to its own mount")
    time.sleep(DELAY + 0.5)
    equal(sorted(os.listdir(b)), ["grows", "overwritten", "removed", "replaced"], "names, later")
    equal([read(b, n) for n in ("grows", "replaced", "overwritten", "removed")], ["first"] * 4, "contents")
    write(" second", a, "grows", mode="a")
    write("later", a, "new")
    os.rename(os.path.join(a, "new"), os.path.join(a, "replaced"))
    with open(os.path.join(a, "overwritten"), "r+", encoding="utf-8") as f:
        f.write("FIRST and more")
    os.remove(os.path.join(a, "removed"))
    late(lambda: equal([read(b, n) for n in ("grows", "replaced", "overwritten")], ["first"] * 3, "contents, at once"), at_once)
    late(lambda: equal(os.path.getsize(os.path.join(b, "grows")), 5, "size, at once"), at_once)
    late(lambda: equal((read(b, "removed"), "removed" in os.listdir(b)), ("ESTALE", True), "a file that was removed, at once"), at_once)
    time.sleep(DELAY + 0.5)
    equal([read(b, n) for n in ("grows", "replaced", "overwritten", "removed")],
          ["first second", "later", "FIRST and more", "ENOENT"], "contents, later")


def names(a, b, at_once):
    """A name that was asked for too early may stay absent; after a listing of its folder it is seen."""
    if not at_once:
        for name in ("asked", "listed"):
            equal(read(b, name), "ENOENT", f"{name}, before")
    for name in ("asked", "listed"):
        write("x", a, name)
    if at_once:
        time.sleep(DELAY - 1)
        for name in ("asked", "listed"):
            equal(read(b, name), "ENOENT", name)
        time.sleep(2)
        equal(read(b, "asked"), "ENOENT", "a name that was asked for too early")
    else:
        time.sleep(DELAY + 0.5)
    expect("listed" in os.listdir(b), "the folder lists it")
    equal(read(b, "listed"), "x", "after a listing")


def test_what_the_other_mount_sees(place):
    with Hosts(place, BIN) as (one, two):
        changes(one.mount, two.mount, True)


def test_absent_stays_absent_until_listed(place):
    with Hosts(place, BIN) as (one, two):
        names(one.mount, two.mount, True)


def test_locks_prove_nothing(place):
    with Hosts(place, BIN) as (one, two):
        write("", one.mount, "lock")
        time.sleep(DELAY + 0.5)
        with open(os.path.join(one.mount, "lock"), "rb") as f, open(os.path.join(two.mount, "lock"), "rb") as g, \
                open(os.path.join(one.mount, "lock"), "rb") as h:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(g, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                fcntl.flock(h, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            raise lab.Failed("two locks on one mount")


if __name__ == "__main__":
    lab.main(test_what_the_other_mount_sees, test_absent_stays_absent_until_listed, test_locks_prove_nothing)
