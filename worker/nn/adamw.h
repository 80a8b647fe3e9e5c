/*
 * AdamW (Loshchilov & Hutter 2019), bias-corrected, one fused pass:
 *   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
 *   p -= lr (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + decay p),  with g already scaled by
 * `clip`.
 */
#ifndef WORKER_NN_ADAMW_H
#define WORKER_NN_ADAMW_H

#include <stddef.h>
#include <stdint.h>

#include "worker/nn/real.h"

struct adamw {
    double lr;
    double beta1;
    double beta2;
    double eps;
    double decay; /* 0 for tensors that do not decay */
    double clip;  /* what gradients are multiplied by */
    int64_t t;    /* this update's number, from 1 */
};

/* Updates n parameters and their moments in place, and sets their gradients to zero. */
void adamw_update(real *restrict p, real *restrict m, real *restrict v, real *restrict g, size_t n,
                  const struct adamw *opt);

#endif
