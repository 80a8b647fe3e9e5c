"""Holds a mapping whose page is dirty from the start: what it writes later moves no time of the file."""

import mmap
import os
import sys
import time

with open(sys.argv[1], "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
    m[0:4] = m[0:4]
    open("mapped", "w").close()
    for _ in range(6000):  # nobody is left behind by a test that fails
        if os.path.exists("end") or not os.path.exists("mapped"):  # the test's folder is gone
            break
        m[0:4] = b"WHAT" if os.path.exists("change") else b"what"
        if os.path.exists("change"):
            open("changed", "w").close()
        time.sleep(0.1)
