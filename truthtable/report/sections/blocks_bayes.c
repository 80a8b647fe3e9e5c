/*
 * Shows a bayes instrument: a matrix of factors, measure by prior, and the same on a logarithmic
 * axis. The side of the bounds is marked beside the number, so it does not rest on color.
 */
#include <math.h>
#include <string.h>

#include "base/math/elementary.h"
#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/sections/instrument_blocks.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/verdict_words.h"

#define PRIORS_MAX 8
#define MINUS_INF  (-(double)INFINITY)

/* "The null" in plain words. */
static const char *reading_words(const char *reading)
{
    return strcmp(reading, "for the null") == 0       ? "for no difference"
           : strcmp(reading, "against the null") == 0 ? "for a difference"
                                                      : reading;
}

/* The factor under the prior `n`, with a mark for the side of the bounds that it is on. */
static void factor_cell(const struct doc_slot *s)
{
    const cJSON *factor = cJSON_GetArrayItem(member(json_of(s), "cells"), s->column->n);
    const char *reading = words_member(factor, "reading");
    double bf10 = member_number(factor, "bf10");
    /* A hollow circle for no difference, a filled one for a difference. */
    const char *mark = strcmp(reading, "for the null") == 0       ? " \xe2\x97\x8b"
                       : strcmp(reading, "against the null") == 0 ? " \xe2\x97\x8f"
                                                                  : "";
    doc_number(s,
               isfinite(bf10) ? arena_printf(s->arena, "%s%s", fmt_short(s->arena, bf10, 4), mark)
                              : FMT_NONE,
               bf10);
    doc_datum(s, "ln", member_number(factor, "ln_bf10"));
}

/* The reading under all priors together. */
static void reading_cell(const struct doc_slot *s)
{
    const char *reading = member_text(json_of(s), "reading");
    s->cell->text = reading == NULL ? "undetermined" : reading_words(reading);
}

/* Priors as columns, up to PRIORS_MAX. */
static struct doc_columns columns_of(struct doc *d, const cJSON *instrument)
{
    static const struct show_words robust = {"yes", "no", FMT_NONE};
    const struct doc_column first[] = {
        JSON_TEXT("Measure", "measure"),
        JSON_ESTIMATE(words_member(instrument, "estimate_of"), "estimate"),
    };
    static const struct doc_column last[] = {
        COLUMN("Reads", ALIGN_TEXT, reading_cell),
        JSON_FLAG("Robust", "robust", &robust),
        JSON_REMARK,
    };
    struct arena *a = &d->arena;
    struct doc_columns columns = doc_columns(d, first, ARRAY_LEN(first));
    int n = 0;
    const cJSON *prior = NULL;
    cJSON_ArrayForEach(prior, member(instrument, "priors"))
    {
        const char *title = arena_printf(a, "%s, \xcf\x84 = %s", words_member(prior, "name"),
                                         fmt_short(a, member_number(prior, "sd"), 4));
        if (n < PRIORS_MAX) {
            doc_column_add(d, &columns, title, factor_cell)->n = n++;
        }
    }
    doc_columns_add(d, &columns, last, ARRAY_LEN(last));
    return columns;
}

/* A row for each measure. */
static void add_matrix(struct doc *d, const cJSON *instrument)
{
    struct arena *a = &d->arena;
    const size_t n_priors = member_count(instrument, "priors");
    const cJSON *bounds = member(instrument, "bounds");
    const cJSON *low = cJSON_GetArrayItem(bounds, 0);
    const cJSON *high = cJSON_GetArrayItem(bounds, 1);
    const struct doc_columns columns = columns_of(d, instrument);
    struct doc_table *t = doc_table(
        d, show_id(d, instrument, ""),
        arena_printf(
            a,
            "Bayes factors BF10 of a difference against none, measure by prior; \xcf\x84: "
            "standard deviation of the effect under each prior. \xe2\x97\x8b under %s: for "
            "no difference; \xe2\x97\x8f over %s: for a difference; else neither. Robust: the same "
            "under every prior.",
            fmt_short(a, cJSON_IsNumber(low) ? low->valuedouble : (double)NAN, 3),
            fmt_short(a, cJSON_IsNumber(high) ? high->valuedouble : (double)NAN, 3)),
        columns.items, columns.n);
    json_rows(d, t, member(instrument, "measures"));
    if (n_priors > PRIORS_MAX) {
        doc_paragraph(d, "Of %zu priors the first %d are shown; the reading is over all of them.",
                      n_priors, PRIORS_MAX);
    }
}

/* One measure, a mark for each prior. */
static struct plot_row figure_row(struct arena *a, const cJSON *measure, size_t series)
{
    size_t n = member_count(measure, "cells");
    struct plot_mark *marks = arena_array(a, n + 1, sizeof(*marks));
    for (size_t i = 0; i < n; i++) {
        const cJSON *factor = cJSON_GetArrayItem(member(measure, "cells"), (int)i);
        marks[i] = (struct plot_mark){
            .value = member_number(factor, "ln_bf10"), .low = (double)NAN, .high = (double)NAN};
        marks[i].tooltip = arena_printf(a, "%s under %s: BF10 %s", words_member(measure, "measure"),
                                        words_member(factor, "prior"),
                                        fmt_short(a, member_number(factor, "bf10"), 4));
    }
    return (struct plot_row){
        .label = words_member(measure, "measure"), .series = series, .marks = marks, .n_marks = n};
}

/* In logarithms, where equal evidence for and against is equally far from 0. */
static void add_figure(struct doc *d, const cJSON *instrument)
{
    struct arena *a = &d->arena;
    size_t n = member_count(instrument, "measures");
    struct plot_row *rows = arena_array(a, n + 1, sizeof(*rows));
    double most = MINUS_INF;
    for (size_t i = 0; i < n; i++) {
        rows[i] = figure_row(a, cJSON_GetArrayItem(member(instrument, "measures"), (int)i), i);
        for (size_t k = 0; k < rows[i].n_marks; k++) {
            most = isfinite(rows[i].marks[k].value) ? fmax(most, rows[i].marks[k].value) : most;
        }
    }
    const cJSON *low = cJSON_GetArrayItem(member(instrument, "bounds"), 0);
    const cJSON *high = cJSON_GetArrayItem(member(instrument, "bounds"), 1);
    /* Without a factor or without bounds there is nothing to draw. */
    if (!isfinite(most) || !cJSON_IsNumber(low) || !cJSON_IsNumber(high) ||
        !(low->valuedouble > 0) || !(high->valuedouble > 0)) {
        return;
    }
    const struct plot_rule rules[] = {
        {elementary_log(low->valuedouble), "for no difference", "chance"},
        {elementary_log(high->valuedouble), "for a difference", "best"}};
    struct plot_dots plot = {.head = {.title = "Bayes factors by measure and prior",
                                      .desc = "The table has the factors.",
                                      .x_title = "ln BF10"},
                             .rows = rows,
                             .n_rows = n,
                             .rules = rules,
                             .n_rules = 2,
                             .band_from = (double)NAN};
    const char *caption =
        "Bayes factors on a logarithmic scale, one mark a prior, from top to bottom as the table "
        "has them from left to right. Left of the first line they read for no difference, right of "
        "the second for one.";
    plot_dots(doc_figure(d, show_id(d, instrument, ""), caption, &plot.head), &plot);
}

/* The model is not needed: everything is in the instrument. */
void show_bayes(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    (void)m;
    add_matrix(d, instrument);
    add_figure(d, instrument);
}
