/*
 * lm-evaluation-harness's names for what our task descriptions express.
 */
#ifndef WORKER_EVAL_HARNESS_HARNESS_NAMES_H
#define WORKER_EVAL_HARNESS_HARNESS_NAMES_H

#include "base/json/pyjson.h"
#include "worker/eval/task/spec.h"

#define HARNESS_MODEL_SOURCE "prereg-eval"

/* The order in which the harness lists what it computed. */
extern const enum metric_kind harness_metric_order[METRIC_NR];

const char *harness_filter_name(const struct task_metric *m); /* "none" without a filter */
const char *harness_aggregation(enum metric_kind kind);
bool harness_higher_is_better(enum metric_kind kind);
/* "multiple_choice", "loglikelihood", ... */
const char *harness_output_type(enum task_kind kind);

/* generation_kwargs; max_tokens only where it is not the harness's own default. */
void harness_add_generation(const struct task_spec *spec, int max_tokens, struct pyjson *w);
/* Integers and decimals verbatim; anything else as a text. */
void harness_add_version(struct pyjson *w, const char *version);

#endif
