#!/usr/bin/env python3
"""kill -9 of the daemon at every call of a first `submit` that changes a file: what comes up again takes the same submission, its
history is verified, and `rebuild` of what the crash left says so, too."""

import json
import os
import shutil

from lib import lab
from lib.crashing import serve_hurt
from lib.lab import OK, equal, expect
from lib.two_arms import DESIGN, READING

GRID = """[program]
name = "first"
schema = 1
question = "Is a submission one step?"
""" + DESIGN + """[stage.train]
command = ["./wait.sh"]
params = { seed = "$seed", arm = "$arm" }
[stage.score]
after = ["train"]
command = ["./wait.sh"]
params = { seed = "$seed", arm = "$arm" }
""" + READING.format() + """[run]
work = "elsewhere"
"""


def check_rebuild(place, n):
    """Of a copy of what the crash left: no program, or one whose history is verified."""
    copy = place.path("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(place.state, copy, symlinks=True, ignore=shutil.ignore_patterns("*.sock"))
    run = place.run("preregctl", "rebuild", "--state", copy, "--json")
    equal(run.returncode, OK, f"crash at {n}: rebuild: {run.stderr}")
    histories = [p["history"] for p in json.loads(run.stdout)["programs"]]
    expect(histories in ([], ["verified"]), f"crash at {n}: rebuild: {run.stdout}")
    return len(histories)


def test_at_every_write(place):
    place.write("p/wait.sh", "#!/bin/sh\n[ $# -eq 0 ] && exec sleep 600\nexit 64\n", 0o755)
    grid = place.write("p/grid.toml", GRID)
    place.ctl("lock", grid)
    known = [0, 0]
    for n in range(1, 200, lab.SPARSE):
        place.state = place.path(f"s{n}")
        place.env["PREREGD_STATE"] = place.state
        serve_hurt(place, n)
        run = place.run("preregd", "submit", grid)
        os.remove(place.path("armed"))
        if run.returncode == OK:
            break
        place.wait_for(lambda: place.daemon.poll() is not None, 60, f"crash at {n}: {run.stderr}")
        place.daemon = None
        known[check_rebuild(place, n)] += 1
        place.serve()
        place.must(OK, "preregd", "submit", grid)
        programs = place.status()
        equal([p["history"] for p in programs], ["verified"], f"crash at {n}")
        place.end_all()
        shutil.rmtree(place.state)
        shutil.rmtree(place.path("p/elsewhere"), ignore_errors=True)
    else:
        raise lab.Failed("no submit without a crash in 200")
    expect(min(known) > 0, f"no crash before or none after row 1: {known}")
    print(f"crashes: {known[0]} before row 1, {known[1]} after it")


lab.main(test_at_every_write)
