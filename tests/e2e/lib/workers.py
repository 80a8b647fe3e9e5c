"""Workers as processes: which there are in a lab, and killing them on their way."""

import os
import random
import time

from lib import lab

KILLS_PER_TASK = 2  # under the crash budget


def workers(place):
    """(pid, 'cell/stage') of the Python processes that work in an attempt's folder."""
    found = []
    for pid, name in place.processes().items():
        try:
            cwd = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        if "/cells/" in cwd and name != "prereg-shim":
            found.append((pid, "/".join(cwd.split("/cells/", 1)[1].split("/")[:2])))
    return found


def finish_killing(place, seconds, seed):
    """kill -9 of workers at random until the programs are finished; how many died, and of how many tasks."""
    chance, killed, end = random.Random(seed), {}, time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(chance.uniform(0.1, 0.5))
        if all(p["state"] == "finished" for p in place.status()):
            return killed
        open_to_it = [(pid, task) for pid, task in workers(place) if killed.get(task, 0) < KILLS_PER_TASK]
        if open_to_it:
            pid, task = chance.choice(open_to_it)
            place.kill(pid)
            killed[task] = killed.get(task, 0) + 1
    raise lab.Failed(f"not finished after {seconds} s; killed {killed}")
