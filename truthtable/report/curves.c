/* Thins the curves of a task while its events are read, so that the memory does not grow as they
 * do. Called once for every task by report_model.c. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/math/elementary.h"
#include "base/xalloc.h"
#include "truthtable/evidence/curve_events.h"
#include "truthtable/report/report_model.h"

#define POINTS_MAX      ((size_t)2048) /* of a curve; a drawing shows a few hundred */
#define CURVES_PER_TASK ((size_t)64)   /* names beyond these are not kept */

void curves_release(struct curve_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        free(set->curves[i].xs);
        free(set->curves[i].ys);
    }
    free(set->curves);
    *set = (struct curve_set){0};
}

/* The curve of this name within the task, added at first sight; NULL beyond the limit. */
static struct curve *curve_find(struct curve_set *set, struct arena *a, size_t from,
                                const char *name)
{
    for (size_t i = from; i < set->n; i++) {
        if (strcmp(set->curves[i].name, name) == 0) {
            return &set->curves[i];
        }
    }
    if (set->n - from >= CURVES_PER_TASK) {
        return NULL;
    }
    ARRAY_GROW(set->curves, set->n, set->cap);
    struct curve *c = &set->curves[set->n++];
    *c = (struct curve){.name = arena_strdup(a, name)};
    return c;
}

/* Which width of steps a point falls into. Before the first thinning every step is its own. */
static double bucket_of(const struct curve *c, double x)
{
    return c->width > 0 ? floor(x / c->width) : x;
}

/* Doubles the steps that share a point until half of the room is free. Widths are powers of two, so
 * that curves with the same steps keep the same of them, and one with more of them a part. */
static void curve_thin(struct curve *c)
{
    const double range = c->xs[c->n - 1] - c->xs[0];
    const double first = elementary_pow(2, floor(elementary_log2(range / (double)POINTS_MAX)));
    double width = c->width > 0 ? c->width * 2 : fmax(first, DBL_MIN);
    while (c->n > POINTS_MAX / 2) {
        size_t n = 0;
        c->width = width;
        for (size_t i = 0; i < c->n; i++) {
            if (n == 0 || bucket_of(c, c->xs[i]) != bucket_of(c, c->xs[n - 1])) {
                c->xs[n] = c->xs[i];
                c->ys[n++] = c->ys[i];
            }
        }
        c->n = n;
        width *= 2;
    }
}

/* Appends a point. */
static void curve_push(struct curve *c, double x, double y)
{
    if (c->n == c->cap) {
        c->cap = c->cap == 0 ? 64 : c->cap * 2;
        c->xs = xreallocarray(c->xs, c->cap, sizeof(*c->xs));
        c->ys = xreallocarray(c->ys, c->cap, sizeof(*c->ys));
    }
    c->xs[c->n] = x;
    c->ys[c->n] = y;
    c->n++;
}

/* A resumed attempt repeats what lay after its checkpoint: its points replace those at its steps
 * and after. */
static void curve_add(struct curve *c, double x, double y)
{
    while (c->n > 0 && c->xs[c->n - 1] >= x) {
        c->n--;
    }
    c->last_x = x;
    c->last_y = y;
    /* The first point of a bucket represents it. */
    if (c->n == 0 || bucket_of(c, x) != bucket_of(c, c->xs[c->n - 1])) {
        curve_push(c, x, y);
    }
    if (c->n > POINTS_MAX) {
        curve_thin(c);
    }
}

/* Where a curve ends is shown, whatever was thinned. */
static void curve_end(struct curve *c)
{
    if (c->xs[c->n - 1] < c->last_x) {
        curve_push(c, c->last_x, c->last_y);
    }
}

struct task_curves {
    struct curve_set *set;
    struct arena *arena;
    size_t from; /* the task's first curve */
};

static void take_point(void *ctx, const char *name, double x, double y)
{
    const struct task_curves *t = ctx;
    struct curve *c = curve_find(t->set, t->arena, t->from, name);
    if (c != NULL) {
        curve_add(c, x, y);
    }
}

void curves_read_task(struct curve_set *set, struct arena *a, const char *task_folder, size_t cell,
                      size_t stage)
{
    struct task_curves t = {.set = set, .arena = a, .from = set->n};
    set->n_unread += curve_events_read_task(task_folder, take_point, &t);
    for (size_t i = t.from; i < set->n; i++) {
        curve_end(&set->curves[i]);
        set->curves[i].cell = cell;
        set->curves[i].stage = stage;
    }
}
