/*
 * The section "Instruments": one subsection for each instrument, then the forecasts. This file
 * words what all have in common (title, standing, reading, reason); the show_*.c files show what is
 * particular to a kind. A kind from a later version is named without a picture.
 */
#include <string.h>

#include "base/xalloc.h"
#include "prereg/program/condition_names.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/instrument_blocks.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

static const struct instrument_kind_row {
    const char *kind;
    const char *title;
    void (*show)(struct doc *d, const struct report_model *m, const cJSON *instrument);
} kinds[] = {
    {"anchors", "Anchors: other models' scores", show_anchors},
    {"apparatus", "Apparatus check", NULL}, /* its table is under Apparatus */
    {"bayes", "Bayes factors", show_bayes},
    {"connector", "Connector: on which rung the gap shows", show_connector},
    {"course", "Course of a gap over the run", show_course},
    {"detectable", "Detectable differences", show_detectable},
    {"dispersion", "Dispersion of the cells", show_dispersion},
    {"items", "Item by item", show_items},
    {"margins", "Margins to the floors", show_margins},
    {"mixed", "Mixed model", show_mixed},
    {"router", "Router health, as a vector", show_router},
};

/* NULL for a kind that this version does not know. */
static const struct instrument_kind_row *kind_of(const cJSON *instrument)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].kind, words_member(instrument, "kind")) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* Declared or changed after scores were seen. */
static bool is_post_hoc(const cJSON *instrument)
{
    return strstr(words_member(instrument, "declared"), "post hoc") != NULL;
}

/* "Mixed model: supplementary (discussion only)". */
static const char *title_of(struct arena *a, const cJSON *instrument,
                            const struct instrument_kind_row *kind)
{
    const char *name = words_member(instrument, "name");
    const char *title = kind == NULL ? words_member(instrument, "kind") : kind->title;
    bool named = strcmp(name, words_member(instrument, "kind")) != 0;
    return arena_printf(a, "%s%s%s%s%s", title, named ? " \xc2\xb7 " : "", named ? name : "",
                        cJSON_IsTrue(member(instrument, "discussion_only")) ? " (discussion only)"
                                                                            : "",
                        is_post_hoc(instrument) ? " (POST HOC)" : "");
}

/* A notice for what is discussion only, post hoc or amended. */
static void add_standing(struct doc *d, const cJSON *instrument)
{
    if (cJSON_IsTrue(member(instrument, "discussion_only"))) {
        doc_notice(d, TONE_PLAIN,
                   is_post_hoc(instrument)
                       ? "Discussion only: matter for discussion, and nothing more."
                       : "Discussion only: declared in advance as matter for discussion, and as "
                         "nothing more.");
    }
    if (is_post_hoc(instrument)) {
        doc_notice(d, TONE_WARN,
                   "Post hoc: declared or changed by an amendment after scores had been seen.");
    } else if (strcmp(words_member(instrument, "declared"), "amended") == 0) {
        doc_paragraph(d, "Declared or changed by an amendment, before anyone had seen scores.");
    }
}

/* Title, standing, what it is, how it reads, and why it is undetermined. */
static void add_instrument(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    const struct instrument_kind_row *kind = kind_of(instrument);
    const char *what = member_text(instrument, "what");
    const char *reading = member_text(instrument, "reading");
    const char *why = member_text(instrument, "why");
    doc_subsection(d, title_of(&d->arena, instrument, kind));
    add_standing(d, instrument);
    if (what != NULL) {
        doc_paragraph(d, "%s", what);
    }
    if (reading != NULL) {
        doc_notice(d, TONE_PLAIN, "%s", reading);
    }
    if (why != NULL) {
        doc_notice(d, TONE_WARN, "Undetermined: %s.", why);
    }
    /* An instrument of a later version: its words are still shown. */
    if (kind == NULL) {
        doc_paragraph(d, "This version of preregd has no picture of that kind of instrument; its "
                         "figures are in instruments.json.");
    } else if (kind->show != NULL && why == NULL) {
        kind->show(d, m, instrument);
    } else if (kind->show == NULL) {
        doc_paragraph(d, "The table is under Apparatus.");
    }
}

/* A forecast that was amended says so beside its name. */
static void forecast_name(const struct doc_slot *s)
{
    const cJSON *forecast = json_of(s);
    const char *name = words_member(forecast, s->column->key);
    const char *declared = member_text(forecast, "declared");
    const bool as_locked = declared == NULL || strcmp(declared, "locked") == 0;
    s->cell->text = as_locked ? name : arena_printf(s->arena, "%s (%s)", name, declared);
}

static void forecast_outcome(const struct doc_slot *s)
{
    const cJSON *outcome = member(json_of(s), s->column->key);
    json_cell_flag(s);
    s->cell->tone = cJSON_IsTrue(outcome)    ? TONE_GOOD
                    : cJSON_IsFalse(outcome) ? TONE_PLAIN
                                             : TONE_WARN;
}

/* The table, and the total score below it. */
static void add_forecasts(struct doc *d, const struct report_model *m)
{
    static const struct show_words words = {"came true", "did not", "not known: not scored"};
    static const struct doc_column columns[] = {
        {"Forecast", ALIGN_TEXT, forecast_name, "name", 0, NULL},
        JSON_TEXT("Condition, as stated", "condition"),
        JSON_SHORT("Confidence", "confidence", 4),
        {"Came true?", ALIGN_TEXT, forecast_outcome, "outcome", 0, &words},
        JSON_FIXED("Brier", "brier", 4),
        JSON_FIXED("Bits", "bits", 3),
        {"Why", ALIGN_TEXT, json_cell_words, "why", 0, NULL},
    };
    const cJSON *list = member(m->instruments, "forecasts");
    const cJSON *score = member(m->instruments, "forecast_score");
    if (cJSON_GetArraySize(list) == 0) {
        return;
    }
    doc_subsection(d, "Forecasts");
    struct doc_table *t =
        doc_table(d, "forecasts",
                  "What was forecast, with what confidence, and what came. Brier: the squared "
                  "distance of the confidence from what came (0 is best, 1 worst); bits: its "
                  "surprise.",
                  columns, ARRAY_LEN(columns));
    json_rows(d, t, list);
    doc_paragraph(d, "%s of %s scored: mean Brier %s, %s bits together.",
                  words_count(&d->arena, score, "scored"), words_count(&d->arena, score, "stated"),
                  fmt_fixed(&d->arena, member_number(score, "brier"), 4),
                  fmt_fixed(&d->arena, member_number(score, "bits"), 3));
}

/* Whether something that binds, an input or a validity condition, reads a Bayes factor. */
static bool reads_bf10(const struct plan_program *p)
{
    bool any = false;
    for (size_t i = 0; i < p->n_inputs; i++) {
        for (size_t l = 0; l < p->inputs[i].n_levels; l++) {
            any = any || condition_reads_bf10(p->inputs[i].levels[l].condition.text, NULL);
        }
    }
    for (size_t i = 0; i < p->n_validity; i++) {
        any = any || condition_reads_bf10(p->validity[i].condition.text, NULL);
    }
    return any;
}

/* Without instruments.json the section consists of the reason. */
void section_instruments(struct doc *d, const struct report_model *m)
{
    doc_section(d, "instruments", "Instruments: nothing here binds");
    doc_paragraph(d,
                  "What the data say beside the verdict. The truth table has not read any of it, "
                  "and could not: instruments are computed when the verdict stands.%s",
                  reads_bf10(m->program)
                      ? " Where a condition of the plan reads a bf10, the table has computed it by "
                        "itself from the records and the priors as locked."
                      : "");
    const char *why =
        m->instruments == NULL ? m->instruments_why : member_text(m->instruments, "why");
    if (why != NULL) {
        doc_notice(d, TONE_WARN, "No instrument is shown: %s.", why);
        return;
    }
    const cJSON *instrument = NULL;
    cJSON_ArrayForEach(instrument, member(m->instruments, "instruments"))
    {
        add_instrument(d, m, instrument);
    }
    add_forecasts(d, m);
}
