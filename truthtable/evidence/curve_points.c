/* Keeps the points of a curve rising in x, so that the last attempt to report a step wins. */
#include "truthtable/evidence/curve_points.h"

#include <stdlib.h>

#include "base/xalloc.h"

void curve_points_add(struct curve_points *c, double x, double y)
{
    while (c->n > 0 && c->xs[c->n - 1] >= x) {
        c->n--;
    }
    if (c->n == c->cap) {
        c->cap = c->cap == 0 ? 64 : 2 * c->cap;
        c->xs = xreallocarray(c->xs, c->cap, sizeof(*c->xs));
        c->ys = xreallocarray(c->ys, c->cap, sizeof(*c->ys));
    }
    c->xs[c->n] = x;
    c->ys[c->n++] = y;
}

void curve_points_thin(struct curve_points *c)
{
    const size_t n_stretches = c->n / 4;
    const double wide = n_stretches == 0 ? 0 : (c->xs[c->n - 1] - c->xs[0]) / (double)n_stretches;
    size_t kept = 0;
    for (size_t i = 0; i < c->n;) {
        const double until = c->xs[i] + wide;
        const size_t from = i;
        size_t low = i;
        size_t high = i;
        for (; i < c->n && (i == from || c->xs[i] < until); i++) {
            low = c->ys[i] < c->ys[low] ? i : low;
            high = c->ys[i] > c->ys[high] ? i : high;
        }
        const size_t one = low < high ? low : high;
        const size_t other = low < high ? high : low;
        c->xs[kept] = c->xs[one];
        c->ys[kept++] = c->ys[one];
        if (other != one) {
            c->xs[kept] = c->xs[other];
            c->ys[kept++] = c->ys[other];
        }
    }
    c->n = kept;
}

void curve_points_release(struct curve_points *c)
{
    free(c->xs);
    free(c->ys);
    *c = (struct curve_points){0};
}
