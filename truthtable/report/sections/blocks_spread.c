/*
 * Shows what sampling and design leave open, for the instruments items, margins, dispersion and
 * detectable. Each is one table with a remark where a figure is undetermined; dispersion also gets
 * a figure, the ratio of the observed spread to the binomial one. Nothing is computed here but that
 * ratio.
 */
#include <math.h>

#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/sections/instrument_blocks.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/verdict_words.h"

#define ROWS_MAX ((size_t)60)
#define CHI2     "\xcf\x87\xc2\xb2"

/* A row is one error of a measure, paired or in clusters; its part is the measure. */
static void measure_cell(const struct doc_slot *s)
{
    show_short(s, json_part(s), s->column->key, s->column->n);
}

/* The measure's reason explains more than that of one error. */
static void error_why(const struct doc_slot *s)
{
    const char *of_measure = words_or_empty(json_part(s), "why");
    s->cell->text = of_measure[0] != '\0' ? of_measure : words_or_empty(json_of(s), "why");
}

/* A second row for clusters, where they were declared. */
void show_items(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    static const struct doc_column columns[] = {
        JSON_LABEL("Measure"),
        {"Items", ALIGN_NUMBER, measure_cell, "n_items", 9, NULL},
        {"Pairs of cells", ALIGN_NUMBER, measure_cell, "n_pairs", 9, NULL},
        {"Left out", ALIGN_NUMBER, measure_cell, "left_out", 9, NULL},
        JSON_ESTIMATE("Difference", "mean"),
        JSON_INTERVAL("95 % interval"),
        COLUMN("Remark", ALIGN_TEXT, error_why),
    };
    struct arena *a = &d->arena;
    const char *cluster = member_text(instrument, "cluster");
    (void)m;
    struct doc_table *t = doc_table(
        d, show_id(d, instrument, ""),
        arena_printf(a,
                     "%s " FMT_MINUS " %s, item by item: the error is that of sampling items%s, "
                     "with the trainings as they are.",
                     words_member(instrument, "a"), words_member(instrument, "b"),
                     cluster == NULL ? "" : ", alone and in clusters"),
        columns, ARRAY_LEN(columns));
    const cJSON *measure = NULL;
    cJSON_ArrayForEach(measure, member(instrument, "measures"))
    {
        const char *name = words_member(measure, "measure");
        const cJSON *clustered = member(measure, "clustered");
        const struct json_row paired = {name, member(measure, "paired"), measure};
        doc_row(d, t, &paired);
        /* Only if clusters were declared. */
        if (cluster != NULL && cJSON_IsObject(clustered)) {
            const char *label = arena_printf(a, "%s, in %s clusters by %s", name,
                                             words_count(a, clustered, "n_clusters"), cluster);
            doc_row(d, t, &(struct json_row){label, clustered, measure});
        }
    }
}

/* The lowest or highest cell, with its margin. */
static void end_cell(const struct doc_slot *s)
{
    struct arena *a = s->arena;
    const cJSON *end = member(json_of(s), s->column->key);
    double score = member_number(end, "score");
    double z = member_number(end, "z");
    /* The margin in brackets behind the score. */
    const char *margin = isfinite(z) ? arena_printf(a, " (%s)", fmt_sigma(a, z, 2)) : "";
    doc_number(s,
               isfinite(score) ? arena_printf(a, "%s%s", fmt_fixed(a, score, 4), margin) : FMT_NONE,
               score);
    doc_datum(s, "margin", z);
}

/* A row for each measure with a floor. */
void show_margins(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    static const struct doc_column columns[] = {
        JSON_TEXT("Measure", "measure"),
        JSON_SHORT("Floor", "floor", 5),
        JSON_SIGMA("Floor over chance", "floor_above_chance"),
        {"Lowest cell", ALIGN_NUMBER, end_cell, "lowest", 0, NULL},
        {"Highest cell", ALIGN_NUMBER, end_cell, "highest", 0, NULL},
        JSON_SHORT("Clear", "cleared", 9),
        JSON_SHORT("Open", "open", 9),
        JSON_REMARK,
    };
    (void)m;
    struct doc_table *t =
        doc_table(d, show_id(d, instrument, ""),
                  "How far the cells lie from the floors, in binomial standard errors of the "
                  "score.",
                  columns, ARRAY_LEN(columns));
    json_rows(d, t, member(instrument, "measures"));
}

/* The ratio of the two spreads, for the figure. */
static size_t spread_mark(struct arena *a, const char *label, const cJSON *spread, size_t series,
                          struct plot_row *rows, size_t n)
{
    double value = member_number(spread, "sd") / member_number(spread, "sd_binomial");
    /* A spread without its binomial counterpart cannot be compared. */
    if (n == ROWS_MAX || !isfinite(value)) {
        return n;
    }
    struct plot_mark *mark = arena_alloc(a, sizeof(*mark));
    *mark = (struct plot_mark){.value = value, .low = (double)NAN, .high = (double)NAN};
    mark->tooltip = arena_printf(a, "%s: %s", label, fmt_short(a, value, 3));
    rows[n] = (struct plot_row){.label = label, .series = series, .marks = mark, .n_marks = 1};
    return n + 1;
}

/* One number would not make a figure. */
static void add_spread_figure(struct doc *d, const cJSON *instrument)
{
    struct arena *a = &d->arena;
    struct plot_row *rows = arena_array(a, ROWS_MAX, sizeof(*rows));
    size_t n = 0;
    size_t series = 0;
    const cJSON *measure = NULL;
    cJSON_ArrayForEach(measure, member(instrument, "measures"))
    {
        n = spread_mark(a, words_member(measure, "measure"), member(measure, "whole"), series, rows,
                        n);
        series++;
    }
    if (n < 2) {
        return;
    }
    /* 1 is where sampling alone would put the cells. */
    const struct plot_rule one = {1, "binomial", "zero"};
    struct plot_dots plot = {.head = {.title = "Spread of the cells against sampling",
                                      .desc = "The table has both spreads.",
                                      .x_title = "observed / binomial standard deviation"},
                             .rows = rows,
                             .n_rows = n,
                             .rules = &one,
                             .n_rules = 1,
                             .band_from = (double)NAN};
    const char *caption = "Spread of the cells of a measure as a multiple of what sampling items "
                          "alone would give. Left of the line the cells agree more than "
                          "independent draws would.";
    plot_dots(doc_figure(d, show_id(d, instrument, ""), caption, &plot.head), &plot);
}

/* A measure as a whole, then its conditions. */
void show_dispersion(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    static const struct doc_column columns[] = {
        JSON_LABEL("Cells of"),
        JSON_SHORT("Cells", "n_cells", 9),
        JSON_SHORT("Items", "n_items", 9),
        JSON_SHORT("s.d.", "sd", 3),
        JSON_SHORT("s.d. if binomial", "sd_binomial", 3),
        JSON_SHORT(CHI2, "chi2", 4),
        JSON_SHORT("df", "df", 9),
        JSON_SHORT("P(as tight)", "p_lower", 3),
        JSON_REMARK,
    };
    (void)m;
    struct doc_table *t = doc_table(
        d, show_id(d, instrument, ""),
        "The spread of the cells' scores against that of sampling items. A small P (as tight): the "
        "cells agree more than binomial draws would; near 1: less.",
        columns, ARRAY_LEN(columns));
    const cJSON *measure = NULL;
    cJSON_ArrayForEach(measure, member(instrument, "measures"))
    {
        const char *name = words_member(measure, "measure");
        doc_row(d, t, &(struct json_row){name, member(measure, "whole"), NULL});
        const cJSON *condition = NULL;
        cJSON_ArrayForEach(condition, member(measure, "conditions"))
        {
            const char *label =
                arena_printf(&d->arena, "%s, %s", name, words_member(condition, "condition"));
            doc_row(d, t, &(struct json_row){label, condition, NULL});
        }
    }
    add_spread_figure(d, instrument);
}

/* The difference that shows, by items or by replicates. */
static void difference_cell(const struct doc_slot *s)
{
    show_short(s, member(json_of(s), s->column->key), "difference", 4);
}

/* May be astronomically large: fmt_whole() copes. */
static void needed_cell(const struct doc_slot *s)
{
    const cJSON *items = member(json_of(s), "by_items");
    const double needed = member_number(items, s->column->key);
    doc_number(s, fmt_whole(s->arena, needed), needed);
}

/* One remark for the row; instruments.json has both. */
static void detectable_why(const struct doc_slot *s)
{
    const cJSON *measure = json_of(s);
    const char *by_items = words_or_empty(member(measure, "by_items"), "why");
    s->cell->text =
        by_items[0] != '\0' ? by_items : words_or_empty(member(measure, "by_replicates"), "why");
}

/* Contrasts in the order of the program. */
void show_detectable(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    static const struct doc_column columns[] = {
        JSON_LABEL("Contrast"),
        JSON_TEXT("Measure", "measure"),
        JSON_SIGNED("Observed", "observed", 4),
        {"Detectable, by items", ALIGN_NUMBER, difference_cell, "by_items", 0, NULL},
        {"Detectable, by replicates", ALIGN_NUMBER, difference_cell, "by_replicates", 0, NULL},
        {"Items for the observed", ALIGN_NUMBER, needed_cell, "items_for_observed", 0, NULL},
        COLUMN("Remark", ALIGN_TEXT, detectable_why),
    };
    struct arena *a = &d->arena;
    (void)m;
    struct doc_table *t = doc_table(
        d, show_id(d, instrument, ""),
        arena_printf(a,
                     "The smallest true difference that shows with %s %% power at \xce\xb1 = %s: "
                     "from sampling items at the observed scores, and from the spread of the "
                     "replicates that came. Items for the observed: as many would show a true "
                     "difference of the size that was observed.",
                     fmt_short(a, member_number(instrument, "power") * 100, 3),
                     fmt_short(a, member_number(instrument, "alpha"), 3)),
        columns, ARRAY_LEN(columns));
    const cJSON *contrast = NULL;
    cJSON_ArrayForEach(contrast, member(instrument, "contrasts"))
    {
        const cJSON *measure = NULL;
        cJSON_ArrayForEach(measure, member(contrast, "measures"))
        {
            const char *label = words_member(contrast, "contrast");
            doc_row(d, t, &(struct json_row){label, measure, NULL});
        }
    }
}
