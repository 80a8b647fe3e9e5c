/*
 * The section "Contrasts": forest plots, a table by measure, and a table of pooled figures. All
 * numbers are the verdict's. An interval that does not exist is never drawn or printed as one: its
 * place says why, and the favored side is put in brackets.
 */
#include <math.h>

#include "base/math/elementary.h"
#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/measure_values.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/sections/row_columns.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

#define ROWS_MAX ((size_t)80) /* of a figure */

/* What is subtracted from what, and under which pinned levels. */
static const char *sides(struct arena *a, const cJSON *contrast)
{
    const cJSON *between = member(contrast, "between");
    /* A difference of contrasts names its two parts. */
    if (between == NULL) {
        return arena_printf(a, "%s " FMT_MINUS " %s", words_member(contrast, "of"),
                            words_member(contrast, "minus"));
    }
    const char *text = arena_printf(a, "%s: %s " FMT_MINUS " %s", words_member(between, "factor"),
                                    words_member(between, "a"), words_member(between, "b"));
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
    const char *why = words_or_empty(figure, "why");
    size_t n = member_count(figure, "excluded");
    /* Only a reason, or nothing to remark. */
    if (n == 0) {
        return why;
    }
    const char **cells = arena_array(a, n, sizeof(*cells));
    for (size_t i = 0; i < n; i++) {
        const char *name =
            cJSON_GetStringValue(cJSON_GetArrayItem(member(figure, "excluded"), (int)i));
        cells[i] = name == NULL ? FMT_NONE : name;
    }
    return arena_printf(a, "%s%sexcluded: %s", why, why[0] == '\0' ? "" : "; ",
                        words_join(a, cells, n, ", "));
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

/* A figure of a contrast. */
struct contrast_row {
    struct json_row json;
    const char *sides; /* or the one that it favours */
    const char *remark;
};

/* As many decimals as declared; without, two digits of the standard error, in four to six. */
static int decimals_of(const struct doc_slot *s)
{
    const double se = member_number(json_of(s), "se");
    const double digits = se > 0 ? ceil(-elementary_log10(se)) + 1 : 4;
    return s->column->n > 0 ? s->column->n : (int)fmin(fmax(digits, 4), 6);
}

static void figure_cell(const struct doc_slot *s)
{
    const char *key = s->column->key;
    doc_number(s, figure_text(s->arena, json_of(s), key, decimals_of(s)),
               member_number(json_of(s), key));
}

static void error_cell(const struct doc_slot *s)
{
    const double se = member_number(json_of(s), s->column->key);
    doc_number(s, fmt_fixed(s->arena, se, decimals_of(s)), se);
}

static void interval_cell(const struct doc_slot *s)
{
    const cJSON *figure = json_of(s);
    const int decimals = decimals_of(s);
    s->cell->text = FMT_NONE;
    if (isfinite(member_number(figure, "ci_low"))) {
        s->cell->text =
            arena_printf(s->arena, "[%s, %s]", figure_text(s->arena, figure, "ci_low", decimals),
                         figure_text(s->arena, figure, "ci_high", decimals));
    }
    /* Equal replicates are not a narrow interval. */
    if (member_number(figure, "sd") == 0) {
        s->cell->text = "no spread seen";
    }
    doc_datum(s, "low", member_number(figure, "ci_low"));
    doc_datum(s, "high", member_number(figure, "ci_high"));
}

/* Least and most are over pairs, so they bound the mean. Signed figures for differences, plain ones
 * for sizes. */
static void add_pooled(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        JSON_LABEL("Contrast"),
        ROW_TEXT("Difference", struct contrast_row, sides),
        JSON_COUNT("Pairs", "n"),
        {"Mean", ALIGN_NUMBER, figure_cell, "mean", 4, NULL},
        {"Least", ALIGN_NUMBER, figure_cell, "min", 4, NULL},
        {"Most", ALIGN_NUMBER, figure_cell, "max", 4, NULL},
        JSON_FIXED("Largest |d|", "max_abs", 4),
        JSON_FIXED("Mean |d|", "mean_abs", 4),
        ROW_TEXT("Remark", struct contrast_row, remark),
    };
    struct arena *a = &d->arena;
    struct doc_table *t = doc_table(
        d, "contrasts-pooled",
        "Contrasts, pooled over (setting \xc3\x97 measure) pairs with replicates averaged. "
        "\xe2\x80\x9cOver cleared\xe2\x80\x9d takes only the measures that clear under the binding "
        "counter.",
        columns, ARRAY_LEN(columns));
    const cJSON *contrast = NULL;
    cJSON_ArrayForEach(contrast, member(m->verdict, "contrasts"))
    {
        const char *label = arena_printf(a, "%s, over %s", words_member(contrast, "name"),
                                         words_member(contrast, "over"));
        const cJSON *pooled = member(contrast, "pooled");
        const struct contrast_row row = {
            {label, pooled, NULL}, sides(a, contrast), remark(a, pooled)};
        (void)doc_row(d, t, &row);
    }
}

/* The main table. Bayes factors, which do not bind, come last: the column exists only if some
 * factor is known. */
static void add_per_measure(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        JSON_LABEL("Contrast"),
        JSON_TEXT("Measure", "measure"),
        JSON_COUNT("n", "n"),
        {"Mean", ALIGN_NUMBER, figure_cell, "mean", 0, NULL},
        {"s.e.", ALIGN_NUMBER, error_cell, "se", 0, NULL},
        COLUMN("95 % interval", ALIGN_NUMBER, interval_cell),
        ROW_TEXT("Favours", struct contrast_row, sides),
        ROW_TEXT("Remark", struct contrast_row, remark),
        JSON_SHORT("BF10", "bf10", 4),
    };
    struct arena *a = &d->arena;
    struct doc_table *t =
        doc_table(d, "contrasts",
                  "Contrasts, measure by measure: mean over settings and replicates, standard "
                  "error and t interval over replicates. A favoured level in brackets: the "
                  "interval spans zero or does not exist.",
                  columns, ARRAY_LEN(columns) - (any_bayes(m) ? 0 : 1));
    const cJSON *contrast = NULL;
    cJSON_ArrayForEach(contrast, member(m->verdict, "contrasts"))
    {
        const char *name = words_member(contrast, "name");
        const cJSON *figure = NULL;
        cJSON_ArrayForEach(figure, member(contrast, "measures"))
        {
            const struct contrast_row row = {
                {name, figure, NULL}, favours(a, m, contrast, figure), remark(a, figure)};
            (void)doc_row(d, t, &row);
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
                arena_printf(a, "%s \xc2\xb7 %s", words_member(contrast, "name"), name);
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
    const char *caption =
        arena_printf(a, "Contrasts on %s: mean difference and 95 %% interval over replicates.%s",
                     of, n == ROWS_MAX ? " Cut: the table has them all." : "");
    const struct plot_rule zero = {0, "no difference", "zero"};
    struct plot_dots plot = {
        .head = {.title = arena_printf(a, "Contrasts on %s", of),
                 .desc = "The table of contrasts has the figures, measure by measure.",
                 .x_title = "difference, a " FMT_MINUS " b"},
        .rows = rows,
        .n_rows = n,
        .rules = &zero,
        .n_rules = 1,
        .band_from = (double)NAN};
    const char *id = arena_printf(a, "contrasts-%s", measure == INDEX_NONE ? "shares" : of);
    plot_dots(doc_figure(d, id, caption, &plot.head), &plot);
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
