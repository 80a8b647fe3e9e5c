/*
 * Normal-normal Bayes factors of one contrast: each measure under each prior of the plan. The
 * estimate and its standard error are the verdict's. Fields such as all_null are conjunctions in
 * Kleene's logic, so one undetermined measure leaves them open unless another one decides them. A
 * factor that overflows is written as a logarithm and still has its reading.
 */
#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "base/math/elementary.h"
#include "truthtable/condition/stats.h"
#include "truthtable/instruments/bayes.h"
#include "truthtable/instruments/instrument_work.h"

#define LOW_DEFAULT  (1.0 / 3.0)
#define HIGH_DEFAULT 3.0

struct bayes_plan {
    const cJSON *priors;
    size_t n_priors;
    size_t contrast;
    double low, high;
    enum bayes_reading *readings; /* scratch, one a prior */
};

struct bayes_sum { /* over measures */
    enum truth robust, all_null, any_null, all_against, any_against;
    size_t n_null, n_against;
    struct spread bf10;
    const char *why; /* of the first that is undetermined */
    const char **null_names;
    const char **against_names;
    const char **other_names;
    size_t n_other;
};

/* How a measure reads as a whole; NULL when some prior's reading is undetermined. */
static const char *whole_reading(const struct bayes_plan *plan)
{
    for (size_t i = 0; i < plan->n_priors; i++) {
        if (plan->readings[i] == BAYES_UNDETERMINED) {
            return NULL;
        }
    }
    return bayes_robust(plan->readings, plan->n_priors) ? bayes_reading_text(plan->readings[0])
                                                        : "depends on the prior";
}

/* Adds a measure's readings to the fields and to the lists for the sentence. */
static void add_up(const struct bayes_plan *plan, struct bayes_sum *sum, const char *measure,
                   const char *why)
{
    bool known = whole_reading(plan) != NULL;
    /* A reading that depends on the prior supports neither side. */
    bool robust = known && bayes_robust(plan->readings, plan->n_priors);
    bool null = robust && plan->readings[0] == BAYES_FOR_NULL;
    bool against = robust && plan->readings[0] == BAYES_AGAINST_NULL;
    sum->robust = truth_and(sum->robust, known ? truth_of(robust) : TRUTH_UNKNOWN);
    sum->all_null = truth_and(sum->all_null, known ? truth_of(null) : TRUTH_UNKNOWN);
    sum->any_null = truth_or(sum->any_null, known ? truth_of(null) : TRUTH_UNKNOWN);
    sum->all_against = truth_and(sum->all_against, known ? truth_of(against) : TRUTH_UNKNOWN);
    sum->any_against = truth_or(sum->any_against, known ? truth_of(against) : TRUTH_UNKNOWN);
    if (!known && sum->why == NULL) {
        sum->why = why;
    }
    if (null) {
        sum->null_names[sum->n_null++] = measure;
    } else if (against) {
        sum->against_names[sum->n_against++] = measure;
    } else {
        sum->other_names[sum->n_other++] = measure;
    }
}

/* Why a measure has no factor. Zero spread is not evidence, so a standard error of 0 gives none. */
static const char *why_none(const struct number *mean, const struct number *se)
{
    if (point_why(mean) != NULL) {
        return point_why(mean);
    }
    if (point_why(se) != NULL) {
        return point_why(se);
    }
    return se->lo > 0 ? NULL : "the standard error is 0: the replicates agree to the last digit";
}

/* One measure under one prior. */
static cJSON *bayes_cell(const struct bayes_plan *plan, const cJSON *prior, size_t i,
                         const double estimate[2], struct bayes_sum *sum, const char *why)
{
    double ln = stat_ln_bf10(estimate[0], estimate[1], prior->valuedouble);
    /* May be infinite: JSON then has null, and the logarithm beside it. */
    double bf = elementary_exp(ln);
    cJSON *o = json_object();
    plan->readings[i] = bayes_read(ln, plan->low, plan->high);
    spread_add(&sum->bf10, bf, why != NULL ? why : "the factor is beyond double");
    json_put_string(o, "prior", prior->string);
    json_put_number(o, "bf10", bf);
    json_put_number(o, "ln_bf10", ln);
    json_put_string(
        o, "reading",
        plan->readings[i] == BAYES_UNDETERMINED ? NULL : bayes_reading_text(plan->readings[i]));
    return o;
}

/* One measure: the estimate, a cell for each prior, and how they read together. */
static cJSON *bayes_measure(const struct instrument_entry *t, const struct bayes_plan *plan,
                            size_t m, struct bayes_sum *sum)
{
    const struct figure *f = work_figure(t->w, plan->contrast, m);
    const struct number *mean = &f->fields[FIELD_MEAN];
    const struct number *se = &f->fields[FIELD_SE];
    const double estimate[2] = {point_or_nan(mean), point_or_nan(se)};
    const char *why = why_none(mean, se);
    cJSON *o = json_object();
    cJSON *cells = json_array();
    json_put_string(o, "measure", t->w->p->measures[m].name);
    put_point(o, "estimate", mean);
    put_point(o, "se", se);
    put_point(o, "n", &f->fields[FIELD_N]);
    json_put_string(o, "why", why);
    size_t i = 0;
    const cJSON *prior = NULL;
    cJSON_ArrayForEach(prior, plan->priors)
    {
        json_push(cells, bayes_cell(plan, prior, i++, estimate, sum, why));
    }
    json_put(o, "cells", cells);
    const char *whole = whole_reading(plan);
    json_put_string(o, "reading", whole);
    put_truth(o, "robust",
              whole == NULL ? TRUTH_UNKNOWN
                            : truth_of(bayes_robust(plan->readings, plan->n_priors)));
    add_up(plan, sum, t->w->p->measures[m].name, why);
    return o;
}

/* The reading in words: measures for the null, against it, and the others. */
static const char *sentence(const struct instrument_entry *t, const struct bayes_sum *s)
{
    struct arena *a = t->w->arena;
    const char *text = "";
    if (s->n_null > 0) {
        text = arena_printf(a, "For the null under every prior: %s. ",
                            work_join(a, s->null_names, s->n_null));
    }
    if (s->n_against > 0) {
        text = arena_printf(a, "%sAgainst the null under every prior: %s. ", text,
                            work_join(a, s->against_names, s->n_against));
    }
    if (s->n_other > 0) {
        text = arena_printf(a, "%sNeither, dependent on the prior, or undetermined: %s. ", text,
                            work_join(a, s->other_names, s->n_other));
    }
    size_t n = strlen(text);
    return n == 0 ? "No measure." : arena_strndup(a, text, n - 1);
}

/* What was declared: contrast, bounds and priors, so that the file explains itself. */
static void put_plan(const struct instrument_entry *t, const struct bayes_plan *plan)
{
    const struct plan_program *p = t->w->p;
    const struct plan_contrast *k = &p->contrasts[plan->contrast];
    struct arena *a = t->w->arena;
    cJSON *bounds = json_array();
    cJSON *priors = json_array();
    json_put_string(t->json, "contrast", k->name);
    json_put_string(
        t->json, "estimate_of",
        k->is_difference
            ? arena_printf(a, "%s - %s", p->contrasts[k->of].name, p->contrasts[k->minus].name)
            : arena_printf(a, "%s - %s", p->factors[k->factor].levels[k->level_a].text,
                           p->factors[k->factor].levels[k->level_b].text));
    json_push_number(bounds, plan->low);
    json_push_number(bounds, plan->high);
    json_put(t->json, "bounds", bounds);
    const cJSON *prior = NULL;
    cJSON_ArrayForEach(prior, plan->priors)
    {
        cJSON *o = json_object();
        json_put_string(o, "name", prior->string);
        json_put_number(o, "sd", prior->valuedouble);
        json_push(priors, o);
    }
    json_put(t->json, "priors", priors);
}

/* The fields that forecasts may read. Counts are unknown while any measure is. */
static void answer(struct instrument_entry *t, const struct bayes_sum *s)
{
    bool open = s->why != NULL;
    entry_truth(t, "robust", s->robust, s->why);
    entry_truth(t, "all_null", s->all_null, s->why);
    entry_truth(t, "any_null", s->any_null, s->why);
    entry_truth(t, "all_against", s->all_against, s->why);
    entry_truth(t, "any_against", s->any_against, s->why);
    entry_number(t, "n_null", open ? (double)NAN : (double)s->n_null, s->why);
    entry_number(t, "n_against", open ? (double)NAN : (double)s->n_against, s->why);
    entry_number(t, "min_bf10", spread_low(&s->bf10), spread_why(&s->bf10));
    entry_number(t, "max_bf10", spread_high(&s->bf10), spread_why(&s->bf10));
}

/* Validation of the declaration was done when the program was loaded. */
void instrument_bayes(struct instrument_entry *t)
{
    const cJSON *spec = t->spec->spec;
    const cJSON *bounds = json_member(spec, "bounds");
    struct arena *a = t->w->arena;
    struct bayes_plan plan = {
        .priors = json_member(spec, "priors"), .low = LOW_DEFAULT, .high = HIGH_DEFAULT};
    plan.n_priors = (size_t)cJSON_GetArraySize(plan.priors);
    plan.contrast = program_find_contrast(t->w->p, json_member(spec, "contrast")->valuestring);
    plan.readings = arena_array(a, plan.n_priors, sizeof(*plan.readings));
    /* 1/3 and 3 unless the plan has its own. */
    if (bounds != NULL) {
        plan.low = cJSON_GetArrayItem(bounds, 0)->valuedouble;
        plan.high = cJSON_GetArrayItem(bounds, 1)->valuedouble;
    }
    struct measure_list measures = work_measures(t->w, spec, "measures");
    struct bayes_sum sum = {.robust = TRUTH_TRUE,
                            .all_null = TRUTH_TRUE,
                            .any_null = TRUTH_FALSE,
                            .all_against = TRUTH_TRUE,
                            .any_against = TRUTH_FALSE,
                            .null_names = arena_array(a, measures.n, sizeof(char *)),
                            .against_names = arena_array(a, measures.n, sizeof(char *)),
                            .other_names = arena_array(a, measures.n, sizeof(char *))};
    cJSON *list = json_array();
    put_plan(t, &plan);
    for (size_t i = 0; i < measures.n; i++) {
        json_push(list, bayes_measure(t, &plan, measures.items[i], &sum));
    }
    json_put(t->json, "measures", list);
    answer(t, &sum);
    entry_words(t->json,
                "Normal-normal Bayes factors BF10: how much likelier the estimate is under an "
                "effect of the prior's size than under none.",
                sentence(t, &sum));
}
