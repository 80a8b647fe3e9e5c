/*
 * A training step over again, from docs/arithmetic.md and the equations of worker/model/tensors.h:
 * what worker/train/trainer.h computes, one number after another. The layout of the parameters
 * (struct tensor_table) is worker/model's; no kernel is.
 */
#ifndef TESTS_UNIT_WORKER_TRAIN_SECOND_STEP_H
#define TESTS_UNIT_WORKER_TRAIN_SECOND_STEP_H

#include "worker/model/tensors.h"
#include "worker/train/options.h"

struct second {
    const struct train_options *opt;
    struct tensor_table table;
    float *p, *g, *m, *v;     /* (n_params); v is zero where AdamW does not update */
    float *bias;              /* (layers, E) */
    uint64_t *counts, *since; /* (layers, E) assignments: of this step, since the last resets */
    uint32_t resets;
};

/* Draws the initial weights. */
void second_init(struct second *s, const struct train_options *opt);
void second_release(struct second *s);
/* Returns the loss. tokens and targets: of the whole batch, sequence by sequence. */
double second_step(struct second *s, const uint32_t *tokens, const uint32_t *targets, int64_t step);

/* --- second_optimiser.c --- */

/* In parts of 65,536. */
double second_norm_squared(const float *x, size_t n);
/* factor: the schedule's; clip: what gradients are multiplied by. */
void second_update(struct second *s, double factor, float clip, int64_t step);

/* --- second_pass.c --- */

/* Adds the gradients of `batch` sequences, a pass; returns its mean cross-entropy. share: of the
 * step's sequences; balance and z: the weights of the two losses at this step. */
struct second_pass {
    const uint32_t *tokens, *targets;
    size_t batch;
    uint64_t first_token; /* of the run */
    double share, balance, z;
};
double second_gradient(struct second *s, const struct second_pass *pass);

/* ln p of tokens first .. n - 1, as worker/model/score.h has it. */
double second_score(struct second *s, const uint32_t *tokens, size_t n, size_t first);

#endif
