/* Acts on the program while it ran, as a part of "Attempts and resumes": a reader who finds tasks
 * missing sees here when that was decided. Adds nothing where there was none. */
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/sections.h"

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
    static const struct doc_column columns[] = {{"Time", ALIGN_TEXT},
                                                {"What was done", ALIGN_TEXT},
                                                {"To", ALIGN_TEXT},
                                                {"Reason", ALIGN_TEXT}};
    struct arena *a = &d->arena;
    if (m->acts.n == 0) {
        return;
    }
    struct doc_table *t = doc_table(
        d, "acts",
        "Every cancellation, retry, pause and resumption, by the journal. What has no reason was "
        "done by a person who gave none.",
        columns, 4);
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct report_act *act = &m->acts.items[i];
        struct doc_row *row = doc_row(d, t);
        row->cells[0].text = act->time;
        row->cells[1].text = act->what;
        row->cells[2].text = what_of(a, act);
        row->cells[3].text = act->reason == NULL ? FMT_NONE : act->reason;
    }
    if (m->acts.n_left_out > 0) {
        doc_paragraph(d, "%s in the journal, not in this table.",
                      fmt_plural(a, (int64_t)m->acts.n_left_out, "act more is", "acts more are"));
    }
}
