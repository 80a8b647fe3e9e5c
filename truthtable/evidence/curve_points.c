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
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i += 4) {
        size_t low = i;
        size_t high = i;
        for (size_t k = i; k < i + 4 && k < c->n; k++) {
            low = c->ys[k] < c->ys[low] ? k : low;
            high = c->ys[k] > c->ys[high] ? k : high;
        }
        for (size_t k = i; k < i + 4 && k < c->n; k++) {
            if (k == low || k == high) {
                c->xs[kept] = c->xs[k];
                c->ys[kept++] = c->ys[k];
            }
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
