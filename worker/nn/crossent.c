/*
 * Two passes over a row: the maximum, then the sum of exponentials relative to it, so that no
 * exponential overflows. The gradient needs the exponentials themselves; they overwrite the logits
 * and are then scaled. Terms are float in fixed lanes (worker/nn/vec.h), the logarithm and the loss
 * are double.
 */
#include "worker/nn/crossent.h"

#include "worker/nn/threads.h"
#include "worker/nn/vec.h"

/* sum_i e^(x_i - m); stores the terms when out is not NULL. The row at next is asked for. */
NN_BODY real row_exp_sum(real *out, const real *x, real m, size_t n, const real *next)
{
    real acc[NN_LANES] = {0};
    size_t i = 0;

    for (; i + NN_LANES <= n; i += NN_LANES) {
        __builtin_prefetch(next + i, 0, 2);
        for (size_t j = 0; j < NN_LANES; j++) {
            real e = nn_exp_low(x[i + j] - m);
            acc[j] += e;
            if (out != NULL)
                out[i + j] = e;
        }
    }
    for (size_t j = 0; i + j < n; j++) {
        real e = nn_exp_low(x[i + j] - m);
        acc[j] += e;
        if (out != NULL)
            out[i + j] = e;
    }
    return nn_lanes_sum(acc);
}

/* Arrays of one call, in the letters of the header. */
struct entropy {
    double *loss;
    real *max;
    real *grad; /* the logits, to be overwritten; NULL: forward alone */
    const real *logits;
    real scale;
    const uint32_t *targets;
    size_t v;
    size_t ld;
};

NN_BODY void forward_rows_body(const struct entropy *p, size_t from, size_t to)
{
    for (size_t r = from; r < to; r++) {
        const real *l = p->logits + r * p->ld;
        real m = nn_max(l, p->v);
        real sum = row_exp_sum(NULL, l, m, p->v, r + 1 < to ? l + p->ld : l);

        p->loss[r] = elementary_log((double)sum) + (double)m - (double)l[p->targets[r]];
        if (p->max != NULL)
            p->max[r] = m;
    }
}

static void forward_rows(const struct entropy *p, size_t from, size_t to);
NN_KERNEL(forward_rows, (const struct entropy *p, size_t from, size_t to), (p, from, to))

NN_BODY void gradient_rows_body(const struct entropy *p, size_t from, size_t to)
{
    for (size_t r = from; r < to; r++) {
        real *l = p->grad + r * p->ld;
        double target = (double)l[p->targets[r]];
        real m = nn_max(l, p->v);
        real sum = row_exp_sum(l, l, m, p->v, r + 1 < to ? l + p->ld : l);
        real k = p->scale / sum;

        p->loss[r] = elementary_log((double)sum) + (double)m - target;
        for (size_t i = 0; i < p->v; i++)
            l[i] *= k;
        l[p->targets[r]] -= p->scale;
    }
}

static void gradient_rows(const struct entropy *p, size_t from, size_t to);
NN_KERNEL(gradient_rows, (const struct entropy *p, size_t from, size_t to), (p, from, to))

static void part(void *ctx, size_t from, size_t to, int thread)
{
    const struct entropy *p = ctx;

    (void)thread;
    if (p->grad == NULL)
        forward_rows(p, from, to);
    else
        gradient_rows(p, from, to);
}

void crossent_forward(double *restrict loss, real *restrict max, const real *restrict logits,
                      const uint32_t *restrict targets, const struct crossent_dims *dims)
{
    struct entropy p = {.loss = loss,
                        .max = max,
                        .logits = logits,
                        .targets = targets,
                        .v = dims->v,
                        .ld = dims->ld};

    nn_parallel_rows(dims->n, dims->v, part, &p);
}

void crossent_forward_backward(double *restrict loss, real *restrict logits, real scale,
                               const uint32_t *restrict targets, const struct crossent_dims *dims)
{
    struct entropy p = {.loss = loss,
                        .grad = logits,
                        .scale = scale,
                        .targets = targets,
                        .v = dims->v,
                        .ld = dims->ld};

    nn_parallel_rows(dims->n, dims->v, part, &p);
}
