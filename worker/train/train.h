/* prereg-train's two jobs: running a task (docs/worker-protocol.md), and describing one before it
 * runs. */
#ifndef WORKER_TRAIN_TRAIN_H
#define WORKER_TRAIN_TRAIN_H

#include <stdio.h>

#include "base/err.h"
#include "worker/report/task.h"

/* In the attempt's folder. ERR_BUSY: checkpointed after SIGTERM. Codes map by worker_exit_code().
 */
int train_run(const struct worker_task *task, struct err *err) MUST_CHECK;

/* Prints the description; faults in the parameters are part of it, not an error. */
int train_describe(const struct worker_task *task, FILE *out, struct err *err) MUST_CHECK;
/* Prints exact counts of the model in a file of a stage's parameters, or of a task: total, active,
 * active ffn, FLOPs a token; of one with a horizon, steps and tokens too. Other keys are ignored.
 * ERR_USAGE. */
int train_count(const char *path, FILE *out, struct err *err) MUST_CHECK;

#endif
