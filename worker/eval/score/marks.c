/*
 * Sums follow the order of the items, so a resumed run, which adds the same items in the same
 * order, has the same bits. marks_pool() follows the harness's formula for groups; its variance is
 * that of the within-group spread only.
 */
#include "worker/eval/score/marks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/math/elementary.h"
#include "base/xalloc.h"

void marks_release(struct marks *m)
{
    free(m->x);
    free(m->w);
    memset(m, 0, sizeof(*m));
}

void marks_add(struct marks *m, double x, double w)
{
    if (m->n == m->cap) {
        m->cap = m->cap == 0 ? 64 : m->cap * 2;
        m->x = xreallocarray(m->x, m->cap, sizeof(*m->x));
        m->w = xreallocarray(m->w, m->cap, sizeof(*m->w));
    }
    m->x[m->n] = x;
    m->w[m->n++] = w;
}

/* From left to right, as Python's sum() up to 3.11. */
static double sum_of(const double *xs, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += xs[i];
    return sum;
}

double marks_mean(const struct marks *m)
{
    return m->n == 0 ? (double)NAN : sum_of(m->x, m->n) / (double)m->n;
}

/* The sample standard error of the mean. */
double marks_mean_se(const struct marks *m)
{
    if (m->n < 2)
        return (double)NAN;
    const double n = (double)m->n;
    const double mean = marks_mean(m);
    double squares = 0.0;
    for (size_t i = 0; i < m->n; i++)
        squares += (m->x[i] - mean) * (m->x[i] - mean);
    return sqrt(squares / (n - 1.0)) / sqrt(n);
}

double marks_perplexity(const struct marks *m)
{
    return elementary_exp(-marks_mean(m));
}

/* NaN when empty: 0 / 0. */
static double weighted_mean(const struct marks *m)
{
    return sum_of(m->x, m->n) / sum_of(m->w, m->n);
}

double marks_weighted_perplexity(const struct marks *m)
{
    return elementary_exp(-weighted_mean(m));
}

double marks_bits(const struct marks *m)
{
    return -weighted_mean(m) / ELEMENTARY_LN_2;
}

struct metric_score marks_pool(const struct metric_score *groups, size_t n_groups)
{
    const struct metric_score *last = NULL;
    double weighted = 0.0;
    double squares = 0.0;
    size_t n_all = 0;
    size_t n_used = 0;
    for (size_t g = 0; g < n_groups; g++) {
        if (groups[g].n == 0)
            continue;
        const double n = (double)groups[g].n;
        const double se = groups[g].n < 2 ? 0.0 : groups[g].se;
        weighted += groups[g].value * n;
        squares += (n - 1.0) * n * se * se;
        n_all += groups[g].n;
        n_used++;
        last = &groups[g];
    }
    if (n_used == 0)
        return (struct metric_score){0, (double)NAN, (double)NAN};
    if (n_used == 1)
        return *last;
    const double spread = (double)(n_all - n_used);
    return (struct metric_score){n_all, weighted / (double)n_all,
                                 sqrt(squares / spread / (double)n_all)};
}
