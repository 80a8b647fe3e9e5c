"""An example program, prepared, checked and locked."""

from lib.lab import equal, expect


def check_and_lock(place, name):
    grid = place.prepare(name)
    equal(place.ctl_json("check", grid)["ok"], True, f"check of {name}")
    lock(place, grid)
    place.ctl("check", "--no-run", grid)
    return grid


def lock(place, grid):
    """Without a confound that [scope] leaves out."""
    said = place.ctl("lock", grid)
    expect("is not declared" not in said.stdout + said.stderr, said.stderr)
