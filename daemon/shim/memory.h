/*
 * The memory of a process tree, for the limit of [run] memory.
 *
 * Watched from outside rather than set with RLIMIT_AS: address space is not memory (threads, mapped
 * data files), and a cgroup is not delegated to us everywhere. It counts what would displace
 * other processes: resident anonymous and shared memory, not pages of mapped files. The quick sum
 * counts pages shared by forked processes once per process, so it can only be too high; over the
 * limit the exact proportional sum decides.
 */
#ifndef DAEMON_SHIM_MEMORY_H
#define DAEMON_SHIM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/shim/pid.h"

/* 0 for processes that are gone. */
int64_t memory_quick(const struct pid_list *tree);
int64_t memory_exact(const struct pid_list *tree);

/* Processes that the kernel's OOM killer has ended since boot; -1 unknown. */
int64_t memory_oom_kills(void);
/* The same, as this process or the one that it was forked from read it at most `age_ms` ago. */
int64_t memory_oom_kills_lately(int64_t age_ms);

#endif
