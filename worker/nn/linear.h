/*
 * y = x W^T.  x (N, I), W (O, I), y (N, O).
 * dx = dy W;  dW = dy^T x.
 */
#ifndef WORKER_NN_LINEAR_H
#define WORKER_NN_LINEAR_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/nn/product/product.h"
#include "worker/nn/real.h"

struct linear_dims {
    size_t n;
    size_t in;  /* I */
    size_t out; /* O */
    enum product_precision precision;
};

/* y = x W^T; add: y += x W^T. */
void linear_forward(real *restrict y, bool add, const real *restrict x, const real *restrict w,
                    const struct linear_dims *dims);
/* dx = dy W; add: dx += dy W. */
void linear_backward_input(real *restrict dx, bool add, const real *restrict dy,
                           const real *restrict w, const struct linear_dims *dims);
/* dW += dy^T x */
void linear_backward_weight(real *restrict dw, const real *restrict dy, const real *restrict x,
                            const struct linear_dims *dims);

#endif
