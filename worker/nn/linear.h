/*
 * y = x W^T.  x (N, I), W (O, I), y (N, O).
 * dx = dy W;  dW = dy^T x.
 */
#ifndef WORKER_NN_LINEAR_H
#define WORKER_NN_LINEAR_H

#include <stddef.h>

#include "worker/nn/real.h"

/* y = beta y + x W^T: beta 0 writes, 1 adds. */
void linear_forward(real *restrict y, real beta, const real *restrict x, const real *restrict w,
                    size_t n, size_t in, size_t out);
/* dx = beta dx + dy W: beta 0 writes (the first part of a sum), 1 adds. */
void linear_backward_input(real *restrict dx, real beta, const real *restrict dy,
                           const real *restrict w, size_t n, size_t in, size_t out);
/* dW += dy^T x */
void linear_backward_weight(real *restrict dw, const real *restrict dy, const real *restrict x,
                            size_t n, size_t in, size_t out);

#endif
