#!/usr/bin/env python3
"""The daemon moves between two hosts that share the state folder: one serves at a time, a takeover needs proof or a person, and
the loser writes nothing more. The verdict has the bytes of a run that was not moved."""

import json
import os
import signal
import sys
import time

from lib import lab
from lib import rogue
from lib.hosts import Hosts
from lib.lab import ANY, NO_DAEMON, OK, USAGE, equal, expect

MOVED = 8
BIN = os.path.abspath(sys.argv[1])
MODES = ["wait", "wait_too"]


def journal(host):
    root = os.path.join(host.state, "programs")
    (name,) = os.listdir(root)
    with open(os.path.join(root, name, "journal.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def program_folder(host):
    root = os.path.join(host.state, "programs")
    (name,) = os.listdir(root)
    return os.path.join(root, name)


def submit(place, host):
    grid = rogue.program(place, MODES)
    host.must(OK, "preregd", "submit", grid)
    place.wait_for(lambda: n_running(host) == len(MODES), 60, "both tasks run")
    return grid


def n_running(host):
    tasks = [t for cell in host.json("cells")["cells"] for t in cell["tasks"]]
    return sum(t["state"] == "running" for t in tasks)


def finish(place, host, seconds=90):
    rogue.release(place)
    place.wait_for(lambda: all(p["state"] == "finished" for p in host.json("status")["programs"]), seconds, "it finishes")


def unmoved_verdict(place, grid):
    """The bytes of the same program in an ordinary state folder, where it was never moved."""
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(60)
    text = place.verdict_bytes()
    place.ctl("stop")
    return text


def check_whole(place, host, grid, n_takeovers):
    """No attempt doubled, the journal whole, the takeovers told, the verdict's bytes those of an unmoved run."""
    rows = journal(host)
    starts = [(r["task"]["index"], r["attempt"]["no"]) for r in rows if r["event"] == "attempt_started"]
    equal(sorted(starts), [(i, 1) for i in range(len(MODES))], "attempts")
    folders = [name for at, names, _ in os.walk(os.path.join(program_folder(host), "cells")) for name in names
               if name.startswith("attempt-")]
    equal(len(folders), len(MODES), "folders of attempts")
    takeovers = [r for r in rows if r["event"] == "taken_over"]
    equal(len(takeovers), n_takeovers, "rows of takeovers")
    with open(os.path.join(program_folder(host), "report", "provenance.json"), encoding="utf-8") as f:
        provenance = json.load(f)
    equal(provenance["history"], "verified", "history")
    equal(len(provenance.get("takeovers", [])), n_takeovers, "takeovers in provenance.json")
    receipt = place.path(f"receipt-{host.name}")
    host.must(OK, "preregctl", "export", "--out", receipt)
    inner = next(n for n in os.listdir(receipt) if os.path.isdir(os.path.join(receipt, n)))
    host.must(OK, "preregctl", "verify", os.path.join(receipt, inner))
    with open(os.path.join(program_folder(host), "report", "verdict.json"), "rb") as f:
        equal(f.read(), unmoved_verdict(place, grid), "verdict.json")
    return takeovers


def test_killed_and_started_again(place):
    """On the same host the process is seen to be gone: nothing is watched, and the database is the one of before."""
    with Hosts(place, BIN) as (a, b):
        a.serve()
        grid = submit(place, a)
        expect(not os.path.exists(os.path.join(a.state, "preregd.db")), "no database on the shared file system")
        a.end()
        a.serve(seconds=30)
        expect("rebuilt" not in a.log(), "its database was not rebuilt")
        time.sleep(6)
        run = b.must(NO_DAEMON, "preregctl", "status")
        expect("on another host (host a, process" in run.stderr, run.stderr)
        finish(place, a)
        (row,) = check_whole(place, a, grid, 1)
        expect("from that of host a" in row["detail"] and "its process had ended" in row["detail"], row["detail"])


def test_stopped_and_moved(place):
    """A daemon that stopped hands over without a takeover; the next host rebuilds, and so does the first one when it is back."""
    with Hosts(place, BIN) as (a, b):
        a.serve()
        grid = submit(place, a)
        rogue.release(place)
        place.wait_for(lambda: n_running(a) == 0, 60, "the tasks end")
        place.wait_for(lambda: a.json("status")["programs"][0]["state"] == "finished", 60, "it finishes")
        for host, before in ((b, a), (a, b)):
            before.signal(signal.SIGUSR2)
            equal(before.wait_end(30), OK, "exit code of the daemon that is stopped")
            time.sleep(6)
            host.serve(seconds=30)
            status = host.json("status")
            equal(status["programs"][0]["state"], "finished", "its state")
            equal(status["daemon"].get("taken_over"), None, "a takeover, in status")
        expect("it is rebuilt from the journals" in b.log(), b.log())
        equal(a.log().count("it is rebuilt from the journals"), 1, "rebuilds of a's database")
        check_whole(place, a, grid, 0)


def test_both_at_once(place):
    """Exactly one serves, however often both are started."""
    with Hosts(place, BIN) as (a, b):
        a.start()
        b.start()
        place.wait_for(lambda: a.daemon.poll() is not None or b.daemon.poll() is not None, 60, "one is refused")
        winner, loser = (a, b) if a.daemon.poll() is None else (b, a)
        equal(loser.daemon.returncode, ANY, "exit code of the loser")
        place.wait_for(winner.answers, 30, "the winner answers")
        time.sleep(6)
        loser.start()
        equal(loser.wait_end(60), ANY, "exit code of the second try")
        expect("its heartbeat is still advancing" in loser.log(), loser.log())
        expect(winner.answers(), "the winner still answers")


def test_frozen_and_taken_over(place):
    """A frozen daemon is not gone: no proof, no takeover. A person takes over; the frozen one, revived, stops without a write."""
    with Hosts(place, BIN) as (a, b):
        a.serve()
        grid = submit(place, a)
        a.signal(signal.SIGSTOP)
        time.sleep(6)
        b.start()
        equal(b.wait_end(60), ANY, "exit code without a proof")
        expect("host a, process" in b.log() and "has not advanced for 15 s" in b.log() and "--take-over" in b.log(), b.log())
        run = b.run("preregd", "serve", "--take-over")
        equal(run.returncode, ANY, "exit code without a terminal")
        said, terminal = b.take_over("no")
        equal(b.wait_end(30), ANY, f"exit code after no: {said}")
        os.close(terminal)
        said, terminal = b.take_over("yes")
        place.wait_for(lambda: b.answers() or b.daemon.poll() is not None, 60, "b answers")
        place.wait_for(lambda: n_running(b) == len(MODES), 60, "b sees by their heartbeats that the tasks run on a")
        before = journal(b)
        a.signal(signal.SIGCONT)
        equal(a.wait_end(30), MOVED, "exit code of the daemon that was taken over")
        place.wait_for(lambda: len(journal(a)) >= len(before), 15, "a's host sees the rows of b")  # its view is late
        equal(journal(a)[:len(before)], before, "rows that were there")
        finish(place, b)
        (row,) = check_whole(place, b, grid, 1)
        expect("a person said so" in row["detail"] and "host b" in row["detail"] and "host a" in row["detail"], row["detail"])
        os.close(terminal)


def test_refused(place):
    """What cannot be: the database on the network, in the state folder, of another state folder; no place for it."""
    with Hosts(place, BIN) as (a, b):
        for option, code, words in ((os.path.join(a.mount, "db"), ANY, "is on FUSE"), (a.state, USAGE, "names the state folder"),
                                    ("", USAGE, "usage:")):
            run = a.must(code, "preregd", "serve", "--foreground", "--database", option)
            expect(words in run.stderr, run.stderr)
        a.serve()
        a.env["PREREGD_STATE"] = os.path.join(a.mount, "other")
        run = a.must(ANY, "preregd", "serve", "--foreground")
        expect("has the database of the state folder" in run.stderr, run.stderr)
        time.sleep(6)
        b.env.pop("PREREGD_DATABASE")
        run = b.must(USAGE, "preregd", "serve", "--foreground")
        expect("is shared between hosts" in run.stderr, run.stderr)


if __name__ == "__main__":
    lab.main(test_frozen_and_taken_over, test_stopped_and_moved, test_killed_and_started_again, test_both_at_once, test_refused, at_once=2)
