/*
 * The section "The record": assurance, digests and the settings of the run. It ends the report with
 * what a reader needs to check everything else: the journal's head and every digest of the lock.
 */

#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

/* One level of nesting, as [run] has it. */
static void add_settings(struct doc *d, struct doc_list *list, const cJSON *settings,
                         const char *prefix)
{
    const cJSON *v = NULL;
    cJSON_ArrayForEach(v, settings)
    {
        const char *key = v->string == NULL ? "" : v->string;
        if (cJSON_IsObject(v)) {
            const cJSON *inner = NULL;
            cJSON_ArrayForEach(inner, v)
            {
                (void)doc_item(d, list,
                               arena_printf(&d->arena, "%s%s.%s", prefix, key, inner->string),
                               words_value(&d->arena, inner));
            }
        } else {
            (void)doc_item(d, list, arena_printf(&d->arena, "%s%s", prefix, key),
                           words_value(&d->arena, v));
        }
    }
}

/* [run] is not locked, so it is shown here and its changes under attempts. */
static void add_run(struct doc *d, const struct report_model *m)
{
    const cJSON *run = member(m->provenance, "run");
    doc_subsection(d, "Settings of the run");
    if (run == NULL || cJSON_GetArraySize(run) == 0) {
        doc_paragraph(d, "None given: every setting at its default. Such settings say how and "
                         "where, and cannot change a result.");
        return;
    }
    doc_paragraph(d, "Not locked: they say how and where, and cannot change a result. Their limits "
                     "can end a task; those that were changed are listed under Attempts and "
                     "resumes.");
    add_settings(d, doc_facts(d), run, "run.");
}

/* A text in a fixed pitch, or an em dash. */
static void add_code(struct doc *d, struct doc_list *list, const char *name, const char *text)
{
    doc_item(d, list, name, text == NULL ? FMT_NONE : text)->code = text != NULL;
}

/* Journal, data and files, each with its digest in full. */
static void add_digests(struct doc *d, const struct report_model *m)
{
    doc_subsection(d, "Digests");
    struct doc_list *list = doc_facts(d);
    const cJSON *journal = member(m->provenance, "journal");
    add_code(d, list, "journal head", member_text(journal, "head"));
    (void)doc_item(d, list, "journal rows", words_count(&d->arena, journal, "rows"));
    (void)doc_item(d, list, "history",
                   m->imported != NULL ? "none: imported records"
                   : words_history_is_unverified(m)
                       ? "UNVERIFIED HISTORY"
                       : "verified: the chain holds and ends at the head");
    const cJSON *v = NULL;
    cJSON_ArrayForEach(v, member(m->provenance, "takeovers"))
    {
        (void)doc_item(d, list, "daemon taken over", words_value(&d->arena, v));
    }
    cJSON_ArrayForEach(v, m->lock->data)
    {
        add_code(d, list, arena_printf(&d->arena, "data %s", v->string), cJSON_GetStringValue(v));
    }
    cJSON_ArrayForEach(v, m->lock->files)
    {
        add_code(d, list, arena_printf(&d->arena, "file %s", v->string), cJSON_GetStringValue(v));
    }
}

/* The level reached, and what no level proves. */
static void add_assurance(struct doc *d, const struct report_model *m)
{
    doc_subsection(d, "Assurance");
    doc_paragraph(d,
                  "Level reached: %s. The levels are self-consistent (everything follows from the "
                  "records), signed, time-stamped (a third party saw the lock before), re-executed "
                  "(the same weights and items came out again), and re-executed on another "
                  "processor (of another vendor, or by another instruction set). preregctl rerun "
                  "establishes the last two, for one cell.",
                  words_assurance(m));
    doc_paragraph(d, "Nothing proves that no data existed before the lock: a run by hand or a "
                     "second state folder leaves no trace here.");
}

/* Imported programs have no settings of a run. */
void section_record(struct doc *d, const struct report_model *m)
{
    doc_section(d, "record", "The record");
    add_assurance(d, m);
    add_digests(d, m);
    if (m->imported != NULL) {
        return; /* nothing was run */
    }
    add_run(d, m);
}
