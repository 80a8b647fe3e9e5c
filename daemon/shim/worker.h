/*
 * Starting the worker: forked, held at a pipe until start.json is there, then executed.
 *
 * The child is born into the attempt's cgroup where there is one, carries its marks (mark.h), dies
 * with the shim (PR_SET_PDEATHSIG), inherits a file that marks it and nothing else, reads nothing
 * from standard input, and is the first that the kernel kills when memory runs out.
 */
#ifndef DAEMON_SHIM_WORKER_H
#define DAEMON_SHIM_WORKER_H

#include <sys/types.h>

#include "daemon/shim/files.h"

struct worker {
    pid_t pid;
    int go_fd;     /* one byte lets it go; closed without: it ends */
    int failed_fd; /* errno of a failed execve, or end of file once it was executed */
};

/* In the attempt's folder (the working directory). tree_fd is inherited by the worker and closed
 * here. *group_fd: the folder of its cgroup, or -1; closed and -1 when the kernel or a filter of
 * system calls does not let it be born there. */
int worker_fork(const struct shim_spec *spec, int tree_fd, int *group_fd, struct worker *out,
                struct err *err) MUST_CHECK;
/* Lets it go and waits for execve; ERR_IO when that failed (the child is a zombie then). */
int worker_release(struct worker *w, const char *exec, struct err *err) MUST_CHECK;

#endif
