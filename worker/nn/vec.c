/*
 * Each function is one NN_BODY that worker/nn/kernel.h compiles per instruction set. A loop over n
 * in steps of NN_LANES with an inner loop over the lanes is what compilers turn into vector code
 * without reordering any sum; the tail falls on the first lanes.
 */
#include "worker/nn/vec.h"

#include "worker/nn/threads.h"

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

#define AHEAD 1024 /* elements that are asked for before they are needed */

NN_BODY double vec_sum_squares_body(const real *x, size_t n)
{
    double acc[NN_LANES] = {0};
    size_t i = 0;

    for (; i + NN_LANES <= n; i += NN_LANES) {
        __builtin_prefetch(x + (i + AHEAD < n ? i + AHEAD : i), 0, 2);
        for (size_t j = 0; j < NN_LANES; j++)
            acc[j] += (double)x[i + j] * (double)x[i + j];
    }
    for (size_t j = 0; i + j < n; j++)
        acc[j] += (double)x[i + j] * (double)x[i + j];
    return nn_lanes_sum_wide(acc);
}

NN_KERNEL_RETURN(double, vec_sum_squares, (const real *x, size_t n), (x, n))

#define PART  65536 /* elements of a part of a long sum */
#define PARTS 256   /* parts that are summed before they are added up */

struct long_sum {
    const real *x;
    size_t n;
    double sums[PARTS];
};

static void sum_parts(void *ctx, size_t from, size_t to, int thread)
{
    struct long_sum *s = ctx;

    (void)thread;
    for (size_t i = from; i < to; i++)
        s->sums[i] =
            vec_sum_squares(s->x + i * PART, s->n - i * PART < PART ? s->n - i * PART : PART);
}

double vec_sum_squares_long(const real *x, size_t n)
{
    double sum = 0.0;

    for (size_t at = 0; at < n; at += PART * PARTS) {
        struct long_sum s = {.x = x + at, .n = n - at < PART * PARTS ? n - at : PART * PARTS};
        size_t parts = (s.n + PART - 1) / PART;
        nn_parallel_rows(parts, PART, sum_parts, &s);
        for (size_t i = 0; i < parts; i++)
            sum += s.sums[i];
    }
    return sum;
}
