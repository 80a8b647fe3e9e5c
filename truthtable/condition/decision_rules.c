/*
 * Compiles the decision part of a program once for all evaluations: parsed conditions, the layout
 * of contrasts, floors as exact decimals, and for each level of a table input the set of rows that
 * have it, as a bit mask. Checking a plan and judging its records start from the same rules. Every
 * error of every condition is reported, so compilation goes on after the first.
 */
#include "truthtable/condition/decision_rules.h"

#include <string.h>

#include "base/json/json.h"
#include "truthtable/condition/stats.h"

bool rules_in_counters(const struct rules *r, size_t measure)
{
    return r->program->measures[measure].counted && r->program->measures[measure].has_floor;
}

/* Parses all conditions. A condition that fails is NULL here and an error in diag; the caller then
 * discards the rules. */
static void compile_conditions(struct rules *r, struct diag *diag)
{
    const struct plan_program *p = r->program;
    r->inputs = arena_array(&r->arena, p->n_inputs, sizeof(*r->inputs));
    for (size_t i = 0; i < p->n_inputs; i++) {
        const struct plan_input *in = &p->inputs[i];
        r->inputs[i] = arena_array(&r->arena, in->n_levels, sizeof(**r->inputs));
        for (size_t l = 0; l < in->n_levels; l++) {
            r->inputs[i][l] =
                cond_parse(&in->levels[l].condition, p, COND_USE_INPUT, &r->facts, diag);
        }
    }
    r->validity = arena_array(&r->arena, p->n_validity, sizeof(*r->validity));
    for (size_t i = 0; i < p->n_validity; i++) {
        r->validity[i] =
            cond_parse(&p->validity[i].condition, p, COND_USE_VALIDITY, &r->facts, diag);
    }
    r->forecasts = arena_array(&r->arena, p->n_forecasts, sizeof(*r->forecasts));
    for (size_t i = 0; i < p->n_forecasts; i++) {
        r->forecasts[i] =
            cond_parse(&p->forecasts[i].condition, p, COND_USE_FORECAST, &r->facts, diag);
    }
    r->triggers = arena_array(&r->arena, p->n_instruments, sizeof(*r->triggers));
    for (size_t i = 0; i < p->n_instruments; i++) {
        const struct cond_text *text = &p->instruments[i].trigger;
        r->triggers[i] =
            text->text == NULL ? NULL : cond_parse(text, p, COND_USE_VALIDITY, &r->facts, diag);
    }
}

/* Keeps the text of a floor as an exact decimal where it has at most 18 digits. */
static struct threshold threshold_of(double value, const char *text)
{
    struct threshold t = {.value = value};
    t.is_exact = text != NULL && decimal_parse(text, &t.exact);
    return t;
}

static void compile_thresholds(struct rules *r)
{
    const struct plan_program *p = r->program;
    r->floors = arena_array(&r->arena, p->n_measures, sizeof(*r->floors));
    r->best_arms = arena_array(&r->arena, p->n_measures, sizeof(*r->best_arms));
    for (size_t m = 0; m < p->n_measures; m++) {
        const struct plan_measure *me = &p->measures[m];
        r->floors[m] = threshold_of(me->floor, me->floor_text);
        r->best_arms[m] = threshold_of(me->best_arm, me->best_arm_text);
    }
}

/* The priors of the first bayes instrument that names the contrast. */
static struct prior_sds prior_sds_of(struct rules *r, const char *contrast)
{
    const struct plan_program *p = r->program;
    for (size_t i = 0; i < p->n_instruments; i++) {
        const cJSON *named = json_member(p->instruments[i].spec, "contrast");
        const cJSON *priors = json_member(p->instruments[i].spec, "priors");
        if (strcmp(p->instruments[i].kind, "bayes") != 0 || !cJSON_IsString(named) ||
            strcmp(named->valuestring, contrast) != 0 || !cJSON_IsObject(priors)) {
            continue;
        }
        double *taus = arena_array(&r->arena, (size_t)cJSON_GetArraySize(priors), sizeof(*taus));
        size_t n = 0;
        for (const cJSON *m = priors->child; m != NULL; m = m->next) {
            if (cJSON_IsNumber(m) && m->valuedouble > 0) {
                taus[n++] = m->valuedouble;
            }
        }
        return (struct prior_sds){.taus = taus, .n = n};
    }
    return (struct prior_sds){0};
}

/* Without a binding counter, "cleared" is not defined. */
static void check_cleared(const struct rules *r, struct diag *diag)
{
    const struct plan_program *p = r->program;
    for (size_t k = 0; k < p->n_contrasts && p->binding_counter == INDEX_NONE; k++) {
        const struct plan_contrast *c = &p->contrasts[k];
        for (size_t m = 0; m < p->n_measures && c->over == OVER_CLEARED; m++) {
            if (rules_in_counters(r, m)) {
                diag_add(diag, DIAG_ERROR, c->place.line, c->place.column,
                         "contrast \"%s\" is over what is cleared, but no counter binds", c->name);
                break;
            }
        }
    }
}

/* Which rows fire is then a matter of whole words: tables may have 2^18 rows. */
static void mask_rows(struct rules *r)
{
    const struct plan_program *p = r->program;
    r->n_row_words = (p->n_rows + 63) / 64;
    r->row_masks = arena_array(&r->arena, p->n_table_inputs, sizeof(*r->row_masks));
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        size_t n_levels = p->inputs[p->table_inputs[i]].n_levels;
        r->row_masks[i] = arena_array(&r->arena, n_levels, sizeof(**r->row_masks));
        for (size_t l = 0; l < n_levels; l++) {
            r->row_masks[i][l] = arena_array(&r->arena, r->n_row_words, sizeof(uint64_t));
        }
        for (size_t k = 0; k < p->n_rows; k++) {
            r->row_masks[i][p->rows[k].levels[i]][k / 64] |= UINT64_C(1) << (k % 64);
        }
    }
}

/* t(0.975) is computed here once, because a search evaluates thousands of readings. */
int rules_compile(const struct plan_program *p, struct rules *out, struct diag *diag,
                  struct err *err)
{
    size_t n_errors = diag->n_errors;
    *out = (struct rules){.program = p};
    arena_init(&out->arena);
    out->facts.arena = &out->arena;
    layout_init(&out->layout, p, &out->arena, diag);
    compile_conditions(out, diag);
    compile_thresholds(out);
    mask_rows(out);
    if (out->layout.n_replicates > 1) {
        out->t_full = stat_t_quantile(0.975, (unsigned)(out->layout.n_replicates - 1));
    }
    check_cleared(out, diag);
    out->prior_sds = arena_array(&out->arena, p->n_contrasts, sizeof(*out->prior_sds));
    for (size_t k = 0; k < p->n_contrasts; k++) {
        out->prior_sds[k] = prior_sds_of(out, p->contrasts[k].name);
    }
    return diag->n_errors > n_errors ? diag_result(diag, err) : 0;
}

void rules_release(struct rules *r)
{
    arena_release(&r->arena);
    *r = (struct rules){0};
}
