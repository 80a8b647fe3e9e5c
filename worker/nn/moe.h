/*
 * The mixture itself: tokens are grouped by expert, with one product per expert and matrix. Experts
 * take any number of tokens, or up to a capacity: what is over it is dropped, adds nothing to the
 * token's output and has no gradient. First choices come before second ones, and earlier tokens
 * before later ones.
 *
 *   y_n = sum_k w_nk expert_(chosen_nk)(x_n);  expert_e(x) = Wd_e swiglu(Wgu_e x)
 *
 * Wgu (E, 2 Fe, C): per expert the gate's rows, then up's; Wd (E, C, Fe). Grouped arrays have a row
 * for each assignment: inputs xg, gu, h, outputs yg, and the plan says which. Backward:
 *
 *   dw_nk = dy_n yg_(place nk);  dyg = w dy;  each expert's three layers;  dx_n = sum_k dxg
 */
#ifndef WORKER_NN_MOE_H
#define WORKER_NN_MOE_H

#include <stddef.h>
#include <stdint.h>

#include "worker/nn/pass_clock.h"
#include "worker/nn/product/product.h"
#include "worker/nn/real.h"

struct moe_dims {
    size_t n;
    size_t width;
    size_t experts;
    size_t top_k;
    size_t ffn;
    size_t capacity;                  /* assignments that an expert takes; 0: any number */
    enum product_precision precision; /* of the experts */
    struct pass_clock *clock;         /* NULL unless the pass is measured */
};

/* Where the assignments went: place (N, K) is the row in the grouped arrays, first (E + 1) each
 * expert's range, and source (N K) the token of each row, NULL where it is not wanted. Dropped
 * assignments have the rows from first[E] on. */
struct moe_plan {
    uint32_t *place;
    uint32_t *first;
    uint32_t *source;
};

/* Activations of one layer. The backward pass needs gu and yg as they were left, and turns them
 * into their gradients. xg and h are those of one expert at a time, at most N rows: it recomputes
 * them, and layers may share them. */
struct moe_kept {
    real *xg; /* (N, C) */
    real *gu; /* (N K, 2 Fe) */
    real *h;  /* (N, Fe) */
    real *yg; /* (N K, C) */
};

/* From the choices (N, K) and the number of assignments of each expert (E); returns how many of
 * them are dropped. */
size_t moe_plan_make(struct moe_plan *plan, const uint32_t *restrict chosen,
                     const uint32_t *restrict counts, const struct moe_dims *dims);

/* The experts' outputs, yg, of the inputs x (N, C). */
void moe_forward(const struct moe_kept *kept, const struct moe_plan *plan, const real *restrict x,
                 const real *restrict wgu, const real *restrict wd, const struct moe_dims *dims);

/* y (N, C) = base + the outputs, weighed: the residual stream is the first term of the sum. y may
 * be where xg is. */
void moe_combine(real *restrict y, const real *restrict base, const struct moe_kept *kept,
                 const struct moe_plan *plan, const real *restrict weights,
                 const struct moe_dims *dims);

/* Where the gradients go: dx (N, C) added to, dw (N, K) overwritten, dwgu and dwd added to. */
struct moe_gradient {
    real *dx;
    real *dw;
    real *dwgu;
    real *dwd;
};

/* x, weights and the plan are those of the forward pass; dy (N, C). gu and yg of kept are used up.
 */
void moe_backward(const struct moe_gradient *grad, const real *restrict dy,
                  const struct moe_kept *kept, const struct moe_plan *plan, const real *restrict x,
                  const real *restrict weights, const real *restrict wgu, const real *restrict wd,
                  const struct moe_dims *dims);

#endif
