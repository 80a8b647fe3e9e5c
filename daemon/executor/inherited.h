/*
 * What a process hands down to its children and what a person can change from outside while it runs
 * (taskset -p, renice, chrt -p, ionice -p, choom -p, prlimit -p).
 */
#ifndef DAEMON_EXECUTOR_INHERITED_H
#define DAEMON_EXECUTOR_INHERITED_H

#include <stdbool.h>
#include <sys/resource.h>

struct inherited {
    unsigned char cpus[1024]; /* a bit for each processor */
    int nice;
    int policy; /* of the scheduler */
    int io;     /* class and priority of the disk */
    long oom;   /* oom_score_adj */
    struct rlimit limits[RLIM_NLIMITS];
};

/* Of this process, of its main thread where it has several. What the kernel does not say is 0. */
void inherited_read(struct inherited *out);

bool inherited_equal(const struct inherited *a, const struct inherited *b);

#endif
