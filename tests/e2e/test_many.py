#!/usr/bin/env python3
"""Several programs in one state folder: their list, what they take on the disk, what may be freed."""

import json
import os
import shutil
import subprocess

from lib import lab
from lib import rogue
from lib.lab import ANY, INDETERMINATE, INVALID, LOCK, NO_DAEMON, OK, USAGE, equal, expect


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
    place.wait_for(lambda: place.tasks(blocked)["mode=wait,seed=1/probe"]["state"] == "running", 60, "the other task of the second runs")
    answer = place.ctl_json("programs")
    equal([p["id"] for p in answer["programs"]], [blocked, done], "newest first")
    second, first = answer["programs"]
    equal((first["state"], first["tasks"]["done"], first["verdict"]["kind"] is not None), ("finished", 2, True), "the first")
    equal((second["state"], second["tasks"]["running"], second["verdict"]), ("running", 1, None), "the second")
    equal(answer["damaged"], [], "damaged")
    equal((answer["daemon"], answer["objects_bytes"] > 0), (True, True), "of the daemon and what is shared")
    place.ctl("pause", blocked)
    equal(place.ctl_json("programs")["programs"][0]["state"], "paused", "the second, paused")
    place.ctl("resume", blocked)
    rogue.release(place)
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


def events(place, program):
    with open(os.path.join(folder_of(place, program), "journal.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def is_gone(place, program):
    return not os.path.lexists(os.path.join(folder_of(place, program), "cells"))


def kept_answers(place, program, receipt):
    """What is asked of a program whose cells are gone: all of it is answered, with or without a daemon."""
    said = {words: place.run("preregctl", *words) for words in (("verdict", program), ("verdict", program, "--json"), ("report", program),
                                                                ("diff", program), ("verify", receipt))}
    for words, run in said.items():
        expect(run.returncode in (OK, INDETERMINATE), f"{words}: {run}")
    equal(said[("report", program)].stdout, os.path.join(folder_of(place, program), "report", "report.html") + "\n", "the report")
    for words in (["export", program], ["rerun", "mode=good,seed=1", "-p", program], ["curves", "-p", program]):
        run = place.ctl(*words, wanted=ANY)
        expect("its cells were removed" in run.stderr and "receipt" in run.stderr, f"{words}: {run.stderr}")
    listed = next(p for p in place.ctl_json("programs")["programs"] if p["id"] == program)
    equal((listed["removed"], listed["state"], listed["bytes"]["cells"] <= 8192), (True, "finished", True), "in the list")
    expect("removed" in place.ctl("programs").stdout, "the list does not say it")
    equal(place.ctl_json("disk", program)["programs"][0]["freeable"], [], "what could be freed")
    return said[("verdict", program, "--json")].stdout


def test_remove(place):
    place.serve()
    other = submit(place, "other", ["wait", "good"])
    program = submit(place, "gone", ["good", "null"])
    place.wait_for(lambda: finished(place, program) and next(p["report"] for p in place.status() if p["id"] == program), 60, "finished")
    before = place.ctl("verdict", program, "--json", wanted=INDETERMINATE).stdout
    for words, text in (([other], "no verdict and report yet"), ([program], "there is no receipt"), (["nonsense"], "no program is called")):
        run = place.ctl("remove", *words, wanted=ANY)
        expect(text in run.stderr, f"{words}: {run.stderr}")
    place.ctl("remove", wanted=USAGE)
    place.ctl("export", program)
    receipt = place.path(f"{program}-receipt")
    verdict = os.path.join(receipt, "verdict.json")
    with open(verdict, "rb") as f:
        whole = f.read()
    with open(verdict, "ab") as f:
        f.write(b" ")
    run = place.ctl("remove", program, wanted=LOCK)
    expect("does not verify" in run.stderr, run.stderr)
    with open(verdict, "wb") as f:
        f.write(whole)
    third = submit(place, "third", ["good", "huge"])
    place.wait_for(lambda: finished(place, third), 60, "the third is finished")
    run = place.ctl("remove", third, receipt, wanted=LOCK)
    expect("of another program" in run.stderr, run.stderr)
    expect(not is_gone(place, program) and not is_gone(place, third), "cells were removed although it was refused")
    beside = [os.path.join(os.path.dirname(os.path.realpath(os.path.join(place.state, "programs", program, "cells"))), name) for name in ("jobs", "objects")]
    for folder in beside:  # what jobs of a cluster leave there
        os.makedirs(folder)
    run = place.ctl("remove", program, "-r", "room")
    expect("plan, journal, verdict, provenance and report are kept" in run.stdout, run.stdout)
    place.wait_for(lambda: is_gone(place, program), 30, "the cells are removed")
    expect(not any(os.path.exists(folder) for folder in beside), f"{beside} stay")
    last = events(place, program)[-1]
    equal((last["event"], last["status"]["removed"]), ("removed", True), "the last row")
    expect(receipt in last["detail"] and last["detail"].endswith("; room"), last["detail"])
    run = place.ctl("logs", "mode=good,seed=1/probe", "-p", program, wanted=ANY)
    expect("cells of" in run.stderr and "removed" in run.stderr, run.stderr)
    said = place.ctl_json("explain", "mode=good,seed=1/probe", "-p", program)
    expect(said["on_disk"]["as_accepted"] is None and "removed" in said["on_disk"]["why"], f"{said['on_disk']}")
    equal(next(p["removed"] for p in place.status() if p["id"] == program), True, "status")
    expect("cells were removed" in place.ctl("status", program).stdout, place.ctl("status", program).stdout)
    equal(kept_answers(place, program, receipt), before, "the verdict")
    place.ctl("remove", program)  # once more: nothing else happens
    equal(sum(e["event"] == "removed" for e in events(place, program)), 1, "rows of the removal")
    place.ctl("remove", third, "--yes-lose-it")
    expect(events(place, third)[-1]["detail"] == "without a receipt", events(place, third)[-1]["detail"])
    stop(place)
    kept_answers(place, program, receipt)
    for _ in range(2):
        place.ctl("rebuild")
        place.serve()
        equal(kept_answers(place, program, receipt), before, "the verdict after rebuild")
        equal({p["id"]: p["removed"] for p in place.status()}, {program: True, third: True, other: False}, "removed, after rebuild")
        equal([p["history"] for p in place.status()], ["verified"] * 3, "history after rebuild")
        stop(place)
    place.serve()
    rogue.release(place)
    place.wait_finished(60)


def test_remove_of_what_is_read(place):
    """Cells that another program has as data stay, also behind a link."""
    place.serve()
    first = submit(place, "first", ["good", "null"])
    place.wait_for(lambda: finished(place, first), 60, "the first is finished")
    os.symlink(os.path.join(folder_of(place, first), "cells"), place.path("elsewhere"))
    grid = rogue.program(place, ["good", "huge"], stages='[data]\nold = "../elsewhere/mode=good,seed=1/probe/result.json"\n')
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(60)
    run = place.ctl("remove", first, "--yes-lose-it", wanted=ANY)
    expect("reads result.json of its cells" in run.stderr, run.stderr)
    expect(not is_gone(place, first), "the cells are removed")


def test_remove_is_completed(place):
    """A daemon that dies behind the row: the next one goes on. With [run] work, where the cells really are."""
    work = place.path("work")
    place.serve()
    program = submit(place, "half", ["good", "null"], run=f'work = "{work}"')
    place.wait_for(lambda: finished(place, program), 60, "finished")
    real = os.path.join(work, program, "cells")
    expect(os.path.isdir(real), "cells are not where [run] work says")
    os.chmod(work, 0o700)
    keep = os.path.join(real, "mode=good,seed=1", "probe", "mine")
    os.mkdir(keep)
    subprocess.run(["mount", "-t", "tmpfs", "none", keep], check=False)  # it cannot be removed while something is mounted there
    mounted = os.path.ismount(keep)
    place.ctl("remove", program, "--yes-lose-it")
    if mounted:
        place.wait_for(lambda: "are not removed" in open(os.path.join(place.state, "preregd.log"), encoding="utf-8").read(), 30, "the failure")
        expect(os.path.isdir(keep), "what is mounted was removed")
    place.kill_daemon()
    if mounted:
        subprocess.run(["umount", keep], check=True)
    else:
        os.makedirs(keep, exist_ok=True)
        if not os.path.lexists(os.path.join(folder_of(place, program), "cells")):
            os.symlink(real, os.path.join(folder_of(place, program), "cells"))
    # half of it is left, so that a result seems to be missing: it is no news to a rebuild
    attempt = next(e["attempt"] for e in events(place, program) if e["event"] == "attempt_ended" and "mode=good" in json.dumps(e["task"]))
    task = os.path.join(real, "mode=good,seed=1", "probe")
    left = f"attempt-{attempt['no']:02d}-{attempt['id']}"
    os.makedirs(os.path.join(task, left), exist_ok=True)
    if not os.path.lexists(os.path.join(task, "result.json")):
        os.symlink(f"{left}/result.json", os.path.join(task, "result.json"))
    place.ctl("rebuild")
    place.serve()
    equal(place.status()[0]["history"], "verified", "history after a rebuild in the middle")
    place.wait_for(lambda: is_gone(place, program) and not os.path.exists(real), 30, "the removal is completed")
    expect(os.path.isdir(work) and not os.path.exists(os.path.join(work, program)), "what is left of [run] work")
    equal(place.status()[0]["removed"], True, "status")


def checkpoints(place, program, mode="hoard"):
    """attempt number -> the names in its checkpoint/."""
    task = os.path.join(folder_of(place, program), "cells", f"mode={mode},seed=1", "probe")
    found = {}
    for name in os.listdir(task):
        path = os.path.join(task, name, "checkpoint")
        if name.startswith("attempt-") and os.path.isdir(path):
            found[int(name.split("-")[1])] = sorted(os.listdir(path))
    return found


ALL = {1: ["step-000001", "step-000002"], 2: ["best", "step-000001", "step-000002", "step-000003"]}
LAST = {1: [], 2: ["best", "step-000002", "step-000003"]}  # the newest, the one with the artifact, the worker's own
NONE = {1: [], 2: ["best", "step-000002"]}


def test_keep(place):
    """What is kept of the checkpoints of tasks that are done; a new [run] holds for those that are done already."""
    place.serve()
    program = submit(place, "keep", ["hoard", "good", "wait"])
    name = "mode=hoard,seed=1/probe"
    place.wait_for(lambda: place.tasks(program)[name]["state"] == "done", 60, "it is done")
    equal(checkpoints(place, program), ALL, "without [run] keep")
    sizes = next(p for p in place.ctl_json("disk", program)["programs"])
    expect(sizes["kinds"]["checkpoints_done"] > 0 and len(sizes["freeable"]) == 2, f"{sizes}")
    grid = place.path("keep", "grid.toml")
    place.edit(grid, "[run]\n", '[run]\nkeep = "last"\n')
    said = place.must(OK, "preregd", "submit", grid)
    expect("narrower limits" not in said.stdout + said.stderr, f"[run] keep is not a limit: {said.stdout}{said.stderr}")
    place.wait_for(lambda: checkpoints(place, program) == LAST, 10, f"the last: {checkpoints(place, program)}")
    stop(place)
    # a daemon that died in the middle: what it left is found at the next start
    task = os.path.join(folder_of(place, program), "cells", "mode=hoard,seed=1", "probe")
    first = next(n for n in os.listdir(task) if n.startswith("attempt-01-"))
    os.makedirs(os.path.join(task, first, "checkpoint", "step-000002"))
    place.serve()
    place.wait_for(lambda: checkpoints(place, program) == LAST, 10, f"after a start: {checkpoints(place, program)}")
    place.edit(grid, '"last"', '"none"\ncrashes = 7')
    said = place.must(OK, "preregd", "submit", grid)
    expect("narrower limits" in said.stdout + said.stderr, f"a limit was changed: {said.stdout}{said.stderr}")
    place.wait_for(lambda: checkpoints(place, program) == NONE, 30, f"none: {checkpoints(place, program)}")
    equal(place.ctl_json("explain", name)["on_disk"]["as_accepted"], True, "the result")
    equal(place.ctl_json("disk", program)["programs"][0]["freeable"], [], "what could still be freed")
    rogue.release(place)
    place.wait_finished(60)
    place.ctl("export", program)
    place.ctl("verify", place.path(f"{program}-receipt"))
    place.ctl("remove", program)
    said = place.ctl("export", program, wanted=ANY).stderr
    expect(f"receipt {place.path(program)}-receipt): it cannot be exported" in said, f"a digest that is cut: {said}")


def test_keep_from_the_beginning(place):
    """Pruned as each task ends, and never while it is open: the second attempt of a task finds the checkpoints of the first."""
    place.serve()
    program = submit(place, "early", ["hoard", "good"], run='keep = "none"')
    place.wait_finished(60)
    place.wait_for(lambda: checkpoints(place, program) == NONE, 10, f"{checkpoints(place, program)}")
    with open(os.path.join(folder_of(place, program), "cells", "mode=hoard,seed=1", "probe", "seen"), encoding="utf-8") as f:
        equal(f.read(), "step-000001 step-000002", "what the second attempt found")
    place.edit(place.path("early", "grid.toml"), '"none"', '"some"')
    run = place.must(INVALID, "preregd", "submit", place.path("early", "grid.toml"))
    expect("keep" in run.stderr, run.stderr)


def test_keep_nothing_of_real_workers(place):
    """Later stages, a rerun and a receipt need none of the checkpoints that keep = "none" removes."""
    place.serve()
    grid = place.prepare_small()
    place.edit(grid, "[run]\n", '[run]\nkeep = "none"\n')
    place.ctl("lock", grid)
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(240)
    cell = place.ctl_json("cells")["cells"][0]["name"]
    expect("re-executed" in place.ctl("rerun", cell).stdout, "the cell that was run again differs")
    kinds = place.ctl_json("disk")["programs"][0]["kinds"]
    expect(kinds["checkpoints_done"] == 0 and kinds["artifacts"] > 0, f"{kinds}")
    program = place.ctl_json("programs")["programs"][0]["id"]
    place.ctl("export")
    place.ctl("verify", place.path(f"{program}-receipt"))


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


lab.main(test_list, test_priority, test_remove, test_remove_of_what_is_read, test_remove_is_completed, test_keep, test_keep_from_the_beginning, test_keep_nothing_of_real_workers, test_damaged)
