/*
 * What a journal says, row by row, and whether it can have come about: each line is in the form in
 * which the daemon writes it, its number and hash follow from the line before, it names tasks of
 * the program, and each task moves from the state it had, as state/rows.h allows. Nothing is
 * earlier than the lock.
 *
 * A journal that was cut at its end still chains: how it must end is checked by others
 * (provenance.json, coverage.json and amendments/ each say how far it went).
 */
#ifndef CTL_RECEIPT_HISTORY_H
#define CTL_RECEIPT_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/receipt/files.h"
#include "prereg/amend/access_level.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"
#include "state/journal/run_record.h"
#include "state/rows.h"

#define HISTORY_CHECKS_MAX                                                                         \
    1000 /* of the apparatus, by name: a plan has 64, amendments bring more */

/* A task of the grid as the rows so far left it. */
struct history_task {
    enum task_state state;
    enum cause cause;
    uint32_t n_attempts;
    uint32_t n_resumes; /* attempts that began at a checkpoint of an earlier one */
    size_t live;        /* 1 + index of the attempt at work, while they stand as they started */
    size_t lifts;       /* pauses for failures that were lifted before its last attempt started */
    size_t answered;    /* row of the last end of an attempt that `resume` answered; 0: none */
    uint32_t accepted;  /* done: the attempt whose result it is */
    struct digest result;
};

/* A stage of the grid as the rows so far left it. */
struct history_stage {
    size_t n_accepted; /* results of its tasks, lost ones too */
    size_t lifts;      /* pauses for failures that were lifted before the first of them */
};

/* An attempt of a task, from its rows. */
struct history_attempt {
    uint32_t task;
    struct attempt_row row; /* as it started, or as it ended */
};

/* Everything that the rows so far say. Owned; `program` is borrowed. */
struct history {
    const struct plan_program *program;
    struct history_task *tasks; /* program_n_tasks() of them */
    size_t n_tasks;
    struct history_stage *stages; /* of the program */
    size_t n_lifts;               /* pauses for failures that were lifted */
    size_t revived_row;           /* of the last revival; 0: none */
    uint32_t revived;             /* its task */
    size_t n_accepted; /* results so far, lost ones too: what could be seen when scores were open */
    struct history_attempt *attempts; /* by task and number */
    size_t n_attempts;
    size_t cap_attempts;
    struct digest *hashes; /* of each row */
    size_t n_rows;
    size_t cap_rows;
    struct program_row status;
    size_t verdict_row;           /* 0: none */
    bool unverified;              /* it was made from files after the daemon's own was lost */
    struct wall_time first_start; /* of an attempt, checks of the apparatus too; 0: none */
    enum access_level access;     /* that the attempts so far amount to */
    cJSON *amended;               /* array: {"number","head","level"}, and "row" of the journal */
    cJSON *unblindings;           /* array of texts, as provenance.json has them */
    cJSON *takeovers;             /* likewise: by daemons of other hosts */
    struct run_record *record;    /* what [run] was, and what was lost under it */
    cJSON *runs;                  /* its list, once all is read: {"row","run","blocked","first"} */
    cJSON *checks; /* of the apparatus, by name: {"state","cause":TEXT|null,"attempts","results":
                      [{"row","attempt","text":TEXT|null}]}: what held and what did not, in order */
};

/* Reads journal.jsonl of the files. Always valid to release. */
int history_read(struct history *h, const struct plan_program *p, const struct lock *lock,
                 const struct receipt_files *files, struct err *err) MUST_CHECK;
void history_release(struct history *h);

/* The head of lock and amendments when the journal had so many rows: instruments may be amended
 * after the verdict, which keeps the head that it was computed with. */
const char *history_head_at(const struct history *h, const struct lock *lock, size_t row);

/* The [run] settings when the journal had so many rows; NULL when it does not say. */
const cJSON *history_run_at(const struct history *h, size_t row);

/* Limits of [run] that the task had and others of its stage did not, when it is blocked for a
 * mechanical cause; NULL: it was lost by chance, or not at all. */
const char *history_narrower(const struct history *h, size_t task);

/* The attempts of one task, in order. */
const struct history_attempt *history_attempts_of(const struct history *h, size_t task, size_t *n);

#endif
