/*
 * The time of an evaluation before there is a model: its requests are counted as --plan counts them
 * (on a part of the items where they are many), at rates that were measured on this machine with
 * random weights of the model's shape, and kept (worker/report/machine_rates.h).
 */
#ifndef WORKER_EVAL_CLI_ESTIMATE_H
#define WORKER_EVAL_CLI_ESTIMATE_H

#include "worker/eval/cli/scored_model.h"
#include "worker/eval/score/benchmark.h"
#include "worker/model/score.h"

struct estimate_of {
    const struct worker_task *task;
    const struct benchmark *bench;
    const struct benchmark_size *size; /* of bench */
    const struct eval_options *options;
    const struct scored_model_look *look; /* with a shape and a tokenizer */
    struct strbuf *why;                   /* gets the reason why nothing was measured, if so */
};

/* Without a file of rates nothing is measured, and a usual processor is assumed. So it is where a
 * measurement would take too much (machine_rates_allowed()) or fails; then x->why has the reason.
 */
int estimate_seconds(const struct estimate_of *x, double *seconds, struct err *err) MUST_CHECK;
/* Of counted requests at these rates, with the start of the process. */
double estimate_of_counts(const struct score_cost *cost, const struct score_rates *rates,
                          const struct model_config *cfg);

#endif
