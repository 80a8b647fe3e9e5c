/*
 * h = silu(g) u, silu(g) = g / (1 + e^-g).  gu (N, 2F): g in the first F columns, u in the last; h
 * (N, F). With s = 1 / (1 + e^-g):  dg = dh u s (1 + g (1 - s));  du = dh g s.
 *
 * The gradient takes the place of gu, which nothing needs afterwards.
 */
#ifndef WORKER_NN_SWIGLU_H
#define WORKER_NN_SWIGLU_H

#include <stddef.h>

#include "worker/nn/real.h"

void swiglu_forward(real *restrict h, const real *restrict gu, size_t n, size_t f);
/* Turns gu into its gradient. */
void swiglu_backward(real *restrict gu, const real *restrict dh, size_t n, size_t f);

#endif
