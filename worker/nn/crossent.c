/*
 * Two passes over a row: the maximum, then the sum of exponentials relative to it, so that no
 * exponential overflows. The gradient needs the exponentials themselves; they overwrite the logits
 * and are then scaled. Terms are float in fixed lanes (worker/nn/vec.h), the logarithm and the loss
 * are double.
 */
#include "worker/nn/crossent.h"

#include "worker/nn/vec.h"

/* sum_i e^(x_i - m); stores the terms when out is not NULL. */
NN_BODY real row_exp_sum(real *out, const real *x, real m, size_t n)
{
    real acc[NN_LANES] = {0};
    size_t i = 0;

    for (; i + NN_LANES <= n; i += NN_LANES)
        for (size_t j = 0; j < NN_LANES; j++) {
            real e = nn_exp(x[i + j] - m);
            acc[j] += e;
            if (out != NULL)
                out[i + j] = e;
        }
    for (size_t j = 0; i + j < n; j++) {
        real e = nn_exp(x[i + j] - m);
        acc[j] += e;
        if (out != NULL)
            out[i + j] = e;
    }
    return nn_lanes_sum(acc);
}

NN_BODY void crossent_forward_body(double *restrict loss, real *restrict max,
                                   const real *restrict logits, const uint32_t *restrict targets,
                                   size_t n, size_t v)
{
    for (size_t r = 0; r < n; r++) {
        const real *l = logits + r * v;
        real m = nn_max(l, v);
        real sum = row_exp_sum(NULL, l, m, v);

        loss[r] = elementary_log((double)sum) + (double)m - (double)l[targets[r]];
        if (max != NULL)
            max[r] = m;
    }
}

NN_KERNEL(crossent_forward,
          (double *restrict loss, real *restrict max, const real *restrict logits,
           const uint32_t *restrict targets, size_t n, size_t v),
          (loss, max, logits, targets, n, v))

NN_BODY void crossent_forward_backward_body(double *restrict loss, real *restrict logits,
                                            real scale, const uint32_t *restrict targets, size_t n,
                                            size_t v)
{
    for (size_t r = 0; r < n; r++) {
        real *l = logits + r * v;
        double target = (double)l[targets[r]];
        real m = nn_max(l, v);
        real sum = row_exp_sum(l, l, m, v);
        real k = scale / sum;

        loss[r] = elementary_log((double)sum) + (double)m - target;
        for (size_t i = 0; i < v; i++)
            l[i] *= k;
        l[targets[r]] -= scale;
    }
}

NN_KERNEL(crossent_forward_backward,
          (double *restrict loss, real *restrict logits, real scale,
           const uint32_t *restrict targets, size_t n, size_t v),
          (loss, logits, scale, targets, n, v))
