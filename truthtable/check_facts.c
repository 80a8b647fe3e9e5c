/* What the floors and the design can resolve, what is held fixed, the plan. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "prereg/describe.h"
#include "truthtable/check_parts.h"
#include "truthtable/stats.h"

#define EQUAL_WITHIN 1e-2 /* relative; called equal, with the word "within" unless exact */

static const struct {
    const char *name;
    const char *fact; /* NULL: derived from others */
} columns[FIXED_NR] = {
    [FIXED_PARAMS_TOTAL] = {"P_total", "params_total"},
    [FIXED_PARAMS_ACTIVE] = {"P_active", "params_active"},
    [FIXED_ACTIVE_FFN] = {"active ffn width", "active_ffn"},
    [FIXED_TOKENS] = {"tokens", "tokens"},
    [FIXED_TOKENS_PER_TOTAL] = {"tokens/P_total", NULL},
    [FIXED_TOKENS_PER_ACTIVE] = {"tokens/P_active", NULL},
    [FIXED_TOKENS_PER_EXPERT] = {"tokens per expert", "tokens_per_expert"},
    [FIXED_FLOPS_PER_TOKEN] = {"FLOPs per token", "flops_per_token"},
    [FIXED_STEPS] = {"steps", "steps"},
};

const char *fixed_column_name(enum fixed_column c)
{
    return c < FIXED_NR ? columns[c].name : "?";
}

/* The contrast a measure's resolution is told for: the binding counter's, else the first that has
 * two arms. */
static size_t leading_contrast(const struct program *p)
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

void check_measures(struct check_report *r, const struct rules *rules)
{
    const struct program *p = r->program;
    size_t contrast = leading_contrast(p);
    r->measures = arena_array(&r->arena, p->n_measures, sizeof(*r->measures));
    for (size_t m = 0; m < p->n_measures; m++) {
        const struct measure *me = &p->measures[m];
        struct measure_proof *out = &r->measures[m];
        *out = (struct measure_proof){.floor_above_chance = (double)NAN, .detectable = (double)NAN};
        if (me->has_floor && me->has_chance && me->has_items) {
            out->floor_above_chance =
                stat_floor_above_chance(me->floor, me->chance, (double)me->items);
        }
        if (contrast == INDEX_NONE || !me->has_items || !(me->has_floor || me->has_chance)) {
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

static double fact_or_nan(const cJSON *describe, const struct program *p, size_t condition,
                          size_t stage, const char *fact)
{
    double v = 0;
    bool said =
        describe != NULL && describe_fact(describe_find(describe, p, condition, stage), fact, &v);
    return said ? v : (double)NAN;
}

/* The first stage whose workers say how large their model is. */
static size_t model_stage(const struct program *p, const cJSON *describe)
{
    for (size_t s = 0; s < p->n_stages; s++) {
        for (size_t c = 0; c < p->n_conditions; c++) {
            if (!isnan(fact_or_nan(describe, p, c, s, "params_total"))) {
                return s;
            }
        }
    }
    return INDEX_NONE;
}

static void fill_row(struct fixed_row *row, const struct program *p, const cJSON *describe,
                     size_t condition, size_t stage)
{
    double *v = row->values;
    for (size_t c = 0; c < FIXED_NR; c++) {
        v[c] = columns[c].fact == NULL || stage == INDEX_NONE
                   ? (double)NAN
                   : fact_or_nan(describe, p, condition, stage, columns[c].fact);
    }
    v[FIXED_TOKENS_PER_TOTAL] = v[FIXED_TOKENS] / v[FIXED_PARAMS_TOTAL];
    v[FIXED_TOKENS_PER_ACTIVE] = v[FIXED_TOKENS] / v[FIXED_PARAMS_ACTIVE];
    /* Where every parameter is active there is one expert, and it sees every token. */
    if (isnan(v[FIXED_TOKENS_PER_EXPERT]) && v[FIXED_PARAMS_TOTAL] == v[FIXED_PARAMS_ACTIVE]) {
        v[FIXED_TOKENS_PER_EXPERT] = v[FIXED_TOKENS];
    }
}

static struct strbuf *add_column(struct strbuf *to, size_t column)
{
    strbuf_addf(to, "%s%s", to->len > 0 ? ", " : "", columns[column].name);
    return to;
}

/* One column over all conditions: equal, equal within a little, different, or not known everywhere.
 */
static void judge_column(const struct check_report *r, size_t column, struct strbuf lists[3])
{
    const struct program *p = r->program;
    double low = r->fixed[0].values[column];
    double high = low;
    bool known = true;
    for (size_t c = 0; c < p->n_conditions; c++) {
        double v = r->fixed[c].values[column];
        known = known && isfinite(v);
        low = fmin(low, v);
        high = fmax(high, v);
    }
    if (!known) {
        (void)add_column(&lists[2], column);
    } else if (low == high) {
        (void)add_column(&lists[0], column);
    } else if (low > 0 && high / low - 1 <= EQUAL_WITHIN) {
        strbuf_addf(add_column(&lists[0], column), " (within %.2g %%)", 100 * (high / low - 1));
    } else if (low > 0) {
        strbuf_addf(add_column(&lists[1], column), " (x%.3g)", high / low);
    } else {
        (void)add_column(&lists[1], column);
    }
}

void check_fixed(struct check_report *r, const cJSON *describe)
{
    const struct program *p = r->program;
    size_t stage = model_stage(p, describe);
    struct strbuf lists[3] = {STRBUF_INIT, STRBUF_INIT, STRBUF_INIT};
    r->fixed = arena_array(&r->arena, p->n_conditions, sizeof(*r->fixed));
    for (size_t c = 0; c < p->n_conditions; c++) {
        fill_row(&r->fixed[c], p, describe, c, stage);
    }
    for (size_t c = 0; c < FIXED_NR && p->n_conditions > 0; c++) {
        judge_column(r, c, lists);
    }
    r->fixed_equal = arena_strdup(&r->arena, lists[0].buf);
    r->fixed_differ = arena_strdup(&r->arena, lists[1].buf);
    r->fixed_unknown = arena_strdup(&r->arena, lists[2].buf);
    for (size_t i = 0; i < 3; i++) {
        strbuf_release(&lists[i]);
    }
}

void check_plan(struct check_report *r, const cJSON *describe)
{
    const struct program *p = r->program;
    double n_replicates =
        p->n_conditions > 0 ? (double)(p->n_cells / p->n_conditions) : (double)NAN;
    struct plan_proof *plan = &r->plan;
    *plan = (struct plan_proof){.n_cells = p->n_cells, .n_tasks = program_n_tasks(p)};
    size_t model = model_stage(p, describe);
    for (size_t c = 0; c < p->n_conditions; c++) {
        const double *v = r->fixed[c].values;
        /* One token forward and backward: flops_per_token is of training. */
        plan->flops += n_replicates * v[FIXED_TOKENS] * v[FIXED_FLOPS_PER_TOKEN];
        plan->disk_bytes +=
            n_replicates *
            (model == INDEX_NONE ? (double)NAN : fact_or_nan(describe, p, c, model, "disk_bytes"));
        for (size_t s = 0; s < p->n_stages; s++) {
            const cJSON *said = describe == NULL ? NULL : describe_find(describe, p, c, s);
            const cJSON *seconds = json_member(said, "seconds");
            plan->seconds +=
                cJSON_IsNumber(seconds) ? n_replicates * seconds->valuedouble : (double)NAN;
        }
    }
}
