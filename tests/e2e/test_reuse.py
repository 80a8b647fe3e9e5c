#!/usr/bin/env python3
"""[reuse]: a successor takes the cells of an earlier receipt that did the same work; lock, status, verdict and receipt say so, a killed
daemon goes on, and what is not the same work, changed after locking or forged is refused."""

import hashlib
import json
import os
import shutil

from lib import lab
from lib.crashing import serve_hurt
from lib.forging import forge, forge_journal, journal_rows
from lib.lab import INVALID, LOCK, OK, equal, expect
from lib.two_arms import decision

GRID = """[program]
name = "NAME"
schema = 1
question = "Is b ahead of a?"
[[factor]]
name = "arm"
levels = ["a", "b"]
[[factor]]
name = "seed"
levels = SEEDS
replicate = true
[stage.train]
command = ["./worker.py"]
params = { arm = "$arm", seed = "$seed", steps = 4 }
[stage.score]
after = ["train"]
command = ["./worker.py"]
[measure]
acc = { metric = "score.acc", items = 100, chance = 0.25, floor = 0.3 }
""" + decision("arm", ("b", "a"), no="otherwise").replace("{{", "{").replace("}}", "}")
REUSE = '[reuse]\nreceipt = "RECEIPT"\ncells = CELLS\n'

# Every run leaves a line in `ran`; while the file `hold` is there, seed 4 waits.
WORKER = '''#!/usr/bin/python3
import hashlib, json, os, sys, time
task = json.load(open(sys.argv[2] if "--describe" in sys.argv else os.environ["PREREG_TASK"]))
params = task["params"]
if "--describe" in sys.argv:
    print(json.dumps({"protocol": 1, "metrics": ["loss"] if params else ["acc"], "facts": {}, "seconds": 10}))
    sys.exit()
def write(name, data):
    with open(name + ".part", "wb") as f:
        f.write(data)
    os.replace(name + ".part", name)
with open(RAN, "a") as f:
    print(task["cell"]["name"], task["stage"], file=f)
while params.get("seed") == 4 and os.path.exists(RAN + ".hold"):
    time.sleep(0.02)
result = {"protocol": 1, "attempt": task["attempt"], "facts": {}, "read": {}}
if params:
    os.mkdir("model")
    weights = json.dumps([params["arm"], params["seed"], params["steps"]]).encode()
    write("model/weights", weights)
    result["artifacts"] = [{"path": "model/weights", "sha256": hashlib.sha256(weights).hexdigest(), "bytes": len(weights)}]
    result["metrics"] = {"loss": {"value": None, "why": "not_reached"}}
else:
    weights = open(os.path.join(task["inputs"]["train"], "model/weights"), "rb").read()
    arm, seed, steps = json.loads(weights)
    right = 40 + seed + (steps if arm == "b" else 0)
    items = b"".join(b'{"item":%d,"acc":%d}\\n' % (i, i < right) for i in range(100))
    write("items.jsonl", items)
    result["artifacts"] = [{"path": "items.jsonl", "sha256": hashlib.sha256(items).hexdigest(), "bytes": len(items)}]
    result["items"] = "items.jsonl"
    result["inputs"] = {"train": hashlib.sha256(weights).hexdigest()}
    result["metrics"] = {"acc": {"value": right / 100, "n": 100}}
write("result.json", json.dumps(result).encode())
'''


def prepared(place, name, seeds, more="", edit=lambda text: text):
    place.write(name + "/worker.py", WORKER.replace("RAN", repr(place.path("ran"))))
    os.chmod(place.path(name + "/worker.py"), 0o755)
    return place.write(name + "/grid.toml", edit(GRID.replace("NAME", name).replace("SEEDS", seeds)) + more)


def reuse(receipt, cells='"matching"'):
    return REUSE.replace("RECEIPT", receipt).replace("CELLS", cells)


def ran(place):
    with open(place.path("ran"), encoding="utf-8") as f:
        return sorted(f.read().splitlines())


def earlier(place, items=True):
    """The receipt of the first program."""
    grid = prepared(place, "first", "[1, 2]")
    place.ctl("lock", grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
    place.wait_finished(60)
    return place.ctl_json("export", "first", "-o", place.path("out"), *(["--items"] if items else []))["folder"]


def test_half_of_it(place):
    """Half of the cells are taken, the others run, across a killed daemon, and everything says which are which."""
    receipt = earlier(place)
    runs = len(ran(place))
    second = prepared(place, "second", "[1, 2, 3, 4]", reuse(receipt))
    text = place.ctl("check", second).stderr
    expect("4 of 8 cells are taken from the receipt of first" in text and "known before this lock" in text, text)
    expect("arm=a,seed=3 runs: the receipt has no cell of that name or that work" in text, text)
    expect("8 cells, 16 tasks (8 of them reused), 1 min 20 s one after another" in place.ctl("check", second).stdout, "the plan's cost")
    said = place.ctl("lock", second).stdout
    expect("8 tasks are reused from a receipt of root" in said and "known before this lock" in said, said)
    place.write("ran.hold", "")
    submitted = place.must(OK, "preregd", "submit", second)
    expect("4 of 8 cells are reused" in submitted.stdout + submitted.stderr, submitted.stdout + submitted.stderr)
    shutil.move(receipt, receipt + ".moved")
    place.wait_for(lambda: any("seed=4" in r for r in ran(place)), 30, "seed 4 runs")
    place.kill_daemon()
    os.remove(place.path("ran.hold"))
    place.serve()
    place.wait_finished(60)
    says_so(place, runs)


def says_so(place, runs):
    """Status, coverage, verdict, report, receipt and rerun of the finished successor."""
    equal(len(ran(place)) - runs, 8, "runs of the successor")
    status = next(p for p in place.status() if p["name"] == "second")
    equal((status["reused"]["cells"], status["reused"]["tasks"]), (4, 8), "status")
    expect("4 cells are reused from a receipt of root" in place.ctl("status", "second").stdout, "status does not say so")
    verdict = place.ctl_json("verdict", "second")["verdict"]
    coverage = verdict["coverage"]
    equal((coverage["tasks"]["reused"], coverage["records"]["reused"], coverage["reused"]["cells"]), (8, 4, 4), "coverage")
    expect("4 of 8 cells are reused from an earlier receipt" in "\n".join(verdict["notes"]), str(verdict["notes"]))
    expect("not independent" not in "\n".join(verdict["notes"]), str(verdict["notes"]))
    expect("4 cells were reused" in place.ctl("verdict", "second").stdout, "verdict does not say so")
    folder = os.path.join(place.state, "programs", status["id"])
    with open(os.path.join(folder, "report", "report.md"), encoding="utf-8") as f:
        report = f.read()
    expect("4 of 8 cells are reused" in report and "Of them reused" in report and "known when this program was locked" in report, report[:3000])
    made = place.ctl_json("export", "second", "-o", place.path("out"), "--items")
    answer = place.ctl_json("verify", made["folder"])
    equal((answer["reused"]["cells"], answer["reused"]["tasks"], answer["rests_on"]), (4, 8, "items"), "what verify says")
    with open(os.path.join(made["folder"], "coverage.json"), encoding="utf-8") as f:
        equal(json.load(f)["tasks"]["reused"], 8, "coverage.json")
    expect("4 cells are reused" in place.ctl("verify", made["tar"]).stdout, "verify does not say so")
    equal(place.ctl_json("rerun", "arm=a,seed=1", "--program", "second")["same"], True, "a reused cell, run again")
    forged(place, made["folder"])


def changed(folder, name, change):
    path = os.path.join(folder, name)
    with open(path, "rb") as f:
        data = f.read()
    with open(path, "wb") as f:
        f.write(change(data))


def forged(place, receipt):
    """The receipt inside, the lock's pins and a reused result, each changed with new sums."""
    def once(name, change, wanted):
        folder = place.path("forged")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(receipt, folder)
        if change is None:
            os.remove(os.path.join(folder, name))
        else:
            changed(folder, name, change)
        forge(folder)
        said = place.ctl("verify", folder, wanted=LOCK).stdout
        expect(name in said and wanted in said, said)
    once("reuse.tar", lambda data: data.replace(b'0.41', b'0.51'), "does not follow")
    once("reuse.tar", None, "is missing")
    once("records.jsonl", lambda data: data.replace(b'0.41', b'0.51'), "the result is not the one that the journal accepted")

    def repinned(data):
        lock = json.loads(data)
        pin = next(iter(lock["locked"]["reuse"]["tasks"].values()))
        pin["work"] = "0" * 64
        return rooted(lock)

    def renamed(data):
        lock = json.loads(data)
        lock["locked"]["reuse"]["root"] = "0" * 64
        return rooted(lock)
    for change, wanted in ((repinned, "work"), (renamed, "reuse.root is not that of the receipt in it")):
        folder = place.path("forged")
        shutil.rmtree(folder)
        shutil.copytree(receipt, folder)
        changed(folder, "grid.toml.lock", change)
        forge(folder)
        said = place.ctl("verify", folder, wanted=LOCK).stdout
        expect("reuse.tar" in said and wanted in said, said)
    forged_results(place, receipt)


def forged_results(place, receipt):
    """By a forger who rewrites the journal, too: another score of a reused task, and a run that is said to be reused."""
    def forged(cell, wanted, change):
        folder = place.path("forged")
        shutil.rmtree(folder)
        shutil.copytree(receipt, folder)
        path = os.path.join(folder, "records.jsonl")
        with open(path, encoding="utf-8") as f:
            records = [json.loads(line) for line in f]
        record = next(r for r in records if (r["cell"], r["stage"]) == (cell, "score"))
        was, result = record["sha256"], json.loads(record["result"])
        change(result)
        record["result"] = json.dumps(result)
        record["sha256"] = hashlib.sha256(record["result"].encode()).hexdigest()
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(r, separators=(",", ":"), ensure_ascii=False) + "\n" for r in records)
        forge_journal(folder, json.loads(json.dumps(journal_rows(folder)).replace(was, record["sha256"])))
        said = place.ctl("verify", folder, wanted=LOCK).stdout
        expect("records.jsonl" in said and wanted in said, said)
    forged("arm=a,seed=1", "it is reused from an earlier receipt: \"metrics\" is not that of its work",
           lambda result: result["metrics"]["acc"].update(value=0.51))
    forged("arm=a,seed=3", "it says that it is from an earlier receipt, which the lock does not",
           lambda result: result.update(reused={"root": "0" * 64}))


def rooted(lock):
    """A lock's bytes under the root that follows from it; this one has no number that JSON writes in two ways."""
    text = json.dumps(lock["locked"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    lock["root"] = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps(lock).encode()


def test_what_is_refused(place):
    """Cells that did other work, a receipt that does not follow or that changed after locking, a lock that pins something else."""
    receipt = earlier(place, items=False)

    def says(wanted, more, edit=lambda text: text):
        grid = prepared(place, "second", "[1, 2, 3]", more, edit)
        text = place.ctl("check", grid, wanted=INVALID).stderr
        expect(wanted in text and "grid.toml" in text, text)
        place.ctl("lock", grid, wanted=INVALID)
    chosen = '[{ arm = "a", seed = 1 }, "arm=b,seed=2"]'
    says("arm=a,seed=1 cannot be reused: stage train: params.steps is 5, and was 4", reuse(receipt, chosen),
         lambda text: text.replace("steps = 4", "steps = 5"))
    says("arm=a,seed=3 cannot be reused: the receipt has no cell of that name", reuse(receipt, '[{ arm = "a" }]'))
    says('no cell is called "arm=c,seed=1"', reuse(receipt, '["arm=c,seed=1"]'))
    says("no cell matches", reuse(receipt), lambda text: text.replace("steps = 4", "steps = 5"))
    says("expected the folder of a receipt", reuse(receipt + ".tar"))
    says("the receipt's program has no stage more", reuse(receipt, chosen),
         lambda text: text.replace("[measure]", '[stage.more]\nafter = ["train"]\ncommand = ["./worker.py"]\n[measure]'))
    copy = place.path("copy")
    shutil.copytree(receipt, copy)
    changed(copy, "records.jsonl", lambda data: data.replace(b"0.41", b"0.51"))
    says("it does not follow", reuse(copy, chosen))
    forge(copy)
    says("it does not follow", reuse(copy, chosen))

    shutil.rmtree(copy)
    shutil.copytree(receipt, copy)
    grid = prepared(place, "second", "[1, 2, 3]", reuse(copy, chosen))
    place.ctl("lock", grid)
    changed(copy, "report.md", lambda data: data + b"more\n")
    forge(copy)
    said = place.run("preregd", "submit", grid)
    expect(said.returncode == LOCK and "was changed after locking" in said.stderr, said.stdout + said.stderr)
    shutil.rmtree(copy)
    shutil.copytree(receipt, copy)
    with open(grid + ".lock", encoding="utf-8") as f:
        lock = json.load(f)
    pins = lock["locked"]["reuse"]["tasks"]
    pins["arm=a,seed=1/train"], pins["arm=b,seed=2/train"] = pins["arm=b,seed=2/train"], pins["arm=a,seed=1/train"]
    place.write("second/grid.toml.lock", rooted(lock).decode())
    said = place.run("preregd", "submit", grid)
    expect(said.returncode == LOCK and "pins other results" in said.stderr, said.stdout + said.stderr)
    place.must(LOCK, "preregd", "submit", grid)


def test_killed_at_writes(place):
    """kill -9 of the daemon at writes from the submission to the verdict: each result is accepted once, and nothing reused runs."""
    receipt = earlier(place)
    place.end_all()
    second = prepared(place, "second", "[1, 2, 3]", reuse(receipt))
    place.ctl("lock", second)
    crashes = 0
    for n in range(1, 2000, 61 * lab.SPARSE):
        place.state = place.path(f"s{n}")
        place.env["PREREGD_STATE"] = place.state
        place.write("ran", "")
        serve_hurt(place, n)
        submitted = place.run("preregd", "submit", second).returncode == OK
        place.wait_for(lambda: place.daemon.poll() is not None or (submitted and is_finished(place)), 60, f"crash at {n}")
        crashed = place.daemon.poll() is not None
        os.remove(place.path("armed"))
        if crashed:
            place.daemon = None
            place.serve()
            place.must(OK, "preregd", "submit", second)
            place.wait_finished(60)
        is_whole(place, n)
        place.end_all()
        shutil.rmtree(place.state)
        if not crashed:
            break
        crashes += 1
    expect(crashes > 0 and not crashed, f"{crashes} crashes, the last run {'crashed' if crashed else 'ended'}")
    print(f"crashes: {crashes}")


def is_finished(place):
    run = place.run("preregctl", "status", "--json")
    return run.returncode == OK and all(p["state"] == "finished" for p in json.loads(run.stdout)["programs"])


def is_whole(place, n):
    program = place.status()[0]
    equal((program["history"], program["reused"]["cells"], program["reused"]["tasks"]), ("verified", 4, 8), f"crash at {n}")
    expect(all("seed=3" in line for line in ran(place)), f"crash at {n}: {ran(place)}")
    equal({line.split()[0] for line in ran(place)}, {"arm=a,seed=3", "arm=b,seed=3"}, f"crash at {n}")
    made = place.ctl_json("export", "second", "-o", place.path(f"out{n}"), "--items")
    equal(place.ctl_json("verify", made["folder"])["reused"]["tasks"], 8, f"crash at {n}: verify")


lab.main(test_half_of_it, test_what_is_refused, test_killed_at_writes)
