/*
 * Starting shims on this machine: by the spawner that the daemon keeps (shim/spawn.h), or, where it
 * cannot be had, by executing prereg-shim. Either way the shim has a session of its own, the spec
 * as standard input, and a standard error that all shims share, for what they can say nowhere else.
 *
 * Blocks for as long as a fork takes; a spawner that does not answer is killed after some seconds.
 */
#ifndef DAEMON_EXECUTOR_LAUNCH_H
#define DAEMON_EXECUTOR_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct launch;

/* shim_path: prereg-shim's absolute path. words_path: the file that shims have as standard error;
 * emptied. */
struct launch *launch_new(const char *shim_path, const char *words_path);
/* Shims live on. NULL is fine. */
void launch_free(struct launch *l);

struct launched {
    pid_t pid;
    int pidfd;      /* the caller's; -1: none could be opened, so the shim is found by its lock */
    bool is_child;  /* the caller waits for it; else the spawner does */
    off_t words_at; /* length of the shims' words when it was started; -1: unknown */
};

/* groups: the cgroup below which the shim makes one for its attempt, or NULL. */
int launch_shim(struct launch *l, const char *folder, const char *groups, int spec_fd,
                struct launched *out, struct err *err) MUST_CHECK;

/* How a shim that is not a child of the caller ended, as wait(2) reports it. False when that is not
 * known, or no longer. */
bool launch_how(struct launch *l, pid_t pid, int *status);

/* The last line of what shims have said since `words_at`; "" when there is none. */
void launch_words(const struct launch *l, off_t words_at, char *out, size_t size);

#endif
