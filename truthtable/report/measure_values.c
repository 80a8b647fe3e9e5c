/*
 * Reads one measure in one cell as the verdict has it. Measures with a floor have a gate in
 * verdict.json, and the gate is the source; others are read from the record by the verdict's own
 * function, score_read(), so both ways apply the same rules.
 */
#include "truthtable/report/measure_values.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "truthtable/evidence/measure_scores.h"
#include "truthtable/report/document/fmt.h"

/* The worker's standard error, or the binomial one for a proportion. */
static double error_of(const struct plan_measure *measure, const struct evidence_value *v,
                       const struct measure_reading *r)
{
    double se = v->has_se ? v->se : (double)NAN;
    if (!isfinite(se) && measure_is_share(measure) && r->n > 0 && r->score >= 0 && r->score <= 1) {
        se = sqrt(r->score * (1 - r->score) / r->n);
    }
    return se;
}

/* A value that was not reached is a bound: ">4864". */
static void read_bound(struct measure_reading *r, struct metric_words words)
{
    struct err ignored = {0};
    double at = 0;
    if (words.bound == NULL || (words.bound[0] != '>' && words.bound[0] != '<') ||
        text_to_double(words.bound + 1, &at, &ignored) != 0) {
        return;
    }
    r->bound = words.bound;
    r->bound_at = at;
    r->bound_above = words.bound[0] == '>';
}

/* A measure without a gate is not in any list of the verdict. It is read from the record, by the
 * verdict's own rules. */
static void read_score(struct measure_reading *r, const struct plan_measure *measure,
                       const struct evidence_value *v, bool imported, struct arena *a)
{
    const struct score s = score_read(measure, v, imported, a);
    r->score = number_is_point(&s.value) ? s.value.lo : (double)NAN;
    r->n = s.has_n ? (double)s.n : (double)NAN;
    r->why = s.value.known || v->state == VALUE_MISSING ? NULL : s.value.why;
}

/* Gate first, then the record's standard error, reason and bound. */
struct measure_reading measure_read(struct arena *a, const struct report_model *m, size_t index,
                                    size_t cell)
{
    const struct plan_measure *measure = &m->program->measures[index];
    const struct evidence_value v = report_metric(m, cell, measure->stage, measure->metric);
    const cJSON *gate = report_gate(m, index, cell);
    const cJSON *cleared = member(gate, "cleared");
    struct measure_reading r = {.score = member_number(gate, "score"),
                                .n = member_number(gate, "n"),
                                .z = member_number(gate, "z"),
                                .has_gate = gate != NULL,
                                .is_known = cJSON_IsBool(cleared),
                                .cleared = cJSON_IsTrue(cleared),
                                .excluded = cJSON_IsTrue(member(gate, "excluded")),
                                .why = member_text(gate, "why")};
    if (gate == NULL) {
        read_score(&r, measure, &v, m->imported != NULL, a);
    }
    if (!isfinite(r.score)) {
        struct metric_words words = report_metric_words(m, cell, measure->stage, measure->metric);
        r.why = r.why == NULL ? words.why : r.why;
        read_bound(&r, words);
    }
    r.se = error_of(measure, &v, &r);
    return r;
}

/* One pass over the cells. "Best" follows the measure's direction; "nearest" is the smallest margin
 * of either sign. */
struct measure_tally measure_count(struct arena *a, const struct report_model *m, size_t index)
{
    const bool lower_better = m->program->measures[index].lower_better;
    struct measure_tally t = {.best = (double)NAN, .best_cell = INDEX_NONE, .nearest = (double)NAN};
    for (size_t c = 0; c < m->program->n_cells; c++) {
        struct measure_reading r = measure_read(a, m, index, c);
        t.n_cleared += r.is_known && r.cleared ? 1 : 0;
        t.n_failed += r.is_known && !r.cleared ? 1 : 0;
        t.n_open += !r.is_known ? 1 : 0;
        if (!isfinite(r.score)) {
            continue;
        }
        t.n_scores++;
        bool better = lower_better ? r.score < t.best : r.score > t.best;
        if (t.best_cell == INDEX_NONE || better) {
            t.best = r.score;
            t.best_cell = c;
        }
        if (isfinite(r.z) && !(fabs(r.z) >= fabs(t.nearest))) {
            t.nearest = r.z;
        }
    }
    return t;
}

/* Proportions have four decimals; other scales as many digits as they need. */
const char *measure_score_text(struct arena *a, const struct plan_measure *measure, double v)
{
    bool whole = isfinite(v) && v == floor(v);
    bool plain = fabs(v) >= 0.01 && fabs(v) < 1000 && !whole;
    return measure_is_share(measure) || plain ? fmt_fixed(a, v, 4) : fmt_short(a, v, 5);
}

/* "3 of 12", with the number of open gates if there are any. */
const char *measure_clearing_text(struct arena *a, const struct plan_measure *measure,
                                  const struct measure_tally *t)
{
    if (!measure->has_floor) {
        return FMT_NONE;
    }
    size_t n = t->n_cleared + t->n_failed + t->n_open;
    const char *text = arena_printf(a, "%zu of %zu", t->n_cleared, n);
    return t->n_open == 0 ? text : arena_printf(a, "%s, %zu open", text, t->n_open);
}

/* Groups cells by their reason. */
const char *measure_open_reasons(struct arena *a, const struct report_model *m, size_t measure)
{
    const size_t n_cells = m->program->n_cells;
    const char **reasons = arena_array(a, n_cells, sizeof(*reasons));
    size_t *counts = arena_array(a, n_cells, sizeof(*counts));
    size_t n = 0;
    for (size_t c = 0; c < n_cells; c++) {
        struct measure_reading r = measure_read(a, m, measure, c);
        if (r.has_gate ? r.is_known : isfinite(r.score)) {
            continue;
        }
        const char *why = r.why != NULL ? r.why : "no result";
        size_t k = 0;
        while (k < n && strcmp(reasons[k], why) != 0) {
            k++;
        }
        n = k == n ? n + 1 : n;
        reasons[k] = why;
        counts[k]++;
    }
    const char *text = "";
    for (size_t k = 0; k < n; k++) {
        text = arena_printf(a, "%s%s%s in %s", text, k == 0 ? "" : ", ", reasons[k],
                            fmt_plural(a, (int64_t)counts[k], "cell", "cells"));
    }
    return text;
}
