/*
 * Giving an attempt up for good, from the daemon's side.
 *
 * fence_set() takes shim.lock, leaves the file `fenced`, and lets go: a shim that comes late sees
 * it and leaves. fence_clear_tree() ends what a killed shim's worker left behind: processes that
 * still hold tree.lock open or whose environment names this attempt, and orphans of workers that
 * this process, as the next reaper (PR_SET_CHILD_SUBREAPER), was given when a shim died. Having
 * that very file open is what makes a process one of ours; its number is pinned by a pidfd before
 * it is looked at.
 */
#ifndef DAEMON_SHIM_FENCE_H
#define DAEMON_SHIM_FENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define FENCE_FILE "fenced"

bool fence_is_set(const char *folder);
/* *fenced is false when the shim lives (its lock is held). */
int fence_set(const char *folder, bool *fenced, struct err *err) MUST_CHECK;

/* SIGKILLs everything that belongs to the attempt; *n_alive: how many there were. Call again until
 * it is 0 (a killed process needs a moment to go). Only after fence_set(). */
int fence_clear_tree(const char *folder, size_t *n_alive, struct err *err) MUST_CHECK;

#endif
