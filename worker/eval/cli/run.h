/*
 * prereg-eval: one evaluation task from task.json to result.json, and its description.
 *
 * Resumed equals uninterrupted: items.jsonl and the metrics have the same bytes however often the
 * run was broken off. Scores go to items.jsonl and result.json only (invariant 8).
 */
#ifndef WORKER_EVAL_CLI_RUN_H
#define WORKER_EVAL_CLI_RUN_H

#include <stdio.h>

#include "base/err.h"
#include "worker/report/task.h"

/* What outcomes follow from besides model, parameters and data; changed whenever a score or
 * the form of a line may change. */
#define EVAL_ENGINE "prereg-eval 5"

/* ERR_BUSY when asked to stop: what is done so far is on disk. */
int eval_run(const struct worker_task *task, struct err *err) MUST_CHECK;
/* Prints a line for each of the n tasks; faults in parameters and data are part of it. */
int eval_describe(char *const *paths, size_t n, FILE *out, struct err *err) MUST_CHECK;

#endif
