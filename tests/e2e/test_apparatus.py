#!/usr/bin/env python3
"""The apparatus check: a reference model must score what was locked before any counted evaluation starts; what fails
pauses the program and says what was expected and what came."""

import hashlib
import json
import os
import shutil

from lib import lab
from lib.forging import forge, forge_journal, journal_rows, read_json, write_json
from lib.lab import ANY, LOCK, OK, equal, expect
from lib.two_arms import DESIGN, READING

GRID = """[program]
name = "checked"
schema = 1
question = "Is the apparatus what it was?"
""" + DESIGN + """[stage.train]
command = ["./apparatus_worker.py"]
params = {{ arm = "$arm", seed = "$seed" }}
[stage.score]
after = ["train"]
command = ["./apparatus_worker.py"]
params = {{ hold = "{hold}" }}
""" + READING + """[apparatus.reference]
stage = "score"
model = "reference"
expect = {{ metric = "score.acc", value = 0.7, within = 0.01 }}
[run]
slots = 2
"""
CHECK = "apparatus/reference"
SCORES = [f"arm={a},seed={s}/score" for a in "ab" for s in (1, 2)]
TRAINED = [f"arm={a},seed={s}/train" for a in "ab" for s in (1, 2)]


def program(place, skill, held=False, within="within = 0.01"):
    """Submitted to a daemon that serves; the reference model scores `skill`."""
    place.write("checked/reference/model.json", json.dumps({"skill": skill}))
    shutil.copy2(os.path.join(lab.LIB, "apparatus_worker.py"), place.path("checked"))
    grid = place.write("checked/grid.toml", GRID.format(hold=place.path("hold")).replace("within = 0.01", within))
    if held:
        place.write("hold", "")
    place.ctl("lock", grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid)


def states(place, names):
    tasks = place.tasks()
    return sorted({tasks[n]["state"] for n in names})


def journal(place):
    with open(os.path.join(place.program_folder(), "journal.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def check_order(place):
    """No counted evaluation begins before the row that says that the check holds."""
    held = False
    for row in journal(place):
        task = row.get("task", {})
        if task.get("apparatus") == "reference" and task["state"] == "done":
            held = True
            expect("it holds" in row["detail"] and len(row["result"]["digest"]) == 64, f"the row says {row}")
        if task.get("stage") == "score" and "cell" in task and row["event"] == "attempt_started":
            expect(held, "an evaluation began before the apparatus held")
    expect(held, "the journal has no row that says that it holds")
    told = [(r["event"], r["task"].get("apparatus", r["task"].get("cell")) if "task" in r else None) for r in journal(place)]
    second = told.index(("attempt_started", "reference@end"))
    expect(max(i for i, (event, name) in enumerate(told) if event == "attempt_ended" and name not in ("reference", "reference@end"))
           < second < told.index(("unsealed", None)), f"the second run is not between the last evaluation and the scores: {told}")


def check_finished(place):
    place.wait_finished(60)
    check_order(place)
    with open(os.path.join(place.program_folder(), "report", "provenance.json"), encoding="utf-8") as f:
        provenance = json.load(f)
    check, again = provenance["apparatus"]
    equal((check["name"], check["stage"], check["metric"], check["holds"], check["value"], check["expected"]),
          ("reference", "score", "score.acc", True, 0.7, 0.7), "what provenance says of the check")
    equal((again["name"], again["stage"], again["holds"], again["value"], again["first"], again["again"], len(again["attempts"])),
          ("reference@end", "score", True, 0.7, 0.7, 0, 1), "what provenance says of the second run")
    for attempt in check["attempts"] + provenance["tasks"][0]["attempts"]:
        expect(attempt["kernel"].startswith("Linux ") and attempt["cpu"] and attempt["threads"] == 1
               and len(attempt["worker"]) == 64, f"the environment of an attempt: {attempt}")
    equal(provenance["tasks"][0]["attempts"][0]["core"], "Haswell", "the core of the BLAS")
    verdict = json.loads(place.verdict_bytes())
    equal(verdict["coverage"]["tasks"]["planned"], 8, "planned tasks: the grid's alone")
    equal(place.status()[0]["tasks"]["planned"], 8, "the same in status")


def test_holds(place):
    program(place, 0.7, held=True)
    place.wait_for(lambda: states(place, TRAINED) == ["done"], 30, "training goes on meanwhile")
    equal(states(place, SCORES), ["ready"], "the evaluations that are held")
    equal([w for w in place.status()[0]["not_running"] if w["why"] == "apparatus"], [{"why": "apparatus", "tasks": 4}],
          "why they are held")
    expect("apparatus check" in place.ctl("explain", SCORES[0]).stdout, "explain does not say why it is held")
    equal(place.ctl_json("explain", CHECK)["apparatus"]["holds"], None, "what is known of the check")
    os.unlink(place.path("hold"))
    check_finished(place)


def test_daemon_killed(place):
    program(place, 0.7, held=True)
    place.wait_for(lambda: states(place, TRAINED) == ["done"], 30, "training goes on meanwhile")
    place.kill_daemon()
    os.unlink(place.path("hold"))
    place.serve()
    check_finished(place)
    place.end_all()
    os.unlink(os.path.join(place.state, "preregd.db"))
    place.ctl("rebuild")
    place.serve()
    check_finished(place)
    equal(place.status()[0]["history"], "verified", "the history after a rebuild")


def test_fails(place):
    program(place, 0.65)
    place.wait_for(lambda: place.status()[0]["paused_by"] == "apparatus", 30, "the program is paused")
    why = place.status()[0]["paused_why"]
    for part in ("apparatus.reference", "score.acc", "0.7", "0.01", "0.65"):
        expect(part in why, f"the reason does not name {part}: {why}")
    expect(states(place, SCORES) in (["waiting"], ["ready"], ["ready", "waiting"]), "an evaluation was started")
    said = place.ctl_json("explain", CHECK)
    equal((said["state"], said["cause"], said["apparatus"]["holds"], said["apparatus"]["value"]),
          ("blocked", "apparatus", False, 0.65), "what explain says of the check")
    place.kill_daemon()
    place.serve()
    equal(place.status()[0]["paused_why"], why, "the reason after a restart")
    place.ctl("resume", "checked")
    place.wait_for(lambda: place.ctl_json("explain", CHECK)["attempts"] == 2, 30, "it is made again")
    place.wait_for(lambda: place.status()[0]["paused_by"] == "apparatus", 30, "the program is paused again")
    equal(states(place, SCORES) == ["done"], False, "evaluations of a program whose check fails")


def test_fails_and_is_cancelled(place):
    """What has its verdict is not told to be resumed, whatever had stopped it."""
    program(place, 0.65)
    place.wait_for(lambda: place.status()[0]["paused_by"] == "apparatus", 30, "the program is paused")
    expect("`preregctl resume" in place.ctl("status").stdout, "how it goes on is not said")
    place.ctl("cancel", "--all")
    place.wait_finished(60)
    receipt = place.ctl_json("export", "checked", "--out", place.path("receipt"))["folder"]
    expect("DOES NOT HOLD" in place.ctl("verify", receipt).stdout, "what verify says")
    for value in (0.7, 0.705):
        refuse_forged(place, receipt, "not what its text says", lambda results, value=value: results[0].update(value=value, holds=True))
    refuse_forged(place, receipt, "not what its text says", lambda results: results[0].update(value=None))
    said = place.ctl("status").stdout
    expect("DOES NOT HOLD" in said and "verdict: " in said, f"what came: {said}")
    expect("resume" not in said and "paused" not in said, f"a finished program is told to be resumed: {said}")
    equal([place.status()[0][key] for key in ("paused_by", "paused_why")], [None, None], "status --json")


def test_negative_zero(place):
    """The text of the journal has the sign of a zero, its number has lost it: an honest receipt holds."""
    program(place, -0.0)
    place.wait_for(lambda: place.status()[0]["paused_by"] == "apparatus", 30, "the program is paused")
    expect("got -0" in place.status()[0]["paused_why"], "the sign of the zero")
    place.ctl("cancel", "--all")
    place.wait_finished(60)
    receipt = place.ctl_json("export", "checked", "--out", place.path("receipt"))["folder"]
    expect("got -0: DOES NOT HOLD" in place.ctl("verify", receipt).stdout, "what verify says")


def test_not_measured(place):
    program(place, None)
    place.wait_for(lambda: place.status()[0]["paused_by"] == "apparatus", 30, "the program is paused")
    expect("it says nothing" in place.status()[0]["paused_why"], "the worker's own reason is not named")
    place.ctl("cancel", "--all")
    place.wait_finished(60)
    receipt = place.ctl_json("export", "checked", "--out", place.path("receipt"))["folder"]
    expect("it says nothing: DOES NOT HOLD" in place.ctl("verify", receipt).stdout, "what verify says")
    refuse_forged(place, receipt, "not what its text says", lambda results: results[0].update(value=0.7, holds=True))


def test_model_changed(place):
    program(place, 0.7, held=True)
    place.wait_for(lambda: states(place, TRAINED) == ["done"], 30, "training goes on meanwhile")
    os.unlink(place.path("hold"))
    place.write("checked/reference/model.json", json.dumps({"skill": 0.71}))
    place.wait_for(lambda: "drift" in json.dumps(place.ctl_json("cells")) or
                   place.status()[0]["paused_by"] is not None, 30, "the change is found")
    expect(not os.path.exists(os.path.join(place.program_folder(), "report", "verdict.json")), "a verdict was written")


def amend(place, *edits, wanted=OK, dry=False):
    grid = place.path("checked/grid.toml")
    for old, new in edits:
        place.edit(grid, old, new)
    return place.ctl("amend", grid, "--reason", "mended", *(["--dry-run"] if dry else []), wanted=wanted)


def rebuild(place):
    """From the folders alone: the same checks, at the same places."""
    before = place.status()[0]["apparatus"]
    place.kill_daemon()
    os.unlink(os.path.join(place.state, "preregd.db"))
    place.ctl("rebuild")
    place.serve()
    equal(place.status()[0]["apparatus"], before, "the checks after a rebuild")
    equal(place.status()[0]["history"], "verified", "the history after a rebuild")


def check_failure_told(place, failed):
    """A check that failed, was amended and holds: both results are told, and that the first was known."""
    check = place.status()[0]["apparatus"][0]
    equal([(r["attempt"], r["amendment"], r["expected"], r["value"], r["holds"]) for r in check["results"]],
          [(1, 0, 0.7, 0.65, False), (2, 1, 0.65, 0.65, True)], "its results")
    for said in (place.ctl("status").stdout, place.ctl("explain", CHECK).stdout, place.ctl("diff").stdout):
        expect(failed in said, f"the failure is told nowhere in: {said}")
    report = os.path.join(place.program_folder(), "report")
    for name in ("provenance.json", "instruments.json"):
        with open(os.path.join(report, name), encoding="utf-8") as f:
            told = json.load(f)
        told = told["apparatus"][0] if name == "provenance.json" else next(i for i in told["instruments"] if i["kind"] == "apparatus")["checks"][0]
        equal(told["results"], check["results"], f"results in {name}")
    equal(place.ctl_json("cells")["apparatus"][0]["results"], check["results"], "results in cells")
    with open(os.path.join(place.program_folder(), "amendments", "0001.json"), encoding="utf-8") as f:
        amendment = json.load(f)
    equal(amendment["known"], check["results"][:1], "what the amendment says was known")
    equal([c["path"][2] for c in amendment["changes"] if c["post_hoc"]], ["reference"], "what is post hoc")
    receipt = place.ctl_json("export", "checked", "--out", place.path("receipt"))["folder"]
    expect("apparatus.reference: " + failed + "; amendment 1 changed" in place.ctl("verify", receipt).stdout, "what verify says")
    check_forged(place, receipt)


def check_forged(place, receipt):
    """The failure left out, or told with another tolerance, wherever a receipt has it but for journal and amendments."""
    for what, change in (("attempt 1 is missing", lambda results: results.pop(0)),
                         ("another value or tolerance", lambda results: results[0].update(within=0.1)),
                         *[("\"amendment\" must be a whole number", lambda results, n=n: results[1].update(amendment=n, expected=9))
                           for n in (99, 2, 0.5, -1, "0", None)],
                         ("text", lambda results: results[0].update(text="it holds")),
                         *[("not what its text says", lambda results, told=told: results[1].update(told))
                           for told in ({"value": 0.9, "holds": False}, {"value": None, "holds": False}, {"value": 0.655})]):
        refuse_forged(place, receipt, what, change)
    for told in (0.655, None):
        refuse_forged(place, receipt, "value", lambda check, told=told: check.update(value=told), whole=True)


def refuse_forged(place, receipt, what, change, whole=False, at=0):
    """`change` was made of the results in both files that have them, or of the whole check."""
    copy = place.path("forged")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(receipt, copy)
    for name in ("provenance.json", "apparatus/reference@end.json" if at else "apparatus/reference.json"):
        path = os.path.join(copy, name)
        with open(path, encoding="utf-8") as f:
            told = json.load(f)
        check = told["apparatus"][at] if "apparatus" in told else told
        change(check if whole else check["results"])
        with open(path, "w", encoding="utf-8") as f:
            f.write(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    forge(copy)
    said = place.ctl("verify", copy, wanted=LOCK)
    expect(what in said.stdout + said.stderr, f"what verify says: {said.stdout}{said.stderr}")


def without_daemon(place):
    """What has ended is read from the files: the same answer; a verdict that is not the journal's is refused."""
    answer = place.ctl_json("verdict")
    # the folder that it was submitted from, here, bears its name, too
    expect(place.ctl("report", "checked").stdout.startswith(place.program_folder()), "report of a name that is a folder's, too")
    place.kill_daemon()
    equal(place.ctl_json("verdict"), answer, "the verdict without a daemon")
    expect(place.ctl("report", "checked").stdout.strip().endswith("report.html"), "report without a daemon")
    said = place.ctl("status", wanted=lab.NO_DAEMON).stderr
    expect("1 of 1 programs there have their verdict" in said, f"status without a daemon: {said}")
    with open(answer["path"], encoding="utf-8") as f:
        text = f.read()
    os.chmod(answer["path"], 0o644)
    with open(answer["path"], "w", encoding="utf-8") as f:
        f.write(text.replace('"up"', '"down"'))
    place.ctl("verdict", wanted=LOCK)


def test_amended(place):
    """A check that failed is amended, another is declared: both are made before any evaluation, and hold."""
    program(place, 0.65)
    place.wait_for(lambda: place.status()[0]["paused_by"] == "apparatus", 30, "the program is paused")
    place.write("checked/second/model.json", json.dumps({"skill": 0.3}))
    more = GRID.format(hold="").split("[apparatus.reference]")[1].split("[run]")[0]
    more = "[apparatus.second]" + more.replace('"reference"', '"second"').replace("0.7,", "0.3,")
    failed = "attempt 1, as locked: score.acc: expected 0.7 within 0.01, got 0.65: DOES NOT HOLD"
    dry = amend(place, ("value = 0.7,", "value = 0.65,"), ("[run]", more + "[run]"), dry=True).stdout
    expect(f"known then of apparatus.reference: {failed}" in dry and dry.count("(post hoc)") == 1, f"what --dry-run says: {dry}")
    expect(failed in amend(place).stdout, "amend does not say that it failed")
    place.wait_finished(60)
    check_failure_told(place, failed)
    equal([(c["name"], c["state"], c["attempts"]) for c in place.status()[0]["apparatus"]],
          [("reference", "done", 2), ("reference@end", "done", 1), ("second", "done", 1), ("second@end", "done", 1)], "the checks")
    held = [r["task"]["apparatus"] for r in journal(place) if r.get("task", {}).get("state") == "done" and "apparatus" in r["task"]]
    equal(sorted(held), ["reference", "reference@end", "second", "second@end"], "what held")
    rows = [r for r in journal(place) if r["event"] in ("amended", "apparatus_again", "resumed")]
    equal([r["event"] for r in rows], ["amended", "apparatus_again", "resumed"], "what the journal says of it")
    expect("seen" in amend(place, ("value = 0.65,", "value = 0.66,"), wanted=ANY).stderr, "amended after scores were seen")
    with open(os.path.join(place.program_folder(), "report", "report.md"), encoding="utf-8") as f:
        report = f.read()
    for words in ("changed plan.apparatus.reference.expect.value from 0.7 to 0.65 when 1 attempt of that check had ended",
                  "that it holds was not laid down in advance", "| reference | 1 | "):
        expect(words in report, f"the report does not say {words!r}")
    rebuild(place)
    without_daemon(place)


def test_amended_while_it_runs(place):
    """Params of the stage that a check runs: what it finds with the old ones is no answer. Then it is taken away."""
    program(place, 0.65, held=True)
    place.wait_for(lambda: place.ctl_json("explain", CHECK)["state"] == "running", 30, "the check runs")
    place.wait_for(lambda: states(place, TRAINED) == ["done"], 30, "training goes on meanwhile")
    amend(place, (place.path("hold"), place.path("hold2")))
    place.write("hold2", "")
    os.unlink(place.path("hold"))
    place.wait_for(lambda: place.ctl_json("explain", CHECK)["attempts"] == 2 and
                   place.ctl_json("explain", CHECK)["state"] == "running", 30, "it is made again")
    (first,) = [r for r in journal(place) if r["event"] == "attempt_ended" and r["task"].get("apparatus")]
    equal((first["attempt"]["cause"], first["detail"]), ("preempted", "what is checked was amended meanwhile"), "how it ended")
    place.kill_daemon()
    place.serve()
    os.unlink(place.path("hold2"))
    place.wait_for(lambda: place.status()[0]["paused_by"] == "apparatus", 30, "it fails")
    text = GRID.format(hold="")
    gone = "[apparatus.reference]" + text.split("[apparatus.reference]")[1].split("[run]")[0]
    amend(place, (gone, ""))
    place.wait_finished(60)
    (gone,) = place.status()[0]["apparatus"]
    equal((gone["declared"], [(r["attempt"], r["holds"]) for r in gone["results"]]), (False, [(1, False), (2, False)]), "the check that is gone")
    expect("an amendment took it away" in place.ctl("status").stdout, "status does not say that a check is gone")
    receipt = place.ctl_json("export", "checked", "--out", place.path("receipt"))["folder"]
    expect("amendment 2 changed" in place.ctl("verify", receipt).stdout, "what verify says of a check that was taken away")
    with open(os.path.join(place.program_folder(), "report", "report.md"), encoding="utf-8") as f:
        expect("The apparatus check reference was declared, DID NOT HOLD" in f.read(), "what the report says of it")
    rebuild(place)


def test_differs(place):
    """Another score after the last evaluation, although within the band: VOID, at once, and everything says why."""
    place.write("hold.shift", "0.005")
    program(place, 0.7)
    place.wait_finished(60)
    why = "apparatus check reference did not score after the last evaluation what it had scored before the first"
    failed = "score.acc: expected 0.7 within 0.01, and 0.7 as the first time, got 0.705"
    verdict = json.loads(place.verdict_bytes())
    equal((verdict["outcome"], verdict["why"], verdict["first_error"]["task"]), ("VOID", why, CHECK + "@end"), "the verdict")
    first, again = place.status()[0]["apparatus"]
    equal((first["holds"], again["holds"], again["value"], again["why"]), (True, False, 0.705, failed), "what status has of both")
    expect(failed in place.ctl("explain", CHECK + "@end").stdout, "explain does not say what came")
    with open(os.path.join(place.program_folder(), "report", "report.md"), encoding="utf-8") as f:
        report = f.read()
    for words in (why, "| reference, again | score.acc | 0.7 ± 0.01 | 0.705 |"):
        expect(words in report, f"the report does not say {words!r}")
    receipt = place.ctl_json("export", "checked", "--out", place.path("receipt"))["folder"]
    expect(f"apparatus.reference@end: attempt 1, as locked: {failed}: DOES NOT HOLD" in place.ctl("verify", receipt).stdout, "verify")
    for what, change in (("not what its text says", {"value": 0.7, "holds": True}), ("not what its text says", {"first": 0.705, "holds": True}),
                         ("another value or tolerance", {"again": 0.1, "holds": True})):
        refuse_forged(place, receipt, what, lambda results, change=change: results[0].update(change), at=1)
    rebuild(place)


def of_end(row):
    return row.get("task", {}).get("apparatus") == "reference@end"


def refuse_forged_journal(place, receipt, what, change, told=None):
    """change(rows) gives the journal's rows; what the two files say of the second run is brought in line by told(check). The forger
    rewrites everything that follows."""
    copy = place.path("forged")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(receipt, copy)
    was = journal_rows(copy)
    rows = change(copy, list(was)) or was
    names = ("apparatus/reference@end.json", "provenance.json", "coverage.json", "statement.json")
    again, provenance, coverage, statement = parts = [read_json(copy, name) for name in names]
    for check in (again, provenance["apparatus"][1]) if told else ():
        told(check)
    for part in (provenance, coverage, statement["predicate"]):
        part["journal"]["rows"] += len(rows) - len(was)
    for name, part in zip(names, parts):
        write_json(copy, name, part)
    forge_journal(copy, rows)
    said = place.ctl("verify", copy, wanted=LOCK)
    expect(what in said.stdout + said.stderr, f"what verify says, not {what}: {said.stdout}{said.stderr}")


def before_the_end(_, rows):
    rest = [row for row in rows if not of_end(row)]
    last = max(i for i, row in enumerate(rest) if row["event"] == "attempt_ended")
    return rest[:last] + [row for row in rows if of_end(row)] + rest[last:]


def never_ended(_, rows):
    return [row for row in rows if not (of_end(row) and row["event"] == "attempt_ended")]


def never_run(_, rows):
    """As if there were nothing to guard."""
    started = next(row for row in rows if of_end(row))
    task = dict(started["task"], attempts=0, cause="dependency", state="never_run", **{"from": "ready"})
    return [dict(event="task_ended", task=task, time=row["time"]) if row is started else row
            for row in rows if row is started or not of_end(row)]


def other_text(was, now):
    """The journal's sentence on the second run, and the same where the files repeat it."""
    def change(_, rows):
        return [dict(row, detail=row["detail"].replace(was, now)) if of_end(row) and "detail" in row else row for row in rows]

    def told(check, **values):
        check.update(values)
        for result in check["results"]:
            result.update(values, text=result["text"].replace(was, now))
    return change, told


def other_input(copy, rows):
    """The first evaluation is said to have scored the reference model; its result is exchanged in records and journal alike."""
    path = os.path.join(copy, "records.jsonl")
    with open(path, encoding="utf-8") as f:
        records = [json.loads(line) for line in f]
    record = next(r for r in records if r["stage"] == "score")
    was, result = record["sha256"], json.loads(record["result"])
    result["inputs"]["train"] = hashlib.sha256(json.dumps({"skill": 0.7}).encode()).hexdigest()
    record["result"] = json.dumps(result)
    record["sha256"] = hashlib.sha256(record["result"].encode()).hexdigest()
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(r, separators=(",", ":"), ensure_ascii=False) + "\n" for r in records)
    return json.loads(json.dumps(rows).replace(was, record["sha256"]))


def check_forged_journals(place, receipt):
    """Both scores told as they were not, by a forger who rewrites the whole journal."""
    empty = {"value": None, "holds": None, "results": []}
    refuse_forged_journal(place, receipt, "apparatus/reference@end while task", before_the_end)
    refuse_forged_journal(place, receipt, "a verdict while apparatus/reference@end has not ended", never_ended,
                          lambda check: check.update(empty, end="running"))
    refuse_forged_journal(place, receipt, "was not run, and the first run held and scores rest on it", never_run,
                          lambda check: check.update(empty, end="never_run", cause="dependency", attempts=[]))
    for key in ("end", "cause"):
        refuse_forged_journal(place, receipt, f"provenance.json: {key}", lambda _, rows: rows, lambda check, key=key: check.update({key: "hang"}))
    change, told = other_text("0.7 within 0.005", "0.702 within 0.005")
    refuse_forged_journal(place, receipt, "is not what the first run scored", change, lambda check: told(check, first=0.702))
    change, beyond = other_text("got 0.705", "got 0.709")
    refuse_forged_journal(place, receipt, "value lies beyond the tolerance", change, lambda check: beyond(check, value=0.709))
    refuse_forged_journal(place, receipt, "of \"train\", whose accepted result has no such artifact", other_input)
    copy = place.path("forged")
    shutil.rmtree(copy)
    shutil.copytree(receipt, copy)
    forge_journal(copy, journal_rows(copy))
    place.ctl("verify", copy)  # what the forger rewrites is not what he is found by


def test_not_made_again(place):
    """A second run that cannot be made shows nothing of the apparatus: a pause, a resume that repeats it, or given up: VOID."""
    place.write("hold.shift", "none")
    program(place, 0.7)
    place.wait_for(lambda: place.status()[0]["paused_by"] == "apparatus", 30, "the program is paused")
    status = place.status()[0]
    equal((status["state"], status["verdict"]), ("paused", None), "what status says")
    expect("apparatus.reference@end could not be made (user_error)" in status["paused_why"], f"the reason: {status['paused_why']}")
    place.ctl("resume", "checked")
    place.wait_for(lambda: place.ctl_json("explain", CHECK + "@end")["attempts"] == 2 and
                   place.status()[0]["paused_by"] == "apparatus", 30, "it is made again")
    place.ctl("cancel", "--all")
    place.wait_finished(60)
    verdict = json.loads(place.verdict_bytes())
    equal((verdict["outcome"], verdict["why"]),
          ("VOID", "apparatus check reference was not run again after the last evaluation (stopped)"), "the verdict")
    receipt = place.ctl_json("export", "checked", "--out", place.path("receipt"))["folder"]
    place.ctl("verify", receipt)


def test_tolerance(place):
    """What the program allows between the two scores is no difference, and a receipt bears out both."""
    place.write("hold.shift", "0.005")
    place.write("hold.end", "")
    program(place, 0.7, within="within = 0.01, again = 0.005")
    place.wait_for(lambda: place.ctl_json("explain", CHECK + "@end")["state"] == "running", 30, "the second run goes on")
    expect(place.status()[0]["eta_ms"] > 0, "the second run is left, and no time is")
    os.unlink(place.path("hold.end"))
    place.wait_finished(60)
    equal(place.status()[0]["eta_ms"], 0, "the time left at the end")
    equal(json.loads(place.verdict_bytes())["outcome"], "up", "the outcome")
    receipt = place.ctl_json("export", "checked", "--out", place.path("receipt"))["folder"]
    expect("apparatus.reference: score.acc 0.7 before the first evaluation, and 0.705 after the last" in place.ctl("verify", receipt).stdout,
           "verify does not say both scores")
    check_forged_journals(place, receipt)
    check_ledger(place)


def check_ledger(place):
    """Both runs with worker and machine, the same with a daemon and without one; an edited result is named."""
    answer = place.ctl_json("apparatus")
    worker = hashlib.sha256(open(place.path("checked/apparatus_worker.py"), "rb").read()).hexdigest()
    equal([(e["program"], e["check"], e["run"], e["attempt"], e["score"], e["expected"], e["within"], e["again"], e["first"], e["holds"],
            e["worker"], e["host"]) for e in answer["checks"]],
          [("checked", "reference", "before", 1, 0.7, 0.7, 0.01, None, None, True, worker, os.uname().nodename),
           ("checked", "reference", "after", 1, 0.705, 0.7, 0.01, 0.005, 0.7, True, worker, os.uname().nodename)], "the ledger")
    expect(answer["checks"][0]["time"] < answer["checks"][1]["time"] and not answer["faults"], f"times and faults: {answer}")
    table = place.ctl("apparatus").stdout.splitlines()
    expect(len(table) == 3 and "0.7 +- 0.01" in table[2] and worker[:8] in table[2], f"the table: {table}")
    place.kill_daemon()
    equal(place.ctl_json("apparatus"), answer, "the ledger without a daemon")
    folder = os.path.join(place.program_folder(), "apparatus", "reference@end")
    (attempt,) = [n for n in os.listdir(folder) if n != "result.json"]
    result = os.path.join(folder, attempt, "result.json")
    with open(result, encoding="utf-8") as f:
        text = f.read()
    os.chmod(result, 0o644)
    with open(result, "w", encoding="utf-8") as f:
        f.write(text.replace("0.705", "0.7"))
    told = place.ctl_json("apparatus", wanted=LOCK)
    equal(([e["run"] for e in told["checks"]], [f["why"] for f in told["faults"]]),
          (["before"], ["apparatus/reference@end: attempt 1: its files do not say what the journal says"]), "an edited result")
    first = os.path.join(place.program_folder(), "apparatus", "reference")
    os.unlink(os.path.join(first, os.readlink(os.path.join(first, "result.json"))))
    said = place.ctl("apparatus", wanted=LOCK).stdout
    expect(said.endswith("apparatus/reference: attempt 1 has no result in its files\n") and "has been made" not in said, f"no entry: {said}")


def test_clock(place):
    """A lock from the future is refused before anything is started for it."""
    place.write("checked/reference/model.json", json.dumps({"skill": 0.7}))
    shutil.copy2(os.path.join(lab.LIB, "apparatus_worker.py"), place.path("checked"))
    grid = place.write("checked/grid.toml", GRID.format(hold=place.path("hold")))
    place.ctl("lock", grid)
    with open(grid + ".lock", encoding="utf-8") as f:
        lock = json.load(f)
    lock["time"] = "2199-01-01T00:00:00.000Z"
    os.chmod(grid + ".lock", 0o644)
    with open(grid + ".lock", "w", encoding="utf-8") as f:
        json.dump(lock, f)
    place.serve()
    said = place.must(LOCK, "preregd", "submit", grid).stderr
    expect("2199-01-01" in said and "clock" in said, f"what is said of it: {said}")
    equal(place.status(), [], "programs of the daemon")


if __name__ == "__main__":
    lab.main(test_clock, test_differs, test_not_made_again, test_tolerance, test_amended, test_amended_while_it_runs, test_holds, test_daemon_killed, test_fails, test_fails_and_is_cancelled, test_negative_zero, test_not_measured, test_model_changed)
