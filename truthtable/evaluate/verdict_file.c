/*
 * Writes what was decided as verdict.json. The two lists that grow with the number of records are
 * not part of the tree; they are produced element by element while the text is written, so that a
 * million records need little memory. The order of members is part of the format. A file of an
 * earlier version is written in its form, so that it can be compared byte for byte.
 */
#include "truthtable/evaluate/verdict_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "truthtable/evaluate/effects.h"
#include "truthtable/evaluate/scoring.h"
#include "truthtable/evaluate/verdict_json.h"
#include "truthtable/evaluate/verdict_lists.h"

#define VERDICT_SCHEMA 1

/* Members that were added under schema 1 (docs/report.md): VERDICT_ADDED. Files of versions before
 * them have neither, and no other difference. */
static const char *const ADDED[] = {"effects", "first_error"};

struct verdict_file {
    struct verdict_lists lists;
    cJSON *summary;         /* verdict.json with the lists empty */
    cJSON *whole;           /* NULL: not asked for yet */
    cJSON *timing;          /* validity that rests on timings */
    const char *why_before; /* the verdict's */
};

/* Over the stated outcomes, with the unassigned remainder as one more (docs/statistics.md). */
static double brier_score(const struct plan_program *p, size_t outcome)
{
    double *priors = xcalloc(p->n_outcomes, sizeof(*priors));
    for (size_t i = 0; i < p->n_outcomes; i++) {
        priors[i] = p->outcomes[i].prior;
    }
    double score = scoring_prior_brier(priors, p->n_outcomes, outcome);
    free(priors);
    return score;
}

/* The outcome's name and title, or the kind of verdict in its place. */
static void put_head(cJSON *o, const struct table_verdict *v, const struct plan_program *p)
{
    json_put_string(o, "outcome", verdict_word(v, p));
    json_put_string(o, "title", v->kind == VERDICT_BOUND ? p->outcomes[v->outcome].title : NULL);
    json_put_string(o, "why", v->why);
}

/* Surprisal and Brier score exist only for an outcome that binds. */
static void put_prior(cJSON *o, const struct table_verdict *v, const struct plan_program *p)
{
    if (v->kind != VERDICT_BOUND) {
        json_put_null(o, "prior");
        json_put_null(o, "surprisal_bits");
        json_put_null(o, "brier");
        return;
    }
    json_put_number(o, "prior", p->outcomes[v->outcome].prior);
    json_put_number(o, "surprisal_bits", scoring_bits(p->outcomes[v->outcome].prior));
    json_put_number(o, "brier", brier_score(p, v->outcome));
}

/* Rows are numbered from 1, as in grid.toml. */
static cJSON *fired_rows(const struct table_evaluation *ev)
{
    cJSON *rows = json_array();
    for (size_t i = 0; i < ev->n_fired; i++) {
        json_push_number(rows, (double)(ev->fired[i] + 1));
    }
    return rows;
}

/* The members of verdict.json in their order, which is part of the format; the two long lists stay
 * empty. */
static cJSON *summary_json(const struct table_verdict *v, const struct table_evaluation *ev,
                           const struct coverage *c, const struct evidence *e,
                           const char *const digests[2])
{
    const struct plan_program *p = e->program;
    cJSON *o = json_object();
    json_put_int(o, "schema", VERDICT_SCHEMA);
    json_put_string(o, "program", p->name);
    json_put_string(o, "root", digests[0]);
    json_put_string(o, "head", digests[1]);
    if (e->label != NULL) {
        json_put_string(o, "records", e->label);
    }
    put_head(o, v, p);
    json_put(o, "rows_fired", fired_rows(ev));
    json_put(o, "inputs", verdict_json_inputs(ev));
    json_put(o, "counters", verdict_json_counters(ev));
    json_put(o, "effects", effects_json(ev));
    cJSON *error = v->kind == VERDICT_BOUND ? NULL : effects_first_error(ev, c, e);
    json_put(o, "first_error", error == NULL ? cJSON_CreateNull() : error);
    json_put(o, "gates", json_array());
    json_put(o, "contrasts", verdict_json_contrasts(ev));
    json_put(o, "pairs", verdict_json_pairs(ev));
    json_put(o, "validity", verdict_json_validity(ev, false));
    json_put(o, "coverage", verdict_json_coverage(c));
    json_put(o, "undetermined", json_array());
    json_put(o, "notes", verdict_json_notes(ev, c));
    put_prior(o, v, p);
    return o;
}

struct verdict_file *verdict_file_create(const struct table_verdict *v,
                                         const struct table_evaluation *ev,
                                         const struct coverage *c, const struct evidence *e,
                                         const char *const digests[2])
{
    assert(v != NULL && ev != NULL && c != NULL && e != NULL);
    struct verdict_file *f = xcalloc(1, sizeof(*f));
    verdict_lists_init(&f->lists, ev, c, e, ev->arena);
    f->summary = summary_json(v, ev, c, e, digests);
    /* Conditions on timings are not part of the verdict's bytes. */
    f->timing = verdict_json_validity(ev, true);
    f->why_before = v->why_before;
    return f;
}

void verdict_file_free(struct verdict_file *f)
{
    if (f != NULL) {
        cJSON_Delete(f->summary);
        cJSON_Delete(f->whole);
        cJSON_Delete(f->timing);
    }
    free(f);
}

#define N_LISTS 2

/* `summary`: the verdict's own, or a copy of it. */
static void lists_of(const struct verdict_file *f, const cJSON *summary,
                     struct json_list lists[N_LISTS])
{
    lists[0] = (struct json_list){.place = json_member(summary, "gates"),
                                  .n = verdict_lists_n_gates(&f->lists),
                                  .element = verdict_lists_gate,
                                  .ctx = &f->lists};
    lists[1] = (struct json_list){.place = json_member(summary, "undetermined"),
                                  .n = f->lists.n_undetermined,
                                  .element = verdict_lists_undetermined,
                                  .ctx = &f->lists};
}

/* The lists are inserted while writing. */
int verdict_pretty(const struct table_verdict *v, struct strbuf *out, struct err *err)
{
    assert(v != NULL && v->file != NULL && out != NULL);
    struct json_list lists[N_LISTS];
    lists_of(v->file, v->file->summary, lists);
    return json_pretty_lists(v->file->summary, lists, N_LISTS, out, err);
}

/* Members are taken out of a copy, and the reason is replaced in it. */
int verdict_pretty_as(const struct table_verdict *v, struct verdict_form form, struct strbuf *out,
                      struct err *err)
{
    assert(v != NULL && v->file != NULL && out != NULL);
    struct json_list lists[N_LISTS];
    cJSON *summary = json_copy(v->file->summary);
    for (size_t i = 0; form.lacks_added && i < ARRAY_LEN(ADDED); i++) {
        cJSON_DeleteItemFromObjectCaseSensitive(summary, ADDED[i]);
    }
    if (form.has_why_before && v->file->why_before != NULL) {
        cJSON_ReplaceItemInObjectCaseSensitive(summary, "why",
                                               cJSON_CreateString(v->file->why_before));
    }
    lists_of(v->file, summary, lists);
    int rc = json_pretty_lists(summary, lists, N_LISTS, out, err);
    cJSON_Delete(summary);
    return rc;
}

/* A member of the whole is indented by two spaces, and a string holds no line break. */
static bool has_member(const struct strbuf *text, const char *start)
{
    char *key = xasprintf("\n  %s", start);
    const bool has = memmem(text->buf, text->len, key, strlen(key)) != NULL;
    free(key);
    return has;
}

struct verdict_form verdict_form_of(const struct strbuf *text)
{
    assert(text != NULL);
    struct verdict_form form = {.lacks_added = true};
    for (size_t i = 0; i < ARRAY_LEN(ADDED); i++) {
        char *key = xasprintf("\"%s\":", ADDED[i]);
        form.lacks_added = form.lacks_added && !has_member(text, key);
        free(key);
    }
    form.has_why_before = has_member(text, "\"why\": \"1 counted tasks are lost, ");
    return form;
}

const cJSON *verdict_timing(const struct table_verdict *v)
{
    assert(v != NULL);
    return v->file == NULL ? NULL : v->file->timing;
}

/* The summary is referenced, not copied; it remains the verdict's. */
int verdict_pretty_in(const struct table_verdict *v, cJSON *answer, struct strbuf *out,
                      struct err *err)
{
    assert(v != NULL && v->file != NULL && answer != NULL && out != NULL);
    struct json_list lists[N_LISTS];
    lists_of(v->file, v->file->summary, lists);
    if (!cJSON_AddItemReferenceToObject(answer, "verdict", v->file->summary)) {
        abort();
    }
    return json_pretty_lists(answer, lists, N_LISTS, out, err);
}

/* Builds the whole tree at the first call, for callers that need single members of the lists. */
const cJSON *verdict_json(const struct table_verdict *v)
{
    assert(v != NULL && v->file != NULL);
    struct verdict_file *f = v->file;
    struct json_list lists[N_LISTS];
    if (f->whole != NULL) {
        return f->whole;
    }
    f->whole = json_copy(f->summary);
    lists_of(f, f->summary, lists);
    for (size_t k = 0; k < N_LISTS; k++) {
        struct arena arena;
        cJSON *to = cJSON_GetObjectItemCaseSensitive(f->whole, lists[k].place->string);
        arena_init(&arena);
        for (size_t i = 0; i < lists[k].n; i++) {
            arena_clear(&arena);
            json_push(to, json_copy(lists[k].element(lists[k].ctx, i, &arena)));
        }
        arena_release(&arena);
    }
    return f->whole;
}

const cJSON *verdict_summary(const struct table_verdict *v)
{
    assert(v != NULL && v->file != NULL);
    return v->file->summary;
}

size_t verdict_n_gates(const struct table_verdict *v)
{
    assert(v != NULL && v->file != NULL);
    return verdict_lists_n_gates(&v->file->lists);
}

/* Built on demand, like the element of the list. */
const cJSON *verdict_gate(const struct table_verdict *v, size_t i, struct arena *arena)
{
    assert(v != NULL && v->file != NULL && arena != NULL);
    return verdict_lists_gate(&v->file->lists, i, arena);
}
