/*
 * The instruments that every program has without declaring them: margins of scores over floors,
 * dispersion of cells, detectable differences, and the apparatus checks. They read the verdict's
 * own evaluation and never compute a gate or a contrast again. A figure that is not determined is
 * null with a reason beside it.
 */
#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "prereg/program/same_work.h"
#include "truthtable/condition/stats.h"
#include "truthtable/instruments/dispersion.h"
#include "truthtable/instruments/instrument_work.h"
#include "truthtable/instruments/power.h"
#include "truthtable/instruments/quantile.h"

#define ALPHA 0.05
#define POWER 0.8

/* A score's distance from its floor in binomial standard errors; NaN without a score or its n. */
static double margin_of(const struct work *w, size_t m, size_t cell)
{
    const struct score *s = work_score(w, m, cell);
    return number_is_point(&s->value) && s->has_n
               ? stat_gate_margin(s->value.lo, (double)s->n, w->p->measures[m].floor)
               : (double)NAN;
}

/* at: {measure, cell}; the cell with its score and margin, or null. */
static void put_cell(const struct work *w, cJSON *o, const char *key, const size_t at[2])
{
    if (at[1] == INDEX_NONE) {
        json_put_null(o, key);
        return;
    }
    cJSON *c = json_object();
    json_put_string(c, "cell", w->p->cells[at[1]].name);
    put_point(c, "score", &work_score(w, at[0], at[1])->value);
    json_put_number(c, "z", margin_of(w, at[0], at[1]));
    json_put(o, key, c);
}

/* The items behind every score of a measure, NaN when they differ or are not known. */
static double common_items(const struct work *w, size_t m)
{
    double n = (double)NAN;
    for (size_t c = 0; c < w->p->n_cells; c++) {
        const struct score *s = work_score(w, m, c);
        if (!number_is_point(&s->value)) {
            continue;
        }
        /* Cells on different numbers of items have no common binomial error. */
        if (!s->has_n || (isfinite(n) && n != (double)s->n)) {
            return (double)NAN;
        }
        n = (double)s->n;
    }
    return n;
}

/* One measure: how many cells clear, and the lowest and highest of them. */
static cJSON *margin_json(const struct work *w, size_t m)
{
    const struct plan_measure *me = &w->p->measures[m];
    double n = common_items(w, m);
    size_t low = INDEX_NONE;
    size_t high = INDEX_NONE;
    int64_t count[3] = {0, 0, 0}; /* by enum truth */
    cJSON *o = json_object();
    for (size_t c = 0; c < w->p->n_cells; c++) {
        const struct number *v = &work_score(w, m, c)->value;
        count[w->ev->gates[m * w->p->n_cells + c].cleared]++;
        if (!number_is_point(v)) {
            continue;
        }
        /* Of equal cells the first is kept: the same records name the same cell. */
        low = low == INDEX_NONE || v->lo < work_score(w, m, low)->value.lo ? c : low;
        high = high == INDEX_NONE || v->lo > work_score(w, m, high)->value.lo ? c : high;
    }
    json_put_string(o, "measure", me->name);
    json_put_number(o, "floor", me->floor);
    json_put_number(o, "chance", me->has_chance ? me->chance : (double)NAN);
    json_put_number(o, "floor_above_chance",
                    me->has_chance ? stat_floor_above_chance(me->floor, me->chance, n)
                                   : (double)NAN);
    json_put_number(o, "n", n);
    json_put_int(o, "cells", (int64_t)w->p->n_cells);
    json_put_int(o, "cleared", count[TRUTH_TRUE]);
    json_put_int(o, "open", count[TRUTH_UNKNOWN]);
    put_cell(w, o, "lowest", (const size_t[2]){m, low});
    put_cell(w, o, "highest", (const size_t[2]){m, high});
    json_put_string(o, "why",
                    low == INDEX_NONE ? "no cell has a score"
                    : isfinite(n)     ? NULL
                                      : "the number of items is not known, or differs");
    return o;
}

/* Counts over all measures for the sentence, from the members just written. */
void instrument_margins(const struct work *w, cJSON *out)
{
    cJSON *list = json_array();
    size_t n = 0;
    size_t n_cleared = 0;
    size_t n_open = 0;
    for (size_t m = 0; m < w->p->n_measures; m++) {
        if (w->p->measures[m].has_floor) {
            cJSON *o = margin_json(w, m);
            n += w->p->n_cells;
            /* The members were just written, so they exist. */
            n_cleared += (size_t)json_member(o, "cleared")->valuedouble;
            n_open += (size_t)json_member(o, "open")->valuedouble;
            json_push(list, o);
        }
    }
    json_put(out, "measures", list);
    entry_words(out, "How far the scores lie from their floors, in binomial standard errors.",
                n_open == 0
                    ? arena_printf(w->arena, "%zu of %zu gates are cleared.", n_cleared, n)
                    : arena_printf(w->arena, "%zu of %zu gates are cleared, %zu %s undetermined.",
                                   n_cleared, n, n_open, n_open == 1 ? "is" : "are"));
}

/* Over the cells of one condition, or all (INDEX_NONE), where a work counts once, whatever its
 * names. sd_binomial is what sampling of items alone would give; it needs equal numbers of items.
 */
static void put_dispersion(const struct work *w, cJSON *o, size_t m, size_t condition)
{
    double *scores = arena_array(w->arena, w->p->n_cells, sizeof(*scores));
    double *items = arena_array(w->arena, w->p->n_cells, sizeof(*items));
    bool *counted = arena_array(w->arena, w->p->n_cells, sizeof(*counted)); /* [cell of the work] */
    size_t n = 0;
    for (size_t c = 0; c < w->p->n_cells; c++) {
        const struct score *s = work_score(w, m, c);
        const size_t task = c * w->p->n_stages + w->p->measures[m].stage;
        bool *own = &counted[program_worker_of(w->p, task) / w->p->n_stages];
        const bool is_in = condition == INDEX_NONE ? !*own : w->p->cells[c].condition == condition;
        if (is_in && number_is_point(&s->value)) {
            *own = true;
            scores[n] = s->value.lo;
            items[n++] = s->has_n ? (double)s->n : (double)NAN;
        }
    }
    struct dispersion d;
    dispersion_of(scores, items, n, &d);
    bool ok = d.why == NULL;
    /* NaN as soon as two numbers of items differ. */
    double same = n > 0 ? items[0] : (double)NAN;
    for (size_t i = 1; i < n; i++) {
        same = items[i] == same ? same : (double)NAN;
    }
    json_put_int(o, "n_cells", (int64_t)n);
    json_put_number(o, "n_items", same);
    json_put_number(o, "mean", ok ? d.mean : (double)NAN);
    json_put_number(o, "sd", stat_sd(scores, n));
    json_put_number(o, "sd_binomial", ok ? sqrt(d.mean * (1 - d.mean) / same) : (double)NAN);
    json_put_number(o, "chi2", ok ? d.chi2 : (double)NAN);
    json_put_number(o, "df", ok ? d.df : (double)NAN);
    json_put_number(o, "p_lower", ok ? d.p_lower : (double)NAN);
    json_put_string(o, "why", d.why);
}

/* All cells together, and each condition by itself if it has replicates. */
static cJSON *dispersion_json(const struct work *w, size_t m)
{
    cJSON *o = json_object();
    cJSON *whole = json_object();
    cJSON *conditions = json_array();
    json_put_string(o, "measure", w->p->measures[m].name);
    put_dispersion(w, whole, m, INDEX_NONE);
    json_put(o, "whole", whole);
    for (size_t c = 0; w->ev->rules->layout.n_replicates > 1 && c < w->p->n_conditions; c++) {
        cJSON *at = json_object();
        json_put_string(at, "condition", w->p->conditions[c].name);
        put_dispersion(w, at, m, c);
        json_push(conditions, at);
    }
    json_put(o, "conditions", conditions);
    return o;
}

/* How many single conditions are tighter or looser than binomial; the table has their names. ""
 * when there is nothing to say. */
static const char *conditions_sentence(struct arena *a, const cJSON *list)
{
    size_t n = 0;
    size_t n_tight = 0;
    size_t n_loose = 0;
    const cJSON *o = NULL;
    cJSON_ArrayForEach(o, list)
    {
        const cJSON *c = NULL;
        cJSON_ArrayForEach(c, json_member(o, "conditions"))
        {
            const cJSON *p = json_member(c, "p_lower");
            n += cJSON_IsNumber(p) ? 1 : 0;
            /* Both tails are one-sided at ALPHA. */
            n_tight += cJSON_IsNumber(p) && p->valuedouble < ALPHA ? 1 : 0;
            n_loose += cJSON_IsNumber(p) && p->valuedouble > 1 - ALPHA ? 1 : 0;
        }
    }
    return n_tight + n_loose == 0
               ? ""
               : arena_printf(
                     a, " Single conditions by themselves: tighter in %zu of %zu, looser in %zu.",
                     n_tight, n, n_loose);
}

/* Measures that are tighter or looser than binomial, and those of which it is not known. */
static const char *dispersion_sentence(const struct work *w, const cJSON *list)
{
    const char **tight = arena_array(w->arena, w->p->n_measures, sizeof(*tight));
    const char **open = arena_array(w->arena, w->p->n_measures, sizeof(*open));
    const char **loose = arena_array(w->arena, w->p->n_measures, sizeof(*loose));
    size_t n_tight = 0;
    size_t n_loose = 0;
    size_t n_open = 0;
    const cJSON *o = NULL;
    cJSON_ArrayForEach(o, list)
    {
        const cJSON *p = json_member(json_member(o, "whole"), "p_lower");
        const char *name = json_member(o, "measure")->valuestring;
        if (!cJSON_IsNumber(p)) {
            open[n_open++] = name;
        } else if (p->valuedouble < ALPHA) {
            tight[n_tight++] = name;
        } else if (p->valuedouble > 1 - ALPHA) {
            loose[n_loose++] = name;
        }
    }
    const char *text = arena_printf(
        w->arena,
        "All cells of a measure together, tighter than binomial (lower tail under 5 %%): %s.",
        work_join(w->arena, tight, n_tight));
    if (n_loose > 0) {
        text = arena_printf(w->arena, "%s Looser than binomial (upper tail under 5 %%): %s.", text,
                            work_join(w->arena, loose, n_loose));
    }
    text = arena_printf(w->arena, "%s%s", text, conditions_sentence(w->arena, list));
    return n_open == 0 ? text
                       : arena_printf(w->arena, "%s Undetermined: %s.", text,
                                      work_join(w->arena, open, n_open));
}

/* Only proportions have a binomial spread to compare with. */
void instrument_dispersion(const struct work *w, cJSON *out)
{
    cJSON *list = json_array();
    for (size_t m = 0; m < w->p->n_measures; m++) {
        if (measure_is_share(&w->p->measures[m])) {
            json_push(list, dispersion_json(w, m));
        }
    }
    json_put(out, "measures", list);
    entry_words(out,
                "The spread of the cells' scores against what the sampling of items alone would "
                "make of equal models.",
                dispersion_sentence(w, list));
}

/* The pairs of cells that are left: as many cells in either arm. */
static size_t pairs_left(const struct work *w, size_t contrast, size_t measure)
{
    const struct layout *l = &w->ev->rules->layout;
    size_t left = 0;
    for (size_t i = 0; i < l->contrasts[contrast].n_settings * l->n_replicates; i++) {
        size_t s = i / l->n_replicates;
        size_t r = i % l->n_replicates;
        left += !work_score(w, measure, layout_pair_a(l, contrast, s, r))->excluded &&
                        !work_score(w, measure, layout_pair_b(l, contrast, s, r))->excluded
                    ? 1
                    : 0;
    }
    return left;
}

/* Detectable by sampling of items (Miller 2024), with the arms' own means as proportions.
 * items_for_observed: how many items would have shown the observed difference. */
static cJSON *by_items_json(const struct work *w, size_t k, size_t m)
{
    const struct plan_measure *me = &w->p->measures[m];
    bool two_arms = !w->p->contrasts[k].is_difference;
    /* Pairs drop as a whole, so both arms have as many cells. */
    size_t cells = two_arms ? pairs_left(w, k, m) : 0;
    double n = common_items(w, m);
    double arms[2] = {(double)NAN, (double)NAN};
    const char *why = NULL;
    if (!two_arms) {
        why = "a difference of contrasts";
    } else if (!measure_is_share(me)) {
        why = "not a share of items";
    }
    for (size_t i = 0; i < 2 && why == NULL; i++) {
        struct number mean = arm_mean(w->ev, k, m, i == 1);
        arms[i] = point_or_nan(&mean);
        why = point_why(&mean);
    }
    if (why == NULL && !isfinite(n)) {
        why = "the number of items is not known, or differs";
    }
    /* omega2 is 0: the true difference is assumed to be equal on all items. */
    struct power_design d = {.alpha = ALPHA,
                             .power = POWER,
                             .var_a = arms[0] * (1 - arms[0]),
                             .var_b = arms[1] * (1 - arms[1]),
                             .k_a = (double)cells,
                             .k_b = (double)cells};
    if (why == NULL && !(d.var_a + d.var_b > 0)) {
        why = "the scores have no variance";
    }
    double difference = why == NULL ? power_difference(&d, n) : (double)NAN;
    /* The design is asked about the size that was observed. */
    double observed = fabs(point_or_nan(&work_figure(w, k, m)->fields[FIELD_MEAN]));
    cJSON *o = json_object();
    json_put_number(o, "difference", difference);
    json_put_number(o, "n_items", measure_is_share(me) ? n : (double)NAN);
    json_put_number(o, "items_for_observed",
                    why == NULL && observed > 0 ? ceil(power_items(&d, observed)) : (double)NAN);
    json_put_int(o, "cells_a", (int64_t)cells);
    json_put_int(o, "cells_b", (int64_t)cells);
    json_put_string(o, "why", why == NULL && !isfinite(difference) ? "no pair is left" : why);
    return o;
}

/* Detectable by spread over replicates: (t(0.975) + t(0.8)) se on n - 1 degrees, a common
 * approximation to the noncentral t. */
static cJSON *by_replicates_json(const struct work *w, size_t k, size_t m)
{
    const struct figure *f = work_figure(w, k, m);
    double se = point_or_nan(&f->fields[FIELD_SE]);
    double n = point_or_nan(&f->fields[FIELD_N]);
    /* Equal replicates have no spread that could be extrapolated. */
    bool ok = se > 0 && n >= 2;
    const char *why = point_why(&f->fields[FIELD_SE]);
    cJSON *o = json_object();
    json_put_number(o, "difference",
                    ok ? (student_quantile(1 - ALPHA / 2, (size_t)n - 1) +
                          student_quantile(POWER, (size_t)n - 1)) *
                             se
                       : (double)NAN);
    json_put_number(o, "se", se);
    json_put_number(o, "n", n);
    json_put_string(o, "why", why);
    return o;
}

/* Post hoc figures of the design, not of the observed difference: they say what could have been
 * missed. */
void instrument_detectable(const struct work *w, cJSON *out)
{
    cJSON *contrasts = json_array();
    for (size_t k = 0; k < w->p->n_contrasts; k++) {
        cJSON *c = json_object();
        cJSON *measures = json_array();
        for (size_t m = 0; m < w->p->n_measures; m++) {
            cJSON *o = json_object();
            json_put_string(o, "measure", w->p->measures[m].name);
            put_point(o, "observed", &work_figure(w, k, m)->fields[FIELD_MEAN]);
            json_put(o, "by_items", by_items_json(w, k, m));
            json_put(o, "by_replicates", by_replicates_json(w, k, m));
            json_push(measures, o);
        }
        json_put_string(c, "contrast", w->p->contrasts[k].name);
        json_put(c, "measures", measures);
        json_push(contrasts, c);
    }
    json_put_number(out, "alpha", ALPHA);
    json_put_number(out, "power", POWER);
    json_put(out, "contrasts", contrasts);
    entry_words(out,
                "The smallest true difference that this design shows with a power of 80 % at 5 %, "
                "two-sided.",
                "What is smaller than this, the data could well have missed.");
}

/* The check of this name in provenance.json; NULL if it has none. */
static const cJSON *check_named(const cJSON *list, const char *name)
{
    const cJSON *c = NULL;
    cJSON_ArrayForEach(c, list)
    {
        /* Members of a file are never trusted to have their type. */
        const cJSON *n = json_member(c, "name");
        if (cJSON_IsString(n) && strcmp(n->valuestring, name) == 0) {
            return c;
        }
    }
    return NULL;
}

/* A member of what provenance.json says of a check, which may be absent as a whole. */
static const cJSON *came_with(const cJSON *came, const char *key)
{
    return came == NULL ? NULL : json_member(came, key);
}

/* A declared check with what came of it. Without a result, `why` says how far it got. */
static cJSON *check_json(const struct work *w, const struct plan_apparatus *a, const cJSON *came)
{
    const cJSON *value = came_with(came, "value");
    const cJSON *holds = came_with(came, "holds");
    const cJSON *why = came_with(came, "why");
    const cJSON *attempts = came_with(came, "attempts");
    cJSON *o = json_object();
    json_put_string(o, "name", a->name);
    json_put_string(o, "stage", w->p->stages[a->stage].name);
    json_put_string(o, "metric", a->metric_text);
    json_put_number(o, "expected", a->value);
    json_put_number(o, "within", a->within);
    json_put_number(o, "value", cJSON_IsNumber(value) ? value->valuedouble : (double)NAN);
    put_truth(o, "holds", cJSON_IsBool(holds) ? truth_of(cJSON_IsTrue(holds)) : TRUTH_UNKNOWN);
    json_put_int(o, "attempts", cJSON_IsArray(attempts) ? cJSON_GetArraySize(attempts) : 0);
    const char *open = cJSON_IsBool(holds) ? NULL
                       : came == NULL      ? "provenance.json says nothing of it"
                       : !cJSON_IsArray(attempts) || cJSON_GetArraySize(attempts) == 0
                           ? "no attempt was made"
                           : "no attempt left a score";
    json_put_string(o, "why", cJSON_IsString(why) ? why->valuestring : open);
    const cJSON *results = came_with(came, "results");
    json_put(o, "results", cJSON_IsArray(results) ? json_copy(results) : json_array());
    return o;
}

/* Checks that an amendment removed, as provenance.json has them. Counts the results that did not
 * hold, over all checks, by what was demanded at the time. */
static cJSON *taken_away(const cJSON *list, size_t *n_failed)
{
    cJSON *gone = json_array();
    const cJSON *check = NULL;
    cJSON_ArrayForEach(check, list)
    {
        const cJSON *result = NULL;
        cJSON_ArrayForEach(result, json_member(check, "results"))
        {
            *n_failed += cJSON_IsFalse(json_member(result, "holds")) ? 1 : 0;
        }
        if (cJSON_IsFalse(json_member(check, "declared"))) {
            cJSON *o = json_object();
            json_put(o, "name", json_copy(json_member(check, "name")));
            json_put(o, "results", json_copy(json_member(check, "results")));
            json_push(gone, o);
        }
    }
    return gone;
}

/* Results are recorded by the daemon, which starts no counted evaluation before the checks hold. */
void instrument_apparatus(const struct work *w, cJSON *out)
{
    const cJSON *list = came_with(w->in->provenance, "apparatus");
    cJSON *checks = json_array();
    size_t n_held = 0;
    size_t n_failed = 0;
    size_t n = 0;
    bool again = false;
    for (size_t i = 0; i < w->p->n_apparatus; i++) {
        const struct plan_apparatus *a = &w->p->apparatus[i];
        if (a->first != INDEX_NONE && check_named(list, a->name) == NULL) {
            continue; /* no second run is on record */
        }
        cJSON *o = check_json(w, a, check_named(list, a->name));
        n++;
        again = again || a->first != INDEX_NONE;
        n_held += cJSON_IsTrue(json_member(o, "holds")) ? 1 : 0;
        json_push(checks, o);
    }
    json_put(out, "checks", checks);
    json_put(out, "taken_away", taken_away(list, &n_failed));
    const char *text = arena_printf(w->arena, "%zu of %zu checks are known to hold.", n_held, n);
    if (n_failed > 0) {
        text = arena_printf(w->arena, "%s Results that did not hold, as was demanded then: %zu.",
                            text, n_failed);
    }
    entry_words(out,
                again ? "A reference model must score what the program says before any counted "
                        "evaluation starts, and the same after the last one."
                      : "A reference model must score what the program says before any counted "
                        "evaluation starts.",
                text);
}
