/* Reads a program's or a task's state from the core, for status and for "why is it not running?".
 * Changes nothing. */
#ifndef DAEMON_CORE_EXPLAIN_H
#define DAEMON_CORE_EXPLAIN_H

#include "base/strbuf.h"
#include "daemon/core/core.h"

struct core_counts {
    uint32_t planned;                 /* the grid's: apparatus checks are in none of these */
    uint32_t by_state[TASK_STATE_NR]; /* sums to planned (invariant 4) */
    uint32_t backoff;                 /* of the ready ones */
    uint32_t held;                    /* likewise: they wait for the apparatus checks */
    uint32_t counted;                 /* planned counted tasks */
    uint32_t counted_open;            /* of them not terminal */
};

enum core_why {
    WHY_ENDED,      /* done, blocked or never_run; cause holds */
    WHY_RUNNING,    /* an attempt lives */
    WHY_UNKNOWN,    /* whether its attempt lives cannot be determined at present */
    WHY_VERIFYING,  /* its result is being checked */
    WHY_ENDING,     /* it was cancelled or stopped, or has hung; its attempt is being ended */
    WHY_DEPENDENCY, /* waits for `waits_for` */
    WHY_PAUSED,     /* paused holds */
    WHY_APPARATUS,  /* ready, but an apparatus check has to hold first */
    WHY_GRID,       /* the second run of an apparatus check, and the grid has not ended */
    WHY_BACKOFF,    /* wait_due_ms holds */
    WHY_QUEUED,     /* an attempt waits in another scheduler's queue */
    WHY_PRIORITY,   /* ready, and a program of higher priority has a task ready, too: `ahead` */
    WHY_SLOTS,      /* next in line or behind others: no slot, core or memory free */
};

struct core_explanation {
    uint32_t program;
    uint32_t task;
    enum core_why why;
    struct task_row row;
    struct attempt_row attempt; /* the live one; no == 0: none */
    uint32_t waits_for;         /* task index */
    unsigned paused;
    bool withheld;               /* paused, too: its folder cannot be written */
    int64_t wait_due_ms;         /* mono: when its backoff is over; 0 none */
    int64_t deadline_ms;         /* mono: when the live attempt's section is up; 0 none */
    enum executor_kind executor; /* where an attempt of it runs, or would */
    bool queue_full;             /* which takes no more attempts for now */
    uint32_t max_queued;         /* of the program; 0: no limit */
    uint32_t n_queued;
    uint32_t threads;
    int64_t memory_bytes;
    uint32_t free_threads;
    int64_t free_memory_bytes; /* INT64_MAX: unlimited */
    uint32_t free_slots;       /* UINT32_MAX: unlimited */
    bool lacks_gpus;           /* those that it needs are not free */
    uint32_t ahead;            /* WHY_PRIORITY: the program that is served first */
    int32_t ahead_priority;    /* and its priority */
    int32_t priority;          /* of this program */
    const char *retry_refusal; /* why it may not be tried again; NULL: it may */
};

/* False when there is no such program or task. */
bool core_counts_get(const struct core *core, uint32_t program, struct core_counts *out);
bool core_program_status(const struct core *core, uint32_t program, struct program_row *out);
bool core_explain(const struct core *core, uint32_t program, uint32_t task,
                  struct core_explanation *out);
/* Appends one English sentence about an explanation of this moment, without names of tasks ("waits
 * for a slot: needs 2 threads, 1 is free"). */
void core_explanation_text(const struct core *core, const struct core_explanation *e,
                           struct mono_time now, struct strbuf *out);
/* When the backoff of a ready task is over (mono); 0: it is not in backoff. The wall clock does not
 * enter: row.not_before only carries the backoff over a restart. */
int64_t core_backoff_due_ms(const struct core *core, uint32_t program, uint32_t task);

/* The program of higher priority that is served before any ready task of this one; UINT32_MAX:
 * none, or nothing is ready. */
uint32_t core_program_ahead(const struct core *core, uint32_t program);

/* How many blocked tasks of the grid may be retried. *refusal: why the first of the others may not;
 * NULL: all may. */
uint32_t core_n_retriable(const struct core *core, uint32_t program, const char **refusal);

/* How many ready tasks of the program wait for GPUs: 0 unless the next one of them does. Appends
 * what that one lacks to *text, unless that is NULL. */
uint32_t core_n_waiting_for_gpus(const struct core *core, uint32_t program, struct strbuf *text);
/* Whether a ready task, or a live attempt, is for GPUs of this machine. */
bool core_wants_gpus(const struct core *core);

/* Attempts alive now, over all programs. */
size_t core_n_live(const struct core *core);
/* Slots of this machine that are in use, and attempts that a queue has (Slurm). */
uint32_t core_n_slots_used(const struct core *core);
uint32_t core_n_queued(const struct core *core);

#endif
