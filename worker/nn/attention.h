/*
 * Causal attention with grouped queries, over the packed projections of B sequences of T tokens
 * (N = B T rows).
 *
 * qkv (N, (H + 2 G) D): H query heads, then G key heads, then G value heads. Query head h reads
 * group h / (H / G). out is (N, H D), lse (N, H).
 *
 *   s_ij = q_i k_j / sqrt(D);  p_ij = e^(s_ij - lse_i);  out_i = sum_{j <= i} p_ij v_j
 *
 * Only lse is kept. The backward pass recomputes p, in tiles of ATTENTION_TILE queries against the
 * keys up to each query's own or a few more, so what is masked costs next to nothing:
 *
 *   dv_j = sum_i p_ij dout_i;  dp_ij = dout_i v_j;  ds_ij = p_ij (dp_ij - dout_i out_i)
 *   dq_i = sum_j ds_ij k_j / sqrt(D);  dk_j = sum_i ds_ij q_i / sqrt(D)
 */
#ifndef WORKER_NN_ATTENTION_H
#define WORKER_NN_ATTENTION_H

#include <stddef.h>

#include "worker/nn/attention_rows.h"
#include "worker/nn/real.h"

struct attention_dims {
    size_t batch;  /* B */
    size_t tokens; /* T */
    size_t heads;  /* H */
    size_t groups; /* G, divides H */
    size_t dim;    /* D */
};

/* Elements of the scratch that both passes need for each thread; tokens and dim of dims count. */
size_t attention_scratch(const struct attention_dims *dims);

/* scratch: for nn_threads() threads. */
void attention_forward(real *restrict out, real *restrict lse, const real *restrict qkv,
                       real *restrict scratch, const struct attention_dims *dims);
/* Overwrites dqkv, which has no other source of gradient and may be qkv itself: what a group reads
 * of its rows is copied before they are written. */
void attention_backward(real *dqkv, const real *restrict dout, const real *restrict out,
                        const real *restrict lse, const real *qkv, real *restrict scratch,
                        const struct attention_dims *dims);

#endif
