/*
 * Figures over all levels of a factor: the rank of a level by a measure, and the trend of a measure
 * or of a contrast over the levels in the order of the plan. A rank compares the levels' means; a
 * trend has a slope for each replicate that has every level, and its spread is over those. With a
 * value missing at any level, both are unknown. Levels that are names of one work tie, and a trend
 * over nothing else is 0 by construction: it has no error and counts no replicate.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "prereg/program/same_work.h"
#include "truthtable/condition/equal_pairs.h"
#include "truthtable/condition/stats.h"
#include "truthtable/evaluate/copies_left.h"
#include "truthtable/evaluate/evaluation.h"
#include "truthtable/evaluate/running_sum.h"

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

/* ---- one work under several levels ([[same_work]]) ---- */

/* The cell with another level of the factor, all else equal. */
static size_t with_level(const struct plan_program *p, size_t factor, size_t cell, size_t level)
{
    size_t stride = 1;
    for (size_t f = factor + 1; f < p->n_factors; f++) {
        stride *= p->factors[f].n_levels;
    }
    return cell - p->cells[cell].levels[factor] * stride + level * stride;
}

/* Whether a cell is one work with the same cell at another level of the figure's factor. */
static bool is_one_with(const struct plan_program *p, const struct cond *c, size_t cell,
                        size_t level)
{
    return program_is_same_work(p, p->measures[c->measure].stage, cell,
                                with_level(p, c->factor, cell, level));
}

/* Whether all that the figure compares at one level is one work with the same at another. */
static bool levels_are_one(const struct plan_program *p, const struct cond *c, size_t a, size_t b)
{
    bool one = p->workers != NULL;
    for (size_t i = 0; i < p->n_conditions && one; i++) {
        const struct plan_condition *k = &p->conditions[i];
        if (k->levels[c->factor] == a && is_within(c, k->levels)) {
            one = is_one_with(p, c, k->first_cell, b);
        }
    }
    return one;
}

/* Whether a contrast's differences are 0 by construction at every level, or the same at all. */
static bool contrast_is_constant(const struct rules *rules, const struct cond *c)
{
    const struct plan_program *p = rules->program;
    const struct contrast_layout *k = &rules->layout.contrasts[c->index];
    bool constant = p->workers != NULL;
    for (size_t s = 0; s < k->n_settings && constant; s++) {
        const struct pair_at at = {c->index, c->measure, s, 0};
        if (is_within(c, p->conditions[k->conditions[s]].levels)) {
            constant = pair_is_equal(p, &rules->layout, &at) ||
                       (is_one_with(p, c, layout_pair_a(&rules->layout, c->index, s, 0), 0) &&
                        is_one_with(p, c, layout_pair_b(&rules->layout, c->index, s, 0), 0));
        }
    }
    return constant;
}

bool level_figure_is_equal(const struct rules *rules, const struct cond *c)
{
    const struct plan_program *p = rules->program;
    if (c->kind == COND_TREND && c->index != INDEX_NONE) {
        return contrast_is_constant(rules, c);
    }
    bool equal = c->kind == COND_TREND || c->kind == COND_RANK;
    for (size_t i = 1; equal && i < p->factors[c->factor].n_levels; i++) {
        equal = levels_are_one(p, c, i, 0);
    }
    return equal;
}

/* ---- rank ---- */

/* The mean over the level's conditions of the mean over their cells that are left. *scale grows to
 * the largest |score|. */
static struct number mean_of_level(const struct table_evaluation *ev, const struct cond *c,
                                   size_t level, double *scale)
{
    const struct plan_program *p = ev->rules->program;
    const struct layout *l = &ev->rules->layout;
    const struct score *scores = evaluation_scores(ev, c->measure);
    struct running_sum over_conditions = {0};
    for (size_t i = 0; i < p->n_conditions; i++) {
        const size_t *levels = p->conditions[i].levels;
        struct running_sum over_cells = {0};
        if (levels[c->factor] != level || !is_within(c, levels)) {
            continue;
        }
        for (size_t r = 0; r < l->n_replicates; r++) {
            const struct score *s = &scores[layout_cell(l, i, r)];
            if (s->excluded) {
                continue;
            }
            sum_add(&over_cells, s->value);
            if (number_is_point(&s->value)) {
                *scale = fmax(*scale, fabs(s->value.lo));
            }
        }
        if (over_cells.n == 0) {
            return number_unknown("no cell of a condition is left");
        }
        sum_add(&over_conditions, sum_mean(&over_cells, ""));
    }
    return sum_mean(&over_conditions, "no cell has the level");
}

/* 1 + the levels that are better, a range while bounds leave that open. Equal means share a rank;
 * means of equal scores differ by rounding alone. */
struct number rank_of_level(const struct table_evaluation *ev, const struct cond *c)
{
    assert(c->kind == COND_RANK);
    const struct plan_program *p = ev->rules->program;
    const bool lower = p->measures[c->measure].lower_better;
    double own_scale = 0;
    struct number own = mean_of_level(ev, c, c->level_a, &own_scale);
    double least = 1;
    double most = 1;
    if (!own.known) {
        return own;
    }
    for (size_t i = 0; i < p->factors[c->factor].n_levels; i++) {
        if (i == c->level_a) {
            continue;
        }
        double scale = own_scale;
        struct number other = mean_of_level(ev, c, i, &scale);
        /* Whatever is computed from an unknown is unknown. */
        if (!other.known) {
            return other;
        }
        /* Of one work even bounds are equal. */
        if (levels_are_one(p, c, i, c->level_a)) {
            continue;
        }
        const double apart = ROUNDING * scale;
        enum truth t = number_compare(other, lower ? REL_LT : REL_GT,
                                      number_add(own, number_point(lower ? -apart : apart)));
        least += t == TRUTH_TRUE ? 1 : 0;
        most += t != TRUTH_FALSE ? 1 : 0;
    }
    return number_range(least, most);
}

/* ---- trend ---- */

/* What a trend is over: a score, or a difference of two. */
struct trend_value {
    size_t replicate;
    size_t level;
    size_t cells[2];
    size_t n_cells;
    struct number x;
    bool equal; /* a difference that is 0 by construction */
};

struct trend {
    const struct table_evaluation *ev;
    const struct cond *c;
    struct trend_value *values;
    size_t n_values;
    struct running_sum *at; /* [replicate * n_levels + level] */
    bool *lost;             /* [replicate]: a cell of it was excluded */
    const char *copy;       /* why a cell is not a replicate of its own; NULL: all are */
    double scale;           /* the largest |score| */
};

static size_t n_levels_of(const struct trend *t)
{
    return t->ev->rules->program->factors[t->c->factor].n_levels;
}

/* The scores of a measure, cell by cell. */
static void read_measure(struct trend *t)
{
    const struct plan_program *p = t->ev->rules->program;
    const struct layout *l = &t->ev->rules->layout;
    const struct score *scores = evaluation_scores(t->ev, t->c->measure);
    t->values = xcalloc(p->n_cells, sizeof(*t->values));
    for (size_t i = 0; i < p->n_conditions; i++) {
        const size_t *levels = p->conditions[i].levels;
        for (size_t r = 0; r < l->n_replicates && is_within(t->c, levels); r++) {
            const size_t cell = layout_cell(l, i, r);
            t->values[t->n_values++] = (struct trend_value){.replicate = r,
                                                            .level = levels[t->c->factor],
                                                            .cells = {cell},
                                                            .n_cells = 1,
                                                            .x = scores[cell].value};
        }
    }
}

/* The differences of a contrast, pair by pair; the setting is that of arm a. */
static void read_contrast(struct trend *t)
{
    const struct plan_program *p = t->ev->rules->program;
    const struct layout *l = &t->ev->rules->layout;
    const struct contrast_layout *k = &l->contrasts[t->c->index];
    const struct score *scores = evaluation_scores(t->ev, t->c->measure);
    t->values = xcalloc(k->n_settings * l->n_replicates, sizeof(*t->values));
    for (size_t s = 0; s < k->n_settings; s++) {
        const size_t *levels = p->conditions[k->conditions[s]].levels;
        for (size_t r = 0; r < l->n_replicates && is_within(t->c, levels); r++) {
            const struct pair_at at = {t->c->index, t->c->measure, s, r};
            const size_t a = layout_pair_a(l, t->c->index, s, r);
            const size_t b = layout_pair_b(l, t->c->index, s, r);
            struct number x = number_sub(scores[a].value, scores[b].value);
            const bool equal = pair_is_equal(p, l, &at);
            t->values[t->n_values++] =
                (struct trend_value){.replicate = r,
                                     .level = levels[t->c->factor],
                                     .cells = {a, b},
                                     .n_cells = 2,
                                     .x = x.known && equal ? number_point(0) : x,
                                     .equal = equal};
        }
    }
}

/* Sums the values by replicate and level, and notes which replicates lost a cell. */
static void sum_values(struct trend *t)
{
    const struct score *scores = evaluation_scores(t->ev, t->c->measure);
    for (size_t i = 0; i < t->n_values; i++) {
        const struct trend_value *v = &t->values[i];
        sum_add(&t->at[v->replicate * n_levels_of(t) + v->level], v->x);
        for (size_t k = 0; k < v->n_cells; k++) {
            const struct score *s = &scores[v->cells[k]];
            t->lost[v->replicate] = t->lost[v->replicate] || s->excluded;
            if (number_is_point(&s->value)) {
                t->scale = fmax(t->scale, fabs(s->value.lo));
            }
        }
    }
}

/* As for contrasts: a replicate that is lost leaves its place to a copy of it, and what was not
 * measured is not a copy. */
static void find_copy(struct trend *t)
{
    struct copies_left copies;
    copies_left_init(&copies, t->ev, t->c->measure);
    for (size_t i = 0; i < t->n_values; i++) {
        const struct trend_value *v = &t->values[i];
        for (size_t k = 0; k < v->n_cells && t->lost[v->replicate]; k++) {
            copies_left_drop(&copies, v->cells[k]);
        }
    }
    for (size_t i = 0; i < t->n_values; i++) {
        const struct trend_value *v = &t->values[i];
        for (size_t k = 0; k < v->n_cells && !t->lost[v->replicate] && !v->equal; k++) {
            const char *copy = copies_left_why(&copies, v->cells[k]);
            t->copy = t->copy != NULL ? t->copy : copy;
        }
    }
    copies_left_release(&copies);
}

/* The least squares slope of a replicate over the places 0, 1, 2, ... of the levels. */
static struct number slope_of(const struct trend *t, size_t replicate)
{
    const size_t n = n_levels_of(t);
    const double middle = (double)(n - 1) / 2;
    const double squares = (double)n * ((double)n * (double)n - 1) / 12;
    struct number slope = number_point(0);
    for (size_t i = 0; i < n; i++) {
        struct number mean = sum_mean(&t->at[replicate * n + i], "no cell has the level");
        if (!mean.known) {
            return mean;
        }
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
    const bool equal = level_figure_is_equal(t->ev->rules, t->c);
    struct number mean = equal ? number_point(0) : number_div(sum, number_point((double)n));
    if (t->c->field == FIELD_MEAN) {
        return mean;
    }
    if (t->c->field == FIELD_N) {
        return number_point(equal ? 0 : (double)n);
    }
    if (equal) {
        return number_unknown(EQUAL_WHY);
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
    sum_values(&t);
    find_copy(&t);
    free(t.values);
    return field_of(&t);
}
