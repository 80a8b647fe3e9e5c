/*
 * The constants of an update (bias corrections, decay, step) are computed once in double and
 * rounded to the number type of the loop. The loop then reads and writes each parameter, its two
 * moments and its gradient once, and leaves zero for the next step to add to.
 *
 * Decay is applied as a factor of the parameter, 1 - lr decay, before the step is subtracted.
 */
#include "worker/nn/adamw.h"

#include "worker/nn/threads.h"
#include "worker/nn/vec.h"

/* The constants of one update, in the number type of the loop. */
struct adamw_terms {
    real b1, c1, b2, c2;
    real step; /* lr / (1 - b1^t) */
    real root; /* 1 / (1 - b2^t) */
    real eps;
    real keep; /* 1 - lr decay */
    real clip;
};

/* The arrays of one call. */
struct update {
    struct adamw_terms terms;
    real *p;
    real *m;
    real *v;
    real *g;
};

NN_BODY void update_range_body(const struct update *u, size_t from, size_t to)
{
    const struct adamw_terms t = u->terms;
    real *restrict p = u->p;
    real *restrict m = u->m;
    real *restrict v = u->v;
    real *restrict g = u->g;

    for (size_t i = from; i < to; i++) {
        real gi = g[i] * t.clip;
        real mi = t.b1 * m[i] + t.c1 * gi;
        real vi = t.b2 * v[i] + t.c2 * gi * gi;
        g[i] = 0;
        m[i] = mi;
        v[i] = vi;
#ifdef NN_F64
        p[i] = p[i] * t.keep - t.step * mi / (sqrt(vi * t.root) + t.eps);
#else
        p[i] = p[i] * t.keep - t.step * mi / (sqrtf(vi * t.root) + t.eps);
#endif
    }
}

static void update_range(const struct update *u, size_t from, size_t to);
NN_KERNEL(update_range, (const struct update *u, size_t from, size_t to), (u, from, to))

static void update_part(void *ctx, size_t from, size_t to, int thread)
{
    (void)thread;
    update_range(ctx, from, to);
}

void adamw_update(real *restrict p, real *restrict m, real *restrict v, real *restrict g, size_t n,
                  const struct adamw *opt)
{
    double t = (double)opt->t;
    struct update u = {.p = p, .m = m, .v = v, .g = g};

    u.terms = (struct adamw_terms){
        .b1 = (real)opt->beta1,
        .c1 = (real)(1.0 - opt->beta1),
        .b2 = (real)opt->beta2,
        .c2 = (real)(1.0 - opt->beta2),
        .step = (real)(opt->lr / (1.0 - elementary_pow(opt->beta1, t))),
        .root = (real)(1.0 / (1.0 - elementary_pow(opt->beta2, t))),
        .eps = (real)opt->eps,
        .keep = (real)(1.0 - opt->lr * opt->decay),
        .clip = (real)opt->clip,
    };

    nn_parallel_rows(n, 1, update_part, &u);
}
