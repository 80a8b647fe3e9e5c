/* The points of an arm are sorted by step and cut into groups; sums of a group are kept per cell,
 * because its mean is the mean of its cells' means, whatever number of points each has. */
#include "daemon/http/curve_groups.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/json/json.h"
#include "base/xalloc.h"

struct group_point {
    double x;
    double y;
    size_t cell;
};

static int compare_points(const void *a, const void *b)
{
    const struct group_point *p = a;
    const struct group_point *q = b;
    if (p->x != q->x) {
        return p->x < q->x ? -1 : 1;
    }
    return p->cell < q->cell ? -1 : p->cell > q->cell;
}

/* Which of n stretches between first and last x is in. */
static size_t stretch_of(double x, double first, double last, size_t n)
{
    const double at = last > first ? (x - first) / (last - first) * (double)n : 0.0;
    return !(at > 0.0) ? 0 : at >= (double)n ? n - 1 : (size_t)at;
}

/* One group: points[0..n). `sums` and `counts` have an entry for each cell, all zero before and
 * after. */
static void push_group(cJSON *list, const struct group_point *points, size_t n, double *sums,
                       size_t *counts)
{
    double low = points[0].y;
    double high = points[0].y;
    double mean = 0.0;
    size_t n_cells = 0;
    for (size_t i = 0; i < n; i++) {
        low = fmin(low, points[i].y);
        high = fmax(high, points[i].y);
        n_cells += counts[points[i].cell] == 0;
        sums[points[i].cell] += points[i].y;
        counts[points[i].cell]++;
    }
    for (size_t i = 0; i < n; i++) {
        const size_t c = points[i].cell;
        if (counts[c] > 0) {
            mean += sums[c] / (double)counts[c] / (double)n_cells;
            sums[c] = 0.0;
            counts[c] = 0;
        }
    }
    cJSON *one = json_array();
    json_push_number(one, points[n - 1].x);
    json_push_number(one, mean);
    json_push_number(one, low);
    json_push_number(one, high);
    json_push_number(one, (double)n_cells);
    json_push(list, one);
}

static size_t count_steps(const struct group_point *points, size_t n)
{
    size_t steps = 0;
    for (size_t i = 0; i < n; i++) {
        steps += i == 0 || points[i].x != points[i - 1].x;
    }
    return steps;
}

static cJSON *group(const struct group_point *points, size_t n, size_t n_cells, size_t n_points)
{
    cJSON *list = json_array();
    double *sums = xcalloc(n_cells, sizeof(*sums));
    size_t *counts = xcalloc(n_cells, sizeof(*counts));
    const bool by_step = count_steps(points, n) <= n_points;
    const double first = points[0].x;
    const double last = points[n - 1].x;
    size_t from = 0;
    for (size_t i = 1; i <= n; i++) {
        const bool ends =
            i == n || (by_step ? points[i].x != points[from].x
                               : stretch_of(points[i].x, first, last, n_points) !=
                                     stretch_of(points[from].x, first, last, n_points));
        if (ends) {
            push_group(list, points + from, i - from, sums, counts);
            from = i;
        }
    }
    free(sums);
    free(counts);
    return list;
}

cJSON *curve_arm_json(const struct curve_cell *cells, size_t n_cells, size_t arm, size_t n_points)
{
    size_t n = 0;
    size_t members = 0;
    for (size_t c = 0; c < n_cells; c++) {
        n += cells[c].arm == arm ? cells[c].points.n : 0;
        members += cells[c].arm == arm && cells[c].points.n > 0;
    }
    if (n == 0) {
        return NULL;
    }
    struct group_point *points = xcalloc(n, sizeof(*points));
    size_t at = 0;
    for (size_t c = 0; c < n_cells; c++) {
        for (size_t i = 0; cells[c].arm == arm && i < cells[c].points.n; i++) {
            points[at++] = (struct group_point){cells[c].points.xs[i], cells[c].points.ys[i], c};
        }
    }
    qsort(points, n, sizeof(*points), compare_points);
    cJSON *o = json_object();
    json_put_int(o, "n_cells", (int64_t)members);
    json_put(o, "points", group(points, n, n_cells, n_points));
    free(points);
    return o;
}

static void push_point(cJSON *list, const struct curve_points *c, size_t i)
{
    cJSON *one = json_array();
    json_push_number(one, c->xs[i]);
    json_push_number(one, c->ys[i]);
    json_push(list, one);
}

cJSON *curve_points_json(const struct curve_points *c, size_t n_points)
{
    cJSON *list = json_array();
    const size_t n_stretches = n_points < 4 ? 2 : n_points / 2;
    for (size_t i = 0; i < c->n;) {
        if (c->n <= n_points) {
            push_point(list, c, i++);
            continue;
        }
        size_t low = i;
        size_t high = i;
        const double first = c->xs[0];
        const double last = c->xs[c->n - 1];
        const size_t stretch = stretch_of(c->xs[i], first, last, n_stretches);
        for (; i < c->n && stretch_of(c->xs[i], first, last, n_stretches) == stretch; i++) {
            low = c->ys[i] < c->ys[low] ? i : low;
            high = c->ys[i] > c->ys[high] ? i : high;
        }
        push_point(list, c, low < high ? low : high);
        if (low != high) {
            push_point(list, c, low < high ? high : low);
        }
    }
    return list;
}
