/*
 * Stochastic gradient descent with momentum, as torch.optim.SGD computes it:
 *   d = g + decay p;  m = momentum m + d;
 *   p -= lr m, or with Nesterov's momentum p -= lr (d + momentum m),  with g already scaled by
 * `clip`.
 */
#ifndef WORKER_NN_SGD_H
#define WORKER_NN_SGD_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/nn/real.h"

struct sgd {
    double lr;
    double momentum;
    double decay; /* 0 for tensors that do not decay */
    double clip;  /* what gradients are multiplied by */
    bool nesterov;
};

/* Updates n parameters and their momentum in place, and sets their gradients to zero. */
void sgd_update(real *restrict p, real *restrict m, real *restrict g, size_t n,
                const struct sgd *opt);

#endif
