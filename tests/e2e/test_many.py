#!/usr/bin/env python3
"""Several programs in one state folder: their list, what they take on the disk, what may be freed."""

import json
import os
import shutil

import lab
import rogue
from lab import ANY, INVALID, NO_DAEMON, OK, equal, expect


def submit(place, name, modes, run="", **more):
    """A program around the rogue worker under a name of its own; its id."""
    folder = place.path(name)
    grid = rogue.program(place, modes, run=run, **more)
    shutil.move(os.path.dirname(grid), folder)
    grid = os.path.join(folder, "grid.toml")
    os.remove(grid + ".lock")
    place.edit(grid, 'name = "rogue"', f'name = "{name}"')
    place.ctl("lock", grid)
    place.must(OK, "preregd", "submit", grid)
    return next(p["id"] for p in place.status() if p["name"] == name)


def finished(place, program):
    return next(p["state"] for p in place.status() if p["id"] == program) == "finished"


def folder_of(place, program):
    return os.path.join(place.state, "programs", program)


def blocks(path):
    """As `du` counts, without following links."""
    total = os.lstat(path).st_blocks * 512
    for folder, folders, files in os.walk(path):
        total += sum(os.lstat(os.path.join(folder, name)).st_blocks * 512 for name in folders + files)
    return total


def same(answer):
    """Without what differs between two moments."""
    return {key: value for key, value in answer.items() if key not in ("daemon", "database_bytes", "log_bytes", "free_bytes")}


def stop(place):
    place.ctl("stop")
    place.daemon.wait()
    place.daemon = None


def test_list(place):
    place.serve()
    done, blocked = submit(place, "done", ["good", "null"]), submit(place, "blocked", ["wait", "good"])
    place.wait_for(lambda: finished(place, done), 60, "the first is finished")
    place.wait_for(lambda: place.tasks(blocked)["mode=good,seed=1/probe"]["state"] == "done", 60, "a task of the second is done")
    answer = place.ctl_json("programs")
    equal([p["id"] for p in answer["programs"]], [blocked, done], "newest first")
    second, first = answer["programs"]
    equal((first["state"], first["tasks"]["done"], first["verdict"]["kind"] is not None), ("finished", 2, True), "the first")
    equal((second["state"], second["tasks"]["running"], second["verdict"]), ("running", 1, None), "the second")
    equal(answer["damaged"], [], "damaged")
    equal((answer["daemon"], answer["objects_bytes"] > 0), (True, True), "of the daemon and what is shared")
    place.ctl("pause", blocked)
    equal(place.ctl_json("programs")["programs"][0]["state"], "paused", "the second, paused")
    rogue.release(place)
    place.ctl("resume", blocked)
    place.wait_finished(60)
    place.wait_for(lambda: all(p["report"] for p in place.status()), 60, "both reports")
    answer = place.ctl_json("programs")
    for p in answer["programs"]:
        size = p["bytes"]
        equal(size["all"], blocks(folder_of(place, p["id"])), "bytes of the whole program")
        cells = blocks(os.path.join(folder_of(place, p["id"]), "cells"))
        expect(cells <= size["cells"] <= cells + 8192, f"cells take {cells}, {size['cells']} are counted")
    text = place.ctl("programs").stdout
    expect(done in text and blocked in text and "shared: workers" in text, text)
    details = place.ctl_json("disk")
    for p in details["programs"]:
        equal(sum(p["kinds"].values()), p["bytes"]["all"], "the sum of the kinds")
    stop(place)
    equal(same(place.ctl_json("programs")), same(answer), "the list without a daemon")
    equal(same(place.ctl_json("disk")), same(details), "the sizes without a daemon")
    expect("no daemon runs" in place.ctl("programs").stdout, "nothing says that no daemon runs")
    equal([p["id"] for p in place.ctl_json("disk", done)["programs"]], [done], "one program alone")
    place.ctl("disk", "nonsense", wanted=ANY)


def test_priority(place):
    """A program of higher priority that comes later is served first; status and explain name it. A change of [run] counts at once."""
    place.serve()
    waits = ["wait", "wait_too", "good", "null"]
    low = submit(place, "low", waits, slots=1, run="priority = -3")
    place.wait_for(lambda: any(t["state"] == "running" for t in place.tasks(low).values()), 60, "the first runs")
    high = submit(place, "high", ["wait", "wait_too", "huge", "good"], slots=4, run="priority = 9\n[run.probe]\nthreads = 1")
    place.wait_for(lambda: sum(t["state"] == "running" for t in place.tasks(high).values()) == os.cpu_count() - 1, 60, "the second runs")
    place.edit(place.path("low", "grid.toml"), "slots = 1", "slots = 4")
    place.must(OK, "preregd", "submit", place.path("low", "grid.toml"))
    status = {p["id"]: p for p in place.status()}
    equal((status[low]["priority"], status[high]["priority"]), (-3, 9), "priorities")
    equal((status[low]["behind"], status[high]["behind"]), (high, None), "who waits for whom")
    equal([w["why"] for w in status[low]["not_running"]], ["priority"], "why the first waits")
    expect(f"wait behind a program of higher priority: {high}" in place.ctl("status", low).stdout, place.ctl("status", low).stdout)
    waiting = next(name for name, t in place.tasks(low).items() if t["state"] == "ready")
    said = place.ctl_json("explain", waiting, "-p", low)
    equal((said["why"], said["behind"]), ("priority", high), "explain")
    expect(high in place.ctl("explain", waiting, "-p", low).stdout, "explain does not name the other program")
    equal([p["priority"] for p in place.ctl_json("programs")["programs"]], [9, -3], "in the list")
    rogue.release(place)
    place.wait_finished(60)
    def begun(program):
        with open(os.path.join(folder_of(place, program), "journal.jsonl"), encoding="utf-8") as f:
            return [r["time"] for r in map(json.loads, f) if r["event"] == "attempt_started"]
    expect(begun(high)[-1] <= begun(low)[1], f"started: {begun(high)} and {begun(low)}")
    place.edit(place.path("low", "grid.toml"), "priority = -3", "priority = 1001")
    run = place.must(INVALID, "preregd", "submit", place.path("low", "grid.toml"))
    expect("priority" in run.stderr and "1000" in run.stderr, run.stderr)


def test_damaged(place):
    place.serve()
    good, bad = submit(place, "good", ["good", "null"]), submit(place, "bad", ["good", "huge"])
    place.wait_finished(60)
    stop(place)
    os.rename(os.path.join(folder_of(place, bad), "grid.toml.lock"), place.path("lock"))
    shutil.copytree(folder_of(place, good), folder_of(place, "stranger-12345678"))
    answer = place.ctl_json("programs")
    equal([p["id"] for p in answer["programs"]], [bad, good], "programs")
    why = {d["id"]: d["why"] for d in answer["damaged"]}
    equal(set(why), {bad, "stranger-12345678"}, "damaged")
    expect("grid.toml.lock is missing" in why[bad] and "preregctl rebuild" in why["stranger-12345678"], f"{why}")
    place.serve()
    why = {d["id"]: d["why"] for d in place.ctl_json("programs")["damaged"]}
    equal(set(why), {bad, "stranger-12345678"}, "damaged, with a daemon")
    expect(bad in why[bad], f"the daemon's own reason: {why[bad]}")
    stop(place)
    with open(os.path.join(place.state, "preregd.db"), "r+b") as f:
        f.write(b"not a database at all " * 10)
    for command in ("programs", "disk"):
        answer = place.ctl_json(command)
        equal(answer["programs"], [], "programs of a torn database")
        equal({d["id"] for d in answer["damaged"]}, {good, bad, "stranger-12345678"}, "damaged, of a torn database")
        expect("preregctl rebuild" in answer["damaged"][0]["why"], f"{answer['damaged']}")
    shutil.rmtree(place.state)
    place.ctl("programs", wanted=NO_DAEMON)


lab.main(test_list, test_priority, test_damaged)
