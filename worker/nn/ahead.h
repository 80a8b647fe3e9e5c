/*
 * Rows of several arrays that will be needed soon. Rows of one attention head are far apart, which
 * a processor does not foresee, so they are asked for a few at a time between products: memory
 * works while the processor multiplies. Nothing depends on it but time.
 */
#ifndef WORKER_NN_AHEAD_H
#define WORKER_NN_AHEAD_H

#include <stddef.h>

#include "worker/nn/real.h"

#define AHEAD_ARRAYS 8
#define AHEAD_LINE   (64 / sizeof(real))

struct ahead {
    const real *at[AHEAD_ARRAYS];
    size_t ld[AHEAD_ARRAYS];
    size_t n;    /* arrays */
    size_t cols; /* of each row */
    size_t row;  /* the next one */
    size_t rows; /* of each array */
};

/* Rows that are ld apart, from the one at `at` on. */
static inline void ahead_add(struct ahead *a, const real *at, size_t ld)
{
    a->at[a->n] = at;
    a->ld[a->n] = ld;
    a->n++;
}

/* Asks for the next row of every array, while there is one. */
static inline void ahead_fetch(struct ahead *a)
{
    for (size_t i = 0; a->row < a->rows && i < a->n; i++)
        for (size_t col = 0; col < a->cols; col += AHEAD_LINE)
            __builtin_prefetch(a->at[i] + a->row * a->ld[i] + col, 0, 2);
    a->row++;
}

#endif
