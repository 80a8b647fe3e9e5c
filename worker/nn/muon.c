/*
 * Elementwise loops between products: the momentum, the scaling to norm 1, the polynomial's sums,
 * and the update. The iterations read X from scratch and from the gradient's place by turns;
 * product() adds to a X, so the last sum of an iteration costs no pass of its own.
 */
#include "worker/nn/muon.h"

#include <math.h>
#include <string.h>

#include "worker/nn/threads.h"
#include "worker/nn/vec.h"

#define ITERATIONS 5
#define NORM_LEAST 1e-7 /* added to the norm */

static const real TERM_1 = (real)3.4445, TERM_3 = (real)-4.775, TERM_5 = (real)2.0315;

/* y = x f, or where it is mixed y = y h + x f. */
struct muon_sum {
    real *y;
    const real *x;
    real f;
    real h;
    bool mixed;
};

NN_BODY void sum_range_body(const struct muon_sum *s, size_t from, size_t to)
{
    real *restrict y = s->y;
    const real *restrict x = s->x;
    const real f = s->f, h = s->h;

    if (s->mixed)
        for (size_t i = from; i < to; i++)
            y[i] = y[i] * h + x[i] * f;
    else
        for (size_t i = from; i < to; i++)
            y[i] = x[i] * f;
}

static void sum_range(const struct muon_sum *s, size_t from, size_t to);
NN_KERNEL(sum_range, (const struct muon_sum *s, size_t from, size_t to), (s, from, to))

static void sum_part(void *ctx, size_t from, size_t to, int thread)
{
    (void)thread;
    sum_range(ctx, from, to);
}

static void scale(real *restrict y, const real *restrict x, real f, size_t n)
{
    struct muon_sum s = {.y = y, .x = x, .f = f};

    nn_parallel_rows(n, 1, sum_part, &s);
}

static void mix(real *restrict y, real h, const real *restrict x, real f, size_t n)
{
    struct muon_sum s = {.y = y, .x = x, .f = f, .h = h, .mixed = true};

    nn_parallel_rows(n, 1, sum_part, &s);
}

/* The momentum, and in the gradient's place what is made orthogonal. */
struct muon_momentum {
    real *m;
    real *g;
    real momentum;
    real rest; /* 1 - momentum */
    real clip;
    bool nesterov;
};

NN_BODY void momentum_range_body(const struct muon_momentum *w, size_t from, size_t to)
{
    const struct muon_momentum s = *w;
    real *restrict m = s.m;
    real *restrict g = s.g;

    for (size_t i = from; i < to; i++) {
        real part = s.rest * (g[i] * s.clip);
        real mi = s.momentum * m[i] + part;
        real ahead = part + s.momentum * mi;
        m[i] = mi;
        g[i] = s.nesterov ? ahead : mi;
    }
}

static void momentum_range(const struct muon_momentum *w, size_t from, size_t to);
NN_KERNEL(momentum_range, (const struct muon_momentum *w, size_t from, size_t to), (w, from, to))

static void momentum_part(void *ctx, size_t from, size_t to, int thread)
{
    (void)thread;
    momentum_range(ctx, from, to);
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t muon_scratch(size_t rows, size_t cols)
{
    size_t side = least_of(rows, cols);

    return rows * cols + 2 * side * side;
}

double muon_flops(size_t rows, size_t cols)
{
    double side = (double)least_of(rows, cols), n = (double)rows * (double)cols;

    return ITERATIONS * (4.0 * side * n + 2.0 * side * side * side);
}

/* One iteration from x to y, which are (rows, cols); a and b are (side, side). */
static void iterate(real *restrict y, const real *restrict x, real *restrict a, real *restrict b,
                    size_t rows, size_t cols, enum product_precision precision)
{
    const bool tall = rows > cols;
    const size_t side = least_of(rows, cols), n = side * side;
    const struct operand as_is = operand_plain(x, cols), turned = operand_turned(x, cols);

    product(precision, a, side, false, tall ? turned : as_is, tall ? as_is : turned, side, side,
            tall ? rows : cols);
    product(precision, b, side, false, operand_plain(a, side), operand_plain(a, side), side, side,
            side);
    mix(b, TERM_5, a, TERM_3, n);
    scale(y, x, TERM_1, rows * cols);
    product(precision, y, cols, true, tall ? as_is : operand_plain(b, side),
            tall ? operand_plain(b, side) : as_is, rows, cols, side);
}

void muon_update(real *restrict p, real *restrict m, real *restrict g, real *restrict scratch,
                 size_t rows, size_t cols, const struct muon *opt)
{
    const size_t side = least_of(rows, cols), n = rows * cols;
    const double shape = (double)rows / (double)cols;
    real *x = scratch, *y = g, *a = scratch + n, *b = a + side * side;
    struct muon_momentum w = {.m = m,
                              .g = g,
                              .momentum = (real)opt->momentum,
                              .rest = (real)(1.0 - opt->momentum),
                              .clip = (real)opt->clip,
                              .nesterov = opt->nesterov};

    nn_parallel_rows(n, 1, momentum_part, &w);
    scale(x, g, (real)(1.0 / (sqrt(vec_sum_squares_long(g, n)) + NORM_LEAST)), n);
    for (int i = 0; i < ITERATIONS; i++) {
        iterate(y, x, a, b, rows, cols, opt->precision);
        real *last = x;
        x = y;
        y = last;
    }
    mix(p, (real)(1.0 - opt->lr * opt->decay), x,
        (real)(-opt->lr * sqrt(shape > 1.0 ? shape : 1.0)), n);
    memset(g, 0, n * sizeof(*g));
}
