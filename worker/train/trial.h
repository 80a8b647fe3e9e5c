/*
 * A trainer that is built to be timed: options as a task's defaults are, and random tokens.
 *
 * trial_seconds() is the estimate of a training's time. It measures a few steps of the model itself
 * on this machine, or of one with fewer layers where it is large, and keeps what it found
 * (worker/report/machine_rates.h).
 */
#ifndef WORKER_TRAIN_TRIAL_H
#define WORKER_TRAIN_TRIAL_H

#include "base/strbuf.h"
#include "worker/train/data.h"
#include "worker/train/options.h"

#define TRIAL_WINDOWS 64 /* sequences of each of the batch that the random text is long */

/* Only sizes, batch (sequences, in one pass) and precision matter for speed. */
struct train_options trial_options(const struct model_config *cfg, int64_t batch, int64_t steps,
                                   enum product_precision precision);
/* One source; train_data_release() it. */
void trial_data(struct train_data *data, const struct model_config *cfg, int64_t batch);

/* What a task's steps and evaluations take, with the task's threads. Without a file of rates
 * nothing is measured, and a usual processor is assumed. So it is where a measurement would take
 * too much (machine_rates_allowed()) or fails; then the reason is appended to `why`. */
double trial_seconds(const struct worker_task *task, const struct train_options *opt,
                     struct strbuf *why);

#endif
