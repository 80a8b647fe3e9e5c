/* Every [run] that was in force while the program ran, and what was blocked under it, as a part of
 * "Attempts and resumes": [run] is not locked, and its limits can end a chosen task. Adds nothing
 * where [run] was never changed. */
#include "base/xalloc.h"
#include "prereg/program/run_change.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

typedef void part_fn(const cJSON *change, struct strbuf *out);

/* The text that one of run_change_*() writes, in the arena. */
static const char *text_of(struct arena *a, part_fn *part, const cJSON *run)
{
    struct strbuf text = STRBUF_INIT;
    part(run, &text);
    const char *kept = text.len == 0 ? FMT_NONE : arena_strdup(a, text.buf);
    strbuf_release(&text);
    return kept;
}

/* One row for each [run] that was in force. */
static void add_list(struct doc *d, const cJSON *runs)
{
    static const struct doc_column columns[] = {{"From row", ALIGN_NUMBER},
                                                {"[run]", ALIGN_TEXT},
                                                {"Blocked", ALIGN_NUMBER},
                                                {"Which", ALIGN_TEXT}};
    const cJSON *run = NULL;
    struct doc_table *t = doc_table(
        d, "runs",
        "Every [run] that stood, from which row of the journal on, and the tasks that were blocked "
        "under it, those that were tried again later among them.",
        columns, 4);
    cJSON_ArrayForEach(run, runs)
    {
        struct doc_row *row = doc_row(d, t);
        const double blocked = member_number(run, "blocked");
        doc_number(d, &row->cells[0], words_count(&d->arena, run, "row"),
                   member_number(run, "row"));
        row->cells[1].text = text_of(&d->arena, run_change_settings, run);
        doc_number(d, &row->cells[2], words_count(&d->arena, run, "blocked"), blocked);
        row->cells[2].tone = blocked > 0 ? TONE_WARN : TONE_PLAIN;
        row->cells[3].text = text_of(&d->arena, run_change_tasks, run);
    }
}

/* Tasks that were lost under limits narrower than those of their siblings. */
static void add_narrower(struct doc *d, const cJSON *tasks)
{
    static const struct doc_column columns[] = {
        {"Cell", ALIGN_TEXT}, {"Stage", ALIGN_TEXT}, {"Cause", ALIGN_TEXT}, {"Limits", ALIGN_TEXT}};
    struct doc_table *t = NULL;
    const cJSON *task = NULL;
    cJSON_ArrayForEach(task, tasks)
    {
        const char *limits = member_text(task, "narrower");
        if (limits == NULL) {
            continue;
        }
        if (t == NULL) {
            t = doc_table(d, "narrower",
                          "Tasks that were lost under narrower limits than others of their stage "
                          "had. That is a person's choice: they are not excluded, and what they "
                          "measure is undetermined.",
                          columns, 4);
        }
        const char *const texts[] = {member_text(task, "cell"), member_text(task, "stage"),
                                     member_text(task, "cause"), limits};
        struct doc_row *row = doc_row(d, t);
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
            row->cells[i].text = texts[i] == NULL ? FMT_NONE : texts[i];
        }
        row->cells[3].tone = TONE_BAD;
    }
}

/* One entry means that [run] never changed. */
void section_runs(struct doc *d, const struct report_model *m)
{
    const cJSON *runs = member(m->provenance, "runs");
    if (runs != NULL && cJSON_GetArraySize(runs) > 1) {
        add_list(d, runs);
        add_narrower(d, member(m->provenance, "tasks"));
    }
}
