/*
 * Giving an attempt up for good, from the daemon's side.
 *
 * fence_set() takes the shim's lock, leaves the file `fenced`, and lets go: a shim that comes late
 * sees it and leaves. fence_clear_tree() ends what a killed shim's worker left behind: all that is
 * in the attempt's cgroup (group.h), and every process that carries a mark of it (mark.h), has its
 * file in memory open (SHIM_MARK) or names it in its environment; likewise orphans of any worker
 * that this process, as the next reaper (PR_SET_CHILD_SUBREAPER), was given when a shim died. A
 * process's number is pinned by a pidfd before the process is examined.
 */
#ifndef DAEMON_SHIM_FENCE_H
#define DAEMON_SHIM_FENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define FENCE_FILE "fenced"

/* Whether the attempt was given up: its shim must not start the worker. */
bool fence_is_set(const char *folder);
/* *fenced is false when the shim lives (its lock is held). */
int fence_set(const char *folder, bool *fenced, struct err *err) MUST_CHECK;
/* Leaves the file without the lock, which proves nothing about a shim on another host: that one
 * finds the file at its next heartbeat, kills its worker and publishes nothing. */
int fence_mark(const char *folder, struct err *err) MUST_CHECK;

struct fence {
    const char *folder;
    const char *attempt; /* its id */
    const char *groups;  /* the cgroup below which this daemon has groups made; NULL: none */
    bool shared;         /* hosts share the state folder: its shim may be on another one */
    bool moved;          /* likewise, and a daemon of another host may have started it */
    bool give_up;        /* of one on another host: fence it off and report its end */
};

/* SIGKILLs everything that belongs to the attempt; *n_alive: how many there were, a group counted
 * as one. Call again until it is 0 (a killed process needs a moment to go). Only after fence_set().
 */
int fence_clear_tree(const struct fence *f, size_t *n_alive, struct err *err) MUST_CHECK;

#endif
