#!/usr/bin/env python3
"""A full disk pauses the program and says so; with room again it goes on, and nothing was lost. Needs root, for a small tmpfs."""

import errno
import os
import subprocess
import time

import lab
from lab import OK, equal, expect

SIZE_MIB = 256


class SmallDisk:
    """The lab's state folder on a file system of its own."""

    def __init__(self, place):
        self.place = place

    def __enter__(self):
        os.makedirs(self.place.state, exist_ok=True)
        run = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m,mode=0700", "tmpfs", self.place.state],
                             capture_output=True, text=True)
        if run.returncode != 0:
            lab.skip(f"no tmpfs can be mounted here: {run.stderr.strip()}")
        return self

    def __exit__(self, *_):
        self.place.end_all()
        subprocess.run(["umount", "-l", self.place.state], check=False)

    def fill(self, leave_bytes):
        """A file that leaves so much room, or less: workers write meanwhile."""
        stat = os.statvfs(self.place.state)
        size = stat.f_bavail * stat.f_frsize - leave_bytes
        try:
            with open(self.filler(), "wb") as f:
                for at in range(0, size, 1 << 20):
                    f.write(b"\0" * min(size - at, 1 << 20))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise

    def filler(self):
        return os.path.join(self.place.state, "filler")


def submitted(place):
    grid = place.prepare("micro")
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


def test_little_room(place):
    """Too little to start anything: paused, with the reason; a person makes room and resumes."""
    with SmallDisk(place) as disk:
        submitted(place)
        disk.fill(24 << 20)
        place.wait_for(lambda: place.status()[0]["paused_by"] == "no_space", 60, "the program is paused for want of disk")
        expect("no_space" in place.ctl("status").stdout, "status does not say why")
        os.remove(disk.filler())
        place.ctl("resume")
        all_done(place)


def test_no_room_at_all(place):
    """Not even the store can be written: the daemon stays, answers, starts nothing, and goes on by itself with room again."""
    with SmallDisk(place) as disk:
        submitted(place)
        disk.fill(0)
        time.sleep(4)
        place.ctl("status")
        os.remove(disk.filler())
        place.wait_for(lambda: place.run("preregctl", "resume").returncode == OK, 30, "resume is taken")
        all_done(place)


lab.main(test_little_room, test_no_room_at_all)
