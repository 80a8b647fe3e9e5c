/*
 * y_i = x_i s w_i, s = 1 / sqrt(mean_i x_i^2 + eps), per row.  x, y (N, C), w (C); s is kept as
 * rstd (N).
 *
 * With g_i = dy_i w_i and m = mean_i(g_i x_i):  dx_i = s g_i - x_i s^3 m;  dw_i = sum over rows of
 * dy_i x_i s.
 */
#ifndef WORKER_NN_RMSNORM_H
#define WORKER_NN_RMSNORM_H

#include <stddef.h>

#include "worker/nn/real.h"

void rmsnorm_forward(real *restrict y, real *restrict rstd, const real *restrict x,
                     const real *restrict w, real eps, size_t n, size_t c);
/* Adds to dx and dw. */
void rmsnorm_backward(real *restrict dx, real *restrict dw, const real *restrict dy,
                      const real *restrict x, const real *restrict w, const real *restrict rstd,
                      size_t n, size_t c);

#endif
