/*
 * Shows a connector instrument: the ladder of two rungs and its case, the gap in loss as a whole,
 * by source and by setting, the benchmarks, and the trigger. The limit of identification, if there
 * is one, comes before any figure.
 */
#include <math.h>
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/sections/instrument_blocks.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/sections/row_columns.h"
#include "truthtable/report/verdict_words.h"

#define ROWS_MAX ((size_t)40)
#define ARROW    "\xe2\x86\x92"

/* A share as a signed percentage. */
static const char *percent(struct arena *a, double share)
{
    return isfinite(share) ? arena_printf(a, "%s %%", fmt_signed(a, share * 100, 1)) : FMT_NONE;
}

struct rung_row {
    struct json_row json; /* the object that says what it shows */
    const char *reads;
    const char *favours;
};

/* The arm that the loss rung favours is the one that is not worse. */
static const char *loss_favours(const cJSON *instrument)
{
    const char *worse = member_text(member(instrument, "loss"), "worse");
    const char *a = words_member(instrument, "a");
    return worse == NULL ? FMT_NONE : strcmp(worse, a) == 0 ? words_member(instrument, "b") : a;
}

/* The upper rung first, as a ladder is drawn. */
static void add_ladder(struct doc *d, const cJSON *instrument)
{
    static const struct show_words words = {"shows a difference", "shows none", "undetermined"};
    static const struct doc_column columns[] = {
        JSON_LABEL("Rung"),
        ROW_TEXT("It reads", struct rung_row, reads),
        JSON_FLAG("Shows", "shows", &words),
        ROW_TEXT("Favours", struct rung_row, favours),
    };
    struct arena *a = &d->arena;
    const cJSON *loss = member(instrument, "loss");
    const cJSON *benchmarks = member(instrument, "benchmarks");
    const char *case_name = member_text(instrument, "case");
    struct doc_table *t =
        doc_table(d, show_id(d, instrument, "ladder"),
                  arena_printf(a, "The ladder of two rungs, and where the gap shows: %s %s %s",
                               case_name == NULL ? "no case of the four" : case_name, ARROW,
                               words_member(instrument, "case_why")),
                  columns, ARRAY_LEN(columns));
    const cJSON *clears = member(benchmarks, "clears_any");
    /* A gap that does not show favors neither arm. */
    const bool loss_shows = cJSON_IsTrue(member(loss, "shows"));
    const struct rung_row rungs[] = {
        {.json = {.label = "2 \xc2\xb7 benchmarks", .of = benchmarks},
         .reads = cJSON_IsTrue(clears)    ? "benchmarks; some clear their floors"
                  : cJSON_IsFalse(clears) ? "benchmarks; none clears its floor"
                                          : "benchmarks",
         .favours = member_text(benchmarks, "favours")},
        {.json = {.label = "1 \xc2\xb7 loss", .of = loss},
         .reads =
             arena_printf(a, "%s: a gap of %s nats, %s perplexity", words_member(loss, "measure"),
                          fmt_signed(a, member_number(loss, "gap"), 4),
                          percent(a, member_number(loss, "inflation"))),
         .favours = loss_shows ? loss_favours(instrument) : NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rungs); i++) {
        /* Showing a difference is a finding in either direction. */
        const bool shows = cJSON_IsTrue(member(rungs[i].json.of, "shows"));
        doc_row(d, t, &rungs[i])->tone = shows ? TONE_GOOD : TONE_PLAIN;
    }
}

/* What the gap means for perplexity. */
static void inflation_cell(const struct doc_slot *s)
{
    const double inflation = member_number(json_of(s), s->column->key);
    doc_number(s, percent(s->arena, inflation), inflation);
}

/* A gap with its interval. */
static const struct show_words yes_or_no = {"yes", "no", "undetermined"};
static const struct doc_column gap_columns[] = {
    JSON_LABEL("Of"),
    JSON_ESTIMATE("Gap, nats", "gap"),
    JSON_INTERVAL("95 % interval"),
    {"Perplexity", ALIGN_NUMBER, inflation_cell, "inflation", 0, NULL},
    JSON_TEXT("Worse", "worse"),
    JSON_FLAG("Shows", "shows", &yes_or_no),
    JSON_REMARK,
};

static void no_cell(const struct doc_slot *s)
{
    s->cell->text = FMT_NONE;
}

/* The verdict has intervals over all settings together, not for one. */
static void setting_why(const struct doc_slot *s)
{
    const bool is_known = isfinite(member_number(json_of(s), "gap"));
    s->cell->text = is_known ? "no interval of one setting alone" : "undetermined";
}

/* One setting's gap, in the columns of gap_fields. */
static const struct doc_column setting_columns[ARRAY_LEN(gap_columns)] = {
    JSON_LABEL("Of"),
    {"Gap, nats", ALIGN_NUMBER, json_cell_value, "gap", 0, NULL},
    COLUMN("95 % interval", ALIGN_NUMBER, no_cell),
    {"Perplexity", ALIGN_NUMBER, inflation_cell, "inflation", 0, NULL},
    COLUMN("Worse", ALIGN_TEXT, no_cell),
    COLUMN("Shows", ALIGN_TEXT, no_cell),
    COLUMN("Remark", ALIGN_TEXT, setting_why),
};

/* The list's first element; NULL if it has only one, which equals the whole. */
static const cJSON *first_of_many(const cJSON *list)
{
    return cJSON_GetArraySize(list) > 1 ? list->child : NULL;
}

/* The whole, then sources, then settings. */
static void add_gaps(struct doc *d, const cJSON *instrument)
{
    struct arena *a = &d->arena;
    struct doc_table *t = doc_table(
        d, show_id(d, instrument, "gaps"),
        arena_printf(a,
                     "The gap in loss, %s " FMT_MINUS " %s, whole and by source; perplexity: what "
                     "the gap multiplies it by, less one. The sources agree in sign: %s.",
                     words_member(instrument, "a"), words_member(instrument, "b"),
                     cJSON_IsTrue(member(instrument, "sources_agree"))    ? "yes"
                     : cJSON_IsFalse(member(instrument, "sources_agree")) ? "NO"
                                                                          : "not known"),
        gap_columns, ARRAY_LEN(gap_columns));
    const struct json_row whole = {"whole", member(instrument, "loss"), NULL};
    doc_row(d, t, &whole);
    const cJSON *part = NULL;
    cJSON_ArrayForEach(part, member(instrument, "sources"))
    {
        const struct json_row row = {words_member(part, "source"), part, NULL};
        doc_row(d, t, &row);
    }
    /* A single setting would repeat the whole. */
    for (part = first_of_many(member(instrument, "settings")); part != NULL; part = part->next) {
        const char *label = arena_printf(a, "whole, at %s", words_member(part, "setting"));
        doc_row_by(d, t, setting_columns, &(struct json_row){label, part, NULL});
    }
}

/* Adds a gap to the figure, if it is known and there is room. */
static size_t figure_row(struct arena *a, const cJSON *gap, const char *label,
                         struct plot_row *rows, size_t n)
{
    double value = member_number(gap, "gap");
    if (n == ROWS_MAX || !isfinite(value)) {
        return n;
    }
    struct plot_mark *mark = arena_alloc(a, sizeof(*mark));
    *mark = (struct plot_mark){.value = value,
                               .low = member_number(gap, "ci_low"),
                               .high = member_number(gap, "ci_high"),
                               .tooltip =
                                   arena_printf(a, "%s: %s nats", label, fmt_signed(a, value, 4))};
    rows[n] =
        (struct plot_row){.label = label, .series = n == 0 ? 0 : 1, .marks = mark, .n_marks = 1};
    return n + 1;
}

/* Nothing is drawn for a single gap. */
static void add_figure(struct doc *d, const cJSON *instrument)
{
    struct arena *a = &d->arena;
    struct plot_row *rows = arena_array(a, ROWS_MAX, sizeof(*rows));
    size_t n = figure_row(a, member(instrument, "loss"), "whole", rows, 0);
    const cJSON *source = NULL;
    cJSON_ArrayForEach(source, member(instrument, "sources"))
    {
        n = figure_row(a, source, words_member(source, "source"), rows, n);
    }
    if (n < 2) { /* a single number needs no figure */
        return;
    }
    const struct plot_rule zero = {0, "no gap", "zero"};
    struct plot_dots plot = {.head = {.title = "Gap in loss by source",
                                      .desc = "The table has the gaps.",
                                      .x_title = arena_printf(a, "nats, %s " FMT_MINUS " %s",
                                                              words_member(instrument, "a"),
                                                              words_member(instrument, "b"))},
                             .rows = rows,
                             .n_rows = n,
                             .rules = &zero,
                             .n_rules = 1,
                             .band_from = (double)NAN};
    const char *caption =
        "The gap in loss, whole and by source, with 95 % intervals over replicates.";
    plot_dots(doc_figure(d, show_id(d, instrument, "gaps"), caption, &plot.head), &plot);
}

/* The upper rung, measure by measure. */
static void add_benchmarks(struct doc *d, const cJSON *instrument)
{
    static const struct doc_column columns[] = {
        JSON_TEXT("Measure", "measure"),
        JSON_FLAG("Clears", "clears", &yes_or_no),
        {"Difference", ALIGN_NUMBER, json_cell_value, "difference", 0, NULL},
        JSON_INTERVAL("95 % interval"),
        JSON_FLAG("Shows", "shows", &yes_or_no),
        JSON_TEXT("Favours", "favours"),
        JSON_REMARK,
    };
    const cJSON *measures = member(member(instrument, "benchmarks"), "measures");
    if (cJSON_GetArraySize(measures) == 0) {
        return;
    }
    struct doc_table *t = doc_table(
        d, show_id(d, instrument, "benchmarks"),
        "The benchmark rung. A measure below its floor shows nothing, whatever its difference.",
        columns, ARRAY_LEN(columns));
    json_rows(d, t, measures);
}

/* One sentence, only if a trigger was declared. */
static void add_trigger(struct doc *d, const cJSON *trigger)
{
    const cJSON *fires = member(trigger, "fires");
    if (!cJSON_IsObject(trigger)) {
        return;
    }
    struct arena *a = &d->arena;
    const char *condition = member_text(trigger, "condition");
    const double least = member_number(trigger, "perplexity_ratio");
    const char *what =
        arena_printf(a, "a ratio of %s", fmt_short(a, member_number(trigger, "ratio"), 4));
    if (isfinite(least)) {
        what = arena_printf(a, "%s against %s", what, fmt_short(a, least, 4));
    }
    if (condition != NULL) {
        what = arena_printf(a, "%s, and the condition %s: %s", what, condition,
                            cJSON_IsTrue(member(trigger, "holds"))    ? "holds"
                            : cJSON_IsFalse(member(trigger, "holds")) ? "does not hold"
                                                                      : "cannot be read");
    }
    doc_paragraph(
        d, "Perplexity divergence, suggestive and not binding: %s, so the trigger %s.%s%s", what,
        cJSON_IsTrue(fires)    ? "FIRES"
        : cJSON_IsFalse(fires) ? "does not fire"
                               : "cannot be read",
        words_or_empty(trigger, "why")[0] == '\0' ? "" : " ", words_or_empty(trigger, "why"));
}

/* A share as a percentage, with its error where there is one. */
static void share_cell(const struct doc_slot *s)
{
    const double share = member_number(json_of(s), "share");
    const double se = member_number(json_of(s), "share_se");
    const char *text = percent(s->arena, share);
    if (isfinite(share) && isfinite(se)) {
        text = arena_printf(s->arena, "%s \xc2\xb1 %s", text, fmt_short(s->arena, 100 * se, 2));
    }
    doc_number(s, text, share);
}

/* How much of the whole gap each source makes, by its weight in the mix. */
static void add_shares(struct doc *d, const cJSON *instrument)
{
    static const struct doc_column columns[] = {
        JSON_TEXT("Source", "source"),
        {"Weight in the mix", ALIGN_NUMBER, json_cell_value, "weight", 0, NULL},
        {"Gap, nats", ALIGN_NUMBER, json_cell_value, "gap", 0, NULL},
        {"Share of the whole gap", ALIGN_NUMBER, share_cell, "share", 0, NULL},
        JSON_TEXT("Remark", "share_why"),
    };
    const cJSON *sources = member(instrument, "sources");
    const double rest = member_number(instrument, "sources_rest");
    if (cJSON_GetArraySize(sources) == 0 || member(sources->child, "share") == NULL) {
        return; /* an earlier version wrote it */
    }
    struct doc_table *t = doc_table(
        d, show_id(d, instrument, "shares"),
        arena_printf(
            &d->arena,
            "The share of each source in the whole gap: its weight times its gap, over the "
            "whole one, \xc2\xb1 its standard error over replicates. Of other sources, or "
            "of rounding: %s.",
            percent(&d->arena, rest)),
        columns, ARRAY_LEN(columns));
    json_rows(d, t, sources);
}

/* The case first, then the evidence for it. */
void show_connector(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    const char *limit = member_text(instrument, "limit");
    (void)m;
    add_ladder(d, instrument);
    if (limit != NULL) {
        doc_notice(d, TONE_WARN, "Limit of identification: %s", limit);
    }
    add_figure(d, instrument);
    add_gaps(d, instrument);
    add_shares(d, instrument);
    add_benchmarks(d, instrument);
    add_trigger(d, member(instrument, "trigger"));
}
