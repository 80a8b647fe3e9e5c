/*
 * Gate and up are the halves of one row because one product computes both. The sigmoid is
 * recomputed in the backward pass, so that no buffer has to keep it.
 */
#include "worker/nn/swiglu.h"

#include "worker/nn/threads.h"
#include "worker/nn/vec.h"

/* Arrays of one call, in the letters of the header. */
struct gating {
    real *h;
    const real *gu;
    real *turned; /* gu, to become its gradient */
    const real *dh;
    size_t f;
};

NN_BODY void forward_rows_body(const struct gating *p, size_t from, size_t to)
{
    size_t f = p->f;

    for (size_t r = from; r < to; r++) {
        const real *g = p->gu + r * 2 * f;
        const real *u = g + f;
        real *restrict o = p->h + r * f;
        for (size_t i = 0; i < f; i++)
            o[i] = g[i] / (1 + nn_exp(-g[i])) * u[i];
    }
}

static void forward_rows(const struct gating *p, size_t from, size_t to);
NN_KERNEL(forward_rows, (const struct gating *p, size_t from, size_t to), (p, from, to))

static void forward_part(void *ctx, size_t from, size_t to, int thread)
{
    (void)thread;
    forward_rows(ctx, from, to);
}

void swiglu_forward(real *restrict h, const real *restrict gu, size_t n, size_t f)
{
    struct gating p = {.h = h, .gu = gu, .f = f};

    nn_parallel_rows(n, f, forward_part, &p);
}

NN_BODY void backward_rows_body(const struct gating *p, size_t from, size_t to)
{
    size_t f = p->f;

    for (size_t r = from; r < to; r++) {
        const real *restrict d = p->dh + r * f;
        real *restrict g = p->turned + r * 2 * f;
        real *restrict u = g + f;
        for (size_t i = 0; i < f; i++) {
            real gate = g[i];
            real s = 1 / (1 + nn_exp(-gate));
            g[i] = d[i] * u[i] * s * (1 + gate * (1 - s));
            u[i] = d[i] * gate * s;
        }
    }
}

static void backward_rows(const struct gating *p, size_t from, size_t to);
NN_KERNEL(backward_rows, (const struct gating *p, size_t from, size_t to), (p, from, to))

static void backward_part(void *ctx, size_t from, size_t to, int thread)
{
    (void)thread;
    backward_rows(ctx, from, to);
}

void swiglu_backward(real *restrict gu, const real *restrict dh, size_t n, size_t f)
{
    struct gating p = {.turned = gu, .dh = dh, .f = f};

    nn_parallel_rows(n, f, backward_part, &p);
}
