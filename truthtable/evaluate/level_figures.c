/*
 * Figures over all levels of a factor: the rank of a level by a measure, and the trend of a measure
 * or of a contrast over the levels in the order of the plan. A rank compares the levels' means; a
 * trend has a slope for each replicate that has every level, and its spread is over those. With a
 * value missing at any level, both are unknown.
 */
#include <assert.h>
#include <math.h>

#include "truthtable/condition/stats.h"
#include "truthtable/evaluate/evaluation.h"

#define ROUNDING 1e-12 /* as of contrasts (contrast.c) */

/* Whether a setting of the factors is among those that the figure is restricted to. */
static bool is_within(const struct cond *c, const size_t *levels)
{
    bool within = true;
    for (size_t i = 0; i < c->n_where; i++) {
        within = within && levels[c->where[i].factor] == c->where[i].level;
    }
    return within;
}

/* ---- rank ---- */

/* The mean over the level's conditions of the mean over their cells that are left. */
static struct number mean_of_level(const struct table_evaluation *ev, const struct cond *c,
                                   size_t level)
{
    const struct plan_program *p = ev->rules->program;
    const struct layout *l = &ev->rules->layout;
    const struct score *scores = &ev->reading->scores[c->measure * p->n_cells];
    struct number sum = number_point(0);
    size_t n = 0;
    for (size_t i = 0; i < p->n_conditions; i++) {
        const size_t *levels = p->conditions[i].levels;
        struct number own = number_point(0);
        size_t n_own = 0;
        if (levels[c->factor] != level || !is_within(c, levels)) {
            continue;
        }
        for (size_t r = 0; r < l->n_replicates; r++) {
            const struct score *s = &scores[layout_cell(l, i, r)];
            if (!s->excluded) {
                own = number_add(own, s->value);
                n_own++;
            }
        }
        if (n_own == 0) {
            return number_unknown("no cell of a condition is left");
        }
        sum = number_add(sum, number_div(own, number_point((double)n_own)));
        n++;
    }
    return n == 0 ? number_unknown("no cell has the level")
                  : number_div(sum, number_point((double)n));
}

/* 1 + the levels that are better, a range while bounds leave that open. Equal means share a rank.
 */
struct number rank_of_level(const struct table_evaluation *ev, const struct cond *c)
{
    assert(c->kind == COND_RANK);
    const struct plan_program *p = ev->rules->program;
    const enum relop better = p->measures[c->measure].lower_better ? REL_LT : REL_GT;
    struct number own = mean_of_level(ev, c, c->level_a);
    double least = 1;
    double most = 1;
    if (!own.known) {
        return own;
    }
    for (size_t i = 0; i < p->factors[c->factor].n_levels; i++) {
        if (i == c->level_a) {
            continue;
        }
        struct number other = mean_of_level(ev, c, i);
        /* Whatever is computed from an unknown is unknown. */
        if (!other.known) {
            return other;
        }
        enum truth t = number_compare(other, better, own);
        least += t == TRUTH_TRUE ? 1 : 0;
        most += t != TRUTH_FALSE ? 1 : 0;
    }
    return number_range(least, most);
}

/* ---- trend ---- */

/* What a trend collects for one replicate at one level. */
struct at_level {
    struct number sum;
    size_t n;
};

struct trend {
    const struct table_evaluation *ev;
    const struct cond *c;
    struct at_level *at; /* [replicate * n_levels + level] */
    bool *lost;          /* [replicate]: a cell of it was excluded */
    const char *copy;    /* why a cell is not a replicate of its own; NULL: all are */
    double scale;        /* the largest |score| */
};

static size_t n_levels_of(const struct trend *t)
{
    return t->ev->rules->program->factors[t->c->factor].n_levels;
}

/* Adds a value of a replicate at a level, and what its scores say of it. */
static void add_value(struct trend *t, size_t replicate, size_t level, struct number x,
                      const struct score *const scores[2])
{
    struct at_level *at = &t->at[replicate * n_levels_of(t) + level];
    at->sum = at->n == 0 ? x : number_add(at->sum, x);
    at->n++;
    for (size_t i = 0; i < 2 && scores[i] != NULL; i++) {
        t->lost[replicate] = t->lost[replicate] || scores[i]->excluded;
        t->copy = t->copy != NULL ? t->copy : scores[i]->copy;
        if (number_is_point(&scores[i]->value)) {
            t->scale = fmax(t->scale, fabs(scores[i]->value.lo));
        }
    }
}

/* The scores of a measure, cell by cell. */
static void read_measure(struct trend *t)
{
    const struct plan_program *p = t->ev->rules->program;
    const struct layout *l = &t->ev->rules->layout;
    const struct score *scores = &t->ev->reading->scores[t->c->measure * p->n_cells];
    for (size_t i = 0; i < p->n_conditions; i++) {
        const size_t *levels = p->conditions[i].levels;
        for (size_t r = 0; r < l->n_replicates && is_within(t->c, levels); r++) {
            const struct score *s = &scores[layout_cell(l, i, r)];
            add_value(t, r, levels[t->c->factor], s->value, (const struct score *[2]){s, NULL});
        }
    }
}

/* The differences of a contrast, pair by pair; the setting is that of arm a. */
static void read_contrast(struct trend *t)
{
    const struct plan_program *p = t->ev->rules->program;
    const struct layout *l = &t->ev->rules->layout;
    const struct contrast_layout *k = &l->contrasts[t->c->index];
    const struct score *scores = &t->ev->reading->scores[t->c->measure * p->n_cells];
    for (size_t s = 0; s < k->n_settings; s++) {
        const size_t *levels = p->conditions[k->conditions[s]].levels;
        for (size_t r = 0; r < l->n_replicates && is_within(t->c, levels); r++) {
            const struct score *a = &scores[layout_pair_a(l, t->c->index, s, r)];
            const struct score *b = &scores[layout_pair_b(l, t->c->index, s, r)];
            add_value(t, r, levels[t->c->factor], number_sub(a->value, b->value),
                      (const struct score *[2]){a, b});
        }
    }
}

/* The least squares slope of a replicate over the places 0, 1, 2, ... of the levels. */
static struct number slope_of(const struct trend *t, size_t replicate)
{
    const size_t n = n_levels_of(t);
    const double middle = (double)(n - 1) / 2;
    const double squares = (double)n * ((double)n * (double)n - 1) / 12;
    struct number slope = number_point(0);
    for (size_t i = 0; i < n; i++) {
        const struct at_level *at = &t->at[replicate * n + i];
        if (at->n == 0) {
            return number_unknown("no cell has the level");
        }
        struct number mean = number_div(at->sum, number_point((double)at->n));
        slope = number_add(slope, number_mul(mean, number_point(((double)i - middle) / squares)));
    }
    return slope;
}

/* sd, se and interval of the slopes of the replicates that are left. */
static struct number spread_field(const struct trend *t, const double *slopes, size_t n,
                                  struct number mean)
{
    double low = (double)INFINITY;
    double high = -(double)INFINITY;
    if (t->copy != NULL || n < 2) {
        return number_unknown(t->copy != NULL ? t->copy : "one replicate has no spread");
    }
    for (size_t i = 0; i < n; i++) {
        low = fmin(low, slopes[i]);
        high = fmax(high, slopes[i]);
    }
    if (!(high - low > ROUNDING * t->scale)) {
        return number_unknown("no spread seen: the replicates' slopes are equal");
    }
    const double se = stat_sd(slopes, n) / sqrt((double)n);
    const double q = n == t->ev->rules->layout.n_replicates
                         ? t->ev->rules->t_full
                         : stat_t_quantile(0.975, (unsigned)(n - 1));
    const struct number half = number_point(q * se);
    return t->c->field == FIELD_SE       ? number_point(se)
           : t->c->field == FIELD_CI_LOW ? number_sub(mean, half)
                                         : number_add(mean, half);
}

/* The field of the slopes that the condition reads. */
static struct number field_of(const struct trend *t)
{
    const size_t n_replicates = t->ev->rules->layout.n_replicates;
    double *slopes = arena_array(t->ev->arena, n_replicates, sizeof(*slopes));
    struct number sum = number_point(0);
    bool points = true;
    size_t n = 0;
    for (size_t r = 0; r < n_replicates; r++) {
        if (t->lost[r]) {
            continue;
        }
        struct number slope = slope_of(t, r);
        if (!slope.known) {
            return slope;
        }
        points = points && number_is_point(&slope);
        slopes[n++] = slope.lo;
        sum = number_add(sum, slope);
    }
    if (n == 0) {
        return number_unknown("no replicate has every level");
    }
    struct number mean = number_div(sum, number_point((double)n));
    if (t->c->field == FIELD_MEAN) {
        return mean;
    }
    if (t->c->field == FIELD_N) {
        return number_point((double)n);
    }
    return points ? spread_field(t, slopes, n, mean)
                  : number_unknown("a value is known only as a bound");
}

/* A slope is one per step from a level to the next. */
struct number trend_of_levels(const struct table_evaluation *ev, const struct cond *c)
{
    assert(c->kind == COND_TREND);
    const size_t n_replicates = ev->rules->layout.n_replicates;
    struct trend t = {.ev = ev, .c = c};
    t.at = arena_array(ev->arena, n_replicates * n_levels_of(&t), sizeof(*t.at));
    t.lost = arena_array(ev->arena, n_replicates, sizeof(*t.lost));
    if (c->index == INDEX_NONE) {
        read_measure(&t);
    } else {
        read_contrast(&t);
    }
    return field_of(&t);
}
