/* Acts on the program while it ran, as a part of "Attempts and resumes": a reader who finds tasks
 * missing sees here when that was decided. Adds nothing where there was none. */
#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/row_fields.h"
#include "truthtable/report/sections/sections.h"

struct act_row {
    const char *time;
    const char *what;
    const char *to;
    const char *reason; /* or NULL */
};

/* What an act was done to: the program, a task, or a task and others. */
static const char *what_of(struct arena *a, const struct report_act *act)
{
    if (act->first == NULL) {
        return "the program";
    }
    return act->n_tasks <= 1 ? act->first
                             : arena_printf(a, "%s and %s", act->first,
                                            fmt_plural(a, (int64_t)act->n_tasks - 1, "other task",
                                                       "other tasks"));
}

/* Imported programs have no acts; neither does a run that was left alone. */
void section_acts(struct doc *d, const struct report_model *m)
{
    static const struct doc_field fields[] = {
        ROW_TEXT("Time", struct act_row, time),
        ROW_TEXT("What was done", struct act_row, what),
        ROW_TEXT("To", struct act_row, to),
        ROW_TEXT("Reason", struct act_row, reason),
    };
    struct arena *a = &d->arena;
    if (m->acts.n == 0) {
        return;
    }
    struct doc_table *t = doc_table_of(
        d, "acts",
        "Every cancellation, retry, pause and resumption, by the journal. What has no reason was "
        "done by a person who gave none.",
        fields, ARRAY_LEN(fields));
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct report_act *act = &m->acts.items[i];
        const struct act_row row = {act->time, act->what, what_of(a, act), act->reason};
        (void)doc_row_of(d, t, fields, &row);
    }
    if (m->acts.n_left_out > 0) {
        doc_paragraph(d, "%s in the journal, not in this table.",
                      fmt_plural(a, (int64_t)m->acts.n_left_out, "act more is", "acts more are"));
    }
}
