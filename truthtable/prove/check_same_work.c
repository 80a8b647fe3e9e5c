/*
 * Whether what [[same_work]] declares is so: a task and the one that does its work must have equal
 * parameters, in every cell. Parameters that are written differently may come to the same, as a
 * horizon per active and per total parameter does for a dense model; then the worker says so
 * ("resolves" of --describe). Without its answer nothing is shown, which is a warning.
 *
 * Also looks for what could be declared and is not, and for conditions on the error of a difference
 * that is 0 by construction.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/program/grid.h"
#include "prereg/program/same_work.h"
#include "prereg/task/describe.h"
#include "truthtable/condition/decision_rules.h"
#include "truthtable/condition/equal_pairs.h"
#include "truthtable/evaluate/evaluation.h"
#include "truthtable/prove/check.h"

/* Conditions of a plan that are searched for what could be declared: each is resolved. */
#define SUGGEST_MAX ((size_t)1024)

struct works_compared {
    const struct plan_program *p;
    const cJSON *describe; /* or NULL */
    struct diag *diag;
};

/* A worker's answer holds for its condition's first cell: of another cell, for what is written the
 * same there. */
static void put_resolved(const struct works_compared *x, cJSON *params, const cJSON *resolves,
                         size_t stage, size_t cell)
{
    const size_t first = x->p->conditions[x->p->cells[cell].condition].first_cell;
    cJSON *asked = program_task_params(x->p, stage, first);
    const cJSON *m;
    cJSON_ArrayForEach(m, resolves)
    {
        const cJSON *own = json_member(params, m->string);
        if (own != NULL && json_equal(own, json_member(asked, m->string))) {
            cJSON_DeleteItemFromObjectCaseSensitive(params, m->string);
            json_put(params, m->string, json_copy(m));
        }
    }
    cJSON_Delete(asked);
}

/* What a task asks of its worker, with what that makes of it. The caller deletes it. */
static cJSON *resolved_params(const struct works_compared *x, size_t stage, size_t cell)
{
    cJSON *params = program_task_params(x->p, stage, cell);
    const cJSON *answer =
        x->describe == NULL ? NULL
                            : describe_find(x->describe, x->p, x->p->cells[cell].condition, stage);
    if (answer != NULL) {
        const cJSON *resolves = json_member(answer, "resolves");
        grid_merge(params, json_member(answer, "params"));
        if (resolves != NULL) {
            put_resolved(x, params, resolves, stage, cell);
        }
    }
    return params;
}

/* The first parameter of a that b has not, or has otherwise; NULL: none. */
static const char *first_other(const cJSON *a, const cJSON *b)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, a)
    {
        const cJSON *other = json_member(b, m->string);
        if (other == NULL || !json_equal(m, other)) {
            return m->string;
        }
    }
    return NULL;
}

/* Whether a stage asks the same in both cells. *key is the parameter that differs, for free(). */
static bool asks_same(const struct works_compared *x, size_t stage, const size_t cells[2],
                      char **key)
{
    cJSON *a = resolved_params(x, stage, cells[0]);
    cJSON *b = resolved_params(x, stage, cells[1]);
    const char *found = first_other(a, b);
    found = found != NULL ? found : first_other(b, a);
    *key = found == NULL ? NULL : xstrdup(found);
    cJSON_Delete(a);
    cJSON_Delete(b);
    return *key == NULL;
}

/* ---- what is declared ---- */

/* The entry that a task is in; the first, which is the only one in most plans. */
static struct place entry_of(const struct plan_program *p, size_t stage)
{
    for (size_t i = 0; i < p->n_same_work; i++) {
        if (stage_set_has(&p->same_work[i].stages, stage)) {
            return p->same_work[i].place;
        }
    }
    return p->same_work[0].place;
}

static void refuse(const struct works_compared *x, size_t stage, const size_t cells[2],
                   const char *key)
{
    const struct plan_program *p = x->p;
    const struct place at = entry_of(p, stage);
    const char *a = p->cells[cells[0]].name;
    const char *b = p->cells[cells[1]].name;
    if (x->describe == NULL) {
        diag_add(x->diag, DIAG_WARNING, at.line, at.column,
                 "same_work: stage %s has another `%s` in %s than in %s; whether both come to the "
                 "same only the worker can say, which was not asked",
                 p->stages[stage].name, key, b, a);
    } else {
        diag_add(x->diag, DIAG_ERROR, at.line, at.column,
                 "same_work: stage %s is not the same work in %s as in %s: `%s` differs, and the "
                 "worker does not say that it comes to the same (\"resolves\" of --describe)",
                 p->stages[stage].name, b, a, key);
    }
}

/* One message for each stage: the others would say the same. */
static void check_declared(const struct works_compared *x)
{
    const struct plan_program *p = x->p;
    struct stage_set refused = {0};
    for (size_t t = 0; t < program_n_tasks(p); t++) {
        const size_t stage = t % p->n_stages;
        const size_t cells[2] = {program_worker_of(p, t) / p->n_stages, t / p->n_stages};
        char *key = NULL;
        if (cells[0] != cells[1] && !stage_set_has(&refused, stage) &&
            !asks_same(x, stage, cells, &key)) {
            refuse(x, stage, cells, key);
            stage_set_add(&refused, stage);
        }
        free(key);
    }
}

bool same_work_is_shown(const struct plan_program *p, const cJSON *describe, struct strbuf *other)
{
    const struct works_compared x = {.p = p, .describe = describe};
    bool shown = true;
    for (size_t t = 0; shown && p->workers != NULL && t < program_n_tasks(p); t++) {
        const size_t stage = t % p->n_stages;
        const size_t cells[2] = {program_worker_of(p, t) / p->n_stages, t / p->n_stages};
        char *key = NULL;
        if (cells[0] != cells[1] && !asks_same(&x, stage, cells, &key)) {
            shown = false;
            strbuf_addf(other, "`%s` of stage %s is another in %s than in %s", key,
                        p->stages[stage].name, p->cells[cells[1]].name, p->cells[cells[0]].name);
        }
        free(key);
    }
    return shown;
}

/* ---- what is not declared ---- */

/* Whether a stage's parameters are written the same in both cells. */
static bool is_written_same(const struct plan_program *p, size_t stage, const size_t cells[2])
{
    cJSON *a = program_task_params(p, stage, cells[0]);
    cJSON *b = program_task_params(p, stage, cells[1]);
    const bool same = json_equal(a, b);
    cJSON_Delete(a);
    cJSON_Delete(b);
    return same;
}

/* Whether all stages ask the same in both cells, though it is written otherwise, and the plan does
 * not say so. What is written the same is check_factors()'s to report. */
static bool is_undeclared(const struct works_compared *x, const size_t cells[2])
{
    bool same = true;
    bool declared = true;
    bool written = true;
    for (size_t s = 0; s < x->p->n_stages && same; s++) {
        char *key = NULL;
        same = asks_same(x, s, cells, &key);
        declared = declared && program_is_same_work(x->p, s, cells[0], cells[1]);
        written = written && is_written_same(x->p, s, cells);
        free(key);
    }
    return same && !declared && !written;
}

static size_t stride_of(const struct plan_program *p, size_t factor)
{
    size_t stride = 1;
    for (size_t i = factor + 1; i < p->n_factors; i++) {
        stride *= p->factors[i].n_levels;
    }
    return stride;
}

/* Levels beside each other, at every setting: one note for each factor. */
static void suggest(const struct works_compared *x, size_t factor)
{
    const struct plan_program *p = x->p;
    const struct plan_factor *f = &p->factors[factor];
    for (size_t i = 0; i < p->n_conditions; i++) {
        const size_t level = p->conditions[i].levels[factor];
        if (level + 1 >= f->n_levels) {
            continue;
        }
        const size_t first = p->conditions[i].first_cell;
        const size_t cells[2] = {first, first + stride_of(p, factor)};
        if (is_undeclared(x, cells)) {
            diag_add(x->diag, DIAG_NOTE, f->place.line, f->place.column,
                     "factor.%s: %s resolves to the same work as %s; [[same_work]] would run it "
                     "once, under both names (docs/program-format.md)",
                     f->name, p->conditions[p->cells[cells[1]].condition].name,
                     p->conditions[i].name);
            return;
        }
    }
}

/* Without any answer that resolves something there is nothing that check_factors() does not see. */
static bool resolves_any(const struct works_compared *x)
{
    bool any = false;
    for (size_t c = 0; c < x->p->n_conditions && x->describe != NULL && !any; c++) {
        for (size_t s = 0; s < x->p->n_stages && !any; s++) {
            const cJSON *answer = describe_find(x->describe, x->p, c, s);
            any = answer != NULL && json_member(answer, "resolves") != NULL;
        }
    }
    return any;
}

/* ---- conditions ---- */

struct reader_at {
    const struct rules *rules;
    const char *what;
    const struct cond_text *text;
    struct diag *diag;
};

/* Whether a condition reads a figure that compares nothing: in its measure, or pooled in every
 * counted one, or from level to level. */
static bool reads_equal(const struct rules *rules, const struct cond *c)
{
    const struct plan_program *p = rules->program;
    if (c->kind == COND_TREND || c->kind == COND_RANK) {
        return level_figure_is_equal(rules, c);
    }
    bool any = false;
    bool equal = c->kind == COND_CONTRAST;
    for (size_t m = 0; equal && m < p->n_measures; m++) {
        if (c->measure == INDEX_NONE ? p->measures[m].counted : c->measure == m) {
            any = true;
            equal = contrast_is_equal(p, &rules->layout, c->index, m);
        }
    }
    return equal && any;
}

/* An error where the field is never known, a warning where it is always 0. */
static void check_condition(const struct reader_at *r, const struct cond *c)
{
    const struct plan_program *p = r->rules->program;
    if (reads_equal(r->rules, c)) {
        const bool never =
            c->kind != COND_RANK && c->field >= FIELD_SD && c->field <= FIELD_ITEM_HIGH;
        const char *value = c->kind == COND_RANK ? "1" : "0";
        struct strbuf name = STRBUF_INIT;
        cond_print(c, p, &r->rules->facts, &name);
        diag_add(r->diag, never ? DIAG_ERROR : DIAG_WARNING, r->text->place.line,
                 r->text->place.column, "%s: %s is %s%s: its cells are one work", r->what, name.buf,
                 never ? "" : value,
                 never ? "never known" : " by construction, whatever comes out");
        strbuf_release(&name);
    }
    for (size_t i = 0; i < c->n_kids; i++) {
        check_condition(r, c->kids[i]);
    }
}

static void check_conditions_read(const struct plan_program *p, struct diag *diag)
{
    struct rules rules;
    struct diag of_conditions; /* reported where they are compiled for their own sake */
    struct err err;
    diag_init(&of_conditions, p->path);
    if (rules_compile(p, &rules, &of_conditions, &err) == 0) {
        for (size_t i = 0; i < p->n_inputs; i++) {
            char *what = xasprintf("input %s", p->inputs[i].name);
            for (size_t l = 0; l < p->inputs[i].n_levels; l++) {
                const struct reader_at r = {&rules, what, &p->inputs[i].levels[l].condition, diag};
                check_condition(&r, rules.inputs[i][l]);
            }
            free(what);
        }
        for (size_t v = 0; v < p->n_validity; v++) {
            const struct reader_at r = {&rules, "validity", &p->validity[v].condition, diag};
            check_condition(&r, rules.validity[v]);
        }
    }
    rules_release(&rules);
    diag_release(&of_conditions);
}

void check_same_work(const struct plan_program *p, const cJSON *describe, struct diag *diag)
{
    const struct works_compared x = {.p = p, .describe = describe, .diag = diag};
    if (p->workers != NULL) {
        check_declared(&x);
        check_conditions_read(p, diag);
    }
    const bool looks = p->n_conditions <= SUGGEST_MAX && resolves_any(&x);
    for (size_t f = 0; f < p->n_factors && looks; f++) {
        if (!p->factors[f].replicate) {
            suggest(&x, f);
        }
    }
}
