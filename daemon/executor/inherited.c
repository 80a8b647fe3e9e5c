/* Asks the kernel for what the next child would inherit; called before every shim is started, at
 * the cost of some 30 system calls without a wait. */
#include "daemon/executor/inherited.h"

#include <assert.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IO_OF_PROCESS 1 /* IOPRIO_WHO_PROCESS of linux/ioprio.h */

static long read_oom(void)
{
    char text[32] = "";
    int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) {
        (void)close(fd);
    }
    return n <= 0 ? 0 : strtol(text, NULL, 10);
}

void inherited_read(struct inherited *out)
{
    *out = (struct inherited){0};
    (void)syscall(SYS_sched_getaffinity, 0, sizeof(out->cpus), out->cpus);
    out->nice = getpriority(PRIO_PROCESS, 0);
    out->policy = sched_getscheduler(0);
    out->io = (int)syscall(SYS_ioprio_get, IO_OF_PROCESS, 0);
    out->oom = read_oom();
    for (unsigned i = 0; i < RLIM_NLIMITS; i++) {
        (void)getrlimit((__rlimit_resource_t)i, &out->limits[i]);
    }
}

bool inherited_equal(const struct inherited *a, const struct inherited *b)
{
    assert(a != NULL && b != NULL);
    bool same = memcmp(a->cpus, b->cpus, sizeof(a->cpus)) == 0 && a->nice == b->nice &&
                a->policy == b->policy && a->io == b->io && a->oom == b->oom;
    for (unsigned i = 0; same && i < RLIM_NLIMITS; i++) {
        same = a->limits[i].rlim_cur == b->limits[i].rlim_cur &&
               a->limits[i].rlim_max == b->limits[i].rlim_max;
    }
    return same;
}
