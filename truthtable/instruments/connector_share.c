/*
 * The weight comes from the parameters that the training was asked with, and must be the same in
 * every cell of the contrast. The error is that of a ratio of two means over replicates (Cochran,
 * Sampling Techniques, 6.3): both gaps of a replicate come from the same trainings, so that they
 * vary together. Where the whole gap may be 0, its shares mean nothing, and have no error.
 */
#include "truthtable/instruments/connector_share.h"

#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "truthtable/evaluate/effects.h"

/* What the mix calls the source. */
static const char *name_in_mix(const struct work *w, size_t part, const char *source)
{
    const char *colon = strchr(w->p->measures[part].metric, ':');
    return colon == NULL ? source : arena_strndup(w->arena, colon + 1, strcspn(colon + 1, "@"));
}

/* Its weight in one cell; NaN without one. */
static double weight_in_cell(const struct plan_program *p, size_t stage, size_t cell,
                             const char *name)
{
    cJSON *params = program_task_params(p, stage, cell);
    const cJSON *mix = json_member(params, "mix");
    const cJSON *weight = cJSON_IsObject(mix) ? json_member(mix, name) : NULL;
    const double out = cJSON_IsNumber(weight) ? weight->valuedouble : (double)NAN;
    cJSON_Delete(params);
    return out;
}

/* The same weight in both cells of every pair, or the reason why there is none. */
static const char *weight_of(const struct work *w, size_t contrast, size_t stage, const char *name,
                             double *weight)
{
    const struct layout *l = &w->ev->rules->layout;
    const size_t n = l->contrasts[contrast].n_settings * l->n_replicates;
    *weight = (double)NAN;
    for (size_t i = 0; i < 2 * n; i++) {
        const size_t s = i / 2 / l->n_replicates;
        const size_t r = i / 2 % l->n_replicates;
        const size_t cell =
            i % 2 == 0 ? layout_pair_a(l, contrast, s, r) : layout_pair_b(l, contrast, s, r);
        const double its = weight_in_cell(w->p, stage, cell, name);
        if (isnan(its)) {
            return arena_printf(w->arena, "the mix of stage %s has no weight of \"%s\"",
                                w->p->stages[stage].name, name);
        }
        if (i > 0 && its != *weight) {
            *weight = (double)NAN;
            return arena_printf(w->arena, "the weight of \"%s\" is not the same in all cells",
                                name);
        }
        *weight = its;
    }
    return NULL;
}

/* Where a metric's mark begins: "@0.5", or its end. */
static const char *mark_of(const char *metric)
{
    return metric + strcspn(metric, "@");
}

/* Whether one metric is that of a source in the other: "loss:text@0.5" in "loss@0.5". A name of its
 * own may be a foreign worker's for the same, but of a worker whose units are known it is not. */
static bool is_part_of(const struct work *w, const struct plan_measure *part,
                       const struct plan_measure *whole)
{
    const size_t n = strcspn(part->metric, ":@");
    const size_t n_whole = strcspn(whole->metric, ":@");
    const bool same_name = n == n_whole && memcmp(part->metric, whole->metric, n) == 0;
    const bool foreign = part->metric[n] != ':' && measure_unit(w->p, part) == NULL &&
                         measure_unit(w->p, whole) == NULL;
    return whole->metric[n_whole] != ':' && (same_name || foreign) &&
           strcmp(mark_of(part->metric), mark_of(whole->metric)) == 0;
}

/* A replicate's gap, averaged over the settings; NaN where a pair is not known or left out. */
static double replicate_gap(const struct work *w, size_t contrast, size_t measure, size_t r)
{
    const struct layout *l = &w->ev->rules->layout;
    const size_t n = l->contrasts[contrast].n_settings;
    double sum = 0;
    for (size_t s = 0; s < n; s++) {
        const struct score *a = work_score(w, measure, layout_pair_a(l, contrast, s, r));
        const struct score *b = work_score(w, measure, layout_pair_b(l, contrast, s, r));
        if (a->excluded || b->excluded) {
            return (double)NAN;
        }
        sum += point_or_nan(&a->value) - point_or_nan(&b->value);
    }
    return sum / (double)n;
}

/* The standard error of share = weight * mean(part) / mean(whole). */
static double ratio_se(const struct work *w, size_t contrast, const size_t measures[2],
                       const struct source_share *of)
{
    const size_t n_replicates = w->ev->rules->layout.n_replicates;
    double squares = 0;
    double whole = 0;
    size_t n = 0;
    for (size_t r = 0; r < n_replicates; r++) {
        const double gap = replicate_gap(w, contrast, measures[0], r);
        const double part = replicate_gap(w, contrast, measures[1], r);
        const double rest = of->weight * part - of->share * gap;
        if (isfinite(rest)) {
            squares += rest * rest;
            whole += gap;
            n++;
        }
    }
    return n < 2 ? (double)NAN
                 : sqrt(squares / (double)(n - 1) / (double)n) / fabs(whole / (double)n);
}

struct source_share connector_share(const struct work *w, size_t contrast, size_t whole,
                                    size_t part, const char *source)
{
    const struct figure *f[2] = {work_figure(w, contrast, whole), work_figure(w, contrast, part)};
    const size_t measures[2] = {whole, part};
    const struct plan_measure *m[2] = {&w->p->measures[whole], &w->p->measures[part]};
    const size_t stage = m[1]->stage;
    struct source_share out = {.weight = (double)NAN, .share = (double)NAN, .se = (double)NAN};
    out.why = stage != m[0]->stage ? "its loss is of another stage than the whole one"
              : !is_part_of(w, m[1], m[0])
                  ? arena_printf(w->arena, "%s is not a part of %s", m[1]->metric, m[0]->metric)
                  : weight_of(w, contrast, stage, name_in_mix(w, part, source), &out.weight);
    for (size_t i = 0; out.why == NULL && i < ARRAY_LEN(f); i++) {
        out.why = point_why(&f[i]->fields[FIELD_MEAN]);
    }
    if (out.why != NULL) {
        return out;
    }
    const double gap = point_or_nan(&f[0]->fields[FIELD_MEAN]);
    const double low = point_or_nan(&f[0]->fields[FIELD_CI_LOW]);
    const double high = point_or_nan(&f[0]->fields[FIELD_CI_HIGH]);
    if (gap == 0) {
        out.why = "the whole gap is 0";
        return out;
    }
    out.share = out.weight * point_or_nan(&f[1]->fields[FIELD_MEAN]) / gap;
    if (!(low > 0 || high < 0)) {
        out.why = isfinite(low) && isfinite(high) ? "no error: the whole gap may be 0"
                                                  : "no error: the whole gap has none";
        return out;
    }
    out.se = ratio_se(w, contrast, measures, &out);
    out.why = isfinite(out.se) ? NULL : "no error: fewer than two whole replicates";
    return out;
}
