/*
 * Computing a verdict off the loop: the lock is checked, every accepted result is read again and
 * must still have the digest it was accepted with, and the table is read. Same evidence, same bytes
 * (invariant 6).
 */
#ifndef DAEMON_VERDICT_JOB_H
#define DAEMON_VERDICT_JOB_H

#include "daemon/shell.h"

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
    bool again;               /* it is out: what it rested on was verified then */
    struct task_row *rows;    /* of all tasks, and of the checks' results the digests */
    struct digest *checks;
    void (*ready)(struct verdict_job *j);
    int rc;
    bool refused_by_lock; /* rc: what was locked is not what is there */
    struct err err;
    char *text; /* verdict.json's bytes */
    struct digest digest;
    char outcome[72];
    cJSON *timing;             /* validity that rests on timings */
    struct run_record *record; /* what [run] was; NULL: not read */
};

/* `ready` is called on the loop, not at all when the shell is stopping; the job is freed after it.
 */
void verdict_job_start(struct shell *sh, struct hosted *h, void (*ready)(struct verdict_job *j));

/* What came of it, for the files: the program has it from now on. */
void verdict_job_hand_over(struct verdict_job *j);

/* "bound", "indeterminate" or "void", and the exit code, from a program's committed outcome. */
const char *verdict_kind_name(const char *outcome);
enum exit_code verdict_exit_of(const char *outcome);

#endif
