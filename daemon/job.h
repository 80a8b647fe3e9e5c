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

/* How many threads the pool has; once, before the first job. Jobs that hash terabytes, or wait for
 * one that does, must leave some for all others: an attempt has one job at a time, so there are
 * never more of those than cores, and as many again verify; the rest is for submissions, verdicts
 * and looks. A person's UV_THREADPOOL_SIZE stands. */
void job_size_pool(void);

#endif
