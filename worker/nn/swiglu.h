/*
 * h = silu(g) u, silu(g) = g / (1 + e^-g).  gu (N, 2F): g in the first F columns, u in the last; h
 * (N, F). With s = 1 / (1 + e^-g):  dg = dh u s (1 + g (1 - s));  du = dh g s.
 */
#ifndef WORKER_NN_SWIGLU_H
#define WORKER_NN_SWIGLU_H

#include <stddef.h>

#include "worker/nn/real.h"

void swiglu_forward(real *restrict h, const real *restrict gu, size_t n, size_t f);
/* Overwrites dgu: the two halves have no other source of gradient. */
void swiglu_backward(real *restrict dgu, const real *restrict dh, const real *restrict gu, size_t n,
                     size_t f);

#endif
