/*
 * Turns the numbers of conditions into linear expressions for the prover, and adds what always
 * holds of each quantity that occurs: bounds, integrality, and relations between the fields of one
 * figure. A quantity may become a variable only if it is known in every complete set of records. If
 * it could be undetermined there, a comparison with it constrains nothing, and demanding it would
 * make a proof unsound.
 */
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/xalloc.h"
#include "truthtable/prove/prover.h"

/* Adds e >= 0, or e > 0 if strict. */
void require(struct prover *pr, const struct linear *e, bool strict)
{
    system_add(pr->system, e, strict);
}

/* a - b >= 0, or > 0 when strict. */
void require_order(struct prover *pr, const struct linear *a, const struct linear *b, bool strict)
{
    struct linear minus = linear_scale(b, rational_of_int(-1));
    struct linear d = linear_add(a, &minus);
    require(pr, &d, strict);
}

/* low <= variable <= high. */
void require_bounds(struct prover *pr, size_t var, double low, double high)
{
    struct linear v = linear_variable(var);
    struct linear lo = linear_constant(rational_of_double(low));
    struct linear hi = linear_constant(rational_of_double(high));
    require_order(pr, &v, &lo, false);
    require_order(pr, &hi, &v, false);
}

/* variable >= low. */
void require_at_least(struct prover *pr, size_t var, double low)
{
    struct linear v = linear_variable(var);
    struct linear lo = linear_constant(rational_of_double(low));
    require_order(pr, &v, &lo, false);
}

/* Whether all counted measures are proportions, so that pooled differences lie within -1..1. */
static bool all_proportions(const struct plan_program *p)
{
    bool all = true;
    for (size_t m = 0; m < p->n_measures; m++) {
        all = all && (!p->measures[m].counted || measure_is_share(&p->measures[m]));
    }
    return all;
}

/* Fields that are never negative. */
static bool is_magnitude(enum contrast_field f)
{
    return f == FIELD_MAX_ABS || f == FIELD_MEAN_ABS || f == FIELD_SD || f == FIELD_SE ||
           f == FIELD_ITEM_SE || f == FIELD_N;
}

/* Fields in the units of the measure: a difference of two proportions is within -1..1. */
static bool is_in_units(enum contrast_field f)
{
    return f == FIELD_MEAN || f == FIELD_MIN || f == FIELD_MAX || f == FIELD_MAX_ABS ||
           f == FIELD_MEAN_ABS;
}

/* The bounds of one field of a figure. A difference of contrasts may reach twice as far as a
 * contrast. */
static void bound_contrast(struct prover *pr, size_t var, const struct cond *c)
{
    const struct plan_program *p = pr->rules->program;
    bool proportion =
        c->measure == INDEX_NONE ? all_proportions(p) : measure_is_share(&p->measures[c->measure]);
    double limit = p->contrasts[c->index].is_difference ? 2 : 1;
    if (is_magnitude(c->field)) {
        require_at_least(pr, var, 0);
    }
    if (proportion && is_in_units(c->field)) {
        require_bounds(pr, var, -limit, limit);
    }
    if (c->field == FIELD_SIGN) {
        pr->system->integer[var] = true;
        require_bounds(pr, var, -1, 1);
    }
    if (c->field == FIELD_N && c->measure != INDEX_NONE) {
        /* Copies do not count as replicates, in complete records either, so n may be less than
         * planned. */
        pr->system->integer[var] = true;
        require_bounds(pr, var, 0, (double)pr->rules->layout.n_replicates);
    }
}

/* Whether an expression is the mean of this contrast in this measure. */
static bool is_mean(const struct cond *c, size_t contrast, size_t measure)
{
    return c->kind == COND_CONTRAST && c->field == FIELD_MEAN && c->index == contrast &&
           c->measure == measure;
}

/* A difference of contrasts is the difference of their means, once all three are variables. */
static void relate_differences(struct prover *pr)
{
    for (size_t d = 0; d < pr->n_vars; d++) {
        const struct cond *c = pr->vars[d];
        if (!(c->kind == COND_CONTRAST && c->field == FIELD_MEAN && c->measure != INDEX_NONE &&
              pr->rules->program->contrasts[c->index].is_difference)) {
            continue;
        }
        const struct plan_contrast *k = &pr->rules->program->contrasts[c->index];
        for (size_t a = 0; a < pr->n_vars; a++) {
            for (size_t b = 0; b < pr->n_vars; b++) {
                /* Each relation is added once, when its last variable appears. */
                bool newest = a == pr->n_vars - 1 || b == pr->n_vars - 1 || d == pr->n_vars - 1;
                if (newest && is_mean(pr->vars[a], k->of, c->measure) &&
                    is_mean(pr->vars[b], k->minus, c->measure)) {
                    struct linear of = linear_variable(a);
                    struct linear minus = linear_variable(b);
                    struct linear diff = linear_variable(d);
                    struct linear sum = linear_add(&diff, &minus);
                    require_order(pr, &of, &sum, false);
                    require_order(pr, &sum, &of, false);
                }
            }
        }
    }
}

/* Two fields of one figure, pooled or per measure. */
static bool same_figure(const struct cond *a, const struct cond *b)
{
    return a->kind == COND_CONTRAST && b->kind == COND_CONTRAST && a->index == b->index &&
           a->measure == b->measure;
}

/* What always holds between two fields of one figure: large - by * small >= 0. */
static void relate(struct prover *pr, size_t i, size_t k)
{
    static const struct {
        enum contrast_field large;
        enum contrast_field small;
        int by;
    } relations[] = {
        {FIELD_MAX_ABS, FIELD_MEAN, 1},       {FIELD_MAX_ABS, FIELD_MEAN, -1},
        {FIELD_MAX_ABS, FIELD_MEAN_ABS, 1},   {FIELD_MAX_ABS, FIELD_MAX, 1},
        {FIELD_MAX_ABS, FIELD_MAX, -1},       {FIELD_MAX_ABS, FIELD_MIN, 1},
        {FIELD_MAX_ABS, FIELD_MIN, -1},       {FIELD_MEAN_ABS, FIELD_MEAN, 1},
        {FIELD_MEAN_ABS, FIELD_MEAN, -1},     {FIELD_MAX, FIELD_MEAN, 1},
        {FIELD_MEAN, FIELD_MIN, 1},           {FIELD_MAX, FIELD_MIN, 1},
        {FIELD_CI_HIGH, FIELD_MEAN, 1},       {FIELD_MEAN, FIELD_CI_LOW, 1},
        {FIELD_CI_HIGH, FIELD_CI_LOW, 1},     {FIELD_SD, FIELD_SE, 1},
        {FIELD_ITEM_HIGH, FIELD_MEAN, 1},     {FIELD_MEAN, FIELD_ITEM_LOW, 1},
        {FIELD_ITEM_HIGH, FIELD_ITEM_LOW, 1},
    };
    for (size_t r = 0; r < ARRAY_LEN(relations); r++) {
        if (pr->vars[i]->field == relations[r].large && pr->vars[k]->field == relations[r].small) {
            struct linear large = linear_variable(i);
            struct linear small = linear_variable(k);
            struct linear scaled = linear_scale(&small, rational_of_int(relations[r].by));
            require_order(pr, &large, &scaled, false);
        }
    }
}

/* abs(x) >= x and >= -x; min(...) <= and max(...) >= each argument that is linear. */
static void bound_function(struct prover *pr, size_t var, const struct cond *c)
{
    struct linear v = linear_variable(var);
    for (size_t i = 0; i < c->n_kids; i++) {
        struct linear x;
        if (!linear_of(pr, c->kids[i], &x)) {
            continue;
        }
        if (c->kind == COND_MIN) {
            require_order(pr, &x, &v, false);
        } else {
            require_order(pr, &v, &x, false);
        }
        if (c->kind == COND_ABS) {
            struct linear minus = linear_scale(&x, rational_of_int(-1));
            require_order(pr, &v, &minus, false);
        }
    }
}

/* The variable of another level's rank in the same comparison; LINEAR_VARS_MAX: it has none. */
static size_t rank_variable(const struct prover *pr, const struct cond *c, size_t level)
{
    struct cond want = *c;
    size_t i = 0;
    want.level_a = level;
    while (i < pr->n_vars && !cond_same(pr->vars[i], &want)) {
        i++;
    }
    return i < pr->n_vars ? i : LINEAR_VARS_MAX;
}

/* Levels that tie share the better rank, so that the ranks of all n levels sum to n(n + 1)/2 at
 * most; some level has rank 1. Added once the last of them is a variable. */
static void relate_ranks(struct prover *pr, const struct cond *c)
{
    const size_t n = pr->rules->program->factors[c->factor].n_levels;
    struct linear sum = linear_constant(rational_of_int(0));
    for (size_t i = 0; i < n; i++) {
        size_t var = rank_variable(pr, c, i);
        if (var == LINEAR_VARS_MAX) {
            return;
        }
        struct linear own = linear_variable(var);
        sum = linear_add(&sum, &own);
    }
    struct linear most = linear_constant(rational_of_double((double)n * (double)(n + 1) / 2));
    require_order(pr, &most, &sum, false);
}

/* Over places one apart, values within 0..1 have a slope within -1..1, and differences of two such
 * within -2..2. Its interval may reach any distance beyond. */
static void bound_trend(struct prover *pr, size_t var, const struct cond *c)
{
    const struct plan_program *p = pr->rules->program;
    const double limit = c->index == INDEX_NONE ? 1 : 2;
    if (c->field == FIELD_N) {
        pr->system->integer[var] = true;
        require_bounds(pr, var, 0, (double)pr->rules->layout.n_replicates);
    } else if (c->field == FIELD_MEAN && measure_is_share(&p->measures[c->measure])) {
        require_bounds(pr, var, -limit, limit);
    }
}

/* Adds what always holds of a new variable, and between it and the variables before it. */
static void bound_variable(struct prover *pr, size_t var, const struct cond *c)
{
    const struct plan_program *p = pr->rules->program;
    if (c->kind == COND_COUNTER) {
        size_t n = 0;
        for (size_t m = 0; m < p->n_measures; m++) {
            n += rules_in_counters(pr->rules, m) ? 1 : 0;
        }
        pr->system->integer[var] = true;
        require_bounds(pr, var, 0, (double)n);
    } else if (c->kind == COND_CONTRAST) {
        bound_contrast(pr, var, c);
        for (size_t k = 0; k < var; k++) {
            if (same_figure(pr->vars[k], c)) {
                relate(pr, var, k);
                relate(pr, k, var);
            }
        }
    } else if (c->kind == COND_MEASURE && measure_is_share(&p->measures[c->measure])) {
        require_bounds(pr, var, 0, 1);
    } else if (c->kind == COND_RANK) {
        pr->system->integer[var] = true;
        require_bounds(pr, var, 1, (double)p->factors[c->factor].n_levels);
        relate_ranks(pr, c);
    } else if (c->kind == COND_TREND) {
        bound_trend(pr, var, c);
    } else if (c->kind == COND_ABS || c->kind == COND_MIN || c->kind == COND_MAX) {
        bound_function(pr, var, c);
    }
}

/* Equal expressions share a variable, so that two conditions on one figure can contradict each
 * other. */
bool prover_variable(struct prover *pr, const struct cond *c, struct linear *out)
{
    size_t i = 0;
    while (i < pr->n_vars && !cond_same(pr->vars[i], c)) {
        i++;
    }
    if (i == LINEAR_VARS_MAX) {
        return false;
    }
    *out = linear_variable(i);
    if (i == pr->n_vars) {
        pr->vars[pr->n_vars++] = c;
        bound_variable(pr, i, c);
        relate_differences(pr);
    }
    return true;
}

/* Whether a name has a value in every complete set of records. */
static bool is_always_known(const struct prover *pr, const struct cond *c)
{
    const struct rules *rules = pr->rules;
    if (c->kind == COND_COUNTER || c->kind == COND_MEASURE || c->kind == COND_RANK) {
        return true;
    }
    /* The interval of a trend may be unknown even then: without spread, and with copies. */
    if (c->kind == COND_TREND) {
        return c->field == FIELD_MEAN || c->field == FIELD_N;
    }
    if (c->kind != COND_CONTRAST || rules->layout.contrasts[c->index].n_settings == 0) {
        return false;
    }
    if (c->measure != INDEX_NONE) {
        /* Even complete records may leave other fields unknown: without spread there are no
         * intervals, with copies no sd, and without n none over items. */
        return c->field == FIELD_MEAN || c->field == FIELD_N;
    }
    if (rules->program->contrasts[c->index].over == OVER_CLEARED) {
        return pr->pooled_known;
    }
    for (size_t m = 0; m < rules->program->n_measures; m++) {
        if (rules->program->measures[m].counted) {
            return true;
        }
    }
    return false;
}

/* kids[0] + by * kids[1]. */
static bool linear_sum(struct prover *pr, const struct cond *c, long by, struct linear *out)
{
    struct linear b;
    if (!linear_of(pr, c->kids[0], out) || !linear_of(pr, c->kids[1], &b)) {
        return false;
    }
    b = linear_scale(&b, rational_of_int(by));
    *out = linear_add(out, &b);
    return true;
}

/* A product with, or a quotient by, a constant; two variables are not linear. */
static bool linear_product(struct prover *pr, const struct cond *c, struct linear *out)
{
    struct linear a;
    struct linear b;
    if (!linear_of(pr, c->kids[0], &a) || !linear_of(pr, c->kids[1], &b)) {
        return false;
    }
    if (c->kind == COND_DIV) {
        if (!linear_is_constant(&b) || b.constant.num == 0) {
            return false;
        }
        *out = linear_scale(&a, rational_inverse(b.constant));
        return true;
    }
    if (!linear_is_constant(&a) && !linear_is_constant(&b)) {
        return false;
    }
    *out = linear_is_constant(&a) ? linear_scale(&b, a.constant) : linear_scale(&a, b.constant);
    return true;
}

/* Whether abs, min or max has a value in every complete set of records: all its arguments must. */
static bool all_kids_known(struct prover *pr, const struct cond *c)
{
    struct linear ignored;
    for (size_t i = 0; i < c->n_kids; i++) {
        if (!linear_of(pr, c->kids[i], &ignored)) {
            return false;
        }
    }
    return true;
}

/* The form by the kind of expression; its coefficients may have overflowed. Facts may be missing in
 * complete records, so a ratio is not linear here. */
static bool form_of(struct prover *pr, const struct cond *c, struct linear *out)
{
    switch (c->kind) {
    case COND_NUMBER: *out = linear_constant(rational_of_double(c->number)); return true;
    case COND_ADD: return linear_sum(pr, c, 1, out);
    case COND_SUB: return linear_sum(pr, c, -1, out);
    case COND_MUL:
    case COND_DIV: return linear_product(pr, c, out);
    case COND_NEG:
        if (!linear_of(pr, c->kids[0], out)) {
            return false;
        }
        *out = linear_scale(out, rational_of_int(-1));
        return true;
    case COND_ABS:
    case COND_MIN:
    case COND_MAX: return all_kids_known(pr, c) && prover_variable(pr, c, out);
    case COND_COUNTER:
    case COND_CONTRAST:
    case COND_MEASURE:
    case COND_RANK:
    case COND_TREND: return is_always_known(pr, c) && prover_variable(pr, c, out);
    case COND_RATIO:
    case COND_FACT:
    case COND_INSTRUMENT:
    case COND_OR:
    case COND_AND:
    case COND_NOT:
    case COND_CHAIN:
    case COND_WITHIN:
    case COND_OTHERWISE: break;
    }
    return false;
}

/* False is always safe: the comparison then says nothing. A form that has overflowed is not known,
 * so that no product, quotient or function is built on it. */
bool linear_of(struct prover *pr, const struct cond *c, struct linear *out)
{
    return form_of(pr, c, out) && linear_is_exact(out);
}
