/* Every [run] that was in force while the program ran, and what was blocked under it, as a part of
 * "Attempts and resumes": [run] is not locked, and its limits can end a chosen task. Adds nothing
 * where [run] was never changed. */
#include "base/xalloc.h"
#include "prereg/program/run_change.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/json_fields.h"
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

static void settings_cell(struct doc *d, struct doc_cell *cell, const void *row,
                          const struct doc_field *field)
{
    (void)field;
    cell->text = text_of(&d->arena, run_change_settings, ((const struct json_row *)row)->of);
}

static void blocked_cell(struct doc *d, struct doc_cell *cell, const void *row,
                         const struct doc_field *field)
{
    json_field_count(d, cell, row, field);
    cell->tone =
        member_number(((const struct json_row *)row)->of, field->key) > 0 ? TONE_WARN : TONE_PLAIN;
}

static void tasks_cell(struct doc *d, struct doc_cell *cell, const void *row,
                       const struct doc_field *field)
{
    (void)field;
    cell->text = text_of(&d->arena, run_change_tasks, ((const struct json_row *)row)->of);
}

/* One row for each [run] that was in force. */
static void add_list(struct doc *d, const cJSON *runs)
{
    static const struct doc_field fields[] = {
        FIELD_COUNT("From row", "row"),
        FIELD_OWN("[run]", ALIGN_TEXT, settings_cell),
        {"Blocked", ALIGN_NUMBER, blocked_cell, "blocked", 0, NULL},
        FIELD_OWN("Which", ALIGN_TEXT, tasks_cell),
    };
    const cJSON *run = NULL;
    struct doc_table *t = doc_table_of(d, "runs",
                                       "Every [run] that was in force, from which row of the "
                                       "journal on, and the tasks that were blocked under it, "
                                       "those that were tried again later among them.",
                                       fields, ARRAY_LEN(fields));
    cJSON_ArrayForEach(run, runs)
    {
        doc_row_of(d, t, fields, &(struct json_row){.of = run});
    }
}

static void narrower_cell(struct doc *d, struct doc_cell *cell, const void *row,
                          const struct doc_field *field)
{
    json_field_text(d, cell, row, field);
    cell->tone = TONE_BAD;
}

/* Tasks that were lost under limits narrower than those of their siblings. */
static void add_narrower(struct doc *d, const cJSON *tasks)
{
    static const struct doc_field fields[] = {
        FIELD_TEXT("Cell", "cell"),
        FIELD_TEXT("Stage", "stage"),
        FIELD_TEXT("Cause", "cause"),
        {"Limits", ALIGN_TEXT, narrower_cell, "narrower", 0, NULL},
    };
    struct doc_table *t = NULL;
    const cJSON *task = NULL;
    cJSON_ArrayForEach(task, tasks)
    {
        if (member_text(task, "narrower") == NULL) {
            continue;
        }
        if (t == NULL) {
            t = doc_table_of(
                d, "narrower",
                "Tasks that were lost under narrower limits than others of their stage had. That "
                "is a person's choice: they are not excluded, and what they measure is "
                "undetermined.",
                fields, ARRAY_LEN(fields));
        }
        doc_row_of(d, t, fields, &(struct json_row){.of = task});
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
