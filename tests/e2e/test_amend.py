#!/usr/bin/env python3
"""Amendments through the daemon: the first paper's own two, what each level refuses, what tampering gets, submitting again."""

import hashlib
import json
import os
import shutil

from lib import lab
from lib.amending import amend, gate, raw, raw_prepare, read, refused, submit, submitted, task_of, text_of
from lib.lab import ANY, INVALID, LOCK, OK, equal, expect


def test_two_amendments(place):
    """Step-time refresh and acc_norm -> acc: the verdict is that of the amended table, under the root and the present head."""
    grid = submitted(place)
    place.edit(grid, "<= 1.20", "<= 1.30")
    dry = amend(place, grid, "--dry-run").stdout
    expect("validity.compute_match" in dry and "nothing was amended" in dry, dry)
    expect(not os.path.exists(os.path.join(place.program_folder(), "amendments")), "--dry-run wrote")
    amend(place, grid)
    gate(place, "train")
    place.wait_for(lambda: all(t["state"] == "running" for n, t in place.tasks().items() if n.endswith("/score")), 30, "score runs")
    refused(place, grid, "<= 1.30", "<= 1.40", "plan.validity.compute_match", "there are scores, sealed")
    refused(place, grid, "floor = 0.54", "floor = 0.5", "plan.measure.winogrande.floor", "floors", "open a new program (supersedes)")
    place.edit(grid, "floor = 0.54", "floor = 0.5")
    answer = place.ctl_json("amend", grid, "--reason", "as published", wanted=ANY)  # one object, and no other behind it
    equal([r["path"] for r in answer["refused"]], ["plan.measure.winogrande.floor"], "refused, as JSON")
    place.edit(grid, "floor = 0.5", "floor = 0.54")
    refused(place, grid, "shots = 5", "shots = 4", "plan.stage.score.params.shots", "a task of stage score has been started")
    place.edit(grid, "score.acc_norm", "score.acc")
    amend(place, grid)
    folder = place.program_folder()
    shown = place.ctl_json("diff", grid)
    equal([a["level"] for a in shown["amendments"]], ["nothing_scored", "sealed"], "levels")
    equal(shown["unlocked"], [], "what is in the file alone")
    gate(place, "score")
    place.wait_finished(60)
    verdict = read(folder, "report", "verdict.json")
    equal(verdict["root"], shown["root"], "root")
    equal(verdict["head"], shown["head"], "head of the verdict")
    equal(place.ctl_json("verdict")["outcome"], "down", "outcome by acc (0.50), not by acc_norm (0.56)")
    tasks = [task_of(d) for d, _, _ in os.walk(os.path.join(folder, "cells"))]
    heads = {task["head"] for task in tasks if task is not None}
    expect(shown["root"] in heads and len(heads) == 2, f"attempts keep the heads they began with: {heads}")
    post_hoc(place, grid, verdict)


def post_hoc(place, grid, verdict):
    """After the verdict: instruments alone, marked so; the verdict stays, over a restart too."""
    refused(place, grid, "score.acc\"", "score.acc_norm\"", "plan.measure.winogrande.metric", "scores have been seen")
    place.edit(grid, "wide = 0.02", "wide = 0.03")
    expect("post hoc" in amend(place, grid).stdout, "not marked as post hoc")
    path = os.path.join(place.program_folder(), "report", "verdict.json")
    os.remove(path)  # it is computed again, with the head it had
    place.ctl("stop")
    place.wait_for(lambda: place.daemon.poll() is not None, 30, "the daemon stops")
    place.serve()
    place.wait_for(lambda: os.path.exists(path), 30, "verdict.json is written again")
    equal(read(path), verdict, "the verdict after a post hoc amendment")
    place.kill_daemon()
    place.ctl("rebuild")
    place.serve()
    equal(place.status()[0]["amendments"], 3, "amendments after a rebuild")
    equal(place.ctl_json("calibration")["programs"][0]["status"], "scored", "calibration: the verdict's head is the one it was computed with")


def test_crashes(place):
    """Files without a row are put aside; a row whose grid.toml was not replaced is completed."""
    grid = submitted(place)
    place.edit(grid, "<= 1.20", "<= 1.30")
    amend(place, grid)
    folder = place.program_folder()
    amendments = os.path.join(folder, "amendments")
    first = read(amendments, "0001.json")
    place.kill_daemon()
    shutil.copy2(os.path.join(amendments, "0000.toml"), os.path.join(folder, "grid.toml"))
    place.write(os.path.join(amendments, "0002.json"), json.dumps({**first, "number": 2}))
    place.write(os.path.join(amendments, "0002.toml"), "half")
    place.serve()
    equal(place.status()[0]["head"], first["head"], "head after a crash")
    expect("<= 1.30" in open(os.path.join(folder, "grid.toml"), encoding="utf-8").read(), "grid.toml was not completed")
    equal(sorted(os.listdir(amendments)), ["0000.toml", "0001.json", "0001.toml", "0002.json.aside", "0002.toml.aside"], "files")
    gate(place, "train")
    gate(place, "score")
    place.wait_finished(60)


def test_text_lags(place):
    """An amendment takes effect while grid.toml cannot be written: nothing is started on the older text, and once it can be
    written it is, and `resume` goes on."""
    grid = submitted(place)
    place.edit(grid, "<= 1.20", "<= 1.30")
    amend(place, grid)
    present = os.path.join(place.program_folder(), "grid.toml")
    os.remove(present)
    place.write(os.path.join(present, "in_the_way"), "")
    place.edit(grid, "<= 1.30", "<= 1.40")
    amend(place, grid)
    gate(place, "train")
    gate(place, "score")
    place.wait_for(lambda: place.status()[0]["paused_by"] is not None, 60, "the program is paused")
    place.ctl("resume", wanted=ANY)
    shutil.rmtree(present)
    place.wait_for(lambda: os.path.isfile(present) and "<= 1.40" in open(present, encoding="utf-8").read(), 60, "grid.toml catches up")
    place.ctl("resume")
    place.wait_finished(60)
    equal(place.status()[0]["amendments"], 2, "amendments")


def test_tampering(place):
    """A chain that was touched is refused at the start and by diff, with exit 3 and the file's name."""
    grid = submitted(place)
    place.edit(grid, "<= 1.20", "<= 1.30")
    amend(place, grid)
    place.kill_daemon()
    path = os.path.join(place.program_folder(), "amendments", "0001.json")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for old, new in (("as published", "as it suits"), ('"nothing_run"', '"sealed"'), ('"nothing_scored"', '"nothing_run"')):
        if old in text:
            place.write(path, text.replace(old, new))
            expect("0001.json" in place.ctl("diff", grid, wanted=LOCK).stderr, "diff does not name the file")
    os.remove(path)
    place.serve()
    unloaded = place.ctl_json("status")["unloaded"]
    expect(len(unloaded) == 1 and "is missing" in unloaded[0]["why"], f"a removed amendment: {unloaded}")


def test_stale(place):
    """Prepared from a head that is no longer the present one, or with nothing changed, without a reason, unknown: refused."""
    grid = submitted(place)
    expect("nothing differs" in amend(place, grid, wanted=ANY).stderr, "an empty amendment")
    place.ctl("amend", grid, wanted=lab.USAGE)
    place.edit(grid, "<= 1.20", "<= 1.30")
    amend(place, grid)
    expect("nothing differs" in amend(place, grid, wanted=ANY).stderr, "the same again")


def test_again(place):
    """The same program, submitted again as it was locked or as it is now: its [run] is taken, nothing else; another is refused."""
    grid = submitted(place)
    locked = open(grid, encoding="utf-8").read()
    place.edit(grid, "<= 1.20", "<= 1.30")
    submit(place, grid, "validity.compute_match", wanted=LOCK)
    amend(place, grid)
    submit(place, grid, "already submitted", "1 amendment, head", "present text")
    place.edit(grid, "[instrument.bayes]", "[run]\nslots = 1\n[instrument.bayes]")
    submit(place, grid, "[run] settings were changed")
    place.write(grid, locked + "[run]\nslots = 2\n[run.score]\ncrashes = 5\n")
    submit(place, grid, "[run] settings were changed", "as it was locked")
    present = os.path.join(place.program_folder(), "grid.toml")
    text = open(present, encoding="utf-8").read()
    expect("<= 1.30" in text and "slots = 2" in text and "slots = 1" not in text and "crashes = 5" in text, text)
    place.write(grid, "run = { slots = 3 }\n" + locked)
    submit(place, grid, "cannot be put into the amended program", wanted=ANY)
    place.write(grid, locked.replace("<= 1.20", "<= 1.40"))
    submit(place, grid, "neither what was locked nor what it was amended to", wanted=LOCK)
    equal(open(present, encoding="utf-8").read(), text, "grid.toml after what was refused")
    place.write(grid, locked)
    now = place.status()[0]
    answer = raw(place, {"path": grid, "root": now["root"], "head": now["root"]}, "submit")  # read before the amendment
    expect("was amended while it was being submitted" in answer.get("message", "") and "run submit again" in answer["message"], answer)
    equal(open(present, encoding="utf-8").read(), text, "grid.toml after a submission that was out of date")
    place.kill_daemon()
    place.write(grid, locked)
    submit(place, grid, "[run] settings were changed", "as it was locked")  # starts a daemon
    expect("slots" not in open(present, encoding="utf-8").read(), "[run] is still there")
    gate(place, "train")
    gate(place, "score")
    place.wait_finished(60)
    equal(read(place.program_folder(), "report", "verdict.json")["head"], place.status()[0]["head"], "head of the verdict")


def test_supersedes(place):
    """Linked both ways where both are here, said where one is not; not by name, and no amendment makes or changes it."""
    grid = submitted(place)
    old = place.status()[0]
    text = open(grid, encoding="utf-8").read()
    for wrong in ("amended", old["id"], old["root"][:8], old["root"].upper()):
        place.write("q/grid.toml", text.replace("schema = 1", f'schema = 1\nsupersedes = "{wrong}"'))
        run = place.ctl("lock", place.path("q/grid.toml"), wanted=INVALID)
        expect("64 lower-case hex digits" in run.stderr and "supersedes" in run.stderr, run.stderr)
        expect(not os.path.exists(place.path("q/grid.toml.lock")), "a lock was written")
    refused(place, grid, "schema = 1", f'schema = 1\nsupersedes = "{old["root"]}"', "plan.program.supersedes", "open a new program (supersedes)")
    shutil.copy2(place.path("p/amend_worker.py"), place.path("q"))
    for root, words in (("0" * 64, "which this state folder does not know"), (old["root"], f"it supersedes {old['id']}\n")):
        place.write("q/grid.toml", text.replace("schema = 1", f'schema = 1\nsupersedes = "{root}"'))
        place.ctl("lock", place.path("q/grid.toml"), "--replace")
        submit(place, place.path("q/grid.toml"), words)
    of = {p["id"]: p for p in place.status()}
    new = next(p for p in of.values() if p["supersedes"] == old["root"])
    equal((new["supersedes_program"], of[old["id"]]["superseded_by"], of[old["id"]]["supersedes"]), (old["id"], [new["id"]], None), "links")
    equal(place.ctl_json("diff", new["id"])["supersedes"], old["root"], "diff")


def test_diff(place):
    """What a person sees: not locked, locked, submitted, edited, amended, as locked, with another [run], a copy; and no file."""
    grid = submitted(place)
    locked = open(grid, encoding="utf-8").read()
    copy = place.write("elsewhere/copy.toml", locked.replace("<= 1.20", "<= 1.30"))

    def diff(*arguments, wanted=OK):
        run = place.ctl("diff", *arguments, wanted=wanted)
        return run.stdout + run.stderr
    text = diff(grid)
    expect("no amendments" in text and "is the program as it was locked" in text, text)
    expect("--program" in diff(copy, wanted=LOCK), "what a copy needs is not said")
    text = diff(copy, "--program", "amended")
    expect("neither locked nor amended" in text and "preregctl amend" in text and "<= 1.30" in text, text)
    expect("nosuch.toml: no such file" in diff("nosuch.toml", wanted=ANY), "no such file")
    expect('no program is called "nosuch"' in diff("nosuch", wanted=ANY), "no such program")
    place.ctl("diff", "amended", "--program", "amended", wanted=lab.USAGE)
    place.edit(grid, "<= 1.20", "<= 1.30")
    dry = amend(place, grid, "--dry-run").stdout
    expect("as of now nothing has been scored; all of it may be amended" in dry or "as of now nothing has run" in dry, dry)
    for wrong in ("\x1b[31mred", "two\nlines", "\u202eturned", " "):
        expect("reason" in place.ctl("amend", grid, "--reason", wrong, wanted=lab.USAGE).stderr, repr(wrong))
        equal(raw(place, {"path": grid, "reason": wrong})["name"], "usage", repr(wrong))
    amend(place, grid)
    text = diff(grid)
    expect("1 amendment\n" in text and "not signed" in text and "is the program as it was amended" in text, text)
    place.write(grid, locked)
    text = diff(grid)
    expect("it has none of the amendments" in text and "neither locked nor amended" not in text, text)
    shown = place.ctl_json("diff", grid)
    equal((shown["as_locked"], shown["other_run"], shown["program"]), (True, False, place.status()[0]["id"]), "as JSON")
    place.write(grid, locked.replace("<= 1.20", "<= 1.30") + "[run]\nslots = 1\n")
    expect("its [run] is not the one that was submitted" in diff(grid), "another [run]")
    place.write(grid, "nonsense = [")
    diff(grid, wanted=INVALID)


def test_contradictory(place):
    """Two at once, one that rests on what is no more, one back to what was, one that takes what another needs: refused by name, or
    taken as what it is; whatever is refused has written nothing."""
    grid = submitted(place)
    amendments = os.path.join(place.program_folder(), "amendments")

    def commit(prepared):
        return raw(place, {"commit": prepared["amendment"]["head"]})

    def prepared(edit):
        place.edit(grid, *edit)
        answer = raw_prepare(place, grid)
        place.edit(grid, *reversed(edit))
        return answer
    one, other = prepared(("<= 1.20", "<= 1.30")), prepared(("<= 1.20", "<= 1.40"))
    answer = commit(one)  # two at once: the second took the first one's place
    expect(answer["name"] == "refused" and "another was prepared since" in answer["message"], f"the first of two: {answer}")
    expect(not os.path.exists(amendments), "something was written")
    equal(commit(other).get("number"), 1, "the second of two")
    answer = commit(other)
    expect(answer["name"] == "refused" and "no amendment" in answer["message"], f"the same twice: {answer}")
    place.edit(grid, "<= 1.20", "<= 1.40")
    stale = prepared(("wide = 0.02", "wide = 0.03"))
    with open(grid, "a", encoding="utf-8") as f:
        f.write("[run]\nslots = 1\n")
    submit(place, grid, "[run] settings were changed")
    answer = commit(stale)
    expect(answer["name"] == "refused" and "[run] was changed meanwhile" in answer["message"], f"another [run]: {answer}")
    listed = sorted(os.listdir(amendments))
    equal(listed, ["0000.toml", "0001.json", "0001.toml"], "files")
    gate(place, "train")  # what it was judged by is no more: tasks start in between
    late = prepared(("<= 1.40", "<= 1.50"))
    place.wait_for(lambda: any(t["state"] == "running" for n, t in place.tasks().items() if n.endswith("/score")), 30, "score runs")
    answer = commit(late)
    expect(answer["name"] == "refused" and "something has happened since: there are scores, sealed" in answer["message"], f"the level rose: {answer}")
    equal(sorted(os.listdir(amendments)), listed, "files after a refusal")
    needs(place, grid, amendments)


def test_put_behind(place):
    """What lies behind the amendment that is committed, however well it is made, is not taken along; nor does nonsense end the daemon."""
    grid = submitted(place)
    folder = os.path.join(place.program_folder(), "amendments")
    place.edit(grid, "<= 1.20", "<= 1.30")
    answer = raw(place, {"path": grid, "reason": "r", "describe": {"arm=a": [{"params": {"width": 1}}], "arm=b": "none", "c": {"train": []}}})
    equal([len(answer["refused"]), answer["changes"][0]["section"]], [0, "validity"], "what is no answer of a worker")
    first = raw_prepare(place, grid)["amendment"]
    path, there, other = first["changes"][0]["path"], first["changes"][0]["to"], "1 < 2"
    to_and_fro = [{**first["changes"][0], "from": a, "to": b} for a, b in ((there, other), (other, there))]
    second = {**first, "number": 2, "previous": first["head"], "changes": to_and_fro, "describe": {"put": "here"}}
    second["head"] = hashlib.sha256(text_of(second).encode()).hexdigest()
    place.write(os.path.join(folder, "0002.json"), json.dumps(second))
    answer = raw(place, {"commit": first["head"]})
    expect(answer["name"] == "lock" and "what never took effect" in answer["message"], f"{path}: {answer}")
    equal(sorted(os.listdir(folder)), ["0000.toml", "0002.json"], "files")
    os.remove(os.path.join(folder, "0002.json"))
    amend(place, grid)
    equal(place.status()[0]["amendments"], 1, "amendments")


def needs(place, grid, amendments):
    """An instrument and what rests on it; and back to what was, which is an amendment like any other."""
    amended = ("wide = 0.02", "wide = 0.03")
    place.edit(grid, *amended)
    amend(place, grid)
    equal(read(amendments, "0002.json")["changes"][0]["to"], 0.03, "changed")
    place.edit(grid, *reversed(amended))
    amend(place, grid)
    last = read(amendments, "0003.json")
    equal((last["changes"][0]["from"], last["changes"][0]["to"]), (0.03, 0.02), "and back: both stand in the chain")
    expect("nothing differs" in amend(place, grid, wanted=ANY).stderr, "back to what it is")
    gate(place, "score")
    place.wait_finished(60)


def test_what_another_needs(place):
    """An amendment that leaves a forecast without its instrument, or a stage without its data, is no program any more: exit 5."""
    grid = submitted(place)
    place.edit(grid, "priors = { wide = 0.02 }", 'priors = { wide = 0.02 }\n[forecast]\nbig = { condition = "instrument.bayes.max_bf10 > 3", confidence = 0.5 }')
    amend(place, grid)
    with open(grid, encoding="utf-8") as f:
        text = f.read()
    place.write(grid, text[:text.index("[instrument.bayes]")] + text[text.index("[forecast]"):])
    run = amend(place, grid, wanted=INVALID)
    expect('there is no instrument "bayes"' in run.stderr and "grid.toml:33:" in run.stderr, run.stderr)
    equal(sorted(os.listdir(os.path.join(place.program_folder(), "amendments"))), ["0000.toml", "0001.json", "0001.toml"], "files")
    answer = raw_prepare(place, grid)  # past preregctl's own check
    expect(answer["name"] == "invalid" and "no instrument" in answer["message"], f"{answer}")
    place.write(grid, text)
    copy = read(place.program_folder(), "amendments", "0001.json")
    place.kill_daemon()
    place.write(os.path.join(place.program_folder(), "amendments", "0002.json"), json.dumps(copy))  # the same number twice
    expect("0002.json: its number is 1, not 2" in place.ctl("diff", grid, wanted=LOCK).stderr, "the same number twice")


lab.main(test_two_amendments, test_crashes, test_text_lags, test_tampering, test_stale, test_again, test_supersedes, test_diff, test_contradictory, test_put_behind,
         test_what_another_needs)
