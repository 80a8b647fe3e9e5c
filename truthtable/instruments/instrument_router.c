/*
 * Router health of mixture-of-experts models, from facts that the trainer reports for each cell.
 * Each condition gets a vector of means over its cells, and each component is "pinned" (the same in
 * every cell that has it) or varying: a component that never varies cannot explain a difference.
 * Cells whose training is not done are counted, not guessed.
 */
#include <math.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "truthtable/condition/stats.h"
#include "truthtable/instruments/instrument_work.h"

#define PINNED_TOLERANCE 1e-9 /* of the greatest value */

struct router {
    struct instrument_entry *t;
    const struct work *w;
    size_t stage;
    const char **names;
    size_t n;
    const char **pinned;
    size_t n_pinned;
    const char **varying;
    size_t n_varying;
    const char *open; /* why a component is neither */
};

/* The values of a fact over the cells of a condition, or all (INDEX_NONE), that have one; none when
 * it is undetermined in one of them: a part of the cells does not speak for all. */
static size_t values_of(const struct router *r, const char *fact, size_t condition, double *out,
                        const char **why)
{
    const struct plan_program *p = r->w->p;
    size_t n = 0;
    *why = "no cell has it";
    size_t n_done = 0;
    for (size_t c = 0; c < p->n_cells; c++) {
        const struct evidence_value *v = evidence_fact(r->w->e, c, r->stage, fact);
        bool done = r->w->e->tasks[c * p->n_stages + r->stage].end == TASK_END_DONE;
        if (condition != INDEX_NONE && p->cells[c].condition != condition) {
            continue;
        }
        /* An ambiguous value in one cell spoils the component for all. */
        if (done && (v->state == VALUE_CENSORED || v->state == VALUE_DOUBLED)) {
            *why = arena_printf(r->w->arena, "%s: %s", p->cells[c].name,
                                v->state == VALUE_DOUBLED ? "recorded more than once"
                                                          : "known only as a bound");
            return 0;
        }
        n_done += done ? 1 : 0;
        if (done && v->state == VALUE_KNOWN) {
            out[n++] = v->value;
        } else if (done && v->state == VALUE_NULL && v->why != NULL) {
            *why = v->why;
        }
    }
    if (n_done == 0) {
        *why = "no task of its cells is done";
    }
    return n;
}

/* One component over all cells. Equal up to PINNED_TOLERANCE counts as pinned. */
static cJSON *component_json(struct router *r, const char *name, double *scratch)
{
    const char *why = NULL;
    struct spread s = {0};
    size_t n = values_of(r, name, INDEX_NONE, scratch, &why);
    for (size_t i = 0; i < n; i++) {
        spread_add(&s, scratch[i], NULL);
    }
    enum truth pinned = TRUTH_UNKNOWN;
    if (n > 1) {
        /* Relative to the greatest value, so that the scale does not matter. */
        pinned = truth_of(s.hi - s.lo <= PINNED_TOLERANCE * fmax(fabs(s.lo), fabs(s.hi)));
        why = NULL;
    } else if (n == 1) {
        why = "one cell alone has it";
    }
    if (pinned == TRUTH_TRUE) {
        r->pinned[r->n_pinned++] = name;
    } else if (pinned == TRUTH_FALSE) {
        r->varying[r->n_varying++] = name;
    } else if (r->open == NULL) {
        r->open = arena_printf(r->w->arena, "%s: %s", name, why);
    }
    cJSON *o = json_object();
    json_put_string(o, "name", name);
    json_put_int(o, "n", (int64_t)n);
    json_put_number(o, "min", spread_low(&s));
    json_put_number(o, "max", spread_high(&s));
    json_put_number(o, "mean", n > 0 ? stat_mean(scratch, n) : (double)NAN);
    json_put_number(o, "sd", stat_sd(scratch, n));
    put_truth(o, "pinned", pinned);
    json_put_string(o, "why", why);
    return o;
}

/* Of the cells of a condition, or all (INDEX_NONE): those whose stage did not finish, so that the
 * state of their router is unknown. */
static size_t not_done(const struct router *r, size_t condition)
{
    const struct plan_program *p = r->w->p;
    size_t n = 0;
    for (size_t c = 0; c < p->n_cells; c++) {
        bool is_in = condition == INDEX_NONE || p->cells[c].condition == condition;
        n += is_in && r->w->e->tasks[c * p->n_stages + r->stage].end != TASK_END_DONE ? 1 : 0;
    }
    return n;
}

/* The mean of a fact over a condition's cells, or NaN with a reason. */
static double mean_of(const struct router *r, const char *fact, size_t condition, double *scratch,
                      const char **why)
{
    size_t n = values_of(r, fact, condition, scratch, why);
    return n > 0 ? stat_mean(scratch, n) : (double)NAN;
}

/* One condition: its vector, and how many cells it is the mean of. */
static cJSON *condition_json(const struct router *r, size_t condition, double *scratch)
{
    const struct plan_program *p = r->w->p;
    cJSON *o = json_object();
    cJSON *vector = json_array();
    size_t n_cells = 0;
    const char *first_why = NULL;
    const char *unused = NULL;
    for (size_t c = 0; c < p->n_cells; c++) {
        n_cells += p->cells[c].condition == condition ? 1 : 0;
    }
    for (size_t i = 0; i < r->n; i++) {
        const char *why = NULL;
        size_t n = values_of(r, r->names[i], condition, scratch, &why);
        cJSON *at = json_object();
        json_put_string(at, "component", r->names[i]);
        json_put_number(at, "mean", n > 0 ? stat_mean(scratch, n) : (double)NAN);
        json_put_number(at, "sd", stat_sd(scratch, n));
        json_put_int(at, "n", (int64_t)n);
        json_put_string(at, "why", n > 1 ? NULL : (n == 1 ? "one cell has no spread" : why));
        first_why = n == 0 && first_why == NULL ? why : first_why;
        json_push(vector, at);
    }
    json_put_string(o, "condition", p->conditions[condition].name);
    json_put_int(o, "n_cells", (int64_t)n_cells);
    json_put_int(o, "not_done", (int64_t)not_done(r, condition));
    json_put(o, "vector", vector);
    json_put_number(o, "effective_experts",
                    mean_of(r, "router_effective", condition, scratch, &unused));
    json_put_number(o, "entropy_share", mean_of(r, "router_entropy", condition, scratch, &unused));
    json_put_string(o, "why", first_why);
    return o;
}

/* The declared components, or all facts that the trainer reports of a router. */
static void read_components(struct router *r)
{
    const cJSON *list = json_member(r->t->spec->spec, "components");
    const cJSON *name = NULL;
    size_t cap = list == NULL ? instrument_n_router_facts() : (size_t)cJSON_GetArraySize(list);
    r->names = arena_array(r->w->arena, cap, sizeof(char *));
    r->pinned = arena_array(r->w->arena, cap, sizeof(char *));
    r->varying = arena_array(r->w->arena, cap, sizeof(char *));
    cJSON_ArrayForEach(name, list)
    {
        r->names[r->n++] = name->valuestring;
    }
    /* Without a declaration, every fact that the trainer knows. */
    while (list == NULL && r->n < cap) {
        r->names[r->n] = INSTRUMENT_ROUTER_FACTS[r->n];
        r->n++;
    }
}

/* A list of names. */
static cJSON *strings(const char *const *names, size_t n)
{
    cJSON *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_push_string(list, names[i]);
    }
    return list;
}

/* The fields that forecasts may read; counts are unknown while a component is. */
static void answer(const struct router *r, double *scratch)
{
    struct instrument_entry *t = r->t;
    struct arena *a = r->w->arena;
    bool open = r->open != NULL;
    enum truth rest = open ? TRUTH_UNKNOWN : TRUTH_TRUE;
    entry_truth(t, "all_pinned", truth_and(truth_of(r->n_varying == 0), rest), r->open);
    entry_truth(t, "any_pinned",
                truth_or(truth_of(r->n_pinned > 0), open ? TRUTH_UNKNOWN : TRUTH_FALSE), r->open);
    entry_number(t, "n_pinned", open ? (double)NAN : (double)r->n_pinned, r->open);
    entry_number(t, "n_varying", open ? (double)NAN : (double)r->n_varying, r->open);
    const char *why = NULL;
    double mean = mean_of(r, "router_effective", INDEX_NONE, scratch, &why);
    entry_number(t, "effective_experts", mean, arena_printf(a, "router_effective: %s", why));
    mean = mean_of(r, "router_entropy", INDEX_NONE, scratch, &why);
    entry_number(t, "entropy_share", mean, arena_printf(a, "router_entropy: %s", why));
}

/* Components are judged over all cells first, then averaged by condition. */
void instrument_router(struct instrument_entry *t)
{
    struct router r = {.t = t, .w = t->w};
    struct arena *a = t->w->arena;
    double *scratch = arena_array(a, t->w->p->n_cells, sizeof(*scratch));
    const char *stage = json_member(t->spec->spec, "stage")->valuestring;
    cJSON *components = json_array();
    cJSON *conditions = json_array();
    r.stage = program_find_stage(t->w->p, stage);
    read_components(&r);
    json_put_string(t->json, "stage", stage);
    for (size_t i = 0; i < r.n; i++) {
        json_push(components, component_json(&r, r.names[i], scratch));
    }
    for (size_t c = 0; c < t->w->p->n_conditions; c++) {
        json_push(conditions, condition_json(&r, c, scratch));
    }
    size_t left_out = not_done(&r, INDEX_NONE);
    json_put_int(t->json, "not_done", (int64_t)left_out);
    json_put(t->json, "components", components);
    json_put(t->json, "conditions", conditions);
    json_put(t->json, "pinned", strings(r.pinned, r.n_pinned));
    json_put(t->json, "varying", strings(r.varying, r.n_varying));
    answer(&r, scratch);
    entry_words(
        t->json,
        "Router health of the cells that have a router, condition by condition, and which "
        "of its components differ between cells at all.",
        arena_printf(
            a, "The same in every cell that has it: %s. Different: %s.%s%s",
            work_join(a, r.pinned, r.n_pinned), work_join(a, r.varying, r.n_varying),
            r.open == NULL ? "" : arena_printf(a, " Undetermined, the first as %s.", r.open),
            left_out == 0 ? ""
                          : arena_printf(a, " Left out: cells of which %s is not done, %zu of %zu.",
                                         stage, left_out, t->w->p->n_cells)));
}
