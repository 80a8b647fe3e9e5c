/*
 * Shows what sampling and design leave open, for the instruments items, margins, dispersion and
 * detectable. Each is one table with a remark where a figure is undetermined; dispersion also gets
 * a figure, the ratio of the observed spread to the binomial one. Nothing is computed here but that
 * ratio.
 */
#include <math.h>
#include <string.h>

#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/sections/instrument_blocks.h"
#include "truthtable/report/verdict_words.h"

#define ROWS_MAX ((size_t)60)
#define SIGMA    "\xcf\x83"
#define CHI2     "\xcf\x87\xc2\xb2"

/* One error of one measure: paired, or in clusters. */
static void item_row(struct doc *d, struct doc_table *t, const char *name, const cJSON *measure,
                     const cJSON *error)
{
    struct doc_row *row = doc_row(d, t);
    row->cells[0].text = name;
    show_short(d, &row->cells[1], measure, "n_items", 9);
    show_short(d, &row->cells[2], measure, "n_pairs", 9);
    show_short(d, &row->cells[3], measure, "left_out", 9);
    show_estimate(d, &row->cells[4], member_number(error, "mean"), member_number(error, "se"));
    show_interval(d, &row->cells[5], error);
    /* The measure's reason explains more than that of one error. */
    row->cells[6].text = show_why(measure)[0] != '\0' ? show_why(measure) : show_why(error);
}

/* A second row for clusters, where they were declared. */
void show_items(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    static const struct doc_column columns[] = {
        {"Measure", ALIGN_TEXT},    {"Items", ALIGN_NUMBER},      {"Pairs of cells", ALIGN_NUMBER},
        {"Left out", ALIGN_NUMBER}, {"Difference", ALIGN_NUMBER}, {"95 % interval", ALIGN_NUMBER},
        {"Remark", ALIGN_TEXT}};
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
        columns, 7);
    const cJSON *measure = NULL;
    cJSON_ArrayForEach(measure, member(instrument, "measures"))
    {
        const char *name = words_member(measure, "measure");
        const cJSON *clustered = member(measure, "clustered");
        item_row(d, t, name, measure, member(measure, "paired"));
        /* Only if clusters were declared. */
        if (cluster != NULL && cJSON_IsObject(clustered)) {
            item_row(d, t,
                     arena_printf(a, "%s, in %s clusters by %s", name,
                                  words_count(a, clustered, "n_clusters"), cluster),
                     measure, clustered);
        }
    }
}

/* The lowest or highest cell, with its margin. */
static void end_cell(struct doc *d, struct doc_cell *cell, const cJSON *end)
{
    struct arena *a = &d->arena;
    double score = member_number(end, "score");
    double z = member_number(end, "z");
    /* The margin in brackets behind the score. */
    const char *margin = isfinite(z) ? arena_printf(a, " (%s" SIGMA ")", fmt_signed(a, z, 2)) : "";
    doc_number(d, cell,
               isfinite(score) ? arena_printf(a, "%s%s", fmt_fixed(a, score, 4), margin) : FMT_NONE,
               score);
    doc_datum(d, cell, "margin", z);
}

/* A row for each measure with a floor. */
void show_margins(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    static const struct doc_column columns[] = {{"Measure", ALIGN_TEXT},
                                                {"Floor", ALIGN_NUMBER},
                                                {"Floor over chance", ALIGN_NUMBER},
                                                {"Lowest cell", ALIGN_NUMBER},
                                                {"Highest cell", ALIGN_NUMBER},
                                                {"Clear", ALIGN_NUMBER},
                                                {"Open", ALIGN_NUMBER},
                                                {"Remark", ALIGN_TEXT}};
    struct arena *a = &d->arena;
    (void)m;
    struct doc_table *t = doc_table(d, show_id(d, instrument, ""),
                                    "How far the cells lie from the floors, in binomial standard "
                                    "errors of the score.",
                                    columns, 8);
    const cJSON *measure = NULL;
    cJSON_ArrayForEach(measure, member(instrument, "measures"))
    {
        /* Chance may be unknown; the floor's height then is, too. */
        double height = member_number(measure, "floor_above_chance");
        struct doc_row *row = doc_row(d, t);
        row->cells[0].text = words_member(measure, "measure");
        show_short(d, &row->cells[1], measure, "floor", 5);
        doc_number(d, &row->cells[2],
                   isfinite(height) ? arena_printf(a, "%s" SIGMA, fmt_signed(a, height, 2))
                                    : FMT_NONE,
                   height);
        end_cell(d, &row->cells[3], member(measure, "lowest"));
        end_cell(d, &row->cells[4], member(measure, "highest"));
        show_short(d, &row->cells[5], measure, "cleared", 9);
        show_short(d, &row->cells[6], measure, "open", 9);
        row->cells[7].text = show_why(measure);
    }
}

/* Observed and binomial spread of a group of cells. */
static void spread_row(struct doc *d, struct doc_table *t, const char *of, const cJSON *spread)
{
    struct doc_row *row = doc_row(d, t);
    row->cells[0].text = of;
    show_short(d, &row->cells[1], spread, "n_cells", 9);
    show_short(d, &row->cells[2], spread, "n_items", 9);
    show_short(d, &row->cells[3], spread, "sd", 3);
    show_short(d, &row->cells[4], spread, "sd_binomial", 3);
    show_short(d, &row->cells[5], spread, "chi2", 4);
    show_short(d, &row->cells[6], spread, "df", 9);
    show_short(d, &row->cells[7], spread, "p_lower", 3);
    row->cells[8].text = show_why(spread);
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
    const char *id = NULL;
    const char *summary = "The table has both spreads.";
    struct doc_figure *f =
        doc_figure(d, show_id(d, instrument, ""),
                   "Spread of the cells of a measure as a multiple of what sampling items alone "
                   "would give. Left of the line the cells agree more than independent draws "
                   "would.",
                   summary, &id);
    /* 1 is where sampling alone would put the cells. */
    const struct plot_rule one = {1, "binomial", "zero"};
    struct plot_dots plot = {.head = {.id = id,
                                      .title = "Spread of the cells against sampling",
                                      .desc = summary,
                                      .x_title = "observed / binomial standard deviation"},
                             .rows = rows,
                             .n_rows = n,
                             .rules = &one,
                             .n_rules = 1,
                             .band_from = (double)NAN};
    plot_dots(&f->svg, &plot);
}

/* A measure as a whole, then its conditions. */
void show_dispersion(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    static const struct doc_column columns[] = {{"Cells of", ALIGN_TEXT},
                                                {"Cells", ALIGN_NUMBER},
                                                {"Items", ALIGN_NUMBER},
                                                {"s.d.", ALIGN_NUMBER},
                                                {"s.d. if binomial", ALIGN_NUMBER},
                                                {CHI2, ALIGN_NUMBER},
                                                {"df", ALIGN_NUMBER},
                                                {"P(as tight)", ALIGN_NUMBER},
                                                {"Remark", ALIGN_TEXT}};
    (void)m;
    struct doc_table *t = doc_table(
        d, show_id(d, instrument, ""),
        "The spread of the cells' scores against that of sampling items. A small P (as tight): the "
        "cells agree more than binomial draws would; near 1: less.",
        columns, 9);
    const cJSON *measure = NULL;
    cJSON_ArrayForEach(measure, member(instrument, "measures"))
    {
        const char *name = words_member(measure, "measure");
        spread_row(d, t, name, member(measure, "whole"));
        const cJSON *condition = NULL;
        cJSON_ArrayForEach(condition, member(measure, "conditions"))
        {
            spread_row(
                d, t, arena_printf(&d->arena, "%s, %s", name, words_member(condition, "condition")),
                condition);
        }
    }
    add_spread_figure(d, instrument);
}

/* One contrast in one measure. */
static void detectable_row(struct doc *d, struct doc_table *t, const char *contrast,
                           const cJSON *measure)
{
    const cJSON *items = member(measure, "by_items");
    const cJSON *replicates = member(measure, "by_replicates");
    double observed = member_number(measure, "observed");
    struct doc_row *row = doc_row(d, t);
    row->cells[0].text = contrast;
    row->cells[1].text = words_member(measure, "measure");
    doc_number(d, &row->cells[2], fmt_signed(&d->arena, observed, 4), observed);
    show_short(d, &row->cells[3], items, "difference", 4);
    show_short(d, &row->cells[4], replicates, "difference", 4);
    /* May be astronomically large: fmt_whole() copes. */
    double needed = member_number(items, "items_for_observed");
    doc_number(d, &row->cells[5], fmt_whole(&d->arena, needed), needed);
    /* One remark for the row; instruments.json has both. */
    row->cells[6].text = show_why(items)[0] != '\0' ? show_why(items) : show_why(replicates);
}

/* Contrasts in the order of the program. */
void show_detectable(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    static const struct doc_column columns[] = {{"Contrast", ALIGN_TEXT},
                                                {"Measure", ALIGN_TEXT},
                                                {"Observed", ALIGN_NUMBER},
                                                {"Detectable, by items", ALIGN_NUMBER},
                                                {"Detectable, by replicates", ALIGN_NUMBER},
                                                {"Items for the observed", ALIGN_NUMBER},
                                                {"Remark", ALIGN_TEXT}};
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
        columns, 7);
    const cJSON *contrast = NULL;
    cJSON_ArrayForEach(contrast, member(instrument, "contrasts"))
    {
        const cJSON *measure = NULL;
        cJSON_ArrayForEach(measure, member(contrast, "measures"))
        {
            detectable_row(d, t, words_member(contrast, "contrast"), measure);
        }
    }
}
