/*
 * An evaluation as lm-evaluation-harness names it: a task, or a group of tasks in two levels at
 * most (mmlu, mmlu_stem, mmlu_anatomy), in the order its results have. Groups of items of which
 * none was asked are left out, as tasks that were not run.
 *
 * The tree owns its names and borrows the benchmark.
 */
#ifndef WORKER_EVAL_HARNESS_HARNESS_TREE_H
#define WORKER_EVAL_HARNESS_HARNESS_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/eval/score/benchmark.h"

#define HARNESS_NONE SIZE_MAX

struct harness_row {
    const char *name;  /* "mmlu_anatomy" */
    const char *label; /* "anatomy": what result.json's metrics call it; NULL: the whole */
    const char *alias; /* "  - anatomy" */
    const struct task_spec *spec;
    size_t group;  /* of items; HARNESS_NONE: the row is a group of tasks */
    size_t parent; /* a row; HARNESS_NONE: none */
    size_t asked;  /* items of it that were asked */
};

struct harness_tree {
    struct arena arena;
    struct harness_row *rows; /* parents before their members, siblings by name */
    size_t n;
};

/* Always valid to release. `task` is the name that the harness would run it under. */
void harness_tree_init(struct harness_tree *tree, const struct benchmark *bench, const char *task);
void harness_tree_release(struct harness_tree *tree);

static inline bool harness_row_is_group(const struct harness_row *row)
{
    return row->group == HARNESS_NONE;
}

/* The rows by name, for the tables that the harness sorts; tree->n pointers, freed by the caller.
 */
const struct harness_row **harness_tree_sorted(const struct harness_tree *tree)
    __attribute__((returns_nonnull));

#endif
