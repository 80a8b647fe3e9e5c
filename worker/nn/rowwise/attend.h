/*
 * Causal attention of a few queries over keys and values that are in a cache already: what
 * worker/nn/attention.h does for whole sequences, for a caller who needs a row's result to depend
 * on its query and on the keys up to its position alone (worker/nn/product/tile.h).
 *
 * out_i = sum_{j <= i} e^(s_ij - m_i) v_j / sum_{j <= i} e^(s_ij - m_i),  s_ij = q_i k_j / sqrt(D),
 * m_i = max_j s_ij. Sums over j run from position 0: that of the weights in lanes j mod NN_LANES,
 * that of the values in order.
 *
 * qkv as in worker/nn/attention.h: rows of (H + 2 G) D. A cache has room for `context` positions of
 * one layer: per group keys turned in blocks of ATTEND_BLOCK positions, (D, ATTEND_BLOCK), then per
 * group values, (context, D rounded up to TILE_COLS). It begins as zeros; positions beyond a
 * query's own never affect its result, whatever they hold.
 */
#ifndef WORKER_NN_ROWWISE_ATTEND_H
#define WORKER_NN_ROWWISE_ATTEND_H

#include <stddef.h>

#include "worker/nn/real.h"

#define ATTEND_BLOCK 64

struct attend_dims {
    size_t heads;   /* H */
    size_t groups;  /* G, divides H */
    size_t dim;     /* D */
    size_t context; /* positions of the cache */
};

/* Elements of a cache, and of the scratch. */
size_t attend_cache(const struct attend_dims *dims);
size_t attend_scratch(const struct attend_dims *dims);

/* Stores the keys and values of n rows as positions first .. first + n - 1. */
void attend_store(real *restrict cache, const real *restrict qkv, size_t n, size_t first,
                  const struct attend_dims *dims);
/* Positions 0 .. n - 1 of one cache to another, which may have another context. */
void attend_copy(real *restrict to, size_t to_context, const real *restrict from, size_t n,
                 const struct attend_dims *dims);
/* out (n, H D): n queries at positions first .., all of which are in the cache. */
void attend_forward(real *restrict out, const real *restrict qkv, size_t n, size_t first,
                    const real *restrict cache, real *restrict scratch,
                    const struct attend_dims *dims);

#endif
