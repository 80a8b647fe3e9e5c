/*
 * Shows a router instrument (a vector of health by condition, and which components vary) and an
 * anchors instrument (other models' scores beside ours).
 */
#include <math.h>
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/instrument_blocks.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/verdict_words.h"

#define COMPONENTS_MAX 10

/* The mean of component `n` with the spread over cells, if there is any. */
static void vector_cell(const struct doc_slot *s)
{
    const cJSON *component = cJSON_GetArrayItem(member(json_of(s), "vector"), s->column->n);
    double mean = member_number(component, "mean");
    double sd = member_number(component, "sd");
    const char *text = fmt_short(s->arena, mean, 4);
    /* A pinned component has no spread to print. */
    if (isfinite(mean) && sd > 0) {
        text = arena_printf(s->arena, "%s \xc2\xb1 %s", text, fmt_short(s->arena, sd, 2));
    }
    doc_number(s, text, mean);
    doc_datum(s, "sd", sd);
}

/* Up to COMPONENTS_MAX components as columns. */
static struct doc_columns columns_of(struct doc *d, const cJSON *components)
{
    static const struct doc_column first[] = {
        JSON_TEXT("Condition", "condition"),
        JSON_SHORT("Cells", "n_cells", 9),
    };
    static const struct doc_column last[] = {
        JSON_SHORT("Effective experts", "effective_experts", 4),
        JSON_SHORT("Entropy, share", "entropy_share", 4),
    };
    struct doc_columns columns = doc_columns(d, first, ARRAY_LEN(first));
    int n = 0;
    const cJSON *component = NULL;
    cJSON_ArrayForEach(component, components)
    {
        const char *name = words_member(component, "name");
        const char *title = strncmp(name, "router_", 7) == 0 ? name + 7 : name;
        if (n < COMPONENTS_MAX) {
            doc_column_add(d, &columns, title, vector_cell)->n = n++;
        }
    }
    doc_columns_add(d, &columns, last, ARRAY_LEN(last));
    return columns;
}

/* Conditions as rows. */
static void add_vectors(struct doc *d, const cJSON *instrument)
{
    const size_t n = member_count(instrument, "components");
    const struct doc_columns columns = columns_of(d, member(instrument, "components"));
    struct doc_table *t =
        doc_table(d, show_id(d, instrument, ""),
                  "The vector of router health by condition, mean \xc2\xb1 standard deviation over "
                  "its cells that have a router.",
                  columns.items, columns.n);
    const cJSON *condition = NULL;
    cJSON_ArrayForEach(condition, member(instrument, "conditions"))
    {
        /* A condition without cells has an empty vector. */
        const bool any = member_number(condition, "n_cells") > 0;
        doc_row(d, t, &(struct json_row){.of = condition})->tone = any ? TONE_PLAIN : TONE_MUTED;
    }
    if (n > COMPONENTS_MAX) {
        doc_paragraph(d, "Of %zu components the first %d are shown by condition.", n,
                      COMPONENTS_MAX);
    }
}

/* Vectors first, then which components carry variance. */
void show_router(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    static const struct show_words pinned = {"pinned: no variance to fit", "varies", "not known"};
    static const struct doc_column columns[] = {
        JSON_TEXT("Component", "name"),
        JSON_SHORT("Cells", "n", 5),
        JSON_SHORT("Least", "min", 5),
        JSON_SHORT("Most", "max", 5),
        JSON_SHORT("Mean", "mean", 5),
        JSON_SHORT("s.d.", "sd", 5),
        JSON_FLAG("Over the cells", "pinned", &pinned),
    };
    (void)m;
    add_vectors(d, instrument);
    struct doc_table *t =
        doc_table(d, show_id(d, instrument, "components"),
                  "Which parts of router health vary from cell to cell, and which the design pins.",
                  columns, ARRAY_LEN(columns));
    json_rows(d, t, member(instrument, "components"));
}

/* The object of a row is a condition. The anchor, its measure and floor are printed once, in the
 * row whose part is the measure. */
static void anchor_measure(const struct doc_slot *s)
{
    const cJSON *measure = json_part(s);
    if (measure != NULL) {
        s->cell->text = words_member(measure, s->column->key);
    }
}

static void anchor_value(const struct doc_slot *s)
{
    const cJSON *measure = json_part(s);
    if (measure != NULL) {
        show_short(s, measure, s->column->key, s->column->n);
    }
}

static void anchor_floor(const struct doc_slot *s)
{
    static const struct show_words clears = {" \xe2\x9c\x93", " \xe2\x9c\x97", ""};
    const cJSON *measure = json_part(s);
    struct arena *a = s->arena;
    const double floor = member_number(measure, s->column->key);
    if (measure == NULL) {
        return;
    }
    show_flag(s, measure, "clears_floor", &clears);
    s->cell->text =
        isfinite(floor) ? arena_printf(a, "%s%s", fmt_short(a, floor, 5), s->cell->text) : FMT_NONE;
    doc_datum(s, "floor", floor);
}

static const struct doc_column anchor_columns[] = {
    {"Measure", ALIGN_TEXT, anchor_measure, "measure", 0, NULL},
    {"Anchor", ALIGN_NUMBER, anchor_value, "value", 5, NULL},
    {"Floor", ALIGN_NUMBER, anchor_floor, "floor", 0, NULL},
    JSON_TEXT("Condition", "condition"),
    JSON_FIXED("Mean", "score", 4),
    JSON_SIGNED("Difference", "difference", 4),
    JSON_REMARK,
};

/* All conditions beside one anchor; an anchor without conditions still has a row. */
static void add_anchor(struct doc *d, struct doc_table *t, const cJSON *measure)
{
    const cJSON *conditions = member(measure, "conditions");
    struct json_row row = {.part = measure, .of = conditions == NULL ? NULL : conditions->child};
    do {
        doc_row(d, t, &row);
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
        struct doc_table *t = doc_table(
            d, show_id(d, instrument, ""),
            arena_printf(&d->arena,
                         "Beside %s, with another apparatus: the conditions' means and their "
                         "differences from it. \xe2\x9c\x93: the anchor itself clears the floor.",
                         words_member(model, "model")),
            anchor_columns, ARRAY_LEN(anchor_columns));
        const cJSON *measure = NULL;
        cJSON_ArrayForEach(measure, member(model, "measures"))
        {
            add_anchor(d, t, measure);
        }
    }
}
