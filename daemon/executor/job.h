/*
 * Work off the loop's thread: `work` runs on another thread and touches only what the job holds;
 * `done` runs on the loop afterwards and frees the job. Embed struct job first.
 *
 * There are two pools. Jobs that hash (pinned files, artifacts, submissions) may take hours, so
 * they have threads of their own (job_start_hashing); all others run on libuv's (job_start).
 *
 * A lane is a mutex that no thread waits for: of the jobs that were started in a lane one runs at a
 * time, in the order of their starts, and the others wait in a list. A program has one lane, for
 * its pins. With a mutex instead, the waiting jobs of one program would take the threads from all
 * others.
 *
 * Invariants:
 * - Every job that was started is done exactly once, and keeps its loop alive until then.
 * - A lane has a holder whenever a job waits in it; a job that waits holds no thread.
 * - A job holds its lane from before its work until it leaves it, at the latest when its work ends.
 */
#ifndef DAEMON_EXECUTOR_JOB_H
#define DAEMON_EXECUTOR_JOB_H

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"

struct job {
    void (*work)(struct job *job);
    void (*done)(struct job *job);
    /* the rest is job.c's */
    union {
        uv_work_t request;   /* of libuv's pool */
        uv_async_t finished; /* of the hashing threads */
    } uv;
    struct job *next; /* in the list that it waits in */
    struct job_lane *lane;
    bool ended;
};

struct job_list {
    struct job *first;
    struct job *last;
};

struct job_lane { /* all zero: nothing in it */
    struct job *holder;
    struct job_list waiting;
};

/* On libuv's pool. `job` must live until its `done`. */
void job_start(uv_loop_t *loop, struct job *job);

/* On a thread for hashing; the first starts with the first job. lane: NULL, or one that outlives
 * the job. */
void job_start_hashing(uv_loop_t *loop, struct job *job, struct job_lane *lane);

/* From a job's work: the next in its lane may run. Does nothing when the job is in none (any
 * more), or is NULL. */
void job_leave_lane(struct job *job);

/* The daemon stops: hashing jobs that have not begun get `done` without `work`. */
void job_cancel_hashing(void);
/* Once every hashing job is done: ends the threads. Afterwards all is as before the first job. */
void job_join_hashing(void);

/* How many threads libuv's pool has; once, before the first job. There are as many for hashing: an
 * attempt has one job at a time, so there are never more of those than cores, and as many again
 * verify; the rest is for submissions, verdicts and checks of disks and data. UV_THREADPOOL_SIZE,
 * where it is set, sizes libuv's pool. */
void job_size_pool(void);

#endif
