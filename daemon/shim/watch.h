/*
 * Watching one worker from its start to the end of its whole tree.
 *
 * SIGTERM to the shim is passed on to the worker, and becomes SIGKILL to the tree after the grace
 * time; SIGUSR1 kills the tree at once; SIGUSR2, which says that a time limit is near, becomes
 * SIGTERM to the worker alone. When the worker has ended, whatever it left behind is
 * killed; the shim is its reaper, so nothing gets away while the shim lives. The cgroup, where
 * there is one, makes killing one step, and is removed at the end.
 */
#ifndef DAEMON_SHIM_WATCH_H
#define DAEMON_SHIM_WATCH_H

#include <signal.h>
#include <sys/types.h>

#include "daemon/shim/files.h"

struct watch_limits {
    int64_t memory_bytes; /* 0: none */
    int64_t grace_ms;
    const char *group; /* the cgroup that the worker was born into; NULL: none */
    /* Often, while the worker runs; false: it is to be killed with its tree. NULL: nothing. */
    bool (*tick)(void *ctx);
    void *ctx;
};

/* Blocks the signals the shim lives on; before the worker is forked. */
int watch_block_signals(sigset_t *set, struct err *err) MUST_CHECK;

/* Returns when no process of the tree is left. Fills all of *out but attempt and detail. */
int watch_run(pid_t worker, const sigset_t *set, const struct watch_limits *limits,
              struct shim_exit *out, struct err *err) MUST_CHECK;

#endif
