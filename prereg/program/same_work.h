/*
 * [[same_work]]: tasks that are one work under several names. "Where arch = dense, the levels of
 * contract make no difference" means that a dense cell is run under one contract and its result is
 * accepted under all.
 *
 * Declared in the plan, never guessed, so a program without it runs as it always did. Tasks are one
 * work only within one stage and between cells with the same replicates: replicates stay
 * independent. The first cell of such a group does the work; the others are its names.
 *
 * Invariants after a successful load: a stage is only listed with every stage that it comes after;
 * program_worker_of() of a task is never a later task, is its own worker, and has the same stage
 * and the same levels of every replicate factor. Whether the work really is the same is for
 * `check` to prove (truthtable/prove/check_same_work.c).
 */
#ifndef PREREG_PROGRAM_SAME_WORK_H
#define PREREG_PROGRAM_SAME_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prereg/program/program.h"

/* After the grid was expanded: sets p->workers. */
void same_work_expand(struct plan_program *p);

/* The task that does the work of this one; itself when it has one name. */
static inline size_t program_worker_of(const struct plan_program *p, size_t task)
{
    return p->workers == NULL ? task : p->workers[task];
}

/* Whether the stage is one work in both cells; a cell is one with itself. */
static inline bool program_is_same_work(const struct plan_program *p, size_t stage, size_t a,
                                        size_t b)
{
    return a == b || program_worker_of(p, a * p->n_stages + stage) ==
                         program_worker_of(p, b * p->n_stages + stage);
}

/* Whether the task cannot start at once: its stage comes after another, or another task does its
 * work. */
bool program_task_waits(const struct plan_program *p, size_t task);

/* How many tasks are another name of one that does their work. */
size_t program_n_other_names(const struct plan_program *p);

#endif
