/*
 * Computes the verdict from evidence and writes verdict.json. The steps run in a fixed order and
 * nothing looks back: coverage, reading, evaluation, decision. VOID comes before the table: over
 * the exclusion budget, or with a voiding validity that fails or is unknown, rows are not asked.
 * The two lists that grow with the number of records are not part of the tree; they are produced
 * element by element while the text is written, so that a million records need little memory.
 */
#include "truthtable/evaluate/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "truthtable/condition/table_rows.h"
#include "truthtable/evaluate/effects.h"
#include "truthtable/evaluate/scoring.h"
#include "truthtable/evaluate/verdict_json.h"
#include "truthtable/evaluate/verdict_lists.h"

#define VERDICT_SCHEMA 1

/* Members that were added under schema 1 (docs/report.md): VERDICT_ADDED. Files of versions before
 * them have neither, and no other difference. */
static const char *const ADDED[] = {"effects", "first_error"};

struct verdict_parts {
    struct verdict_lists lists;
    cJSON *summary; /* verdict.json with the lists empty */
    cJSON *whole;   /* NULL: not asked for yet */
};

/* Why the comparison is void; NULL when it is not. */
static const char *void_reason(const struct evaluation *ev, const struct coverage *c,
                               struct arena *arena)
{
    const struct program *p = ev->rules->program;
    if (coverage_over_budget(c)) {
        return arena_printf(arena, "%zu counted %s lost, the exclusion budget is %zu",
                            c->n_excluded,
                            text_plural((int64_t)c->n_excluded, "task is", "tasks are"), c->budget);
    }
    for (size_t i = 0; i < p->n_validity; i++) {
        const char *why = "undetermined";
        if (p->validity[i].on_fail != ON_FAIL_VOID || p->validity[i].timing) {
            continue;
        }
        enum truth t = evaluation_truth(ev, ev->rules->validity[i], TRUTH_UNKNOWN, &why);
        if (t == TRUTH_FALSE) {
            return arena_printf(arena, "validity %s failed", p->validity[i].name);
        }
        if (t == TRUTH_UNKNOWN) {
            return arena_printf(arena, "validity %s is unknown: %s", p->validity[i].name, why);
        }
    }
    return NULL;
}

/* Exactly one of the three kinds; `why` is set for all but a bound outcome. */
static void decide(struct verdict *v, const struct evaluation *ev, const struct coverage *c)
{
    v->outcome = INDEX_NONE;
    v->why = void_reason(ev, c, &v->arena);
    if (v->why != NULL) {
        v->kind = VERDICT_VOID;
        return;
    }
    v->outcome = evaluation_outcome(ev);
    v->kind = v->outcome == INDEX_NONE ? VERDICT_INDETERMINATE : VERDICT_BOUND;
    if (v->kind == VERDICT_INDETERMINATE) {
        v->why = ev->n_fired == 0 ? "no row of the table fires"
                                  : "the rows that fire lead to different outcomes";
    }
}

/* Over the stated outcomes, with the unassigned remainder as one more (docs/statistics.md). */
static double brier_score(const struct program *p, size_t outcome)
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
static void put_head(cJSON *o, const struct verdict *v, const struct program *p)
{
    const char *name = "VOID";
    const char *title = NULL;
    if (v->kind == VERDICT_INDETERMINATE) {
        name = "INDETERMINATE";
    } else if (v->kind == VERDICT_BOUND) {
        name = p->outcomes[v->outcome].name;
        title = p->outcomes[v->outcome].title;
    }
    json_put_string(o, "outcome", name);
    json_put_string(o, "title", title);
    json_put_string(o, "why", v->why);
}

/* Surprisal and Brier score exist only for an outcome that binds. */
static void put_prior(cJSON *o, const struct verdict *v, const struct program *p)
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
static cJSON *fired_rows(const struct evaluation *ev)
{
    cJSON *rows = json_array();
    for (size_t i = 0; i < ev->n_fired; i++) {
        json_push_number(rows, (double)(ev->fired[i] + 1));
    }
    return rows;
}

/* The members of verdict.json in their order, which is part of the format; the two long lists stay
 * empty. */
static cJSON *summary_json(const struct verdict *v, const struct evaluation *ev,
                           const struct coverage *c, const struct evidence *e,
                           const char *const digests[2])
{
    const struct program *p = e->program;
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
    json_put(o, "notes", verdict_json_notes(ev));
    put_prior(o, v, p);
    return o;
}

/* Repeats the check of the table: imported and replayed programs may never have been checked. */
int verdict_compute(const struct evidence *e, const char *root, const char *head,
                    struct verdict *out, struct err *err)
{
    struct rules rules;
    struct diag diag;
    *out = (struct verdict){.outcome = INDEX_NONE};
    arena_init(&out->arena);
    diag_init(&diag, e->program->path);
    int rc = rules_compile(e->program, &rules, &diag, err);
    /* A table with a hole could fire no row at all for some reading. */
    rc = rc == 0 ? table_is_total(e->program, err) : rc;
    if (rc == 0) {
        struct coverage coverage;
        struct reading reading;
        struct evaluation ev;
        const char *const digests[2] = {root, head};
        coverage_init(&coverage, e, &out->arena);
        reading_of_evidence(&reading, e, &rules, &coverage, &out->arena);
        evaluation_run(&ev, &rules, &reading, &out->arena);
        decide(out, &ev, &coverage);
        out->parts = arena_alloc(&out->arena, sizeof(*out->parts));
        verdict_lists_init(&out->parts->lists, &ev, &coverage, e, &out->arena);
        out->parts->summary = summary_json(out, &ev, &coverage, e, digests);
        /* Conditions on timings are not part of the verdict's bytes. */
        out->provenance = verdict_json_validity(&ev, true);
    }
    rules_release(&rules);
    diag_release(&diag);
    return rc;
}

/* The arena holds everything but the JSON. */
void verdict_release(struct verdict *v)
{
    if (v->parts != NULL) {
        cJSON_Delete(v->parts->summary);
        cJSON_Delete(v->parts->whole);
    }
    cJSON_Delete(v->provenance);
    arena_release(&v->arena);
    *v = (struct verdict){.outcome = INDEX_NONE};
}

#define N_LISTS 2

/* `summary`: the verdict's own, or a copy of it. */
static void lists_of(const struct verdict_parts *parts, const cJSON *summary,
                     struct json_list lists[N_LISTS])
{
    lists[0] = (struct json_list){.place = json_member(summary, "gates"),
                                  .n = verdict_lists_n_gates(&parts->lists),
                                  .element = verdict_lists_gate,
                                  .ctx = &parts->lists};
    lists[1] = (struct json_list){.place = json_member(summary, "undetermined"),
                                  .n = parts->lists.n_undetermined,
                                  .element = verdict_lists_undetermined,
                                  .ctx = &parts->lists};
}

/* The lists are inserted while writing. */
int verdict_pretty(const struct verdict *v, struct strbuf *out, struct err *err)
{
    struct json_list lists[N_LISTS];
    lists_of(v->parts, v->parts->summary, lists);
    return json_pretty_lists(v->parts->summary, lists, N_LISTS, out, err);
}

/* The same text without the added members, as early versions wrote it. */
int verdict_pretty_early(const struct verdict *v, struct strbuf *out, struct err *err)
{
    struct json_list lists[N_LISTS];
    cJSON *summary = json_copy(v->parts->summary);
    for (size_t i = 0; i < ARRAY_LEN(ADDED); i++) {
        cJSON_DeleteItemFromObjectCaseSensitive(summary, ADDED[i]);
    }
    lists_of(v->parts, summary, lists);
    int rc = json_pretty_lists(summary, lists, N_LISTS, out, err);
    cJSON_Delete(summary);
    return rc;
}

/* A member of the whole is indented by two spaces, and a string holds no line break. */
bool verdict_text_is_early(const struct strbuf *text)
{
    bool has = false;
    for (size_t i = 0; i < ARRAY_LEN(ADDED); i++) {
        char *key = xasprintf("\n  \"%s\":", ADDED[i]);
        has = has || memmem(text->buf, text->len, key, strlen(key)) != NULL;
        free(key);
    }
    return !has;
}

/* The summary is referenced, not copied; it remains the verdict's. */
int verdict_pretty_in(const struct verdict *v, cJSON *answer, struct strbuf *out, struct err *err)
{
    struct json_list lists[N_LISTS];
    lists_of(v->parts, v->parts->summary, lists);
    if (!cJSON_AddItemReferenceToObject(answer, "verdict", v->parts->summary)) {
        abort();
    }
    return json_pretty_lists(answer, lists, N_LISTS, out, err);
}

/* Builds the whole tree at the first call, for callers that need single members of the lists. */
const cJSON *verdict_json(const struct verdict *v)
{
    struct verdict_parts *parts = v->parts;
    struct json_list lists[N_LISTS];
    if (parts->whole != NULL) {
        return parts->whole;
    }
    parts->whole = json_copy(parts->summary);
    lists_of(parts, parts->summary, lists);
    for (size_t k = 0; k < N_LISTS; k++) {
        struct arena arena;
        cJSON *to = cJSON_GetObjectItemCaseSensitive(parts->whole, lists[k].place->string);
        arena_init(&arena);
        for (size_t i = 0; i < lists[k].n; i++) {
            arena_clear(&arena);
            json_push(to, json_copy(lists[k].element(lists[k].ctx, i, &arena)));
        }
        arena_release(&arena);
    }
    return parts->whole;
}

const cJSON *verdict_summary(const struct verdict *v)
{
    return v->parts->summary;
}

size_t verdict_n_gates(const struct verdict *v)
{
    return verdict_lists_n_gates(&v->parts->lists);
}

/* Built on demand, like the element of the list. */
const cJSON *verdict_gate(const struct verdict *v, size_t i, struct arena *arena)
{
    return verdict_lists_gate(&v->parts->lists, i, arena);
}

/* The exit codes of docs/exit-codes.md. */
enum exit_code verdict_exit_code(const struct verdict *v)
{
    switch (v->kind) {
    case VERDICT_BOUND: return EXIT_OK;
    case VERDICT_INDETERMINATE: return EXIT_INDETERMINATE;
    case VERDICT_VOID: return EXIT_VOID;
    }
    return EXIT_ANY;
}
