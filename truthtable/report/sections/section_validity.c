/*
 * The section "Validity": the conditions under which the comparison is one. Those on records are
 * part of the verdict; those on timings differ from run to run and are kept in provenance.json.
 * Both are listed with what failing them means.
 */
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/sections/row_columns.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

#define VOIDS   "voids the comparison"
#define FLAGGED "is flagged"

struct validity_row {
    const char *name;
    const char *condition;
    const char *on_fail;
    const char *rests_on;
    struct row_cell reading;
    const char *why;
};

/* A failed condition on timings is flagged even where it would void, because the verdict does not
 * read it. */
static void add_condition(struct doc *d, struct doc_table *t, const cJSON *v, bool timing)
{
    const int holds = json_flag(member(v, "holds"));
    const bool voids = strcmp(words_member(v, "on_fail"), "void") == 0;
    const struct validity_row row = {
        .name = member_text(v, "name"),
        .condition = member_text(v, "condition"),
        .on_fail = voids ? VOIDS : FLAGGED,
        .rests_on = timing ? "timings" : "records",
        .reading = row_holds(holds, "unknown"),
        .why = holds == 1 ? "" : words_or_empty(v, "why"),
    };
    doc_row(d, t, &row)->tone = holds == 1 ? TONE_PLAIN : voids && !timing ? TONE_BAD : TONE_WARN;
}

/* Without provenance.json, conditions on timings were never evaluated. */
static void add_unread(struct doc *d, const struct report_model *m, struct doc_table *t)
{
    for (size_t i = 0; i < m->program->n_validity; i++) {
        const struct plan_validity *v = &m->program->validity[i];
        const struct validity_row row = {
            v->name,   v->condition.text,    v->on_fail == ON_FAIL_VOID ? VOIDS : FLAGGED,
            "timings", {.text = "not read"}, "there is no provenance.json"};
        if (v->timing) {
            doc_row(d, t, &row)->tone = TONE_WARN;
        }
    }
}

/* Says so if the program states no condition. */
void section_validity(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        ROW_TEXT("Condition", struct validity_row, name),
        ROW_TEXT("As locked", struct validity_row, condition),
        ROW_TEXT("Failing it", struct validity_row, on_fail),
        ROW_TEXT("Rests on", struct validity_row, rests_on),
        ROW_TONED("Reading", struct validity_row, reading),
        ROW_TEXT("Why", struct validity_row, why),
    };
    const cJSON *binding = member(m->verdict, "validity");
    const cJSON *timing = member(m->provenance, "validity_timing");
    doc_section(d, "validity", "Validity");
    if (m->program->n_validity == 0) {
        doc_paragraph(
            d, "The program names no condition that must hold for its comparison to be one.");
        return;
    }
    struct doc_table *t =
        doc_table(d, "validity",
                  "What must hold for the comparison to be one. What rests on timings differs from "
                  "run to run and is kept with the provenance, not with the verdict.",
                  columns, ARRAY_LEN(columns));
    const cJSON *v = NULL;
    cJSON_ArrayForEach(v, binding)
    {
        add_condition(d, t, v, false);
    }
    cJSON_ArrayForEach(v, timing)
    {
        add_condition(d, t, v, true);
    }
    if (timing == NULL) {
        add_unread(d, m, t);
    }
}
