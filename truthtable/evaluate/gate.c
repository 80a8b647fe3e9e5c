/*
 * Gates, one for each (measure, cell), and counters over them. Scores that are counts of known n
 * are compared with floors as exact fractions, cells and arm means alike; only where that is not
 * possible are doubles compared. A counter is a range: at least the measures that clear, at most
 * those that also may.
 */
#include <assert.h>

#include "truthtable/evaluate/evaluation.h"

static const struct score *score_at(const struct table_evaluation *ev, size_t measure, size_t cell)
{
    return &ev->reading->scores[measure * ev->rules->program->n_cells + cell];
}

/* score >= floor: exact when the score is a known count of n, else as doubles. */
static enum truth score_reaches(const struct score *s, const struct threshold *t)
{
    assert(s != NULL && t != NULL);
    int64_t k = 0;
    if (number_is_point(&s->value) && s->has_n && t->is_exact &&
        score_count(s->value.lo, s->n, &k)) {
        return truth_of(count_reaches(k, s->n, &t->exact));
    }
    return number_compare(s->value, REL_GE, number_point(t->value));
}

/* More items than this are not counted exactly. */
#define ARM_ITEMS_MAX ((int64_t)1 << 53)

/* An arm's counts, of the pairs that are left. */
struct arm_count {
    int64_t n;  /* items of each score; 0: no score yet */
    int64_t of; /* a fraction's denominator; its numerator is k */
    int64_t k;
};

/* Adds a setting's mean, k / (n * pairs), to the sum of those before: exact as long as numbers stay
 * below ARM_ITEMS_MAX. */
static bool add_setting(struct arm_count *arm, int64_t k, int64_t pairs)
{
    int64_t a = arm->of;
    int64_t b = pairs;
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    const int64_t widen[2] = {pairs / a, arm->of / a}; /* to the least common multiple */
    int64_t sum = 0;
    return !__builtin_mul_overflow(arm->of, widen[0], &arm->of) &&
           !__builtin_mul_overflow(arm->k, widen[0], &arm->k) &&
           !__builtin_mul_overflow(k, widen[1], &sum) &&
           !__builtin_add_overflow(arm->k, sum, &arm->k) && arm->of < ARM_ITEMS_MAX &&
           arm->k < ARM_ITEMS_MAX;
}

/* The counts of one setting; false when a score that is left is not a count of the same n. */
static bool setting_counts(const struct table_evaluation *ev, size_t contrast, size_t measure,
                           size_t s, bool b, struct arm_count *arm)
{
    const struct layout *l = &ev->rules->layout;
    int64_t sum_k = 0;
    int64_t pairs = 0;
    for (size_t r = 0; r < l->n_replicates; r++) {
        size_t cells[2] = {layout_pair_a(l, contrast, s, r), layout_pair_b(l, contrast, s, r)};
        const struct score *own = score_at(ev, measure, cells[b ? 1 : 0]);
        int64_t k = 0;
        if (own->excluded || score_at(ev, measure, cells[b ? 0 : 1])->excluded) {
            continue;
        }
        if (!number_is_point(&own->value) || !own->has_n || (arm->n != 0 && own->n != arm->n) ||
            !score_count(own->value.lo, own->n, &k) || k > ARM_ITEMS_MAX - sum_k) {
            return false;
        }
        arm->n = own->n;
        sum_k += k;
        pairs++;
    }
    return pairs > 0 && add_setting(arm, sum_k, pairs);
}

/* The mean over settings of the mean over the pairs that are left, as k of n, when every score is a
 * count of the same n. */
static bool arm_counts(const struct table_evaluation *ev, size_t contrast, size_t measure, bool b,
                       int64_t *k, int64_t *n)
{
    assert(contrast < ev->rules->program->n_contrasts && measure < ev->rules->program->n_measures);
    const size_t n_settings = ev->rules->layout.contrasts[contrast].n_settings;
    struct arm_count arm = {.of = 1};
    for (size_t s = 0; s < n_settings; s++) {
        if (!setting_counts(ev, contrast, measure, s, b, &arm)) {
            return false;
        }
    }
    *k = arm.k;
    return n_settings > 0 && !__builtin_mul_overflow(arm.of, arm.n, n) &&
           !__builtin_mul_overflow(*n, (int64_t)n_settings, n) && *n < ARM_ITEMS_MAX;
}

/* Whether an arm's mean reaches a threshold: exact if all its scores are counts of the same n, else
 * as a double. */
static enum truth arm_reaches(const struct table_evaluation *ev, size_t contrast, size_t measure,
                              bool b, const struct threshold *t)
{
    assert(contrast < ev->rules->program->n_contrasts && t != NULL);
    int64_t k = 0;
    int64_t n = 0;
    if (t->is_exact && arm_counts(ev, contrast, measure, b, &k, &n)) {
        return truth_of(count_reaches(k, n, &t->exact));
    }
    return number_compare(arm_mean(ev, contrast, measure, b), REL_GE, number_point(t->value));
}

/* The larger of two means reaches best_arm when one of them does. */
static enum truth best_arm_reaches(const struct table_evaluation *ev, size_t contrast,
                                   size_t measure)
{
    assert(contrast < ev->rules->program->n_contrasts && measure < ev->rules->program->n_measures);
    if (!ev->rules->program->measures[measure].has_best_arm) {
        return TRUTH_TRUE;
    }
    const struct threshold *t = &ev->rules->best_arms[measure];
    return truth_or(arm_reaches(ev, contrast, measure, false, t),
                    arm_reaches(ev, contrast, measure, true, t));
}

/* What an excluded cell counts as is the plan's choice (excluded_fails). */
static enum truth cell_reaches(const struct table_evaluation *ev, size_t measure, size_t cell)
{
    assert(ev->rules->program->measures[measure].has_floor); /* only such measures have gates */
    const struct score *s = score_at(ev, measure, cell);
    if (s->excluded) {
        return ev->rules->program->excluded_fails ? TRUTH_FALSE : TRUTH_UNKNOWN;
    }
    return score_reaches(s, &ev->rules->floors[measure]);
}

/* Both arms of the counter's contrast, every cell of them. */
static enum truth clears_every_cell(const struct table_evaluation *ev, size_t contrast,
                                    size_t measure)
{
    assert(contrast < ev->rules->program->n_contrasts && measure < ev->rules->program->n_measures);
    const struct layout *l = &ev->rules->layout;
    size_t n_cells = ev->rules->program->n_cells;
    enum truth all = TRUTH_TRUE;
    for (size_t s = 0; s < l->contrasts[contrast].n_settings; s++) {
        for (size_t r = 0; r < l->n_replicates; r++) {
            size_t a = layout_pair_a(l, contrast, s, r);
            size_t b = layout_pair_b(l, contrast, s, r);
            all = truth_and(all, ev->gates[measure * n_cells + a].floor);
            all = truth_and(all, ev->gates[measure * n_cells + b].floor);
        }
    }
    return all;
}

/* Every cell, or both arms' means, must reach the floor; with best_arm, the larger mean must reach
 * that as well. */
static enum truth counter_clears(const struct table_evaluation *ev, const struct counter *c,
                                 size_t measure)
{
    assert(c->contrast < ev->rules->program->n_contrasts && rules_in_counters(ev->rules, measure));
    const struct threshold *floor = &ev->rules->floors[measure];
    enum truth base = c->clears == CLEARS_EVERY_CELL
                          ? clears_every_cell(ev, c->contrast, measure)
                          : truth_and(arm_reaches(ev, c->contrast, measure, false, floor),
                                      arm_reaches(ev, c->contrast, measure, true, floor));
    return truth_and(base, best_arm_reaches(ev, c->contrast, measure));
}

/* One gate, with the reason if it is undetermined. best_arm holds for the whole measure. */
static void evaluate_gate(struct table_evaluation *ev, size_t measure, size_t cell,
                          enum truth best_arm)
{
    assert(ev->rules->program->measures[measure].has_floor);
    struct gate *g = &ev->gates[measure * ev->rules->program->n_cells + cell];
    const struct score *s = score_at(ev, measure, cell);
    g->floor = cell_reaches(ev, measure, cell);
    g->cleared = truth_and(g->floor, best_arm);
    if (g->cleared != TRUTH_UNKNOWN) {
        return;
    }
    if (!s->value.known) {
        g->why = s->value.why;
    } else {
        g->why = g->floor == TRUTH_UNKNOWN ? "known only as a bound"
                                           : "the larger arm mean is undetermined";
    }
}

/* K: how many measures clear. Each that may clear widens the range by one. */
static void count_measures(struct table_evaluation *ev, size_t counter)
{
    const struct plan_program *p = ev->rules->program;
    assert(counter < p->n_counters);
    size_t n_true = 0;
    size_t n_unknown = 0;
    for (size_t m = 0; m < p->n_measures; m++) {
        if (!rules_in_counters(ev->rules, m)) {
            continue;
        }
        enum truth t = counter_clears(ev, &p->counters[counter], m);
        ev->clears[counter * p->n_measures + m] = t;
        n_true += t == TRUTH_TRUE ? 1 : 0;
        n_unknown += t == TRUTH_UNKNOWN ? 1 : 0;
    }
    ev->counters[counter] = number_range((double)n_true, (double)(n_true + n_unknown));
}

/* Measures without a floor have no gates. Without a binding counter no contrast is named that
 * best_arm could refer to. */
void evaluate_gates(struct table_evaluation *ev)
{
    assert(ev->reading != NULL && ev->gates == NULL); /* the first step */
    const struct plan_program *p = ev->rules->program;
    ev->gates = arena_array(ev->arena, p->n_measures * p->n_cells, sizeof(*ev->gates));
    ev->clears = arena_array(ev->arena, p->n_counters * p->n_measures, sizeof(*ev->clears));
    ev->counters = arena_array(ev->arena, p->n_counters, sizeof(*ev->counters));
    for (size_t m = 0; m < p->n_measures; m++) {
        if (!p->measures[m].has_floor) {
            continue;
        }
        enum truth best = p->binding_counter == INDEX_NONE
                              ? TRUTH_TRUE
                              : best_arm_reaches(ev, p->counters[p->binding_counter].contrast, m);
        for (size_t cell = 0; cell < p->n_cells; cell++) {
            evaluate_gate(ev, m, cell, best);
        }
    }
    for (size_t i = 0; i < p->n_counters; i++) {
        count_measures(ev, i);
    }
}
