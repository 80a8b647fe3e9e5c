#!/usr/bin/env python3
"""What happens to the state folder under a daemon: its socket and its lock are deleted, its path is not text, others may write to it."""

import json
import os
import signal
import socket

from lib import lab
from lib import rogue
from lib.lab import ANY, INVALID, NO_DAEMON, OK, USAGE, equal, expect


def test_socket_is_made_again(place):
    place.serve()
    os.remove(os.path.join(place.state, "preregd.sock"))
    place.wait_for(lambda: os.path.exists(os.path.join(place.state, "preregd.sock"))
                   and place.run("preregctl", "status").returncode == OK, 60, "the socket is made again")


def test_socket_that_is_replaced(place):
    """What a folder that was elsewhere for a while, or a copy of it, leaves there: nobody listens at it."""
    place.serve()
    name = os.path.join(place.state, "preregd.sock")
    os.remove(name)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(name)
    place.wait_for(lambda: place.run("preregctl", "status").returncode == OK, 60, "the daemon listens again")


def test_daemon_that_cannot_answer_is_named(place):
    place.serve()
    pid = place.daemon.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
        os.remove(os.path.join(place.state, "preregd.sock"))
        for command in (("preregctl", "status"), ("preregctl", "pause")):
            run = place.must(NO_DAEMON, *command)
            expect(f"preregd (process {pid}) is stopped and cannot answer: `kill -CONT {pid}`" in run.stderr, run.stderr)
    finally:
        os.kill(pid, signal.SIGCONT)
    place.wait_for(lambda: place.run("preregctl", "status").returncode == OK, 60, "it answers again")


def test_second_daemon(place):
    place.serve()
    run = place.must(ANY, "preregd", "serve", "--foreground")
    expect(f"process {place.daemon.pid}" in run.stderr, f"the message names the process: {run.stderr}")
    os.remove(os.path.join(place.state, "state.lock"))
    run = place.must(ANY, "preregd", "serve", "--foreground")
    expect("state.lock was deleted" in run.stderr, run.stderr)


def test_refused_folders(place):
    os.mkdir(place.state, 0o700)
    os.chmod(place.state, 0o777)
    run = place.must(ANY, "preregd", "serve", "--foreground")
    expect("others may write to it" in run.stderr, run.stderr)
    os.chmod(place.state, 0o700)
    if os.geteuid() == 0:
        os.chown(place.state, 12345, 12345)
        run = place.must(ANY, "preregd", "serve", "--foreground")
        expect("belongs to the user with the number 12345" in run.stderr, run.stderr)
        os.chown(place.state, 0, 0)
    equal(os.listdir(place.state), [], "nothing was made there")
    bad = os.fsencode(place.path("state")) + b"-\xff"
    run = place.must(USAGE, "preregd", "serve", "--foreground", env={**os.environ, "PREREGD_STATE": os.fsdecode(bad)})
    expect("not UTF-8" in run.stderr, run.stderr)
    expect(not os.path.exists(bad), "nothing was made there")
    for words in (["preregd", "serve", "--foreground"], ["preregctl", "status"]):
        run = place.must(USAGE, *words, env={**place.env, "PREREGD_STATE": ""})
        expect("PREREGD_STATE is set to nothing" in run.stderr, run.stderr)


def test_refused_work(place):
    """Whoever may write to the folder `work` could put another folder of cells in the place of the program's."""
    work = place.path("work")
    grid = rogue.program(place, ["wait", "wait_too"], run=f'work = "{work}"\n')
    os.mkdir(work)
    place.serve()
    for mode in (0o777, 0o770, 0o2775):
        os.chmod(work, mode)
        run = place.run("preregd", "submit", grid)
        equal(run.returncode, INVALID, run.stderr)
        expect(f"error: run.work: {work} has mode {mode:04o}: others may write to it" in run.stderr, run.stderr)
        equal(os.listdir(work), [], "nothing was made there")
    if os.geteuid() == 0:
        os.chmod(work, 0o755)
        os.chown(work, 12345, 12345)
        run = place.run("preregd", "submit", grid)
        equal(run.returncode, INVALID, run.stderr)
        expect("belongs to the user with the number 12345" in run.stderr, run.stderr)
        os.chown(work, 0, 0)
    os.chmod(work, 0o1777)
    place.must(OK, "preregd", "submit", grid)
    expect(os.listdir(work), "its cells are there")
    rogue.release(place)


def test_link_in_work(place):
    """In a folder that is shared, as /tmp is, another user may put a link to one of this user's folders where the program's is made."""
    work, other = place.path("work"), place.path("other")
    grid = rogue.program(place, ["wait", "wait_too"], run=f'work = "{work}"\n')
    os.mkdir(work)
    os.chmod(work, 0o1777)
    os.mkdir(other, 0o700)
    with open(f"{grid}.lock", encoding="utf-8") as f:
        root = json.load(f)["root"]
    link = os.path.join(work, f"rogue-{root[:8]}")
    os.symlink(other, link)
    place.serve()
    run = place.run("preregd", "submit", grid)
    equal(run.returncode, INVALID, run.stderr)
    expect(f": run.work: {link} is a symbolic link" in run.stderr, run.stderr)
    equal(os.listdir(other), [], "nothing was made behind the link")
    os.remove(link)
    place.must(OK, "preregd", "submit", grid)
    expect(os.path.isdir(os.path.join(link, "cells")), "its cells are there")
    rogue.release(place)


lab.main(test_socket_is_made_again, test_socket_that_is_replaced, test_daemon_that_cannot_answer_is_named, test_second_daemon,
         test_refused_folders, test_refused_work, test_link_in_work)
