/* From a finished run to result.json: metrics, facts, what was read, the model as artifact. */
#ifndef WORKER_TRAIN_TRAIN_RESULT_H
#define WORKER_TRAIN_TRAIN_RESULT_H

#include "worker/report/environment.h"
#include "worker/report/task.h"
#include "worker/train/evaluate.h"

#define METRIC_NAME_SIZE 160

/* A fact: steps between the evaluations that look for the target. */
#define TARGET_RESOLUTION "target_resolution"
/* A fact of a run with Muon: the part of flops_per_token that is the optimiser's. */
#define OPTIMISER_FLOPS "optimizer_flops_per_token"

/* "METRIC:SOURCE" */
void train_result_source_name(const char *metric, const char *source, char name[METRIC_NAME_SIZE]);

/* Names of the metrics a task yields, in order, through add(). */
void train_result_metric_names(const struct train_options *opt,
                               void (*add)(void *ctx, const char *name), void *ctx);

/* What the chosen products and kernels compute with. */
struct worker_environment train_environment(int threads);

/* Saves the model under model/ and writes result.json. `seconds` went into steps and evaluations.
 */
int train_result_write(const struct trainer *t, const struct train_evaluation *last,
                       const struct worker_task *task, double seconds, struct err *err) MUST_CHECK;

#endif
