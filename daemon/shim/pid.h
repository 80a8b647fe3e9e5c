/*
 * Processes by identity, not by number. A pid names a process only together with its start time
 * and the boot it belongs to; signals go through a pidfd that was checked against both, so a
 * number that the kernel has reused can never be hit.
 */
#ifndef DAEMON_SHIM_PID_H
#define DAEMON_SHIM_PID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* The fields of /proc/PID/stat that are used. */
struct pid_stat {
    pid_t pid;
    pid_t parent;
    char state;    /* R S D Z ... */
    int64_t start; /* field 22: clock ticks since boot */
};

/* False when there is no such process. */
bool pid_stat_read(pid_t pid, struct pid_stat *out);

/* A pidfd (close-on-exec) of the process that had this pid, start time and boot; *fd is -1 when it
 * is gone (not an error). */
int pid_open(pid_t pid, int64_t start, const char *boot_id, int *fd, struct err *err) MUST_CHECK;

/* Sends sig through a pidfd. A process that is gone is not an error. May be left unchecked where
 * the caller checks the outcome anyway. */
int pid_signal(int pidfd, int sig, struct err *err);

struct pid_list {
    pid_t *pids;
    size_t n;
    size_t cap;
};

void pid_list_release(struct pid_list *l);
/* Every descendant of root (without root itself), from one pass over /proc; zombies left out. */
int pid_descendants(pid_t root, struct pid_list *out, struct err *err) MUST_CHECK;

#endif
