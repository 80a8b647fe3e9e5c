/*
 * The section "Where the records come from", in place of attempts: every file that an imported
 * record was made from, with what could be recomputed of it, its digest, and whether the plan was
 * locked before the import. The facts are those of imported.json.
 */
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

/* "mmlu", or "mmlu, hellaswag" of a file of several stages. */
static void stages_cell(const struct doc_slot *s)
{
    const cJSON *file = json_of(s);
    s->cell->text = member_count(file, "stages") > 0 ? words_list(s->arena, member(file, "stages"))
                                                     : words_member(file, "stage");
}

/* How each group's score was confirmed. */
static const char *groups_of(struct arena *a, const cJSON *file)
{
    const char *text = "";
    const cJSON *v = NULL;
    cJSON_ArrayForEach(v, member(file, "groups"))
    {
        if (cJSON_IsString(v) && v->string != NULL) {
            text = arena_printf(a, "%s%s%s %s", text, text[0] == '\0' ? "" : ", ", v->string,
                                v->valuestring);
        }
    }
    return text;
}

/* What was recomputed of a file, in words. */
static const char *checked_of(struct arena *a, const cJSON *file)
{
    const char *kind = member_text(file, "kind");
    const char *checked = member_text(file, "checked");
    const char *label = member_text(file, "label");
    if (checked != NULL) {
        return checked;
    }
    /* Files of records are used as they are; their own label says where they come from. */
    if (label != NULL) {
        return arena_printf(a, "as it stands: \xe2\x80\x9c%s\xe2\x80\x9d", label);
    }
    const char *groups = kind != NULL && strcmp(kind, "results") == 0 ? groups_of(a, file) : "";
    return groups[0] == '\0' ? FMT_NONE : groups;
}

static void checked_cell(const struct doc_slot *s)
{
    s->cell->text = checked_of(s->arena, json_of(s));
}

/* One row for each file. */
static void add_files(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        JSON_TEXT("File", "path"),
        JSON_TEXT("Kind", "kind"),
        JSON_TEXT("Cell", "cell"),
        COLUMN("Stages", ALIGN_TEXT, stages_cell),
        COLUMN("Recomputed", ALIGN_TEXT, checked_cell),
    };
    struct doc_table *t =
        doc_table(d, "files",
                  "Every file that a record comes from. Scores and standard errors that its "
                  "samples, or the tasks of a group, do not give would have been refused.",
                  columns, ARRAY_LEN(columns));
    json_rows(d, t, member(m->imported, "files"));
}

/* Below the table, because sixty-four digits do not fit into a column. */
static void add_file_digests(struct doc *d, const struct report_model *m)
{
    doc_subsection(d, "Their digests (SHA-256)");
    struct doc_list *list = doc_facts(d);
    const cJSON *file = NULL;
    cJSON_ArrayForEach(file, member(m->imported, "files"))
    {
        doc_item(d, list, words_member(file, "path"), words_member(file, "sha256"))->code = true;
    }
}

/* Whether the lock was made before the import is the first thing to know about such records. */
void section_imported(struct doc *d, const struct report_model *m)
{
    const cJSON *lock = member(m->imported, "lock");
    const char *made = member_text(lock, "made");
    const bool before = made != NULL && strcmp(made, "before") == 0;
    doc_section(d, "files", "Where the records come from");
    doc_paragraph(d, "Nothing was executed: no attempt, no resume, no machine is on record. The "
                     "records are those of the files below, and every rule of the plan is applied "
                     "to them as to records of a run.");
    struct doc_list *list = doc_facts(d);
    (void)doc_item(d, list, "label", words_member(m->imported, "label"));
    (void)doc_item(d, list, "imported at", words_member(m->imported, "imported"));
    struct doc_item *item =
        doc_item(d, list, "plan locked",
                 before ? arena_printf(&d->arena, "before the import, at %s, by its own clock",
                                       words_member(lock, "time"))
                        : "at the import, when the records were already there");
    item->tone = before ? TONE_PLAIN : TONE_WARN;
    add_files(d, m);
    add_file_digests(d, m);
}
