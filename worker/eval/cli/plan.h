/*
 * prereg-eval --plan: what a run would ask, what it would cost, and how long it would take here.
 *
 * Every request is made and counted as the run would make it, through the same batches; only the
 * model's arithmetic is left out. Its rates are measured for about a second.
 */
#ifndef WORKER_EVAL_CLI_PLAN_H
#define WORKER_EVAL_CLI_PLAN_H

#include <stdio.h>

#include "base/err.h"
#include "worker/report/task.h"

/* The arguments after --plan: the path of a task.json; or the name of a task, or the path of a
 * description, with --data and --model. ERR_USAGE. The caller releases the task. */
int plan_read_arguments(int argc, char **argv, struct worker_task *task,
                        struct err *err) MUST_CHECK;
/* Prints the plan. */
int eval_plan(const struct worker_task *task, FILE *out, struct err *err) MUST_CHECK;

#endif
