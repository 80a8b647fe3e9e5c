/*
 * Horizons and learning rates. All fractions are of the horizon's steps.
 *   steps = floor(T / batch_tokens), T = tokens (fixed), ratio x P_active (active) or ratio x
 *   P_total (total; of these two, a millionth short of a whole step is that step)
 *   fraction f of a horizon is round(f x steps)
 */
#ifndef WORKER_TRAIN_SCHEDULE_H
#define WORKER_TRAIN_SCHEDULE_H

#include <stdint.h>

#include "worker/model/config.h"

#define HORIZON_TAIL 0.1 /* of the steps: what the routers' facts are about */

enum contract { CONTRACT_FIXED, CONTRACT_ACTIVE, CONTRACT_TOTAL, CONTRACT_NR };
enum schedule_kind { SCHEDULE_COSINE, SCHEDULE_WSD, SCHEDULE_CONSTANT, SCHEDULE_NR };

struct horizon {
    enum contract contract;
    int64_t tokens; /* CONTRACT_FIXED */
    double ratio;   /* the others: tokens per parameter */
    double stop;    /* the run ends at this fraction of the steps; 0 or 1: at the last one */
};

struct schedule {
    enum schedule_kind kind;
    double warmup; /* rises linearly from 0 over this fraction */
    double floor;  /* the last step's rate, as a fraction of the peak */
    double decay;  /* wsd: the last fraction falls linearly to the floor */
};

/* Tokens that the contract asks for; a fraction for the ratios. */
double horizon_tokens(const struct horizon *h, const struct model_config *cfg);
/* Whole steps, rounded down; 0 when the horizon is shorter than one. */
int64_t horizon_steps(const struct horizon *h, const struct model_config *cfg,
                      int64_t batch_tokens);
/* The step at a fraction of the horizon, rounded to nearest. */
int64_t horizon_fraction(int64_t steps, double fraction);

/* The first step (from 0) of the tail. */
int64_t horizon_tail_begin(int64_t steps);
/* The steps of `steps` that a run makes: up to the stop. */
int64_t horizon_end(const struct horizon *h, int64_t steps);

/* The factor on the peak rate at step 0 .. steps - 1. */
double schedule_factor(const struct schedule *s, int64_t step, int64_t steps);

/* The factor on the balance weight at step 0 .. steps - 1: from 1 to `end`, linear. */
double schedule_anneal(double end, int64_t step, int64_t steps);

#endif
