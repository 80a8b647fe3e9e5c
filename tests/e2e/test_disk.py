#!/usr/bin/env python3
"""A full disk pauses the program and says so; with room again it goes on, and nothing was lost. Needs root, for a small tmpfs."""

import os
import subprocess

import lab
from lab import OK, equal, expect

SIZE_MIB = 64


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
        """A file that leaves so much room."""
        stat = os.statvfs(self.place.state)
        size = stat.f_bavail * stat.f_frsize - leave_bytes
        with open(self.filler(), "wb") as f:
            while size > 0:
                f.write(b"\0" * min(size, 1 << 20))
                size -= 1 << 20

    def filler(self):
        return os.path.join(self.place.state, "filler")


def test_full_disk(place):
    grid = place.prepare("micro")
    place.ctl("lock", grid)
    with SmallDisk(place) as disk:
        place.serve()
        place.must(OK, "preregd", "submit", grid)
        disk.fill(64 * 1024)
        place.wait_for(lambda: place.status()[0]["paused_by"] == "no_space", 60, "the program is paused for want of disk")
        expect(place.ctl("status").stdout.count("no_space") > 0, "status does not say why")
        os.remove(disk.filler())
        place.ctl("resume")
        place.wait_finished(120)
        equal({t["state"] for t in place.tasks().values()}, {"done"}, "states of the tasks after there was room again")


lab.main(test_full_disk)
