/*
 * Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon): the momentum of a matrix is
 * replaced by a nearly orthogonal matrix with the same singular vectors.
 *   m = momentum m + (1 - momentum) g;
 *   u = m, or with Nesterov's momentum (1 - momentum) g + momentum m;
 *   X = u / (||u|| + 1e-7), ||u|| the root of the sum of squares; five times
 *     A = X X^T,  X = a X + (b A + c A A) X,  a = 3.4445, b = -4.775, c = 2.0315,
 *   which takes each singular value s to a s + b s^3 + c s^5, and after five times to about 1;
 *   p = (1 - lr decay) p - lr sqrt(max(1, rows / cols)) X,  with g already scaled by `clip`.
 * A matrix of more rows than columns is multiplied from the other side, A = X^T X, which is the
 * same in exact numbers and in ours (A is symmetric to the bit).
 */
#ifndef WORKER_NN_MUON_H
#define WORKER_NN_MUON_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/nn/product/product.h"
#include "worker/nn/real.h"

struct muon {
    double lr;
    double momentum;
    double decay;
    double clip; /* what gradients are multiplied by */
    bool nesterov;
    enum product_precision precision; /* of the products of X and A */
};

/* Numbers of scratch that an update of a (rows, cols) matrix takes. */
size_t muon_scratch(size_t rows, size_t cols);
/* Multiplications and additions of its products. */
double muon_flops(size_t rows, size_t cols);

/* Updates a (rows, cols) matrix and its momentum in place, and sets its gradient to zero. Products
 * are shared out to threads by product(): not to be called from within nn_parallel(). */
void muon_update(real *restrict p, real *restrict m, real *restrict g, real *restrict scratch,
                 size_t rows, size_t cols, const struct muon *opt);

#endif
