/*
 * The steps of attention between its products, on the rows of one tile (worker/nn/attention.c).
 *
 * Row i of a tile belongs to query first + i and holds a number for each key 0 .. first + i. Rows
 * are worked on in strips of TILE_ROWS: weights beyond a query's own key are zero up to the last
 * key of its strip, and nothing reads further. Rows must have room for whole vectors of NN_LANES.
 */
#ifndef WORKER_NN_ATTENTION_ROWS_H
#define WORKER_NN_ATTENTION_ROWS_H

#include <stddef.h>

#include "worker/nn/real.h"

#define ATTENTION_TILE 30 /* queries: strips of TILE_ROWS */

/* Queries first .. first + rows - 1; rows <= ATTENTION_TILE. */
struct attention_tile {
    size_t first;
    size_t rows;
};

/* to = scale from, for n rows of d columns. */
void attention_scale(real *restrict to, size_t to_ld, const real *restrict from, size_t from_ld,
                     real scale, size_t n, size_t d);
/* delta_i = a_i b_i, for n rows of d columns that are ld apart. */
void attention_dots(real *restrict delta, const real *restrict a, const real *restrict b, size_t ld,
                    size_t n, size_t d);
/* Scores s to weights, and the logarithm of each row's sum of exponentials to lse. */
void attention_soften(real *restrict s, size_t ld, real *restrict lse, size_t lse_step,
                      const struct attention_tile *tile);
/* Scores in p to weights by lse; ds from p, dp (in ds) and delta. */
void attention_soften_backward(real *restrict p, real *restrict ds, size_t ld,
                               const real *restrict lse, size_t lse_step,
                               const real *restrict delta, const struct attention_tile *tile);

#endif
