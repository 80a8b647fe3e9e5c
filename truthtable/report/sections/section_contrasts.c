/*
 * The section "Contrasts": forest plots, a table by measure, and a table of pooled figures. All
 * numbers are the verdict's. An interval that does not exist is never drawn or printed as one: its
 * place says why, and the favored side is put in brackets.
 */
#include <math.h>
#include <string.h>

#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/measure_values.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

#define ROWS_MAX ((size_t)80) /* of a figure */

/* What is subtracted from what, and under which pinned levels. */
static const char *sides(struct arena *a, const cJSON *contrast)
{
    const cJSON *between = member(contrast, "between");
    /* A difference of contrasts names its two parts. */
    if (between == NULL) {
        return arena_printf(a, "%s " FMT_MINUS " %s", member_text(contrast, "of"),
                            member_text(contrast, "minus"));
    }
    const char *text = arena_printf(a, "%s: %s " FMT_MINUS " %s", member_text(between, "factor"),
                                    member_text(between, "a"), member_text(between, "b"));
    const cJSON *where = NULL;
    cJSON_ArrayForEach(where, member(contrast, "where"))
    {
        text =
            arena_printf(a, "%s, where %s = %s", text, where->string, cJSON_GetStringValue(where));
    }
    return text;
}

/* Large values need no four decimals. */
static const char *number_text(struct arena *a, double v, int decimals)
{
    return fmt_signed(a, v, fabs(v) >= 100 ? 1 : decimals);
}

/* A figure of the verdict, or the bounds within which it lies, or an em dash. */
static const char *figure_text(struct arena *a, const cJSON *figure, const char *key, int decimals)
{
    double v = member_number(figure, key);
    if (isfinite(v)) {
        return number_text(a, v, decimals);
    }
    const cJSON *bounds = member(figure, arena_printf(a, "%s_bounds", key));
    const cJSON *low = cJSON_GetArrayItem(bounds, 0);
    const cJSON *high = cJSON_GetArrayItem(bounds, 1);
    /* Known only within bounds: a range, or one side of it. */
    if (cJSON_IsNumber(low) && cJSON_IsNumber(high)) {
        return arena_printf(a, "%s to %s", number_text(a, low->valuedouble, decimals),
                            number_text(a, high->valuedouble, decimals));
    }
    if (cJSON_IsNumber(low)) {
        return arena_printf(a, "over %s", number_text(a, low->valuedouble, decimals));
    }
    return cJSON_IsNumber(high)
               ? arena_printf(a, "under %s", number_text(a, high->valuedouble, decimals))
               : FMT_NONE;
}

/* Why something is missing, and which cells were left out of the figure. */
static const char *remark(struct arena *a, const cJSON *figure)
{
    const char *why = member_text(figure, "why");
    size_t n = member_count(figure, "excluded");
    /* Only a reason, or nothing to remark. */
    if (n == 0) {
        return why == NULL ? "" : why;
    }
    const char **cells = arena_array(a, n, sizeof(*cells));
    for (size_t i = 0; i < n; i++) {
        const char *name =
            cJSON_GetStringValue(cJSON_GetArrayItem(member(figure, "excluded"), (int)i));
        cells[i] = name == NULL ? FMT_NONE : name;
    }
    return arena_printf(a, "%s%sexcluded: %s", why == NULL ? "" : why, why == NULL ? "" : "; ",
                        words_join(a, cells, n, ", "));
}

/* Least and most are over pairs, so they bound the mean. */
static void add_pooled(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        {"Contrast", ALIGN_TEXT},      {"Difference", ALIGN_TEXT}, {"Pairs", ALIGN_NUMBER},
        {"Mean", ALIGN_NUMBER},        {"Least", ALIGN_NUMBER},    {"Most", ALIGN_NUMBER},
        {"Largest |d|", ALIGN_NUMBER}, {"Mean |d|", ALIGN_NUMBER}, {"Remark", ALIGN_TEXT}};
    static const char *const keys[] = {"mean", "min", "max", "max_abs", "mean_abs"};
    struct arena *a = &d->arena;
    struct doc_table *t = doc_table(
        d, "contrasts-pooled",
        "Contrasts, pooled over (setting \xc3\x97 measure) pairs with replicates averaged. "
        "\xe2\x80\x9cOver cleared\xe2\x80\x9d takes only the measures that clear under the binding "
        "counter.",
        columns, 9);
    const cJSON *contrast = NULL;
    cJSON_ArrayForEach(contrast, member(m->verdict, "contrasts"))
    {
        const cJSON *pooled = member(contrast, "pooled");
        struct doc_row *row = doc_row(d, t);
        row->cells[0].text = arena_printf(a, "%s, over %s", member_text(contrast, "name"),
                                          member_text(contrast, "over"));
        row->cells[1].text = sides(a, contrast);
        doc_number(d, &row->cells[2], words_count(a, pooled, "n"), member_number(pooled, "n"));
        /* Signed figures for differences, plain ones for sizes. */
        for (size_t i = 0; i < 5; i++) {
            double v = member_number(pooled, keys[i]);
            doc_number(d, &row->cells[3 + i],
                       i < 3 ? figure_text(a, pooled, keys[i], 4) : fmt_fixed(a, v, 4), v);
        }
        row->cells[8].text = remark(a, pooled);
    }
}

/* Which side the mean speaks for, in the measure's own direction, and whether the interval leaves
 * zero out. */
static const char *favours(struct arena *a, const struct report_model *m, const cJSON *contrast,
                           const cJSON *figure)
{
    double mean = member_number(figure, "mean");
    const cJSON *between = member(contrast, "between");
    const char *name = member_text(figure, "measure");
    size_t index = name == NULL ? INDEX_NONE : program_find_measure(m->program, name);
    if (!isfinite(mean) || mean == 0 || between == NULL || index == INDEX_NONE) {
        return FMT_NONE;
    }
    /* A lower loss is better, a higher accuracy is. */
    bool first = (mean > 0) != m->program->measures[index].lower_better;
    const char *level = member_text(between, first ? "a" : "b");
    double low = member_number(figure, "ci_low");
    double high = member_number(figure, "ci_high");
    /* Without an interval nothing is clear. */
    bool clear = isfinite(low) && isfinite(high) && (low > 0 || high < 0);
    return clear ? level : arena_printf(a, "(%s)", level);
}

/* Whether a column of Bayes factors has anything to show. */
static bool any_bayes(const struct report_model *m)
{
    const cJSON *contrast = NULL;
    cJSON_ArrayForEach(contrast, member(m->verdict, "contrasts"))
    {
        const cJSON *figure = NULL;
        cJSON_ArrayForEach(figure, member(contrast, "measures"))
        {
            if (isfinite(member_number(figure, "bf10"))) {
                return true;
            }
        }
    }
    return false;
}

/* Two digits of the standard error, in four to six decimals. */
static int decimals_for(double se)
{
    double digits = se > 0 ? ceil(-log10(se)) + 1 : 4;
    return (int)fmin(fmax(digits, 4), 6);
}

/* One contrast in one measure. */
static void add_measure_row(struct doc *d, const struct report_model *m, struct doc_table *t,
                            const cJSON *contrast, const cJSON *figure)
{
    struct arena *a = &d->arena;
    struct doc_row *row = doc_row(d, t);
    double se = member_number(figure, "se");
    int decimals = decimals_for(se);
    row->cells[0].text = member_text(contrast, "name");
    row->cells[1].text = member_text(figure, "measure");
    doc_number(d, &row->cells[2], words_count(a, figure, "n"), member_number(figure, "n"));
    doc_number(d, &row->cells[3], figure_text(a, figure, "mean", decimals),
               member_number(figure, "mean"));
    doc_number(d, &row->cells[4], fmt_fixed(a, se, decimals), se);
    row->cells[5].text = FMT_NONE;
    if (isfinite(member_number(figure, "ci_low"))) {
        row->cells[5].text = arena_printf(a, "[%s, %s]", figure_text(a, figure, "ci_low", decimals),
                                          figure_text(a, figure, "ci_high", decimals));
    }
    /* Equal replicates are not a narrow interval. */
    if (member_number(figure, "sd") == 0) {
        row->cells[5].text = "no spread seen";
    }
    doc_datum(d, &row->cells[5], "low", member_number(figure, "ci_low"));
    doc_datum(d, &row->cells[5], "high", member_number(figure, "ci_high"));
    /* In the measure's own direction. */
    row->cells[6].text = favours(a, m, contrast, figure);
    row->cells[7].text = remark(a, figure);
    /* The ninth column exists only if some factor is known. */
    if (t->n_columns > 8) {
        double bf10 = member_number(figure, "bf10");
        doc_number(d, &row->cells[8], fmt_short(a, bf10, 4), bf10);
    }
}

/* The main table; Bayes factors come last, since they do not bind. */
static void add_per_measure(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        {"Contrast", ALIGN_TEXT}, {"Measure", ALIGN_TEXT}, {"n", ALIGN_NUMBER},
        {"Mean", ALIGN_NUMBER},   {"s.e.", ALIGN_NUMBER},  {"95 % interval", ALIGN_NUMBER},
        {"Favours", ALIGN_TEXT},  {"Remark", ALIGN_TEXT},  {"BF10", ALIGN_NUMBER}};
    struct doc_table *t =
        doc_table(d, "contrasts",
                  "Contrasts, measure by measure: mean over settings and replicates, standard "
                  "error and t interval over replicates. A favoured level in brackets: the "
                  "interval spans zero or does not exist.",
                  columns, any_bayes(m) ? 9 : 8);
    const cJSON *contrast = NULL;
    cJSON_ArrayForEach(contrast, member(m->verdict, "contrasts"))
    {
        const cJSON *figure = NULL;
        cJSON_ArrayForEach(figure, member(contrast, "measures"))
        {
            add_measure_row(d, m, t, contrast, figure);
        }
    }
}

/* Rows of one figure: one measure, or all shares (measure INDEX_NONE) since they have one scale. */
static size_t rows_for(struct arena *a, const struct report_model *m, size_t measure,
                       struct plot_row *rows)
{
    size_t n = 0;
    size_t k = 0;
    const cJSON *contrast = NULL;
    cJSON_ArrayForEach(contrast, member(m->verdict, "contrasts"))
    {
        const cJSON *figure = NULL;
        cJSON_ArrayForEach(figure, member(contrast, "measures"))
        {
            const char *name = member_text(figure, "measure");
            size_t index = name == NULL ? INDEX_NONE : program_find_measure(m->program, name);
            /* Shares have one scale; other measures are drawn alone. */
            bool wanted = index != INDEX_NONE &&
                          (measure == INDEX_NONE ? measure_is_share(&m->program->measures[index])
                                                 : index == measure);
            if (!wanted || n == ROWS_MAX) {
                continue;
            }
            struct plot_mark *mark = arena_alloc(a, sizeof(*mark));
            *mark = (struct plot_mark){.value = member_number(figure, "mean"),
                                       .low = member_number(figure, "ci_low"),
                                       .high = member_number(figure, "ci_high")};
            const char *label =
                arena_printf(a, "%s \xc2\xb7 %s", member_text(contrast, "name"), name);
            /* The drawing has no numbers of its own; the tooltip has one. */
            mark->tooltip = arena_printf(a, "%s: %s", label, fmt_signed(a, mark->value, 5));
            rows[n++] = (struct plot_row){.label = label, .series = k, .marks = mark, .n_marks = 1};
        }
        k++;
    }
    return n;
}

/* One figure; nothing is drawn if no difference is known. */
static void add_forest(struct doc *d, const struct report_model *m, size_t measure)
{
    struct arena *a = &d->arena;
    struct plot_row *rows = arena_array(a, ROWS_MAX, sizeof(*rows));
    size_t n = rows_for(a, m, measure, rows);
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        any = any || isfinite(rows[i].marks[0].value);
    }
    /* Every difference is undetermined: the tables say why. */
    if (!any) {
        return;
    }
    const char *of =
        measure == INDEX_NONE ? "the benchmark measures" : m->program->measures[measure].name;
    const char *id = NULL;
    const char *caption =
        arena_printf(a, "Contrasts on %s: mean difference and 95 %% interval over replicates.%s",
                     of, n == ROWS_MAX ? " Cut: the table has them all." : "");
    const char *summary = "The table of contrasts has the figures, measure by measure.";
    struct doc_figure *f =
        doc_figure(d, arena_printf(a, "contrasts-%s", measure == INDEX_NONE ? "shares" : of),
                   caption, summary, &id);
    struct plot_rule zero = {0, "no difference", "zero"};
    struct plot_dots plot = {.head = {.id = id,
                                      .title = arena_printf(a, "Contrasts on %s", of),
                                      .desc = summary,
                                      .x_title = "difference, a " FMT_MINUS " b"},
                             .rows = rows,
                             .n_rows = n,
                             .rules = &zero,
                             .n_rules = 1,
                             .band_from = (double)NAN};
    plot_dots(&f->svg, &plot);
}

/* Proportions share a figure, other measures have one each. */
void section_contrasts(struct doc *d, const struct report_model *m)
{
    const struct plan_program *p = m->program;
    doc_section(d, "contrasts", "Contrasts");
    if (member_count(m->verdict, "contrasts") == 0) {
        doc_paragraph(d, "The program names no contrast.");
        return;
    }
    add_forest(d, m, INDEX_NONE);
    for (size_t i = 0; i < p->n_measures; i++) {
        if (!measure_is_share(&p->measures[i])) {
            add_forest(d, m, i);
        }
    }
    add_per_measure(d, m);
    add_pooled(d, m);
}
