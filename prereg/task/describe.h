/*
 * What the workers report about a program before anything runs: `COMMAND --describe task.json`,
 * once for every condition and stage (worker-protocol.md). Equal tasks are asked once.
 *
 * The answer is one tree, CONDITION -> STAGE -> object:
 *   {"metrics":[...],"facts":{...},"seconds":N,"params":{...},"resolves":{...}}
 *                                                                members absent when not reported
 *   null                                                          the worker does not describe
 * and DESCRIBE_APPARATUS -> NAME -> {"seconds":N} of the apparatus checks that our workers answer
 * for.
 * Only `check` and `lock` call this; with `--no-run` they do not.
 */
#ifndef PREREG_TASK_DESCRIBE_H
#define PREREG_TASK_DESCRIBE_H

#include <cjson/cJSON.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/err.h"
#include "prereg/program/program.h"

#define DESCRIBE_TIMEOUT_MS    ((int64_t)300000) /* imports of a large venv from a cold disk */
#define DESCRIBE_APPARATUS     "apparatus"       /* beside the conditions, whose names have a "=" */
#define DESCRIBE_OUT_BYTES_MAX ((size_t)1 << 20)

/* Every worker's answer; see the tree above. */
struct describe {
    cJSON *json;    /* never NULL after describe_run() */
    size_t n_asked; /* processes that were run */
};

/* How the workers are asked. */
struct describe_how {
    int64_t timeout_ms; /* of one worker; <= 0: DESCRIBE_TIMEOUT_MS */
    const char *rates;  /* the file in which our workers keep what they measure; NULL: none */
};

/* Asks all workers, one after another, in a temporary folder. What a worker finds wrong with its
 * parameters, a missing worker, a malformed answer, a crash: each becomes an error in `diag` at
 * the stage's place, once however many conditions share it. A worker that ends with 0 or 64
 * without printing an object does not describe: a warning. A stage with `describe = false` is
 * not asked. A solved value for a parameter that differs between replicates is an error. Fails
 * only where the machine does; `out` is to be released in any case. */
int describe_run(const struct plan_program *p, const struct describe_how *how, struct describe *out,
                 struct diag *diag, struct err *err) MUST_CHECK;
void describe_release(struct describe *d);

/* The object of (condition, stage); NULL when the worker does not describe or was not asked. `json`
 * is struct describe's or struct lock's. */
const cJSON *describe_find(const cJSON *json, const struct plan_program *p, size_t condition,
                           size_t stage);
/* The time of one run of an apparatus check, the first or the second; where its worker does not
 * say, that of its stage in the first condition; NaN when neither is known. */
double describe_check_seconds(const cJSON *json, const struct plan_program *p,
                              const struct plan_apparatus *check);
/* A number among the facts of such an object (which may be NULL); false when unknown. */
bool describe_fact(const cJSON *answer, const char *fact, double *out);
/* Every measure's (and apparatus') metric must be one that its stage says it yields: errors with
 * the nearest known name. Stages that do not describe are not judged. */
void describe_check_metrics(const struct plan_program *p, const cJSON *json, struct diag *diag);
/* A measure's `items` must be the number that its stage scores, where the stage reports one (the
 * fact `items`): a score over other items is not the plan's, and would be undetermined in the
 * end. A metric of a group ("acc:stem") may be over fewer. json NULL: no worker was asked, which
 * is a note. */
void describe_check_items(const struct plan_program *p, const cJSON *json, struct diag *diag);
/* No stage may be allowed less memory ([run] memory) than its worker cannot do without: the fact
 * `memory_least_bytes`, else `memory_bytes`. With machine_bytes (0: whatever machine), none may
 * need more than that either. Errors. */
void describe_check_memory(const struct plan_program *p, const cJSON *json, double machine_bytes,
                           struct diag *diag);
/* What a stage says that it reads of another ("reads") must be among what that stage says that it
 * leaves ("artifacts"), at every condition. Errors. */
void describe_check_reads(const struct plan_program *p, const cJSON *json, struct diag *diag);
/* Where a measure is the step of a target, both arms of a contrast must look for it as often (the
 * fact target_resolution). Warnings. */
void describe_check_resolution(const struct plan_program *p, const cJSON *json, struct diag *diag);

#endif
