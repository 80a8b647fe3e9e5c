/*
 * The routers over the course of a run: per mixture layer, at some ROUTER_SAMPLES steps spread
 * evenly and at the last one, what the step's own tokens did and how steady the choice is.
 *
 * Per layer a sample holds the share of the assignments of each expert, the entropy of the mean p
 * over ln E, the mean squared logsumexp, and `same`: of a fixed set of held-out tokens, the share
 * whose first choice (largest logit + bias) is after the step's update what it was before it. The
 * fixed set is up to ROUTER_PROBE_TOKENS tokens in sequences from the start of each source in turn.
 *
 * All of it is in the checkpoint (router.bin), so a resumed run ends with the same log. A dense run
 * has none.
 */
#ifndef WORKER_TRAIN_ROUTER_LOG_H
#define WORKER_TRAIN_ROUTER_LOG_H

#include "worker/model/run.h"
#include "worker/report/events.h"
#include "worker/train/data.h"
#include "worker/train/health.h"

#define ROUTER_SAMPLES      50
#define ROUTER_PROBE_TOKENS 512
#define ROUTER_LOG_FILE     "router.csv"

struct router_log {
    size_t layers; /* mixtures; 0: a dense run, and everything below is empty */
    int first_layer;
    size_t experts;
    int64_t steps;
    int64_t every;    /* steps between samples */
    float *values;    /* (samples, layers, E + 3): shares, entropy, z, same */
    uint32_t *tokens; /* (probe_batch, probe_length) */
    size_t probe_batch;
    size_t probe_length;
    uint32_t *before; /* (layers, probe tokens) first choices */
    uint32_t *after;
};

void router_log_init(struct router_log *log, const struct train_options *opt,
                     const struct train_data *data);
void router_log_release(struct router_log *log);

/* Whether the step that ends as number `step` (from 1) is sampled. */
bool router_log_is_due(const struct router_log *log, int64_t step);
/* Around a step that is due: the choices of the fixed set, before it and after it, and what the
 * step itself saw (stats per layer of the model). */
void router_log_before(struct router_log *log, struct run *run, const struct weights *w);
void router_log_after(struct router_log *log, struct run *run, const struct weights *w,
                      const struct router_stats *stats, int64_t step);
/* The newest sample as points of curves: each quantity's mean over the mixtures, "router_load" and
 * so on, and each layer's, "router_load:3". */
void router_log_say(const struct router_log *log, int64_t step, struct events *ev);

/* Numbers in values after `step` steps; and of a whole run. */
size_t router_log_length(const struct router_log *log, int64_t step);
double router_log_numbers(const struct train_options *opt);

/* One line a sample and layer, all of the first `step` steps. */
int router_log_write(const struct router_log *log, int64_t step, const char *path,
                     struct err *err) MUST_CHECK;
/* Mean of `same` over the samples after step `from` up to `step`; of one layer of the model, or of
 * all with -1. NaN without one. */
double router_log_same(const struct router_log *log, int64_t from, int64_t step, int layer);

#endif
