/*
 * Starting the worker: a process that shares the shim's memory, and holds the shim up, until it
 * executes the worker's program (as after vfork). It writes start.json before that, so that no
 * worker ever runs unrecorded.
 *
 * It is born into the attempt's cgroup where there is one, carries its marks (mark.h), dies with
 * the shim (PR_SET_PDEATHSIG), inherits a file that marks it and nothing else, reads nothing from
 * standard input, and is the first that the kernel kills when memory runs out.
 */
#ifndef DAEMON_SHIM_WORKER_H
#define DAEMON_SHIM_WORKER_H

#include <stdbool.h>

#include "daemon/shim/files.h"
#include "daemon/shim/pid.h"

struct worker_plan { /* all borrowed */
    const struct shim_spec *spec;
    int tree_fd;               /* inherited by the worker */
    int group_fd;              /* the folder of its cgroup; -1: none */
    int start_fd;              /* of start.json */
    bool reserved;             /* shim_exit_reserve() */
    struct strbuf *start_text; /* shim_start_prepare(), finished by the worker's process */
    int oom_adjustment;        /* mark_oom_adjustment() */
};

struct worker {
    struct pid_stat own; /* pid 0: none */
    bool in_group;       /* false also when the kernel or a filter of system calls refused that */
    bool announced;      /* start.json is written */
};

/* In the attempt's folder (the working directory). Returns once the worker's program is executed,
 * or its process has ended before. After an error that process, if any, is to be waited for.
 * ERR_NO_SPACE: start.json could not be written for want of room. */
int worker_start(const struct worker_plan *plan, struct worker *out, struct err *err) MUST_CHECK;

#endif
