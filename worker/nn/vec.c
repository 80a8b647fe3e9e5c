/*
 * Each function is one NN_BODY that worker/nn/kernel.h compiles per instruction set. A loop over n
 * in steps of NN_LANES with an inner loop over the lanes is what compilers turn into vector code
 * without reordering any sum; the tail falls on the first lanes.
 */
#include "worker/nn/vec.h"

NN_BODY real vec_dot_body(const real *restrict a, const real *restrict b, size_t n)
{
    real acc[NN_LANES] = {0};
    size_t i = 0;

    for (; i + NN_LANES <= n; i += NN_LANES)
        for (size_t j = 0; j < NN_LANES; j++)
            acc[j] += a[i + j] * b[i + j];
    for (size_t j = 0; i + j < n; j++)
        acc[j] += a[i + j] * b[i + j];
    return nn_lanes_sum(acc);
}

NN_KERNEL_RETURN(real, vec_dot, (const real *restrict a, const real *restrict b, size_t n),
                 (a, b, n))

NN_BODY void vec_axpy_body(real *restrict y, real a, const real *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

NN_KERNEL(vec_axpy, (real *restrict y, real a, const real *restrict x, size_t n), (y, a, x, n))

NN_BODY void vec_add_body(real *restrict y, const real *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

NN_KERNEL(vec_add, (real *restrict y, const real *restrict x, size_t n), (y, x, n))

NN_BODY double vec_sum_squares_body(const real *x, size_t n)
{
    double acc[NN_LANES] = {0};
    size_t i = 0;

    for (; i + NN_LANES <= n; i += NN_LANES)
        for (size_t j = 0; j < NN_LANES; j++)
            acc[j] += (double)x[i + j] * (double)x[i + j];
    for (size_t j = 0; i + j < n; j++)
        acc[j] += (double)x[i + j] * (double)x[i + j];
    return nn_lanes_sum_wide(acc);
}

NN_KERNEL_RETURN(double, vec_sum_squares, (const real *x, size_t n), (x, n))
