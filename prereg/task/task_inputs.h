/*
 * What a result says it read of the stages before its own (its member "inputs"), against what their
 * accepted results leave.
 *
 * A worker may name any artifact of a stage that its own comes after. Which model prereg-eval
 * scores follows from its params alone (docs/evaluation.md, `model` and `at`), so of its results
 * only that artifact is accepted: otherwise the best of a training's snapshots could be scored in
 * the place of its last model. Reads no file but through the caller's lookup.
 */
#ifndef PREREG_TASK_TASK_INPUTS_H
#define PREREG_TASK_TASK_INPUTS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"

/* Looks up a stage by name: *known, whether the result's own stage comes after it; *result, its
 * accepted result, which the caller deletes, or NULL where nothing can be compared with it. */
typedef int (*task_input_find)(const void *ctx, const char *stage, bool *known, cJSON **result,
                               struct err *err);

/* The task whose result it is. All borrowed. */
struct task_inputs {
    const struct plan_program *program;
    const struct lock *lock;
    size_t cell;
    size_t stage;
    task_input_find find; /* NULL: not of a grid, any stage may be named */
    const void *ctx;      /* its first argument */
};

/* What a result states as its artifacts; of one that is taken from an earlier receipt, what it
 * states of those that stayed there. NULL: none. */
const cJSON *task_artifacts(const cJSON *result);

/* Checks the member "inputs" of `result`. ERR_LOCK: it read other bytes than were accepted, with
 * the expected and the found digest; ERR_PROTOCOL: it is not well formed, names a stage that its
 * own does not come after, or is of prereg-eval and does not name the model that it scored. Errors
 * of the lookup are returned as they are. */
int task_inputs_check(const struct task_inputs *t, const cJSON *result, struct err *err) MUST_CHECK;

#endif
