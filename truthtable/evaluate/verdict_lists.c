/*
 * The two lists of verdict.json that have an element for every record or task. Only what an element
 * is made from is kept; elements are built one at a time in the caller's arena. Reasons and causes
 * are copied first, because the evidence they point into may be gone when the text is written.
 */
#include "truthtable/evaluate/verdict_lists.h"

#include <assert.h>
#include <math.h>

#include "truthtable/condition/stats.h"

/* A task that is over without values. */
struct verdict_task {
    size_t task;
    const char *end;
    const char *cause;    /* or NULL */
    const char *narrower; /* likewise: limits of [run] */
    bool by_person;
};

/* Losses that a person caused come first in the list. */
static bool is_persons_act(enum cause c)
{
    return c == CAUSE_CANCELLED || c == CAUSE_STOPPED || c == CAUSE_LOST;
}

/* Causes of the closed list are constants; others are copied. */
static const char *kept_cause(const char *cause, struct arena *arena)
{
    enum cause c = cause == NULL ? CAUSE_NR : cause_from_name(cause);
    if (c < CAUSE_NR) {
        return cause_name(c);
    }
    return cause == NULL ? NULL : arena_strdup(arena, cause);
}

/* Two passes: what a person ended, then the rest, each in the program's order. */
static void take_undetermined(struct verdict_lists *l, const struct coverage *c,
                              const struct evidence *e, struct arena *arena)
{
    const size_t n_tasks = program_n_tasks(l->program);
    size_t n = 0;
    for (size_t i = 0; i < n_tasks; i++) {
        n += c->root[i] != CAUSE_NONE && !c->excluded[i] ? 1 : 0;
    }
    struct verdict_task *out = arena_array(arena, n, sizeof(*out));
    l->undetermined = out;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n_tasks && l->n_undetermined < n; i++) {
            const bool by_person = is_persons_act(c->root[i]) || c->narrower[i] != NULL;
            if (c->root[i] == CAUSE_NONE || c->excluded[i] || by_person != (pass == 0)) {
                continue;
            }
            out[l->n_undetermined++] = (struct verdict_task){
                .task = i,
                .end = e->tasks[i].end == TASK_END_BLOCKED ? "blocked" : "never_run",
                .cause = kept_cause(e->tasks[i].cause, arena),
                .narrower = c->narrower[i] == NULL ? NULL : arena_strdup(arena, c->narrower[i]),
                .by_person = by_person};
        }
    }
}

/* Copies the gates' reasons, which may belong to the evidence. Neighbors often share one. */
static void keep_reasons(struct gate *gates, size_t n, struct arena *arena)
{
    const char *given = NULL;
    const char *kept = NULL;
    for (size_t i = 0; i < n; i++) {
        if (gates[i].why != NULL) {
            kept = gates[i].why == given ? kept : arena_strdup(arena, gates[i].why);
            given = gates[i].why;
            gates[i].why = kept;
        }
    }
}

void verdict_lists_init(struct verdict_lists *l, const struct table_evaluation *ev,
                        const struct coverage *c, const struct evidence *e, struct arena *arena)
{
    assert(l != NULL && ev != NULL && c != NULL && e != NULL && arena != NULL);
    const struct plan_program *p = e->program;
    size_t *floors = arena_array(arena, p->n_measures, sizeof(*floors));
    *l = (struct verdict_lists){
        .program = p, .scores = ev->reading->scores, .gates = ev->gates, .floors = floors};
    for (size_t m = 0; m < p->n_measures; m++) {
        if (p->measures[m].has_floor) {
            floors[l->n_floors++] = m;
        }
    }
    keep_reasons(ev->gates, p->n_measures * p->n_cells, arena);
    take_undetermined(l, c, e, arena);
}

size_t verdict_lists_n_gates(const struct verdict_lists *l)
{
    assert(l != NULL && l->program != NULL);
    return l->n_floors * l->program->n_cells;
}

/* Why a gate has no margin in standard errors. */
static const char *no_margin_reason(const struct score *s)
{
    if (!number_is_point(&s->value)) {
        return "no score";
    }
    if (!s->has_n) {
        return "the number of items is unknown";
    }
    return "the score is not strictly between 0 and 1";
}

/* true, false, or null for unknown. */
static cJSON *truth_value(struct arena *arena, enum truth t)
{
    return t == TRUTH_UNKNOWN ? json_arena_new(arena, cJSON_NULL)
                              : json_arena_bool(arena, t == TRUTH_TRUE);
}

/* "score", and "score_bounds" where it is known only within bounds. */
static void add_score(cJSON *o, const struct number *x, struct arena *arena)
{
    json_arena_add(o, "score", json_arena_number(arena, number_is_point(x) ? x->lo : (double)NAN));
    if (x->known && !number_is_point(x)) {
        cJSON *bounds = json_arena_new(arena, cJSON_Array);
        json_arena_add(bounds, NULL, json_arena_number(arena, x->lo)); /* null where unbounded */
        json_arena_add(bounds, NULL, json_arena_number(arena, x->hi));
        json_arena_add(o, "score_bounds", bounds);
    }
}

/* Element i: the measures with a floor, cell by cell. */
cJSON *verdict_lists_gate(const void *ctx, size_t i, struct arena *arena)
{
    assert(ctx != NULL && arena != NULL && i < verdict_lists_n_gates(ctx));
    const struct verdict_lists *l = ctx;
    const struct plan_program *p = l->program;
    const size_t measure = l->floors[i / p->n_cells];
    const size_t cell = i % p->n_cells;
    const struct plan_measure *m = &p->measures[measure];
    const struct score *s = &l->scores[measure * p->n_cells + cell];
    const struct gate *g = &l->gates[measure * p->n_cells + cell];
    const double z = number_is_point(&s->value) && s->has_n
                         ? stat_gate_margin(s->value.lo, (double)s->n, m->floor)
                         : (double)NAN;
    cJSON *o = json_arena_new(arena, cJSON_Object);
    json_arena_add(o, "measure", json_arena_string(arena, m->name));
    json_arena_add(o, "cell", json_arena_string(arena, p->cells[cell].name));
    add_score(o, &s->value, arena);
    json_arena_add(o, "n", json_arena_number(arena, s->has_n ? (double)s->n : (double)NAN));
    json_arena_add(o, "floor", json_arena_number(arena, m->floor));
    json_arena_add(o, "z", json_arena_number(arena, z));
    json_arena_add(o, "cleared", truth_value(arena, g->cleared));
    json_arena_add(o, "counted", json_arena_bool(arena, m->counted));
    if (s->excluded) {
        json_arena_add(o, "excluded", json_arena_bool(arena, true));
    }
    if (s->n_from_items) {
        json_arena_add(o, "n_from", json_arena_string(arena, "items"));
    }
    if (g->cleared == TRUTH_UNKNOWN) {
        json_arena_add(o, "why", json_arena_string(arena, g->why));
    }
    if (!isfinite(z)) {
        json_arena_add(o, "z_why", json_arena_string(arena, no_margin_reason(s)));
    }
    return o;
}

/* Element i of the tasks that ended without values. */
cJSON *verdict_lists_undetermined(const void *ctx, size_t i, struct arena *arena)
{
    assert(ctx != NULL && arena != NULL);
    const struct verdict_lists *l = ctx;
    const struct plan_program *p = l->program;
    const struct verdict_task *t = &l->undetermined[i];
    cJSON *o = json_arena_new(arena, cJSON_Object);
    json_arena_add(o, "cell", json_arena_string(arena, p->cells[t->task / p->n_stages].name));
    json_arena_add(o, "stage", json_arena_string(arena, p->stages[t->task % p->n_stages].name));
    json_arena_add(o, "end", json_arena_string(arena, t->end));
    json_arena_add(o, "cause",
                   t->cause == NULL ? json_arena_new(arena, cJSON_NULL)
                                    : json_arena_string(arena, t->cause));
    if (t->narrower != NULL) {
        json_arena_add(o, "narrower", json_arena_string(arena, t->narrower));
    }
    json_arena_add(o, "by_person", json_arena_bool(arena, t->by_person));
    return o;
}
