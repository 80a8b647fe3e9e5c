/*
 * What a worker leaves in result.json: whether its form is right, its artifacts are there with the
 * digests it states, its inputs are as locked or accepted, and every metric that the plan names is
 * in it. The daemon accepts no other (invariant 1), and a try judges by the same rules. Blocking.
 * Of values only the form is checked.
 */
#ifndef PREREG_TASK_TASK_RESULT_H
#define PREREG_TASK_TASK_RESULT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/files/digest.h"
#include "prereg/lock/lock.h"
#include "prereg/lock/pin.h"
#include "prereg/program/program.h"
#include "prereg/task/task_inputs.h"

/* The result that is expected. */
struct task_result {
    const struct plan_program *program;
    const struct lock *lock;
    size_t cell; /* of an apparatus check: ignored */
    size_t stage;
    const struct plan_apparatus
        *check;                 /* an apparatus check: its metric alone must be there; or NULL */
    const char *folder;         /* of the attempt */
    const char *attempt;        /* its id */
    task_input_find find_input; /* NULL: not of a grid, "inputs" may name any stage */
    const void *inputs;         /* its first argument */
};

/* Reads and checks result.json of an attempt that has ended. ERR_LOCK: well formed, but it read
 * other bytes than were locked or accepted; ERR_IO and ERR_NO_SPACE: nothing is known. *out is the
 * caller's, NULL on an error; *digest is of the file's bytes. */
int task_result_read(const struct task_result *t, struct digest *digest, cJSON **out,
                     struct err *err) MUST_CHECK;

/* Whether the data that a result says it read are the locked ones: ERR_LOCK names those that are
 * not. */
int task_result_check_read(const struct lock *lock, const cJSON *result,
                           struct err *err) MUST_CHECK;

/* For a task that is another name of a work: whether its result is that of the work, whose
 * result.json was accepted with that digest, in all but "attempt", and says so in "same_work".
 * ERR_PROTOCOL names what is not. */
int task_result_check_same(const cJSON *result, const cJSON *work, const struct digest *accepted,
                           struct err *err) MUST_CHECK;
/* For any other task: ERR_PROTOCOL when its result says that another task did its work, or that it
 * is from an earlier receipt. */
int task_result_check_own(const cJSON *result, struct err *err) MUST_CHECK;

/* Whether the artifacts of a result are in the attempt's folder as it states them; ERR_PROTOCOL
 * names the one that is not. cache may be NULL: every one is read. */
int task_result_check_artifacts(const cJSON *result, const char *folder, struct pin_cache *cache,
                                struct err *err) MUST_CHECK;

/* The same without reading them: there, and of the size that it states. *n counts them. */
int task_result_glance_artifacts(const cJSON *result, const char *folder, size_t *n,
                                 struct err *err) MUST_CHECK;

#endif
