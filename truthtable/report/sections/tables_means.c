/*
 * Two tables over all conditions, from instruments.json: every measure's mean with its standard
 * error and interval, and how the levels of a factor rank by each measure. They are part of the
 * section of measures, and left out where instruments.json has none.
 */
#include <math.h>
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/measure_values.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

#define ROWS_MAX 2000 /* more are for `preregctl report --csv` */

/* "1.5788 ± 0.0020": a mean is not a difference and has no sign. */
static void mean_cell(const struct doc_slot *s)
{
    const double mean = member_number(json_of(s), "mean");
    const double se = member_number(json_of(s), "se");
    const char *text = !isfinite(mean) ? FMT_NONE
                       : se > 0        ? fmt_with_error(s->arena, mean, se)
                                       : fmt_short(s->arena, mean, 5);
    doc_number(s, text, mean);
    doc_datum(s, "se", se);
}

static void interval_cell(const struct doc_slot *s)
{
    const double low = member_number(json_of(s), "ci_low");
    const double high = member_number(json_of(s), "ci_high");
    static const struct plan_measure any = {0};
    s->cell->text =
        isfinite(low) && isfinite(high)
            ? arena_printf(s->arena, "[%s, %s]", measure_score_text(s->arena, &any, low),
                           measure_score_text(s->arena, &any, high))
            : FMT_NONE;
    doc_datum(s, "low", low);
    doc_datum(s, "high", high);
}

/* Whether a list has rows, and few enough; a sentence where it has more. */
static bool is_shown(struct doc *d, const cJSON *list, const char *what)
{
    const int n = cJSON_GetArraySize(list);
    if (n > ROWS_MAX) {
        doc_paragraph(d, "%s: %d rows, which `preregctl report --csv` writes.", what, n);
    }
    return n > 0 && n <= ROWS_MAX;
}

static void add_means(struct doc *d, const cJSON *list)
{
    static const struct doc_column columns[] = {
        JSON_TEXT("Measure", "measure"),
        JSON_TEXT("Condition", "condition"),
        {"Mean", ALIGN_NUMBER, mean_cell, "mean", 0, NULL},
        COLUMN("95 % interval", ALIGN_NUMBER, interval_cell),
        JSON_COUNT("n", "n"),
        JSON_REMARK,
    };
    if (is_shown(d, list, "Means of conditions")) {
        struct doc_table *t = doc_table(d, "means",
                                        "Every measure in every condition: mean and standard "
                                        "error over replicates, with the 95 % t interval.",
                                        columns, ARRAY_LEN(columns));
        json_rows(d, t, list);
    }
}

/* "moe256 > dense = moe64": a tie shares a rank. */
static void order_cell(const struct doc_slot *s)
{
    const cJSON *level = NULL;
    const char *text = "";
    double last = 0;
    cJSON_ArrayForEach(level, member(json_of(s), "order"))
    {
        const double rank = member_number(level, "rank");
        const char *between = text[0] == '\0' ? "" : rank > last ? " > " : " = ";
        text = arena_printf(s->arena, "%s%s%s", text, between, words_member(level, "level"));
        last = rank;
    }
    s->cell->text = text[0] == '\0' ? FMT_NONE : text;
}

/* "0.1457 · 0.0609 · 0.0519", in the same order. */
static void order_means_cell(const struct doc_slot *s)
{
    const cJSON *level = NULL;
    const char *text = "";
    cJSON_ArrayForEach(level, member(json_of(s), "order"))
    {
        text = arena_printf(s->arena, "%s%s%s", text, text[0] == '\0' ? "" : " \xc2\xb7 ",
                            fmt_short(s->arena, member_number(level, "mean"), 5));
    }
    s->cell->text = text[0] == '\0' ? FMT_NONE : text;
}

static void add_ranks(struct doc *d, const cJSON *list)
{
    static const struct doc_column columns[] = {
        JSON_TEXT("Measure", "measure"),
        JSON_TEXT("Setting", "setting"),
        JSON_TEXT("Levels of", "factor"),
        COLUMN("Best first", ALIGN_TEXT, order_cell),
        COLUMN("Means", ALIGN_TEXT, order_means_cell),
        JSON_REMARK,
    };
    if (is_shown(d, list, "Ranks of levels")) {
        struct doc_table *t = doc_table(
            d, "ranks",
            "How the levels of each compared factor rank by their means, at every setting of the "
            "other factors. A rank says nothing of how far apart they are, or how surely.",
            columns, ARRAY_LEN(columns));
        json_rows(d, t, list);
    }
}

void tables_means(struct doc *d, const struct report_model *m)
{
    add_means(d, member(m->instruments, "means"));
    add_ranks(d, member(m->instruments, "ranks"));
}
