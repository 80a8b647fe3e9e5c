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

void curve_points_release(struct curve_points *c)
{
    free(c->xs);
    free(c->ys);
    *c = (struct curve_points){0};
}
