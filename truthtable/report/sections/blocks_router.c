/*
 * Shows a router instrument (a vector of health by condition, and which components vary) and an
 * anchors instrument (other models' scores beside ours).
 */
#include <math.h>
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/instrument_blocks.h"
#include "truthtable/report/sections/json_fields.h"
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
    static const struct show_words pinned = {"pinned: no variance to fit", "varies", "not known"};
    static const struct doc_field fields[] = {
        FIELD_TEXT("Component", "name"),
        FIELD_SHORT("Cells", "n", 5),
        FIELD_SHORT("Least", "min", 5),
        FIELD_SHORT("Most", "max", 5),
        FIELD_SHORT("Mean", "mean", 5),
        FIELD_SHORT("s.d.", "sd", 5),
        FIELD_FLAG("Over the cells", "pinned", &pinned),
    };
    (void)m;
    add_vectors(d, instrument);
    struct doc_table *t = doc_table_of(
        d, show_id(d, instrument, "components"),
        "Which parts of router health vary from cell to cell, and which the design pins.", fields,
        ARRAY_LEN(fields));
    const cJSON *component = NULL;
    cJSON_ArrayForEach(component, member(instrument, "components"))
    {
        doc_row_of(d, t, fields, &(struct json_row){.of = component});
    }
}

/* The object of a row is a condition. The anchor, its measure and floor are printed once, in the
 * row whose part is the measure. */
static void anchor_measure(struct doc *d, struct doc_cell *cell, const void *row,
                           const struct doc_field *field)
{
    const cJSON *measure = ((const struct json_row *)row)->part;
    (void)d;
    if (measure != NULL) {
        cell->text = words_member(measure, field->key);
    }
}

static void anchor_value(struct doc *d, struct doc_cell *cell, const void *row,
                         const struct doc_field *field)
{
    const cJSON *measure = ((const struct json_row *)row)->part;
    if (measure != NULL) {
        show_short(d, cell, measure, field->key, field->digits);
    }
}

static void anchor_floor(struct doc *d, struct doc_cell *cell, const void *row,
                         const struct doc_field *field)
{
    static const struct show_words clears = {" \xe2\x9c\x93", " \xe2\x9c\x97", ""};
    const cJSON *measure = ((const struct json_row *)row)->part;
    struct arena *a = &d->arena;
    const double floor = member_number(measure, field->key);
    if (measure == NULL) {
        return;
    }
    show_flag(d, cell, measure, "clears_floor", &clears);
    cell->text =
        isfinite(floor) ? arena_printf(a, "%s%s", fmt_short(a, floor, 5), cell->text) : FMT_NONE;
    doc_datum(d, cell, "floor", floor);
}

static const struct doc_field anchor_fields[] = {
    {"Measure", ALIGN_TEXT, anchor_measure, "measure", 0, NULL},
    {"Anchor", ALIGN_NUMBER, anchor_value, "value", 5, NULL},
    {"Floor", ALIGN_NUMBER, anchor_floor, "floor", 0, NULL},
    FIELD_TEXT("Condition", "condition"),
    FIELD_FIXED("Mean", "score", 4),
    FIELD_SIGNED("Difference", "difference", 4),
    FIELD_REMARK,
};

/* All conditions beside one anchor; an anchor without conditions still has a row. */
static void add_anchor(struct doc *d, struct doc_table *t, const cJSON *measure)
{
    const cJSON *conditions = member(measure, "conditions");
    struct json_row row = {.part = measure, .of = conditions == NULL ? NULL : conditions->child};
    do {
        doc_row_of(d, t, anchor_fields, &row);
        row = (struct json_row){.of = row.of == NULL ? NULL : row.of->next};
    } while (row.of != NULL);
}

/* A table for each model, under the common source. */
void show_anchors(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    (void)m;
    doc_paragraph(d, "Source of the anchors: %s.", words_member(instrument, "source"));
    const cJSON *model = NULL;
    cJSON_ArrayForEach(model, member(instrument, "models"))
    {
        struct doc_table *t = doc_table_of(
            d, show_id(d, instrument, ""),
            arena_printf(&d->arena,
                         "Beside %s, with another apparatus: the conditions' means and their "
                         "differences from it. \xe2\x9c\x93: the anchor itself clears the floor.",
                         words_member(model, "model")),
            anchor_fields, ARRAY_LEN(anchor_fields));
        const cJSON *measure = NULL;
        cJSON_ArrayForEach(measure, member(model, "measures"))
        {
            add_anchor(d, t, measure);
        }
    }
}
