/*
 * The router of a mixture block. logits r (N, E) = x Wr^T; p = softmax(r); the K experts with the
 * largest r + bias are chosen (ties to the lower index); their weights are p, or p / sum of the
 * chosen p when `renormalise`. In training the logits may have had noise added, which has no
 * gradient.
 *
 * Losses, per layer. Their weights alpha and beta are given already divided by the number of
 * layers and multiplied by the share of the batch that these tokens are:
 *
 *   balance  alpha E sum_e f_e P_e;  P_e = mean_n p_ne;
 *            f_e = assignments of e / (N K), which has no gradient
 *   z        beta mean_n (lse_n)^2
 *
 * Backward:
 *
 *   dp_j of the chosen j: (dw_j - sum_k dw_k w_k) / s when renormalised, else dw_j;
 *                         s is the sum of the chosen p
 *   dp_e of every e:      + alpha E f_e / N
 *   dr_e = p_e (dp_e - sum_j p_j dp_j) + 2 beta lse p_e / N
 */
#ifndef WORKER_NN_ROUTER_H
#define WORKER_NN_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/nn/real.h"

#define ROUTER_EXPERTS_MAX 1024

struct router_dims {
    size_t n;
    size_t experts;
    size_t top_k;
    bool renormalise;
};

/* What a forward pass saw, added up over calls. */
struct router_stats {
    uint64_t *counts; /* (E) assignments */
    double *p_sum;    /* (E) */
    double z_sum;     /* of squared lse */
    double balance;   /* E sum f P of the last call */
    double z;         /* mean squared lse of the last call */
    uint64_t tokens;
    uint64_t dropped; /* assignments over the capacity; the mixture counts them */
};

/* logits become p in place. bias (E) may be NULL. lse (N), chosen and weights (N, K). call_counts
 * (E) are this call's assignments. stats may be NULL. */
void router_forward(real *restrict logits_to_p, real *restrict lse, uint32_t *restrict chosen,
                    real *restrict weights, uint32_t *restrict call_counts,
                    const real *restrict bias, struct router_stats *stats,
                    const struct router_dims *dims);

struct router_weights {
    double balance;
    double z;
};

/* dr (N, E) is overwritten from dw (N, K). */
void router_backward(real *restrict dr, const real *restrict dw, const real *restrict p,
                     const real *restrict lse, const uint32_t *restrict chosen,
                     const real *restrict weights, const uint32_t *restrict call_counts,
                     const struct router_weights *loss, const struct router_dims *dims);

#endif
