#!/usr/bin/env python3
"""A full disk pauses the program and says so; with room again it goes on by itself, and nothing was lost. Needs root, for small
file systems in memory."""

import errno
import os
import re
import shutil
import subprocess
import time

from lib import lab
from lib import rogue
from lib.disks import SmallDisk
from lib.lab import ANY, OK, equal, expect


def submitted(place):
    grid = place.prepare_small(60_000)  # long enough to fill the disk meanwhile
    place.ctl("lock", grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid)


def all_done(place):
    try:
        place.wait_finished(120)
    except lab.Failed:
        place.print_log()  # it goes with the tmpfs
        raise
    equal({t["state"] for t in place.tasks().values()}, {"done"}, "states of the tasks after there was room again")


def why_is(place, wanted):
    """Which disk is full, as the user knows it, and what it lacks; the daemon's next look has it at the latest."""
    place.wait_for(lambda: re.fullmatch(wanted, str(place.status()[0]["paused_why"])), 60, f"why it is paused: {wanted}")


def test_little_room(place):
    """Too little to start anything: paused, with the reason; a person makes room, and it goes on by itself."""
    with SmallDisk(place) as disk:
        submitted(place)
        disk.fill(10 << 20)  # two trainings write 3.3 MiB each, the state must still be written, a start wants 16 MiB
        place.wait_for(lambda: place.status()[0]["paused_by"] == "no_space", 60, "the program is paused for want of disk")
        why_is(place, rf"the disk of the state folder {re.escape(place.state)}: \d+ KiB are free, \d+ KiB are needed")
        os.remove(disk.filler())
        all_done(place)


def work_elsewhere(place, folder):
    """Two tasks whose attempts lie on the small disk; each is done when it is released."""
    grid = rogue.program(place, ["wait", "wait_too"], run=f'work = "{folder}"\n[run.probe]\ncrashes = 1\n')
    place.serve()
    place.must(OK, "preregd", "submit", grid)


def goes_on_by_itself(place, folder, unit):
    place.wait_for(lambda: place.status()[0]["paused_by"] == "no_space", 60, "the program is paused for want of disk")
    why_is(place, rf"the disk of \[run\] work {re.escape(folder)}: \d+ {unit} are free, \d+ ({unit} )?are needed")
    expect("continues by itself" in place.ctl("status").stdout, "status does not say what happens next")
    return {t["state"] for t in place.tasks().values()}


def test_full_work_disk(place):
    """[run] work is full, the state folder is not: nothing is blocked, with one crash as the whole budget."""
    folder = place.path("work")
    with SmallDisk(place, folder, size_mib=64) as disk:
        disk.fill(64 << 10)  # the mark of whose cells they are is written at submit
        work_elsewhere(place, folder)
        states = goes_on_by_itself(place, folder, "KiB")
        expect("blocked" not in states, f"a full disk ended a task: {states}")
        os.remove(disk.filler())
        rogue.release(place)
        all_done(place)


def test_no_inodes(place):
    """Room for bytes, but for hardly a file."""
    folder = place.path("work")
    with SmallDisk(place, folder, size_mib=64, options=",nr_inodes=400") as disk:
        os.mkdir(disk.filler())
        try:
            for i in range(1000):
                os.mknod(os.path.join(disk.filler(), str(i)))
        except OSError as error:
            equal(error.errno, errno.ENOSPC, "what ends the filling")
        for i in range(8):
            os.remove(os.path.join(disk.filler(), str(i)))  # as many as submitting needs
        work_elsewhere(place, folder)
        expect("blocked" not in goes_on_by_itself(place, folder, "inodes"), "a disk without inodes ended a task")
        shutil.rmtree(disk.filler())
        rogue.release(place)
        all_done(place)


def test_no_room_at_all(place):
    """Not even the store can be written: the daemon stays, answers, starts nothing, and goes on by itself with room again."""
    with SmallDisk(place) as disk:
        submitted(place)
        disk.fill(0)
        time.sleep(4)
        place.ctl("status")
        os.remove(disk.filler())
        all_done(place)


SECOND = """[stage.score]
command = ["./rogue_worker.py"]
after = ["probe"]
params = { mode = "good", arm = "$mode", seed = "$seed" }
"""


def test_work_disk_away(place):
    """The disk of [run] work goes, with accepted results on it: none of them can be given up as lost, the program waits and says
    for what, and goes on by itself once the disk is back."""
    disk, folder = place.path("disk"), place.path("work")
    os.mkdir(disk, 0o700)
    os.mkdir(folder, 0o700)

    def mount():
        run = subprocess.run(["mount", "--bind", disk, folder], capture_output=True, text=True)
        if run.returncode != 0:
            lab.skip(f"nothing can be mounted here: {run.stderr.strip()}")

    def refused(task, reason):
        expect(reason in place.ctl("lost", task, wanted=ANY).stderr, "a result that is only away could be given up")

    mount()
    try:
        grid = rogue.program(place, ["wait", "wait_too"], run=f'work = "{folder}"\n', stages=SECOND)
        place.serve()
        place.must(OK, "preregd", "submit", grid)
        place.ctl("pause")
        rogue.release(place)
        place.wait_for(lambda: sorted(t["state"] for t in place.tasks().values()) == ["done", "done", "ready", "ready"], 60,
                       "the first stage is done")
        task = next(name for name, t in place.tasks().items() if t["state"] == "done")
        cells = os.path.realpath(os.path.join(place.program_folder(), "cells"))
        subprocess.run(["umount", folder], check=True)
        refused(task, "is its disk mounted?")
        place.ctl("resume")
        place.wait_for(lambda: place.status()[0]["paused_by"] == "data", 60, "the program waits for its cells")
        expect(cells[:cells.index("/work/")] in place.status()[0]["paused_why"], "it is not said what is missing")
        os.makedirs(cells)  # as a mount point would be: a folder, with nothing in it
        refused(task, "none of its cells is in their folder")
        place.wait_for(lambda: "none of its cells" in str(place.status()[0]["paused_why"]), 60, "it waits on while the folder is empty")
        mount()
        all_done(place)
    finally:
        place.end_all()
        subprocess.run(["umount", "-l", folder], check=False, capture_output=True)


lab.main(test_work_disk_away, test_little_room, test_full_work_disk, test_no_inodes, test_no_room_at_all)
