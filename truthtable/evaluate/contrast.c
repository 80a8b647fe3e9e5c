/*
 * Contrasts: differences of two arms, matched cell by cell. Per measure, the mean is over settings
 * of the mean over replicates, and spread is over the replicates' means; pooled figures are over
 * (setting, measure) pairs of the measures that count or cleared. A pair is left out as a whole if
 * one of its cells is excluded. A replicate that is a copy of another has no spread of its own: as
 * soon as one is among those that are left, spread and interval are unknown. A difference within
 * one work (equal_pairs.h) is exactly 0 and was not measured: it enters means, and the mean of a
 * replicate that has a measured difference, too, but no figure counts it. Sums run in the program's
 * order, so equal records give equal bytes.
 */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/math/elementary.h"
#include "base/xalloc.h"
#include "prereg/program/same_work.h"
#include "truthtable/condition/equal_pairs.h"
#include "truthtable/condition/stats.h"
#include "truthtable/evaluate/copies_left.h"
#include "truthtable/evaluate/evaluation.h"
#include "truthtable/evaluate/running_sum.h"

/* The differences of one contrast in one measure, [setting * n_replicates + replicate]. */
struct pairs {
    struct number *d; /* NULL: not computed yet */
    bool *excluded;
    size_t n;
    const char **copy; /* why a pair is none of its own; NULL: all are */
    bool *equal;       /* by construction (equal_pairs.h); NULL: none is */
    double scale;      /* the largest |score| behind the differences that are points */
};

struct contrasting {
    struct table_evaluation *ev;
    struct pairs *pairs; /* [contrast * n_measures + measure] */
    bool *marks;         /* scratch, [cell] */
};

/* Equal differences of counts differ by rounding alone, 0.9 - 0.8 from 0.8 - 0.7. */
#define ROUNDING   1e-12
#define NORMAL_975 1.959963984540054

static const char no_spread[] = "no spread seen: the replicates' differences are equal";

/* Whether differences between scores of at most |scale| differ by more than rounding. Replicates
 * that agree are not evidence that the next one would agree, too. */
static bool has_spread(const double *d, size_t n, double scale)
{
    double low = d[0];
    double high = d[0];
    for (size_t i = 1; i < n; i++) {
        low = fmin(low, d[i]);
        high = fmax(high, d[i]);
    }
    return high - low > ROUNDING * scale;
}

/* Notes the cells of a replicate that have no value, in room for two of each replicate. */
static void pair_exclude(const struct table_evaluation *ev, const struct score *scores,
                         const size_t cells[2], struct condition_pair *out)
{
    if (out->excluded == NULL) {
        out->excluded =
            arena_array(ev->arena, 2 * ev->rules->layout.n_replicates, sizeof(*out->excluded));
    }
    for (size_t i = 0; i < 2; i++) {
        if (scores[cells[i]].excluded) {
            out->excluded[out->n_excluded++] = cells[i];
        }
    }
}

/* ---- copies ---- */

/* The first copy among the pairs of two conditions that are left. */
static const char *first_copy(const struct table_evaluation *ev, size_t measure, size_t a, size_t b)
{
    const struct layout *l = &ev->rules->layout;
    const struct score *scores = evaluation_scores(ev, measure);
    const char *copy = NULL;
    struct copies_left copies;
    copies_left_init(&copies, ev, measure);
    for (size_t r = 0; r < l->n_replicates; r++) {
        const size_t x = layout_cell(l, a, r);
        const size_t y = layout_cell(l, b, r);
        if (scores[x].excluded || scores[y].excluded) {
            copies_left_drop(&copies, x);
            copies_left_drop(&copies, y);
        }
    }
    for (size_t r = 0; r < l->n_replicates && copy == NULL; r++) {
        const size_t x = layout_cell(l, a, r);
        const size_t y = layout_cell(l, b, r);
        if (!scores[x].excluded && !scores[y].excluded) {
            copy = copies_left_why(&copies, x);
            copy = copy != NULL ? copy : copies_left_why(&copies, y);
        }
    }
    copies_left_release(&copies);
    return copy;
}

/* ---- pairs ---- */

/* Compares any two conditions, for verdict.json's "pairs". The same rules as for contrasts hold:
 * pairs are dropped as a whole, and copies have no standard error. */
struct condition_pair evaluation_pair(const struct table_evaluation *ev, size_t measure, size_t a,
                                      size_t b)
{
    assert(a < ev->rules->program->n_conditions && b < ev->rules->program->n_conditions);
    const struct layout *l = &ev->rules->layout;
    const struct score *scores = evaluation_scores(ev, measure);
    struct condition_pair out = {0};
    double *d = xcalloc(l->n_replicates, sizeof(*d));
    bool points = true;
    bool known = true;
    double scale = 0;
    /* A copy among the replicates makes the standard error unknown, but not the mean. */
    const char *copy = first_copy(ev, measure, a, b);
    struct running_sum sum = {0};
    for (size_t r = 0; r < l->n_replicates; r++) {
        const size_t cells[2] = {layout_cell(l, a, r), layout_cell(l, b, r)};
        const struct score *x = &scores[cells[0]];
        const struct score *y = &scores[cells[1]];
        if (!x->excluded && !y->excluded) {
            struct number diff = number_sub(x->value, y->value);
            points = points && number_is_point(&diff);
            known = known && diff.known;
            d[sum.n] = diff.lo;
            scale = fmax(scale, fmax(fabs(x->value.lo), fabs(y->value.lo)));
            sum_add(&sum, diff);
        } else {
            pair_exclude(ev, scores, cells, &out);
        }
    }
    out.mean = sum_mean(&sum, "no pair is left");
    out.n = known ? number_point((double)sum.n) : number_range(0, (double)sum.n);
    if (conditions_are_equal(ev->rules->program, measure, a, b)) {
        out.mean = out.mean.known ? number_point(0) : out.mean;
        out.n = number_point(0);
        out.se = number_unknown(EQUAL_WHY);
    } else if (copy != NULL) {
        out.se = number_unknown(copy);
    } else if (!points || sum.n < 2) {
        out.se = number_unknown("fewer than two replicates with values");
    } else {
        out.se = has_spread(d, sum.n, scale) ? number_point(stat_sd(d, sum.n) / sqrt((double)sum.n))
                                             : number_unknown(no_spread);
    }
    free(d);
    return out;
}

/* Collects cells in the scratch marks, which are clear between figures. */
static void mark_excluded(struct contrasting *ct, const struct figure *f)
{
    for (size_t i = 0; i < f->n_excluded; i++) {
        ct->marks[f->excluded[i]] = true;
    }
}

/* Turns the marks into the figure's list and clears them. */
static void take_marks(struct contrasting *ct, struct figure *f)
{
    size_t n_cells = ct->ev->rules->program->n_cells;
    size_t n = 0;
    for (size_t c = 0; c < n_cells; c++) {
        n += ct->marks[c] ? 1 : 0;
    }
    size_t *cells = arena_array(ct->ev->arena, n, sizeof(*cells));
    f->excluded = cells;
    for (size_t c = 0; c < n_cells && f->n_excluded < n; c++) {
        if (ct->marks[c]) {
            cells[f->n_excluded++] = c;
            ct->marks[c] = false;
        }
    }
}

/* The differences of every pair of cells of a contrast of two arms. */
static void pair_plain(struct contrasting *ct, size_t contrast, size_t measure, struct pairs *out)
{
    const struct plan_program *p = ct->ev->rules->program;
    const struct layout *l = &ct->ev->rules->layout;
    const struct score *scores = evaluation_scores(ct->ev, measure);
    bool any = false;
    for (size_t s = 0; s < l->contrasts[contrast].n_settings; s++) {
        for (size_t r = 0; r < l->n_replicates; r++) {
            size_t a = layout_pair_a(l, contrast, s, r);
            size_t b = layout_pair_b(l, contrast, s, r);
            size_t i = s * l->n_replicates + r;
            out->d[i] = number_sub(scores[a].value, scores[b].value);
            out->excluded[i] = scores[a].excluded || scores[b].excluded;
            any = any || out->excluded[i];
            if (number_is_point(&out->d[i])) {
                out->scale =
                    fmax(out->scale, fmax(fabs(scores[a].value.lo), fabs(scores[b].value.lo)));
            }
            /* Every cell is in at most one pair, so this assignment clears no other mark. */
            ct->marks[a] = scores[a].excluded;
            ct->marks[b] = scores[b].excluded;
        }
    }
    if (any) {
        take_marks(ct, &ct->ev->per_measure[contrast * p->n_measures + measure]);
    }
}

static const struct pairs *pair_any(struct contrasting *ct, size_t contrast, size_t measure);

/* A pair of a difference is left out if either of its two pairs is. */
static void pair_difference(struct contrasting *ct, size_t contrast, size_t measure,
                            struct pairs *out)
{
    const struct plan_program *p = ct->ev->rules->program;
    const struct layout *l = &ct->ev->rules->layout;
    const struct plan_contrast *k = &p->contrasts[contrast];
    const struct pairs *of = pair_any(ct, k->of, measure);
    const struct pairs *minus = pair_any(ct, k->minus, measure);
    bool any = false;
    out->scale = fmax(of->scale, minus->scale);
    for (size_t i = 0; i < l->contrasts[contrast].n_settings * l->n_replicates; i++) {
        out->d[i] = number_sub(of->d[i], minus->d[i]);
        out->excluded[i] = of->excluded[i] || minus->excluded[i];
        any = any || out->excluded[i];
    }
    if (any) {
        mark_excluded(ct, &ct->ev->per_measure[k->of * p->n_measures + measure]);
        mark_excluded(ct, &ct->ev->per_measure[k->minus * p->n_measures + measure]);
        take_marks(ct, &ct->ev->per_measure[contrast * p->n_measures + measure]);
    }
}

/* The cells of a pair of a contrast: two, or of a difference four. */
static size_t pair_cells(const struct table_evaluation *ev, size_t contrast, size_t pair,
                         size_t cells[static 4])
{
    const struct layout *l = &ev->rules->layout;
    const struct plan_contrast *k = &ev->rules->program->contrasts[contrast];
    for (size_t i = 0; i < (k->is_difference ? 2 : 1); i++) {
        const size_t plain = !k->is_difference ? contrast : i == 0 ? k->of : k->minus;
        const size_t setting = pair / l->n_replicates;
        cells[2 * i] = layout_pair_a(l, plain, setting, pair % l->n_replicates);
        cells[2 * i + 1] = layout_pair_b(l, plain, setting, pair % l->n_replicates);
    }
    return k->is_difference ? 4 : 2;
}

/* Marks the pairs that are equal by construction, of which even bounds cancel. */
static void find_equal(const struct contrasting *ct, size_t contrast, size_t measure,
                       struct pairs *out)
{
    const struct rules *rules = ct->ev->rules;
    const size_t n_replicates = rules->layout.n_replicates;
    if (rules->program->workers == NULL) {
        return;
    }
    out->equal = arena_array(ct->ev->arena, out->n, sizeof(*out->equal));
    for (size_t i = 0; i < out->n; i++) {
        const struct pair_at at = {contrast, measure, i / n_replicates, i % n_replicates};
        out->equal[i] = pair_is_equal(rules->program, &rules->layout, &at);
        if (out->equal[i] && out->d[i].known) {
            out->d[i] = number_point(0);
        }
    }
}

/* Whether a pair is left and was measured. */
static bool is_measured(const struct pairs *pairs, size_t pair)
{
    return !pairs->excluded[pair] && (pairs->equal == NULL || !pairs->equal[pair]);
}

/* Whether a replicate has such a pair. */
static bool is_replicate(const struct pairs *pairs, size_t replicate, size_t n_replicates)
{
    bool any = false;
    for (size_t i = replicate; i < pairs->n; i += n_replicates) {
        any = any || is_measured(pairs, i);
    }
    return any;
}

/* Which of the pairs that were measured are copies: of one another, or of a cell elsewhere. */
static void find_copies(const struct contrasting *ct, size_t contrast, size_t measure,
                        struct pairs *out)
{
    size_t cells[4];
    if (ct->ev->reading->n_copies == 0) {
        return;
    }
    struct copies_left copies;
    copies_left_init(&copies, ct->ev, measure);
    out->copy = arena_array(ct->ev->arena, out->n, sizeof(*out->copy));
    for (size_t i = 0; i < out->n; i++) {
        const size_t n = pair_cells(ct->ev, contrast, i, cells);
        for (size_t c = 0; c < n && out->excluded[i]; c++) {
            copies_left_drop(&copies, cells[c]);
        }
    }
    for (size_t i = 0; i < out->n; i++) {
        const size_t n = pair_cells(ct->ev, contrast, i, cells);
        for (size_t c = 0; c < n && is_measured(out, i); c++) {
            const char *copy = copies_left_why(&copies, cells[c]);
            out->copy[i] = out->copy[i] != NULL ? out->copy[i] : copy;
        }
    }
    copies_left_release(&copies);
}

/* Computed once and kept; a difference is one of two contrasts that are none. */
static const struct pairs *pair_any(struct contrasting *ct, size_t contrast, size_t measure)
{
    const struct rules *rules = ct->ev->rules;
    struct pairs *out = &ct->pairs[contrast * rules->program->n_measures + measure];
    if (out->d != NULL) {
        return out;
    }
    size_t n = rules->layout.contrasts[contrast].n_settings * rules->layout.n_replicates;
    out->d = arena_array(ct->ev->arena, n, sizeof(*out->d));
    out->excluded = arena_array(ct->ev->arena, n, sizeof(*out->excluded));
    out->n = n;
    if (rules->program->contrasts[contrast].is_difference) {
        pair_difference(ct, contrast, measure, out);
    } else {
        pair_plain(ct, contrast, measure, out);
    }
    find_equal(ct, contrast, measure, out);
    find_copies(ct, contrast, measure, out);
    return out;
}

/* A factor beyond the range of double is known as a bound. */
static struct number one_bf10(double d, double se, double tau)
{
    double ln = stat_ln_bf10(d, se, tau);
    if (isnan(ln)) {
        return number_unknown("the logarithm of the factor is beyond double");
    }
    double bf = elementary_exp(ln);
    return isinf(bf) ? number_bound(DBL_MAX, true) : number_point(bf);
}

/* The range of the factor over the locked priors. */
static struct number bf10(const struct prior_sds *priors, struct number d, struct number se)
{
    if (priors->n == 0) {
        return number_unknown("no bayes instrument names the contrast");
    }
    if (!number_is_point(&d) || !number_is_point(&se) || !(se.lo > 0)) {
        return number_unknown("needs an estimate and a standard error above 0");
    }
    struct number out = one_bf10(d.lo, se.lo, priors->taus[0]);
    for (size_t i = 1; i < priors->n && out.known; i++) {
        struct number x = one_bf10(d.lo, se.lo, priors->taus[i]);
        out = x.known ? number_range(fmin(out.lo, x.lo), fmax(out.hi, x.hi)) : x;
    }
    return out;
}

/* sd, se and interval from the differences d_i of the replicates that are left. Without a mean, as
 * where a setting has no pair, what the other settings spread is the spread of something else.
 * scale: of the scores; NULL when some replicate is undetermined. */
static void spread_fields(struct figure *f, const struct rules *rules, const double *d, size_t n,
                          const double *scale)
{
    const bool points = scale != NULL;
    const struct number *mean = &f->fields[FIELD_MEAN];
    const char *why = points ? "one replicate has no spread" : "a replicate is undetermined";
    if (points && !mean->known) {
        why = mean->why;
    }
    for (size_t i = FIELD_SD; i <= FIELD_CI_HIGH; i++) {
        f->fields[i] = number_unknown(n < 1 ? "no pair is left" : why);
    }
    if (n < 2 || !points || !mean->known) {
        return;
    }
    if (!has_spread(d, n, *scale)) {
        f->fields[FIELD_SD] = number_point(0);
        for (size_t i = FIELD_SE; i <= FIELD_CI_HIGH; i++) {
            f->fields[i] = number_unknown(no_spread);
        }
        return;
    }
    double sd = stat_sd(d, n);
    double se = sd / sqrt((double)n);
    /* The quantile for all replicates is computed once for the program. */
    double t =
        n == rules->layout.n_replicates ? rules->t_full : stat_t_quantile(0.975, (unsigned)(n - 1));
    struct number half = number_point(t * se);
    f->fields[FIELD_SD] = number_point(sd);
    f->fields[FIELD_SE] = number_point(se);
    f->fields[FIELD_CI_LOW] = number_sub(f->fields[FIELD_MEAN], half);
    f->fields[FIELD_CI_HIGH] = number_add(f->fields[FIELD_MEAN], half);
}

/* An arm of a contrast, or one of the four of a difference. */
struct arm {
    size_t contrast;
    bool b;
    double sign;
    size_t n_settings;
    double *times; /* [setting]: how often it is in the mean there */
};

/* The least n of an arm's scores that are left where it is in the mean; 0: one has none. */
static int64_t arm_items(const struct table_evaluation *ev, const struct arm *arm, size_t measure)
{
    const struct layout *l = &ev->rules->layout;
    const struct score *scores = evaluation_scores(ev, measure);
    int64_t least = 0;
    for (size_t i = 0; i < arm->n_settings * l->n_replicates; i++) {
        const size_t s = i / l->n_replicates;
        const struct score *x = &scores[layout_pair_a(l, arm->contrast, s, i % l->n_replicates)];
        const struct score *y = &scores[layout_pair_b(l, arm->contrast, s, i % l->n_replicates)];
        const struct score *own = arm->b ? y : x;
        if (arm->times[s] == 0 || x->excluded || y->excluded) {
            continue;
        }
        if (!own->has_n) {
            return 0;
        }
        least = least == 0 || own->n < least ? own->n : least;
    }
    return least;
}

/* The variance of an arm's part in the mean from sampling items: p(1 - p)/n, p its mean, times the
 * square of how often it is in it. All cells of an arm answer the same items, so that replicates
 * and settings do not make it less. */
static struct number arm_variance(const struct table_evaluation *ev, const struct arm *arm,
                                  size_t measure)
{
    double times = 0;
    for (size_t s = 0; s < arm->n_settings; s++) {
        times += arm->times[s];
    }
    if (times == 0) {
        return number_point(0);
    }
    struct number mean = arm_mean_of(ev, arm->contrast, measure, arm->b, arm->times);
    const int64_t n = arm_items(ev, arm, measure);
    const double share = times / (double)arm->n_settings;
    if (!mean.known) {
        return mean;
    }
    if (!number_is_point(&mean)) {
        return number_unknown("a score is known only as a bound");
    }
    /* Without n the sampling variance is unknown. */
    return n == 0 ? number_unknown("a record's number of items is not known")
                  : number_point(share * share * (mean.lo * (1 - mean.lo) / (double)n));
}

/* Whether two arms are the same scores in a setting. */
static bool arms_are_one(const struct table_evaluation *ev, const struct arm *x,
                         const struct arm *y, size_t measure, size_t s)
{
    const struct plan_program *p = ev->rules->program;
    const struct layout *l = &ev->rules->layout;
    if (x->n_settings != y->n_settings) {
        return false;
    }
    const size_t a =
        x->b ? layout_pair_b(l, x->contrast, s, 0) : layout_pair_a(l, x->contrast, s, 0);
    const size_t b =
        y->b ? layout_pair_b(l, y->contrast, s, 0) : layout_pair_a(l, y->contrast, s, 0);
    return program_is_same_work(p, p->measures[measure].stage, a, b);
}

/* The variance of a contrast's mean, or of a difference's. Arms that are one work in a setting, or
 * the same cells, are one arm there: they cancel, or add up. */
static struct number item_variance(const struct table_evaluation *ev, size_t contrast,
                                   size_t measure)
{
    const struct plan_contrast *k = &ev->rules->program->contrasts[contrast];
    const size_t of = k->is_difference ? k->of : contrast;
    struct arm arms[4] = {{.contrast = of, .sign = 1},
                          {.contrast = of, .b = true, .sign = -1},
                          {.contrast = k->minus, .sign = -1},
                          {.contrast = k->minus, .b = true, .sign = 1}};
    const size_t n = k->is_difference ? 4 : 2;
    struct number sum = number_point(0);
    for (size_t i = 0; i < n; i++) {
        arms[i].n_settings = ev->rules->layout.contrasts[arms[i].contrast].n_settings;
        arms[i].times = arena_array(ev->arena, arms[i].n_settings, sizeof(*arms[i].times));
        for (size_t s = 0; s < arms[i].n_settings; s++) {
            arms[i].times[s] = arms[i].sign;
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t pair = 0; pair < (n - i - 1) * arms[i].n_settings; pair++) {
            struct arm *other = &arms[i + 1 + pair / arms[i].n_settings];
            const size_t s = pair % arms[i].n_settings;
            if (arms_are_one(ev, &arms[i], other, measure, s)) {
                arms[i].times[s] += other->times[s];
                other->times[s] = 0;
            }
        }
        sum = number_add(sum, arm_variance(ev, &arms[i], measure));
    }
    return sum;
}

/* Over items: the interval is the normal one. An arm that is always right or never shows no spread
 * of its items either. */
static void item_fields(const struct table_evaluation *ev, size_t contrast, size_t measure,
                        struct figure *f)
{
    if (!measure_is_share(&ev->rules->program->measures[measure])) {
        return;
    }
    const struct number mean = f->fields[FIELD_MEAN];
    struct number variance = mean.known ? item_variance(ev, contrast, measure) : mean;
    if (variance.known && !(variance.lo > 0)) {
        variance = number_unknown("no spread seen: every item, or none, was right");
    }
    struct number se = variance.known ? number_point(sqrt(variance.lo)) : variance;
    struct number half = number_mul(number_point(NORMAL_975), se);
    f->fields[FIELD_ITEM_SE] = se;
    f->fields[FIELD_ITEM_LOW] = number_sub(mean, half);
    f->fields[FIELD_ITEM_HIGH] = number_add(mean, half);
}

/* The mean of each setting, and the mean over settings. */
static void setting_means(struct contrasting *ct, size_t contrast, const struct pairs *pairs,
                          struct figure *f)
{
    const struct layout *l = &ct->ev->rules->layout;
    const struct contrast_layout *cl = &l->contrasts[contrast];
    struct number *settings = arena_array(ct->ev->arena, cl->n_settings, sizeof(*settings));
    struct running_sum over_settings = {0};
    for (size_t s = 0; s < cl->n_settings; s++) {
        struct running_sum over_replicates = {0};
        for (size_t r = 0; r < l->n_replicates; r++) {
            if (!pairs->excluded[s * l->n_replicates + r]) {
                sum_add(&over_replicates, pairs->d[s * l->n_replicates + r]);
            }
        }
        settings[s] = sum_mean(&over_replicates, "a setting has no pair left");
        sum_add(&over_settings, settings[s]);
    }
    f->settings = settings;
    f->fields[FIELD_MEAN] = sum_mean(&over_settings, "the contrast has no settings");
}

/* How many replicates are copies of others. They do not count, and with any among them the spread
 * is unknown. */
static size_t take_copies(struct figure *f, const struct pairs *pairs, size_t n_replicates)
{
    size_t n = 0;
    for (size_t r = 0; r < n_replicates && pairs->copy != NULL; r++) {
        /* A copy is a pair that was measured, so its replicate is one that counts. */
        const char *copy = NULL;
        for (size_t i = r; i < pairs->n && copy == NULL; i += n_replicates) {
            copy = pairs->copy[i];
        }
        for (size_t i = FIELD_SD; i <= FIELD_CI_HIGH && copy != NULL && n == 0; i++) {
            f->fields[i] = number_unknown(copy);
        }
        n += copy != NULL ? 1 : 0;
    }
    return n;
}

/* A pair that is not known may turn out a copy, and make others copies of it: until it is known
 * there are so many replicates at most. */
static struct number count_replicates(const struct pairs *pairs, size_t n)
{
    for (size_t i = 0; i < pairs->n; i++) {
        if (!pairs->excluded[i] && !pairs->d[i].known) {
            return number_range(0, (double)n);
        }
    }
    return number_point((double)n);
}

/* Nothing was compared: no replicate has a difference of its own, and none has an error. */
static void forget_spread(struct figure *f)
{
    f->fields[FIELD_N] = number_point(0);
    for (size_t i = FIELD_SD; i <= FIELD_ITEM_HIGH; i++) {
        f->fields[i] = number_unknown(EQUAL_WHY);
    }
}

/* All fields of one contrast in one measure. A replicate's value is its mean over the settings that
 * it has. */
static void figure_of_measure(struct contrasting *ct, size_t contrast, size_t measure)
{
    const struct rules *rules = ct->ev->rules;
    size_t n_replicates = rules->layout.n_replicates;
    const struct pairs *pairs = pair_any(ct, contrast, measure);
    struct figure *f = &ct->ev->per_measure[contrast * rules->program->n_measures + measure];
    double *d = xcalloc(n_replicates, sizeof(*d));
    size_t n = 0;
    bool points = true;
    for (size_t i = 0; i < FIELD_NR; i++) {
        f->fields[i] = number_unknown("not a per-measure field");
    }
    setting_means(ct, contrast, pairs, f);
    for (size_t r = 0; r < n_replicates; r++) {
        struct running_sum over_settings = {0};
        /* The replicate's mean over settings, so that settings do not count as replicates. */
        for (size_t s = 0; s < rules->layout.contrasts[contrast].n_settings; s++) {
            if (!pairs->excluded[s * n_replicates + r]) {
                sum_add(&over_settings, pairs->d[s * n_replicates + r]);
            }
        }
        struct number mean = sum_mean(&over_settings, "left out");
        /* A replicate that lost every pair is left out, and one that has zeros alone. */
        if (is_replicate(pairs, r, n_replicates)) {
            points = points && number_is_point(&mean);
            d[n++] = mean.lo;
        }
    }
    spread_fields(f, rules, d, n, points ? &pairs->scale : NULL);
    /* The order matters: copies overwrite the spread fields that were just computed. */
    f->fields[FIELD_N] = count_replicates(pairs, n - take_copies(f, pairs, n_replicates));
    item_fields(ct->ev, contrast, measure, f);
    f->fields[FIELD_BF10] =
        bf10(&rules->prior_sds[contrast], f->fields[FIELD_MEAN], f->fields[FIELD_SE]);
    if (contrast_is_equal(rules->program, &rules->layout, contrast, measure)) {
        forget_spread(f);
    }
    free(d);
}

/* Whether a measure is among those a contrast is over. */
enum truth contrast_pools(const struct table_evaluation *ev, size_t contrast, size_t measure)
{
    assert(contrast < ev->rules->program->n_contrasts && measure < ev->rules->program->n_measures);
    const struct plan_program *p = ev->rules->program;
    if (!p->measures[measure].counted) {
        return TRUTH_FALSE;
    }
    if (p->contrasts[contrast].over == OVER_COUNTED || !p->measures[measure].has_floor) {
        return TRUTH_TRUE;
    }
    return ev->clears[p->binding_counter * p->n_measures + measure];
}

/* -1, 0 or 1. */
static double sign_of(double v)
{
    return v > 0 ? 1 : (v < 0 ? -1 : 0);
}

/* The sign of a range is the range of signs; an open end at 0 does not reach the sign 0. */
static struct number number_sign(struct number x)
{
    if (!x.known) {
        return x;
    }
    double lo = x.lo == 0 && x.lo_open ? 1 : sign_of(x.lo);
    double hi = x.hi == 0 && x.hi_open ? -1 : sign_of(x.hi);
    return number_range(lo, hi);
}

/* The fields over all (setting, measure) pairs. */
static void pooled_fields(struct figure *f, const struct number *d, size_t n)
{
    struct running_sum plain = {0};
    struct running_sum absolute = {0};
    for (size_t i = 0; i < n; i++) {
        struct number size = number_abs(d[i]);
        sum_add(&plain, d[i]);
        sum_add(&absolute, size);
        f->fields[FIELD_MIN] = i == 0 ? d[i] : number_min(f->fields[FIELD_MIN], d[i]);
        f->fields[FIELD_MAX] = i == 0 ? d[i] : number_max(f->fields[FIELD_MAX], d[i]);
        f->fields[FIELD_MAX_ABS] = i == 0 ? size : number_max(f->fields[FIELD_MAX_ABS], size);
    }
    f->fields[FIELD_MEAN] = sum_mean(&plain, "");
    f->fields[FIELD_MEAN_ABS] = sum_mean(&absolute, "");
    f->fields[FIELD_SIGN] = number_sign(f->fields[FIELD_MEAN]);
}

/* How many settings of a contrast were measured: levels of replicates are the same throughout a
 * work, so the first replicate shows it. */
static size_t n_measured(struct contrasting *ct, size_t contrast, size_t measure)
{
    const struct pairs *pairs = pair_any(ct, contrast, measure);
    size_t n = 0;
    for (size_t i = 0; i < pairs->n; i += ct->ev->rules->layout.n_replicates) {
        n += pairs->equal == NULL || !pairs->equal[i] ? 1 : 0;
    }
    return n;
}

/* While it is undetermined whether a measure cleared, it is undetermined what the figure is over,
 * and every field is unknown. */
static void figure_pooled(struct contrasting *ct, size_t contrast)
{
    struct table_evaluation *ev = ct->ev;
    const struct plan_program *p = ev->rules->program;
    size_t n_settings = ev->rules->layout.contrasts[contrast].n_settings;
    struct figure *f = &ev->pooled[contrast];
    struct number *d = arena_array(ev->arena, n_settings * p->n_measures, sizeof(*d));
    size_t n = 0;
    size_t measured = 0;
    const char *why = p->contrasts[contrast].over == OVER_CLEARED
                          ? "no pairs: no counted measure cleared"
                          : "no pairs: no measure is counted";
    bool open = false;
    for (size_t m = 0; m < p->n_measures; m++) {
        const struct figure *own = &ev->per_measure[contrast * p->n_measures + m];
        enum truth member = contrast_pools(ev, contrast, m);
        /* An undetermined member leaves open what the figure is over. */
        if (member == TRUTH_UNKNOWN) {
            open = true;
            why =
                arena_printf(ev->arena, "whether %s cleared is undetermined", p->measures[m].name);
        }
        for (size_t s = 0; s < n_settings && member == TRUTH_TRUE; s++) {
            d[n++] = own->settings[s];
        }
        measured += member == TRUTH_TRUE ? n_measured(ct, contrast, m) : 0;
        /* Lists the cells left out of every measure that is, or may be, a member. */
        if (member != TRUTH_FALSE) {
            mark_excluded(ct, own);
        }
    }
    take_marks(ct, f);
    for (size_t i = 0; i < FIELD_NR; i++) {
        f->fields[i] = number_unknown(open || n == 0 ? why : "not a pooled field");
    }
    if (!open) {
        f->fields[FIELD_N] = number_point((double)measured);
    }
    if (!open && n > 0) {
        pooled_fields(f, d, n);
    }
}

/* Per-measure figures first: pooled ones are made of their settings. */
void evaluate_contrasts(struct table_evaluation *ev)
{
    assert(ev->gates != NULL || ev->rules->program->n_measures == 0); /* after the gates */
    const struct plan_program *p = ev->rules->program;
    struct contrasting ct = {.ev = ev};
    ct.pairs = arena_array(ev->arena, p->n_contrasts * p->n_measures, sizeof(*ct.pairs));
    /* Scratch for lists of excluded cells; clear between figures. */
    ct.marks = arena_array(ev->arena, p->n_cells, sizeof(*ct.marks));
    ev->per_measure =
        arena_array(ev->arena, p->n_contrasts * p->n_measures, sizeof(*ev->per_measure));
    ev->pooled = arena_array(ev->arena, p->n_contrasts, sizeof(*ev->pooled));
    for (size_t k = 0; k < p->n_contrasts; k++) {
        for (size_t m = 0; m < p->n_measures; m++) {
            figure_of_measure(&ct, k, m);
        }
    }
    for (size_t k = 0; k < p->n_contrasts; k++) {
        figure_pooled(&ct, k);
    }
}
