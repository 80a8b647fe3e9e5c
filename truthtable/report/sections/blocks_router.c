/*
 * Shows a router instrument (a vector of health by condition, and which components vary) and an
 * anchors instrument (other models' scores beside ours).
 */
#include <math.h>
#include <string.h>

#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/instrument_blocks.h"
#include "truthtable/report/verdict_words.h"

#define COMPONENTS_MAX ((size_t)10)

/* A mean with the spread over cells, if there is any. */
static void vector_cell(struct doc *d, struct doc_cell *cell, const cJSON *component)
{
    struct arena *a = &d->arena;
    double mean = member_number(component, "mean");
    double sd = member_number(component, "sd");
    const char *text = fmt_short(a, mean, 4);
    /* A pinned component has no spread to print. */
    if (isfinite(mean) && sd > 0) {
        text = arena_printf(a, "%s \xc2\xb1 %s", text, fmt_short(a, sd, 2));
    }
    doc_number(d, cell, text, mean);
    doc_datum(d, cell, "sd", sd);
}

/* Conditions as rows, up to COMPONENTS_MAX components as columns. */
static void add_vectors(struct doc *d, const cJSON *instrument)
{
    const cJSON *components = member(instrument, "components");
    size_t n_all = member_count(instrument, "components");
    size_t n = n_all < COMPONENTS_MAX ? n_all : COMPONENTS_MAX;
    struct doc_column columns[COMPONENTS_MAX + 4] = {{"Condition", ALIGN_TEXT},
                                                     {"Cells", ALIGN_NUMBER}};
    for (size_t i = 0; i < n; i++) {
        const char *name = words_member(cJSON_GetArrayItem(components, (int)i), "name");
        columns[2 + i] =
            (struct doc_column){strncmp(name, "router_", 7) == 0 ? name + 7 : name, ALIGN_NUMBER};
    }
    columns[2 + n] = (struct doc_column){"Effective experts", ALIGN_NUMBER};
    columns[3 + n] = (struct doc_column){"Entropy, share", ALIGN_NUMBER};
    struct doc_table *t =
        doc_table(d, show_id(d, instrument, ""),
                  "The vector of router health by condition, mean \xc2\xb1 standard deviation over "
                  "its cells that have a router.",
                  columns, n + 4);
    const cJSON *condition = NULL;
    cJSON_ArrayForEach(condition, member(instrument, "conditions"))
    {
        struct doc_row *row = doc_row(d, t);
        row->cells[0].text = words_member(condition, "condition");
        show_short(d, &row->cells[1], condition, "n_cells", 9);
        for (size_t i = 0; i < n; i++) {
            vector_cell(d, &row->cells[2 + i],
                        cJSON_GetArrayItem(member(condition, "vector"), (int)i));
        }
        show_short(d, &row->cells[2 + n], condition, "effective_experts", 4);
        show_short(d, &row->cells[3 + n], condition, "entropy_share", 4);
        /* A condition without cells has an empty vector. */
        row->tone = member_number(condition, "n_cells") > 0 ? TONE_PLAIN : TONE_MUTED;
    }
    if (n < n_all) {
        doc_paragraph(d, "Of %zu components the first %zu are shown by condition.", n_all, n);
    }
}

/* Vectors first, then which components carry variance. */
void show_router(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    static const struct doc_column columns[] = {
        {"Component", ALIGN_TEXT},     {"Cells", ALIGN_NUMBER}, {"Least", ALIGN_NUMBER},
        {"Most", ALIGN_NUMBER},        {"Mean", ALIGN_NUMBER},  {"s.d.", ALIGN_NUMBER},
        {"Over the cells", ALIGN_TEXT}};
    static const struct show_words pinned = {"pinned: no variance to fit", "varies", "not known"};
    (void)m;
    add_vectors(d, instrument);
    struct doc_table *t =
        doc_table(d, show_id(d, instrument, "components"),
                  "Which parts of router health vary from cell to cell, and which the design pins.",
                  columns, 7);
    const cJSON *component = NULL;
    cJSON_ArrayForEach(component, member(instrument, "components"))
    {
        static const char *const keys[] = {"n", "min", "max", "mean", "sd"};
        struct doc_row *row = doc_row(d, t);
        row->cells[0].text = words_member(component, "name");
        for (size_t i = 0; i < 5; i++) {
            show_short(d, &row->cells[1 + i], component, keys[i], 5);
        }
        show_flag(d, &row->cells[6], component, "pinned", &pinned);
    }
}

/* One condition beside the anchor; the anchor itself is in the measure's first row. */
static void anchor_row(struct doc *d, struct doc_table *t, const cJSON *measure,
                       const cJSON *condition, bool first)
{
    static const struct show_words clears = {" \xe2\x9c\x93", " \xe2\x9c\x97", ""};
    struct arena *a = &d->arena;
    struct doc_row *row = doc_row(d, t);
    double score = member_number(condition, "score");
    double difference = member_number(condition, "difference");
    /* Anchor and floor are printed once for the measure. */
    if (first) {
        double floor = member_number(measure, "floor");
        row->cells[0].text = words_member(measure, "measure");
        show_short(d, &row->cells[1], measure, "value", 5);
        show_flag(d, &row->cells[2], measure, "clears_floor", &clears);
        row->cells[2].text =
            isfinite(floor) ? arena_printf(a, "%s%s", fmt_short(a, floor, 5), row->cells[2].text)
                            : FMT_NONE;
        doc_datum(d, &row->cells[2], "floor", floor);
    }
    row->cells[3].text = words_member(condition, "condition");
    doc_number(d, &row->cells[4], fmt_fixed(a, score, 4), score);
    doc_number(d, &row->cells[5], fmt_signed(a, difference, 4), difference);
    row->cells[6].text = show_why(condition);
}

/* All conditions beside one anchor; an anchor without conditions still has a row. */
static void add_anchor(struct doc *d, struct doc_table *t, const cJSON *measure)
{
    const cJSON *conditions = member(measure, "conditions");
    const cJSON *condition = NULL;
    if (cJSON_GetArraySize(conditions) == 0) {
        anchor_row(d, t, measure, NULL, true);
        return;
    }
    cJSON_ArrayForEach(condition, conditions)
    {
        anchor_row(d, t, measure, condition, condition == conditions->child);
    }
}

/* A table for each model, under the common source. */
void show_anchors(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    static const struct doc_column columns[] = {
        {"Measure", ALIGN_TEXT},   {"Anchor", ALIGN_NUMBER}, {"Floor", ALIGN_NUMBER},
        {"Condition", ALIGN_TEXT}, {"Mean", ALIGN_NUMBER},   {"Difference", ALIGN_NUMBER},
        {"Remark", ALIGN_TEXT}};
    (void)m;
    doc_paragraph(d, "Source of the anchors: %s.", words_member(instrument, "source"));
    const cJSON *model = NULL;
    cJSON_ArrayForEach(model, member(instrument, "models"))
    {
        struct doc_table *t = doc_table(
            d, show_id(d, instrument, ""),
            arena_printf(&d->arena,
                         "Beside %s, with another apparatus: the conditions' means and their "
                         "differences from it. \xe2\x9c\x93: the anchor itself clears the floor.",
                         words_member(model, "model")),
            columns, 7);
        const cJSON *measure = NULL;
        cJSON_ArrayForEach(measure, member(model, "measures"))
        {
            add_anchor(d, t, measure);
        }
    }
}
