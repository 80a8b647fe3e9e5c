#include "worker/nn/vec.h"

NN_KERNEL real vec_dot(const real *restrict a, const real *restrict b, size_t n)
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

NN_KERNEL void vec_axpy(real *restrict y, real a, const real *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

NN_KERNEL void vec_add(real *restrict y, const real *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

NN_KERNEL double vec_sum_squares(const real *x, size_t n)
{
    double acc[NN_LANES] = {0};
    double sum = 0.0;
    size_t i = 0;

    for (; i + NN_LANES <= n; i += NN_LANES)
        for (size_t j = 0; j < NN_LANES; j++)
            acc[j] += (double)x[i + j] * (double)x[i + j];
    for (; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    for (size_t j = 0; j < NN_LANES; j++)
        sum += acc[j];
    return sum;
}
