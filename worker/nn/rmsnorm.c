/*
 * The mean of squares is computed in double, as is the root: it scales a whole row, so its error
 * would show in every element. dx is added to what is there, because the residual stream's gradient
 * passes the norm by; the weights' gradient is summed over the rows in a second sweep.
 */
#include "worker/nn/rmsnorm.h"

#include "worker/nn/vec.h"

NN_BODY void rmsnorm_forward_body(real *restrict y, real *restrict rstd, const real *restrict x,
                                  const real *restrict w, real eps, size_t n, size_t c)
{
    for (size_t r = 0; r < n; r++) {
        const real *xr = x + r * c;
        real *yr = y + r * c;
        double mean = vec_sum_squares(xr, c) / (double)c;
        real s = (real)(1.0 / sqrt(mean + (double)eps));

        for (size_t i = 0; i < c; i++)
            yr[i] = xr[i] * s * w[i];
        rstd[r] = s;
    }
}

NN_KERNEL(rmsnorm_forward,
          (real *restrict y, real *restrict rstd, const real *restrict x, const real *restrict w,
           real eps, size_t n, size_t c),
          (y, rstd, x, w, eps, n, c))

#define ROWS_A_SUM 64
#define TILE       64

/* dw += sum over rows of dy x s, in two levels: a pass of thousands of rows loses no digits. */
NN_BODY void add_weight_gradient(real *restrict dw, const real *restrict dy, const real *restrict x,
                                 const real *restrict rstd, size_t n, size_t c)
{
    for (size_t first = 0; first < n; first += ROWS_A_SUM) {
        size_t end = n - first < ROWS_A_SUM ? n : first + ROWS_A_SUM;
        for (size_t at = 0; at < c; at += TILE) {
            size_t width = c - at < TILE ? c - at : TILE;
            real sum[TILE] = {0};
            for (size_t r = first; r < end; r++)
                for (size_t i = 0; i < width; i++)
                    sum[i] += dy[r * c + at + i] * x[r * c + at + i] * rstd[r];
            for (size_t i = 0; i < width; i++)
                dw[at + i] += sum[i];
        }
    }
}

NN_BODY void rmsnorm_backward_body(real *restrict dx, real *restrict dw, const real *restrict dy,
                                   const real *restrict x, const real *restrict w,
                                   const real *restrict rstd, size_t n, size_t c)
{
    for (size_t r = 0; r < n; r++) {
        const real *xr = x + r * c;
        const real *gr = dy + r * c;
        real *dr = dx + r * c;
        real s = rstd[r];
        real acc[NN_LANES] = {0};
        size_t i = 0;

        for (; i + NN_LANES <= c; i += NN_LANES)
            for (size_t j = 0; j < NN_LANES; j++)
                acc[j] += gr[i + j] * w[i + j] * xr[i + j];
        for (size_t j = 0; i + j < c; j++)
            acc[j] += gr[i + j] * w[i + j] * xr[i + j];
        real k = nn_lanes_sum(acc) / (real)c * s * s * s;
        for (i = 0; i < c; i++)
            dr[i] += s * gr[i] * w[i] - xr[i] * k;
    }
    add_weight_gradient(dw, dy, x, rstd, n, c);
}

NN_KERNEL(rmsnorm_backward,
          (real *restrict dx, real *restrict dw, const real *restrict dy, const real *restrict x,
           const real *restrict w, const real *restrict rstd, size_t n, size_t c),
          (dx, dw, dy, x, w, rstd, n, c))
