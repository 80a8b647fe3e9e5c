/*
 * Rotary positions, Hugging Face's layout: dimension i of a head pairs with i + D/2.
 * (a, b) at position t -> (a cos - b sin, b cos + a sin), angle t * theta^(-2 i / D).
 * The derivative is the rotation back.
 */
#ifndef WORKER_NN_ROPE_H
#define WORKER_NN_ROPE_H

#include <stddef.h>

#include "worker/nn/real.h"

/* table (T, D): per position D/2 cosines, then D/2 sines; theta >= 1, T <= 2^24. */
void rope_table(real *table, double theta, size_t t, size_t d);

/* Rotates in place the first `heads` heads of D of every row of x; rows are ld apart, n of them,
 * row r at position r % t. */
void rope_forward(real *restrict x, const real *restrict table, size_t n, size_t t, size_t heads,
                  size_t d, size_t ld);
/* The rotation back, in place on the gradient. */
void rope_backward(real *restrict dx, const real *restrict table, size_t n, size_t t, size_t heads,
                   size_t d, size_t ld);

#endif
