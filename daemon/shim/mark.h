/*
 * The marks that a worker and all its descendants carry, so that they can be recognised as this
 * attempt's when their shim is dead: its file in memory held open, PREREG_TASK in the environment,
 * a resource limit whose value is made of the attempt's id, and an oom_score_adj. The first two go
 * with closed descriptors and a cleared environment; the limit stays through both and through
 * setsid() and execve(), names the attempt, and is lost only when a process sets a lower one.
 */
#ifndef DAEMON_SHIM_MARK_H
#define DAEMON_SHIM_MARK_H

#include <stdbool.h>
#include <sys/types.h>

/* RLIMIT_RTTIME, in microseconds: beyond any run, so that it limits no process. */
unsigned long mark_limit(const char *attempt);
/* Sets it for this process; where a lower limit is in force, that stays. Safe after fork(). */
void mark_set(unsigned long limit);
/* The limit that a process carries, if that is one of an attempt; 0: none. */
unsigned long mark_read(pid_t pid);

/* The oom_score_adj for a worker of a process that has `own`: always higher, up to the maximum, so
 * that the kernel picks the worker first when memory runs out. */
int mark_oom_adjustment(int own);
/* 0 when it cannot be read. pid 0: this process. */
int mark_oom_read(pid_t pid);

#endif
