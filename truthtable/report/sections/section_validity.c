/*
 * The section "Validity": the conditions under which the comparison is one. Those on records are
 * part of the verdict; those on timings differ from run to run and are kept in provenance.json.
 * Both are listed with what failing them means.
 */
#include <string.h>

#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/sections.h"

/* A failed condition on timings is flagged even where it would void, because the verdict does not
 * read it. */
static void add_condition(struct doc *d, struct doc_table *t, const cJSON *v, bool timing)
{
    const cJSON *holds = member(v, "holds");
    const char *on_fail = member_text(v, "on_fail");
    const char *why = member_text(v, "why");
    bool voids = on_fail != NULL && strcmp(on_fail, "void") == 0;
    struct doc_row *row = doc_row(d, t);
    const char *condition = member_text(v, "condition");
    const char *name = member_text(v, "name");
    row->cells[0].text = name == NULL ? FMT_NONE : name;
    row->cells[1].text = condition == NULL ? FMT_NONE : condition;
    row->cells[2].text = voids ? "voids the comparison" : "is flagged";
    row->cells[3].text = timing ? "timings" : "records";
    row->cells[4].text = cJSON_IsTrue(holds) ? "holds" : cJSON_IsFalse(holds) ? "FAILS" : "unknown";
    row->cells[4].tone = cJSON_IsTrue(holds)    ? TONE_GOOD
                         : cJSON_IsFalse(holds) ? TONE_BAD
                                                : TONE_WARN;
    row->cells[5].text = cJSON_IsTrue(holds) || why == NULL ? "" : why;
    row->tone = cJSON_IsTrue(holds) ? TONE_PLAIN : voids && !timing ? TONE_BAD : TONE_WARN;
}

/* Without provenance.json, conditions on timings were never evaluated. */
static void add_unread(struct doc *d, const struct report_model *m, struct doc_table *t)
{
    for (size_t i = 0; i < m->program->n_validity; i++) {
        const struct plan_validity *v = &m->program->validity[i];
        if (v->timing) {
            struct doc_row *row = doc_row(d, t);
            row->tone = TONE_WARN;
            row->cells[0].text = v->name;
            row->cells[1].text = v->condition.text;
            row->cells[2].text = v->on_fail == ON_FAIL_VOID ? "voids the comparison" : "is flagged";
            row->cells[3].text = "timings";
            row->cells[4].text = "not read";
            row->cells[5].text = "there is no provenance.json";
        }
    }
}

/* Says so if the program states no condition. */
void section_validity(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        {"Condition", ALIGN_TEXT}, {"As locked", ALIGN_TEXT}, {"Failing it", ALIGN_TEXT},
        {"Rests on", ALIGN_TEXT},  {"Reading", ALIGN_TEXT},   {"Why", ALIGN_TEXT}};
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
                  columns, 6);
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
