/*
 * The running sum is kept relative to the greatest element so far. A piece with a greater one
 * rescales what was summed before, then its own terms are added.
 *
 * x - x is 0 for finite numbers and NaN for infinities and NaN: `poison` collects these, because
 * the comparisons that find the maximum can lose a NaN.
 */
#include "worker/nn/logsum.h"

#include "worker/nn/vec.h"

void logsum_init(struct logsum *s)
{
    *s = (struct logsum){.max = (real)-INFINITY};
}

NN_BODY void sum_piece_body(real *restrict sum, real *restrict poison, const real *restrict x,
                            real max, size_t n)
{
    real acc[NN_LANES] = {0}, bad[NN_LANES] = {0};
    size_t i = 0;

    for (; i + NN_LANES <= n; i += NN_LANES)
        for (size_t j = 0; j < NN_LANES; j++) {
            acc[j] += nn_exp_low(x[i + j] - max);
            bad[j] += x[i + j] - x[i + j];
        }
    for (size_t j = 0; i + j < n; j++) {
        acc[j] += nn_exp_low(x[i + j] - max);
        bad[j] += x[i + j] - x[i + j];
    }
    *sum = nn_lanes_sum(acc);
    *poison += nn_lanes_sum(bad);
}

/* sum: of e^(x - max). */
static void sum_piece(real *restrict sum, real *restrict poison, const real *restrict x, real max,
                      size_t n);
NN_KERNEL(sum_piece,
          (real *restrict sum, real *restrict poison, const real *restrict x, real max, size_t n),
          (sum, poison, x, max, n))

NN_BODY real greatest_body(const real *restrict x, size_t n)
{
    return nn_max(x, n);
}

/* nn_max() compiled for each instruction set. */
static real greatest(const real *restrict x, size_t n);
NN_KERNEL_RETURN(real, greatest, (const real *restrict x, size_t n), (x, n))

void logsum_add(struct logsum *s, const real *restrict x, size_t n, size_t first)
{
    real part, max = greatest(x, n);

    if (max > s->max) {
        size_t i = 0;
        while (x[i] != max)
            i++;
        s->top = (uint32_t)(first + i);
        s->sum *= elementary_exp((double)s->max - (double)max);
        s->max = max;
    }
    sum_piece(&part, &s->poison, x, s->max, n);
    s->sum += (double)part;
}

double logsum_value(const struct logsum *s)
{
    return (double)s->max + elementary_log(s->sum) + (double)s->poison;
}
