/*
 * The section "Scope": how far the verdict reaches, as it was locked before the data, beside what
 * can be held against it now. Confounds are those of [scope] and those that what is held fixed
 * shows; the mechanism is followed by what became of its forecast. The sentence on agreement needs
 * no [scope]. Nothing here binds.
 */
#include <math.h>
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/prove/check.h"
#include "truthtable/report/agreement.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/row_columns.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

/* A heading's list of sentences; nothing for an empty one. */
static void add_texts(struct doc *d, const char *title, const struct plan_texts *texts)
{
    if (texts->n == 0) {
        return;
    }
    doc_paragraph(d, "%s:", title);
    struct doc_list *list = doc_list(d);
    for (size_t i = 0; i < texts->n; i++) {
        doc_point(d, list, "%s", texts->items[i]);
    }
}

struct confound_row {
    const char *name;
    struct row_cell differs;
    const char *text;
};

/* Where a column differs most, and how much. */
static const char *difference_words(struct arena *a, const cJSON *confound)
{
    const cJSON *differs = member(confound, "differs");
    const double ratio = member_number(confound, "ratio");
    if (cJSON_IsTrue(differs)) {
        return arena_printf(a, "between the arms of %s%s%s", words_member(confound, "contrast"),
                            isfinite(ratio) ? ", \xc3\x97" : "",
                            isfinite(ratio) ? fmt_short(a, ratio, 3) : "");
    }
    return cJSON_IsFalse(differs) ? "between no arms" : "not known";
}

/* The author's words on a column; the first where there are several. */
static const char *text_of_column(const struct plan_scope *scope, const char *column)
{
    for (size_t i = 0; i < scope->n_confounds; i++) {
        const struct plan_confound *c = &scope->confounds[i];
        if (c->column != NULL && strcmp(c->column, column) == 0) {
            return c->text;
        }
    }
    return NULL;
}

/* Computed confounds first, then those that are only words. */
static void add_confounds(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        ROW_TEXT("Confound", struct confound_row, name),
        ROW_TONED("Differs", struct confound_row, differs),
        ROW_TEXT("As declared", struct confound_row, text),
    };
    const struct plan_scope *scope = &m->program->scope;
    struct err err = {0};
    cJSON *fixed = check_fixed_json(m->program, m->lock->describe, &err);
    const cJSON *computed = member(fixed, "confounds");
    if (member_count(fixed, "confounds") + scope->n_confounds > 0) {
        struct doc_table *t =
            doc_table(d, "confounds",
                      "What could explain the outcome instead. What differs is computed from what "
                      "the workers described; a column is equal within 1 %.",
                      columns, ARRAY_LEN(columns));
        const cJSON *one = NULL;
        cJSON_ArrayForEach(one, computed)
        {
            const char *text = text_of_column(scope, words_or_empty(one, "column"));
            const struct confound_row row = {.name =
                                                 arena_strdup(&d->arena, words_member(one, "name")),
                                             .differs = {.text = difference_words(&d->arena, one)},
                                             .text = text == NULL ? "NOT DECLARED" : text};
            doc_row(d, t, &row)->tone = text == NULL ? TONE_WARN : TONE_PLAIN;
        }
        for (size_t i = 0; i < scope->n_confounds; i++) {
            if (scope->confounds[i].column == NULL) {
                const struct confound_row row = {.name = "in words",
                                                 .differs = {.text = "not computed"},
                                                 .text = scope->confounds[i].text};
                (void)doc_row(d, t, &row);
            }
        }
    }
    cJSON_Delete(fixed);
}

/* What became of the mechanism's forecast. */
static const char *forecast_words(struct arena *a, const struct report_model *m)
{
    const struct plan_scope *scope = &m->program->scope;
    if (scope->forecast == INDEX_NONE) {
        return " No forecast tests it.";
    }
    const char *name = m->program->forecasts[scope->forecast].name;
    const cJSON *one = NULL;
    cJSON_ArrayForEach(one, member(m->instruments, "forecasts"))
    {
        if (strcmp(words_or_empty(one, "name"), name) == 0) {
            const cJSON *outcome = member(one, "outcome");
            return arena_printf(a, " Its forecast %s %s.", name,
                                cJSON_IsTrue(outcome)    ? "came true"
                                : cJSON_IsFalse(outcome) ? "did not come true"
                                                         : "is undetermined");
        }
    }
    return arena_printf(a, " Its forecast %s was not scored.", name);
}

/* One item for each voice, then the sentence that sums them up. */
static void add_agreement(struct doc *d, const struct report_model *m)
{
    static const char *const said[] = {[SAYS_UNREADABLE] = "cannot be read",
                                       [SAYS_NONE] = "no difference",
                                       [SAYS_DIFFERENCE] = "a difference"};
    const struct agreement g = agreement_of(&d->arena, m);
    if (g.sentence == NULL) {
        return;
    }
    const char *outcome = member_text(m->verdict, "outcome");
    doc_paragraph(d, "Do verdict and instruments agree? %s %s",
                  outcome == NULL ? "No outcome binds."
                                  : arena_printf(&d->arena, "The outcome %s binds.", outcome),
                  g.sentence);
    struct doc_list *list = doc_list(d);
    for (size_t i = 0; i < g.n; i++) {
        const struct voice *v = &g.voices[i];
        doc_point(d, list, "%s: %s; %s.", v->who, said[v->says], v->words);
    }
}

void section_scope(struct doc *d, const struct report_model *m)
{
    const struct plan_scope *scope = &m->program->scope;
    if (!scope->declared && agreement_of(&d->arena, m).sentence == NULL) {
        return;
    }
    doc_section(d, "scope", "Scope");
    add_agreement(d, m);
    if (!scope->declared) {
        doc_paragraph(d, "The program declares no [scope].");
        return;
    }
    add_texts(d, "Claimed, whatever the outcome's title says", &scope->claims);
    add_texts(d, "Not claimed", &scope->not_claimed);
    add_confounds(d, m);
    if (scope->mechanism != NULL) {
        doc_paragraph(d, "Mechanism in mind: %s%s", scope->mechanism, forecast_words(&d->arena, m));
    }
    add_texts(d, "Work that would follow", &scope->forward_work);
}
