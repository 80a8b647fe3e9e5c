#!/usr/bin/env python3
"""The scenarios of test_lagfs.py and test_moving.py on the kernel's own NFS: one export of this machine, mounted twice over loopback
without a cache in common. Where the kernel has no NFS, or it may not be mounted, each says why it is skipped."""

import os
import sys

import test_lagfs
import test_moving
from lib import hosts, lab

BIN = os.path.abspath(sys.argv[1])
hosts.Hosts.kind = hosts.Nfs


def test_what_the_other_mount_sees(place):
    with hosts.Hosts(place, BIN) as (one, two):
        test_lagfs.changes(one.mount, two.mount, False)


def test_seen_after_a_listing(place):
    with hosts.Hosts(place, BIN) as (one, two):
        test_lagfs.names(one.mount, two.mount, False)


if __name__ == "__main__":
    lab.main(test_what_the_other_mount_sees, test_seen_after_a_listing, test_moving.test_killed_and_started_again,
             test_moving.test_stopped_and_moved, test_moving.test_both_at_once, test_moving.test_frozen_and_taken_over)
