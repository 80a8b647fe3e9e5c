"""A daemon that is killed at the Nth of its calls that change a file (lib/daemon_preload.c)."""

import os

from lib import lab

PRELOAD = os.path.join(os.path.dirname(os.path.abspath(lab.sys.argv[1])), "tests", "e2e_daemon_preload.so")


def serve_hurt(place, n):
    """Starts it; calls count from the end of its start."""
    if not os.path.exists(PRELOAD):
        lab.skip(f"no {PRELOAD}")
    outside = place.env
    place.write("crash", str(n))
    place.env = {**outside, "LD_PRELOAD": PRELOAD, "PREREG_CRASH": place.path("armed"), "PREREG_CRASH_AT": "writes",
                 "ASAN_OPTIONS": outside.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
    place.serve()
    place.env = outside
    os.rename(place.path("crash"), place.path("armed"))
