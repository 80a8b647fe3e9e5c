/*
 * Computing a verdict off the loop: the lock is checked, every accepted result is read again and
 * must still have the digest it was accepted with, and the table is read. Same evidence, same bytes
 * (invariant 6).
 */
#ifndef DAEMON_SHELL_VERDICT_JOB_H
#define DAEMON_SHELL_VERDICT_JOB_H

#include "daemon/shell/shell.h"

struct verdict_end { /* how a task ended, from the store */
    enum task_state state;
    enum cause cause;
    struct digest digest; /* of its result, when done */
};

struct verdict_job {
    struct job job;
    struct shell *shell;
    struct hosted *hosted;
    struct bundle *bundle;
    struct verdict_end *ends; /* one a task of the grid */
    bool cells_used;          /* cells.h */
    bool again;               /* the verdict is out: the checks were verified then */
    struct task_row *rows;    /* of all tasks; `checks`: the digests of the checks' results */
    struct digest *checks;
    void (*ready)(struct verdict_job *j);
    int rc;
    bool refused_by_lock; /* rc is a failed check of pinned files or cells */
    struct err err;
    char *text; /* verdict.json's bytes */
    struct digest digest;
    char outcome[72];
    cJSON *timing;             /* validity that rests on timings */
    struct run_record *record; /* what [run] was; NULL: not read */
};

/* Calls `ready` on the loop and frees the job after it. When the shell is stopping, `ready` is not
 * called. */
void verdict_job_start(struct shell *sh, struct hosted *h, void (*ready)(struct verdict_job *j));

/* Moves the text, its timing and the history of [run] to the program, for the files. */
void verdict_job_hand_over(struct verdict_job *j);

#endif
