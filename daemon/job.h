/* Work off the loop's thread: `work` runs on a thread of libuv's pool and touches only what the job
 * holds; `done` runs on the loop afterwards and frees the job. Embed struct job first. */
#ifndef DAEMON_JOB_H
#define DAEMON_JOB_H

#include <uv.h>

#include "base/err.h"

struct job {
    uv_work_t request;
    void (*work)(struct job *job);
    void (*done)(struct job *job);
};

void job_start(uv_loop_t *loop, struct job *job);

#endif
