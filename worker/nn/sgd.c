/*
 * The constants of an update are computed once in double and rounded to the number type of the
 * loop. The loop reads and writes each parameter, its momentum and its gradient once, and leaves
 * zero for the next step to add to.
 */
#include "worker/nn/sgd.h"

#include "worker/nn/threads.h"
#include "worker/nn/vec.h"

/* The arrays of one call and its constants, in the number type of the loop. */
struct sgd_work {
    real *p;
    real *m;
    real *g;
    real lr, momentum, decay, clip;
    bool nesterov;
};

NN_BODY void sgd_range_body(const struct sgd_work *w, size_t from, size_t to)
{
    const struct sgd_work s = *w;
    real *restrict p = s.p;
    real *restrict m = s.m;
    real *restrict g = s.g;

    for (size_t i = from; i < to; i++) {
        real d = g[i] * s.clip + s.decay * p[i];
        real mi = s.momentum * m[i] + d;
        real ahead = d + s.momentum * mi;
        g[i] = 0;
        m[i] = mi;
        p[i] = p[i] - s.lr * (s.nesterov ? ahead : mi);
    }
}

static void sgd_range(const struct sgd_work *w, size_t from, size_t to);
NN_KERNEL(sgd_range, (const struct sgd_work *w, size_t from, size_t to), (w, from, to))

static void sgd_part(void *ctx, size_t from, size_t to, int thread)
{
    (void)thread;
    sgd_range(ctx, from, to);
}

void sgd_update(real *restrict p, real *restrict m, real *restrict g, size_t n,
                const struct sgd *opt)
{
    struct sgd_work w = {.p = p,
                         .m = m,
                         .g = g,
                         .lr = (real)opt->lr,
                         .momentum = (real)opt->momentum,
                         .decay = (real)opt->decay,
                         .clip = (real)opt->clip,
                         .nesterov = opt->nesterov};

    nn_parallel_rows(n, 1, sgd_part, &w);
}
