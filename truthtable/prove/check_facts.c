/*
 * What the floors and the design can resolve, what is held fixed between arms, and what the plan
 * costs. The figures rest on what the workers describe (parameters, tokens, FLOPs, seconds); what a
 * worker does not describe is NaN and becomes "unknown", never 0. All figures inform and none
 * refuses a plan.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/program/same_work.h"
#include "prereg/reuse/reuse.h"
#include "prereg/task/describe.h"
#include "truthtable/condition/stats.h"
#include "truthtable/prove/check_parts.h"

#define SECONDS_MAX (10 * 365.25 * 24 * 3600)

#define EQUAL_WITHIN 1e-2 /* relative; called equal, with the word "within" unless exact */

static const struct {
    const char *name;
    const char *key; /* in [scope]; also the fact, unless it is derived */
    bool derived;    /* from others */
    bool of_repeats; /* the same as another column where nothing is read twice */
} columns[FIXED_NR] = {
    [FIXED_PARAMS_TOTAL] = {.name = "P_total", .key = "params_total"},
    [FIXED_PARAMS_ACTIVE] = {.name = "P_active", .key = "params_active"},
    [FIXED_ACTIVE_FFN] = {.name = "active ffn width", .key = "active_ffn"},
    [FIXED_TOKENS] = {.name = "tokens", .key = "tokens"},
    [FIXED_TOKENS_PER_TOTAL] = {.name = "tokens/P_total",
                                .key = "tokens_per_total",
                                .derived = true},
    [FIXED_TOKENS_PER_ACTIVE] = {.name = "tokens/P_active",
                                 .key = "tokens_per_active",
                                 .derived = true},
    [FIXED_TOKENS_PER_EXPERT] = {.name = "tokens per expert", .key = "tokens_per_expert"},
    [FIXED_FLOPS_PER_TOKEN] = {.name = "FLOPs per token", .key = "flops_per_token"},
    [FIXED_STEPS] = {.name = "steps", .key = "steps"},
    [FIXED_PASSES] = {.name = "passes over the data", .key = "passes", .of_repeats = true},
    [FIXED_UNIQUE_TOKENS_PER_EXPERT] = {.name = "unique tokens per expert",
                                        .key = "unique_tokens_per_expert",
                                        .of_repeats = true},
};

const char *fixed_column_name(enum fixed_column c)
{
    return c < FIXED_NR ? columns[c].name : "?";
}

const char *fixed_column_key(enum fixed_column c)
{
    return c < FIXED_NR ? columns[c].key : "?";
}

/* The contrast that a measure's resolution is computed for: the binding counter's, else the first
 * that has two arms. */
static size_t leading_contrast(const struct plan_program *p)
{
    if (p->binding_counter != INDEX_NONE) {
        return p->counters[p->binding_counter].contrast;
    }
    for (size_t k = 0; k < p->n_contrasts; k++) {
        if (!p->contrasts[k].is_difference) {
            return k;
        }
    }
    return INDEX_NONE;
}

/* Floors in standard errors above chance, the smallest detectable difference per measure, and the
 * sum of the priors. */
void check_measures(struct check_report *r, const struct rules *rules)
{
    const struct plan_program *p = r->program;
    size_t contrast = leading_contrast(p);
    r->measures = arena_array(&r->arena, p->n_measures, sizeof(*r->measures));
    for (size_t m = 0; m < p->n_measures; m++) {
        const struct plan_measure *me = &p->measures[m];
        struct measure_proof *out = &r->measures[m];
        *out = (struct measure_proof){.floor_above_chance = (double)NAN, .detectable = (double)NAN};
        if (me->has_floor && me->has_chance && me->has_items) {
            out->floor_above_chance =
                stat_floor_above_chance(me->floor, me->chance, (double)me->items);
        }
        if (contrast == INDEX_NONE || !me->has_items || !measure_is_share(me)) {
            continue;
        }
        out->cells_per_arm =
            rules->layout.contrasts[contrast].n_settings * rules->layout.n_replicates;
        /* Item sampling alone, at the floor: training noise and items that suit one arm come on
         * top. */
        double q = me->has_floor ? me->floor : me->chance;
        double var = q * (1 - q) / (double)out->cells_per_arm;
        out->detectable = q > 0 && q < 1
                              ? stat_detectable_difference((double)me->items, 0, var, var)
                              : (double)NAN;
    }
    r->prior_sum = 0;
    for (size_t o = 0; o < p->n_outcomes; o++) {
        r->prior_sum += p->outcomes[o].prior;
    }
    double rest = 1 - r->prior_sum;
    r->prior_remainder = fabs(rest) < 1e-9 ? 0 : rest; /* 0.3 + 0.7 may miss 1 by a rounding */
}

/* A described fact of one stage in one condition. */
static double fact_or_nan(const cJSON *describe, const struct plan_program *p, size_t condition,
                          size_t stage, const char *fact)
{
    double v = 0;
    bool said =
        describe != NULL && describe_fact(describe_find(describe, p, condition, stage), fact, &v);
    return said ? v : (double)NAN;
}

/* The first stage whose workers state the fact in some condition. */
static size_t stage_with(const struct plan_program *p, const cJSON *describe, const char *fact)
{
    for (size_t s = 0; s < p->n_stages; s++) {
        for (size_t c = 0; c < p->n_conditions; c++) {
            if (!isnan(fact_or_nan(describe, p, c, s, fact))) {
                return s;
            }
        }
    }
    return INDEX_NONE;
}

/* The stage whose workers state their model's size; a script may only say how long it trains. */
static size_t model_stage(const struct plan_program *p, const cJSON *describe)
{
    static const enum fixed_column tells[] = {FIXED_PARAMS_TOTAL, FIXED_TOKENS, FIXED_STEPS};
    size_t stage = INDEX_NONE;
    for (size_t i = 0; stage == INDEX_NONE && i < ARRAY_LEN(tells); i++) {
        stage = stage_with(p, describe, columns[tells[i]].key);
    }
    return stage;
}

/* One row of the table of what is held fixed; ratios are derived and are NaN where a part is. */
static void fill_row(struct fixed_row *row, const struct plan_program *p, const cJSON *describe,
                     size_t condition, size_t stage)
{
    double *v = row->values;
    for (size_t c = 0; c < FIXED_NR; c++) {
        v[c] = columns[c].derived || stage == INDEX_NONE
                   ? (double)NAN
                   : fact_or_nan(describe, p, condition, stage, columns[c].key);
    }
    v[FIXED_TOKENS_PER_TOTAL] = v[FIXED_TOKENS] / v[FIXED_PARAMS_TOTAL];
    v[FIXED_TOKENS_PER_ACTIVE] = v[FIXED_TOKENS] / v[FIXED_PARAMS_ACTIVE];
    /* Where every parameter is active there is one expert, and it sees every token. */
    if (v[FIXED_PARAMS_TOTAL] == v[FIXED_PARAMS_ACTIVE]) {
        if (isnan(v[FIXED_TOKENS_PER_EXPERT])) {
            v[FIXED_TOKENS_PER_EXPERT] = v[FIXED_TOKENS];
        }
        if (isnan(v[FIXED_UNIQUE_TOKENS_PER_EXPERT])) {
            v[FIXED_UNIQUE_TOKENS_PER_EXPERT] =
                fact_or_nan(describe, p, condition, stage, "unique_tokens");
        }
    }
}

/* Appends a column's name to a list. */
static struct strbuf *add_column(struct strbuf *to, size_t column)
{
    strbuf_addf(to, "%s%s", to->len > 0 ? ", " : "", columns[column].name);
    return to;
}

/* Ratios of a column between the conditions that are compared. */
struct ratio_spread {
    bool known;
    bool partly; /* some value is */
    double low;  /* of the smaller over the larger value, over what is compared */
    bool signs;  /* a value is 0 or negative: no ratio */
    bool exact;  /* all equal, bit for bit */
};

/* Adds one comparison of two values to the column's spread. */
static void spread_add(struct ratio_spread *s, double a, double b)
{
    s->known = s->known && isfinite(a) && isfinite(b);
    s->partly = s->partly || isfinite(a) || isfinite(b);
    s->exact = s->exact && a == b;
    s->signs = s->signs || !(a > 0) || !(b > 0);
    double ratio = a < b ? a / b : b / a;
    s->low = ratio < s->low ? ratio : s->low;
}

enum { LIST_EQUAL, LIST_DIFFER, LIST_UNKNOWN, LIST_NR };

/* Names the column in the list where it belongs: equal, equal within a little, different, or not
 * known everywhere. Returns which. Workers that say nothing of repeats need not hear of it. */
static int list_column(const struct ratio_spread *s, size_t column, struct strbuf lists[LIST_NR])
{
    int list = LIST_DIFFER;
    if (!s->known) {
        list = LIST_UNKNOWN;
    } else if (s->exact || (!s->signs && 1 / s->low - 1 <= EQUAL_WITHIN)) {
        list = LIST_EQUAL;
    }
    if (columns[column].of_repeats && !s->partly) {
        return list;
    }
    (void)add_column(&lists[list], column);
    if (list == LIST_EQUAL && !s->exact) {
        strbuf_addf(&lists[list], " (within %.2g %%)", 100 * (1 / s->low - 1));
    } else if (list == LIST_DIFFER && !s->signs) {
        strbuf_addf(&lists[list], " (x%.3g)", 1 / s->low);
    }
    return list;
}

/* Moves the three lists into the report's arena. */
static struct fixed_words take_lists(struct check_report *r, struct strbuf lists[LIST_NR])
{
    struct fixed_words w = {.equal = arena_strdup(&r->arena, lists[LIST_EQUAL].buf),
                            .differ = arena_strdup(&r->arena, lists[LIST_DIFFER].buf),
                            .unknown = arena_strdup(&r->arena, lists[LIST_UNKNOWN].buf)};
    for (size_t i = 0; i < LIST_NR; i++) {
        strbuf_release(&lists[i]);
    }
    return w;
}

/* Over all conditions: each against the least and the greatest. */
static struct fixed_words judge_all(struct check_report *r)
{
    const struct plan_program *p = r->program;
    struct strbuf lists[LIST_NR] = {STRBUF_INIT, STRBUF_INIT, STRBUF_INIT};
    for (size_t column = 0; column < FIXED_NR && p->n_conditions > 0; column++) {
        struct ratio_spread s = {.known = true, .low = 1, .exact = true};
        double low = r->fixed[0].values[column];
        double high = low;
        for (size_t c = 0; c < p->n_conditions; c++) {
            double v = r->fixed[c].values[column];
            s.known = s.known && isfinite(v);
            s.partly = s.partly || isfinite(v);
            low = fmin(low, v);
            high = fmax(high, v);
        }
        spread_add(&s, low, high);
        (void)list_column(&s, column, lists);
    }
    return take_lists(r, lists);
}

/* Whether some condition reads a source more than once. */
static bool reads_twice(const struct check_report *r)
{
    for (size_t c = 0; c < r->program->n_conditions; c++) {
        if (r->fixed[c].values[FIXED_PASSES] > 1) {
            return true;
        }
    }
    return false;
}

/* Keeps the contrast in which a column differs most, and whether it is known in all of them. */
static void note_column(struct check_report *r, size_t contrast, size_t column, int list,
                        double ratio)
{
    struct fixed_difference *d = &r->differences[column];
    if (columns[column].of_repeats && !reads_twice(r)) {
        return;
    }
    d->unknown = d->unknown || list == LIST_UNKNOWN;
    if (list == LIST_DIFFER && (!d->differs || ratio > d->ratio)) {
        *d = (struct fixed_difference){true, d->unknown, contrast, ratio};
    }
}

/* Between the two arms of a contrast, setting by setting. */
static struct fixed_words judge_contrast(struct check_report *r, const struct rules *rules,
                                         size_t contrast)
{
    const struct layout *l = &rules->layout;
    struct strbuf lists[LIST_NR] = {STRBUF_INIT, STRBUF_INIT, STRBUF_INIT};
    for (size_t column = 0; column < FIXED_NR; column++) {
        struct ratio_spread s = {.known = true, .low = 1, .exact = true};
        for (size_t i = 0; i < l->contrasts[contrast].n_settings; i++) {
            size_t a = r->program->cells[layout_pair_a(l, contrast, i, 0)].condition;
            size_t b = r->program->cells[layout_pair_b(l, contrast, i, 0)].condition;
            spread_add(&s, r->fixed[a].values[column], r->fixed[b].values[column]);
        }
        const int list = list_column(&s, column, lists);
        note_column(r, contrast, column, list, 1 / s.low);
    }
    return take_lists(r, lists);
}

/* Fills the table by condition and then words it twice: over all conditions, and per contrast. */
void check_fixed(struct check_report *r, const struct rules *rules, const cJSON *describe)
{
    const struct plan_program *p = r->program;
    size_t stage = model_stage(p, describe);
    r->fixed = arena_array(&r->arena, p->n_conditions, sizeof(*r->fixed));
    for (size_t c = 0; c < p->n_conditions; c++) {
        fill_row(&r->fixed[c], p, describe, c, stage);
    }
    r->fixed_words = judge_all(r);
    r->fixed_contrasts = arena_array(&r->arena, p->n_contrasts, sizeof(*r->fixed_contrasts));
    for (size_t k = 0; k < p->n_contrasts; k++) {
        if (!p->contrasts[k].is_difference) {
            r->fixed_contrasts[k] = judge_contrast(r, rules, k);
        }
    }
}

/* How many tasks of each stage run in each condition: those that accept the result of another, or
 * of an earlier receipt, cost nothing. The caller frees it. */
static size_t *count_runs(const struct plan_program *p, const cJSON *reuse, size_t *n_reused)
{
    const size_t n_tasks = program_n_tasks(p);
    size_t *runs = xcalloc(p->n_conditions * p->n_stages, sizeof(*runs));
    bool *reused = xcalloc(n_tasks, sizeof(*reused));
    const cJSON *pin = NULL;
    *n_reused = 0;
    cJSON_ArrayForEach(pin, json_member(reuse, "tasks"))
    {
        const size_t task = reuse_find_task(p, pin->string);
        if (task != INDEX_NONE) {
            reused[task] = true;
            (*n_reused)++;
        }
    }
    for (size_t t = 0; t < n_tasks; t++) {
        const size_t condition = p->cells[t / p->n_stages].condition;
        runs[condition * p->n_stages + t % p->n_stages] +=
            program_worker_of(p, t) == t && !reused[t] ? 1 : 0;
    }
    free(reused);
    return runs;
}

/* What is not run costs nothing, whether its cost is known or not. */
static double cost_of(size_t n, double one)
{
    return n == 0 ? 0 : (double)n * one;
}

/* Sums cost over the tasks that run, by condition, because workers describe conditions. One unknown
 * stage makes a sum unknown. */
void check_plan(struct check_report *r, const cJSON *describe, const cJSON *reuse)
{
    const struct plan_program *p = r->program;
    struct plan_proof *plan = &r->plan;
    *plan = (struct plan_proof){.n_cells = p->n_cells,
                                .n_tasks = program_n_tasks(p),
                                .n_other_names = program_n_other_names(p)};
    size_t *runs = count_runs(p, reuse, &plan->n_reused);
    size_t model = model_stage(p, describe);
    for (size_t c = 0; c < p->n_conditions; c++) {
        const double *v = r->fixed[c].values;
        const size_t n_models = model == INDEX_NONE ? 1 : runs[c * p->n_stages + model];
        /* One token forward and backward: flops_per_token is of training. */
        plan->flops += cost_of(n_models, v[FIXED_TOKENS] * v[FIXED_FLOPS_PER_TOKEN]);
        plan->disk_bytes += cost_of(
            n_models,
            model == INDEX_NONE ? (double)NAN : fact_or_nan(describe, p, c, model, "disk_bytes"));
        for (size_t s = 0; s < p->n_stages; s++) {
            const cJSON *said = describe == NULL ? NULL : describe_find(describe, p, c, s);
            const cJSON *seconds = json_member(said, "seconds");
            plan->seconds += cost_of(runs[c * p->n_stages + s],
                                     cJSON_IsNumber(seconds) ? seconds->valuedouble : (double)NAN);
        }
    }
    free(runs);
    for (size_t i = 0; i < p->n_apparatus; i++) { /* the second runs have entries of their own */
        plan->seconds += describe_check_seconds(describe, p, &p->apparatus[i]);
    }
    if (!(plan->seconds <= SECONDS_MAX)) {
        plan->seconds = (double)NAN; /* a longer estimate says nothing */
    }
}
