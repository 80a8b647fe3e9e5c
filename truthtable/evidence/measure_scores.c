/*
 * Turns evidence into scores and facts, the form that the evaluation reads. A score is known only
 * if its task is done, its value is in support and its n is the plan's; everything else is unknown,
 * with a reason that the report prints. Only losses that coverage calls chance are marked as
 * excluded.
 */
#include "truthtable/evidence/measure_scores.h"

#include <assert.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "prereg/program/same_work.h"

/* Why a task has no values, in words: its end, its cause, the cause of the task it depended on, and
 * narrower limits. */
static const char *end_reason(const struct evidence *e, size_t task,
                              const struct coverage *coverage, struct arena *arena)
{
    const struct evidence_task *t = &e->tasks[task];
    enum cause root = coverage->root[task];
    const char *cause = t->cause == NULL ? "no cause" : t->cause;
    if (t->end == TASK_END_PENDING) {
        return e->label == NULL ? "not there yet" : "no record was given";
    }
    if (coverage->excluded[task]) {
        return arena_printf(arena, "excluded: %s", cause_name(root));
    }
    const char *end = t->end == TASK_END_BLOCKED ? "blocked" : "never run";
    const char *why = root < CAUSE_NR && root != cause_from_name(cause)
                          ? arena_printf(arena, "%s: %s (%s)", end, cause, cause_name(root))
                          : arena_printf(arena, "%s: %s", end, cause);
    const char *narrower = coverage->narrower[task];
    return narrower == NULL
               ? why
               : arena_printf(arena, "%s under narrower [run] limits: %s", why, narrower);
}

/* A value as a number; only a known one and a bound carry information. */
static struct number number_of(const struct evidence_value *v)
{
    switch (v->state) {
    case VALUE_KNOWN: return number_point(v->value);
    case VALUE_CENSORED: return number_bound(v->bound, v->bound_above);
    case VALUE_NULL: return number_unknown(v->why != NULL ? v->why : "recorded without a value");
    case VALUE_DOUBLED: return number_unknown("recorded more than once");
    case VALUE_MISSING: break;
    }
    return number_unknown("the record is missing");
}

/* A share is a proportion: no value, and no bound, lies outside 0..1, and no
 * proportion is above 1 or below 0. */
static bool in_support(const struct plan_measure *m, const struct evidence_value *v)
{
    if (!measure_is_share(m)) {
        return true;
    }
    if (v->state == VALUE_CENSORED) {
        return v->bound_above ? v->bound >= 0 && v->bound < 1 : v->bound > 0 && v->bound <= 1;
    }
    return v->state != VALUE_KNOWN || (v->value >= 0 && v->value <= 1);
}

/* Imported records may rest on the plan's `items`, which the verdict notes; a task that ran may
 * not: its worker could have scored any number of them. */
struct score score_read(const struct plan_measure *m, const struct evidence_value *v, bool imported,
                        struct arena *arena)
{
    assert(m != NULL && v != NULL);
    struct score s = {.value = number_of(v), .has_n = v->has_n, .n = v->n};
    if (!in_support(m, v)) {
        s.value =
            number_unknown(v->state == VALUE_CENSORED ? "a bound outside 0..1" : "outside 0..1");
    }
    if (s.value.known && s.has_n && m->has_items && s.n != m->items) {
        s.value = number_unknown(arena_printf(arena, "on %lld items, the plan says %lld",
                                              (long long)s.n, (long long)m->items));
    }
    if (s.value.known && !s.has_n && m->has_items && !imported) {
        s.value = number_unknown(
            arena_printf(arena, "n is not known, the plan says %lld items", (long long)m->items));
    } else if (!s.has_n && m->has_items) {
        s.has_n = true;
        s.n = m->items;
        s.n_from_items = true;
    }
    return s;
}

/* Records from elsewhere may give one work two values, [cell]: then none of its names has a known
 * one, whether the work itself has a value or not. */
static void compare_names(struct number *const *values, const struct plan_program *p, size_t stage,
                          struct arena *arena)
{
    const struct number **first = xcalloc(p->n_cells, sizeof(*first)); /* [cell of the work] */
    bool *differ = xcalloc(p->n_cells, sizeof(*differ));               /* likewise */
    for (size_t c = 0; c < p->n_cells; c++) {
        const size_t work = program_worker_of(p, c * p->n_stages + stage) / p->n_stages;
        const struct number *a = first[work];
        const struct number *b = values[c];
        if (b->known && a == NULL) {
            first[work] = b;
        } else if (b->known && (a->lo != b->lo || a->hi != b->hi)) {
            differ[work] = true;
        }
    }
    for (size_t c = 0; c < p->n_cells; c++) {
        const size_t work = program_worker_of(p, c * p->n_stages + stage) / p->n_stages;
        if (differ[work] && values[c]->known) {
            *values[c] = number_unknown(
                arena_printf(arena, "%s is one work with other cells, and their records differ",
                             p->cells[work].name));
        }
    }
    free(first);
    free(differ);
}

/* Of every measure and every fact. */
static void compare_all_names(struct table_reading *r, const struct plan_program *p,
                              const struct fact_table *facts, struct arena *arena)
{
    struct number **values = xcalloc(p->n_cells, sizeof(*values));
    for (size_t m = 0; m < p->n_measures; m++) {
        for (size_t c = 0; c < p->n_cells; c++) {
            values[c] = &r->scores[m * p->n_cells + c].value;
        }
        compare_names(values, p, p->measures[m].stage, arena);
    }
    for (size_t f = 0; f < facts->n; f++) {
        for (size_t c = 0; c < p->n_cells; c++) {
            values[c] = &r->facts[f * p->n_cells + c];
        }
        compare_names(values, p, facts->refs[f].stage, arena);
    }
    free(values);
}

/* Scores and facts, then what they say of each other. */
void reading_of_evidence(struct table_reading *r, const struct evidence *e,
                         const struct rules *rules, const struct coverage *coverage,
                         struct arena *arena)
{
    assert(e->program->n_cells == rules->program->n_cells); /* of one plan */
    const struct plan_program *p = e->program;
    bool *fact_excluded = arena_array(arena, rules->facts.n * p->n_cells, sizeof(bool));
    r->scores = arena_array(arena, p->n_measures * p->n_cells, sizeof(*r->scores));
    r->facts = arena_array(arena, rules->facts.n * p->n_cells, sizeof(*r->facts));
    r->fact_excluded = fact_excluded;
    for (size_t i = 0; i < p->n_measures * p->n_cells; i++) {
        const struct plan_measure *m = &p->measures[i / p->n_cells];
        size_t cell = i % p->n_cells;
        size_t task = cell * p->n_stages + m->stage;
        if (e->tasks[task].end == TASK_END_DONE) {
            r->scores[i] = score_read(m, evidence_metric(e, cell, m->stage, m->metric),
                                      e->label != NULL, arena);
        } else {
            r->scores[i].value = number_unknown(end_reason(e, task, coverage, arena));
            r->scores[i].excluded = coverage->excluded[task];
        }
    }
    for (size_t i = 0; i < rules->facts.n * p->n_cells; i++) {
        const struct fact_ref *f = &rules->facts.refs[i / p->n_cells];
        size_t cell = i % p->n_cells;
        size_t task = cell * p->n_stages + f->stage;
        if (e->tasks[task].end == TASK_END_DONE) {
            r->facts[i] = number_of(evidence_fact(e, cell, f->stage, f->name));
        } else {
            r->facts[i] = number_unknown(end_reason(e, task, coverage, arena));
            fact_excluded[i] = coverage->excluded[task];
        }
    }
    if (p->workers != NULL) {
        compare_all_names(r, p, &rules->facts, arena);
    }
    r->n_copies = 0;
    mark_copies(r, e, arena);
}
