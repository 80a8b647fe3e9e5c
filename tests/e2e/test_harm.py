#!/usr/bin/env python3
"""Whatever fails, is cut short, is killed, is full, is moved or jumps, the program ends in the same bytes.

A seed is printed; PREREGD_SEED chooses it, PREREGD_HARM the harms ("shutdown clocks@12": as in run 12), PREREGD_HARM_SECONDS how
long they go on. Without them a short selection runs; with PREREGD_LONG=1 all of them, in turn and then at random, for an hour.
"""

import contextlib
import os
import random
import time
from collections import Counter

from lib import disks
from lib import harm
from lib import lab
from lib.harms import HARMS
from lib.lab import expect

SHORT = ("daemon_writes", "shim_writes", "rebuild", "shutdown", "clocks", "moved_state", "daemon_read_only")
TRIES = 16  # some draws are past the last call of a short command


def once(scene, name, seed, number, missed):
    """One run under a harm: what was done. Drawn again while the run ends before its fault; `missed` gets those draws."""
    for attempt in range(TRIES):
        chance = random.Random(f"{seed}/{number}/{name}/{attempt}")
        scene.begin()
        with contextlib.ExitStack() as scene.after:
            try:
                done = HARMS[name][0](scene, chance)
                scene.finish()
                scene.check()
            except harm.NotReached as draw:
                missed.append(f"{name}: {draw}")
                continue
            except Exception:
                scene.place.print_log(40)  # before its disk goes
                raise
            scene.place.kill_daemon()
            scene.place.end_all()
            return done
    raise lab.Failed(f"no fault in {TRIES} draws: {missed[-TRIES:]}")


class Campaign:
    """Harms in turn, then at random until the time is over; a run that fails is kept, and the others go on."""

    def __init__(self, place, seed):
        self.place, self.seed = place, seed
        why = disks.own_mounts()
        self.boot = None if why else disks.Boot(place)
        self.lacking = {"root": why, "ext4": why or disks.ext4_lacks(place)}
        self.scenes, self.counts, self.failures, self.missed = {}, {}, [], []

    def lacks(self, name):
        """What the machine does not allow that the harm needs."""
        return next((self.lacking[need] for need in HARMS[name.partition("@")[0]][1].split() if self.lacking.get(need)), "")

    def scene(self, name):
        works = "work" in HARMS[name][1]
        if works not in self.scenes:
            self.scenes[works] = harm.Scene(self.place, self.place.path("work") if works else None)
            self.scenes[works].boot = self.boot
        return self.scenes[works]

    def run(self, name, number, tell):
        scene, started = self.scene(name), time.monotonic()
        try:
            done = once(scene, name, self.seed, number, self.missed)
        except (lab.Skipped, Exception) as error:  # whatever it is: the other runs go on
            self.failures.append(f"PREREGD_SEED={self.seed} PREREGD_HARM={name}@{number}")
            print(f"  {self.failures[-1]}: {type(error).__name__}: {error}; kept in {self.keep(scene)}", flush=True)
            return
        self.counts[name] = self.counts.get(name, 0) + 1
        if tell:
            print(f"  {number} {name} {time.monotonic() - started:.1f} s: {done} {sorted(scene.said)}", flush=True)

    def keep(self, scene):
        place = self.place
        place.end_all()
        kept = place.path(f"failed-{len(self.failures)}")
        if os.path.isdir(place.state):
            os.rename(place.state, kept)
        return kept

    def order(self, names, seconds):
        chance, end, number = random.Random(self.seed), time.monotonic() + seconds, 0
        while number < len(names) or time.monotonic() < end:
            name, _, own = (names[number] if number < len(names) else chance.choice(names)).partition("@")
            yield name, int(own or number)
            number += 1


def test_harms(place):
    seed = int(os.environ.get("PREREGD_SEED", "20261124"))
    chosen = os.environ.get("PREREGD_HARM", "").split()
    names = chosen or list(HARMS if lab.LONG else SHORT)
    campaign = Campaign(place, seed)
    skipped = {name: campaign.lacks(name) for name in names if campaign.lacks(name)}
    if len(skipped) == len(names):
        lab.skip(f"none of the harms is possible here: {skipped}")
    order = campaign.order([name for name in names if name not in skipped],
                           float(os.environ.get("PREREGD_HARM_SECONDS", "3600" if lab.LONG else "0")))
    for name, number in order:
        campaign.run(name, number, lab.LONG or chosen)
    print(f"  seed {seed}: {sum(campaign.counts.values())} runs ended like the undisturbed one: {campaign.counts}" +
          f"; draws without a fault: {dict(Counter(draw.partition(':')[0] for draw in campaign.missed))}" +
          (f"; skipped: {skipped}" if skipped else ""), flush=True)
    expect(not campaign.failures, f"{len(campaign.failures)} did not: {campaign.failures}")


lab.main(test_harms)
