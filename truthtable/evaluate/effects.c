/*
 * Gathers what the conditions of the table's inputs read: a walk over the compiled conditions
 * collects each figure once, with the inputs that read it; a second pass gives it its values. What
 * the lines look like is effect_lines.c's.
 */
#include "truthtable/evaluate/effects.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/program/condition_names.h"
#include "truthtable/evaluate/verdict_json.h"
#include "truthtable/evidence/task_params.h"

struct effect {
    const struct cond *cond; /* the first that reads it; NULL: entered as part of a pooled figure */
    enum cond_kind kind;
    size_t index;   /* of the contrast or counter */
    size_t measure; /* or INDEX_NONE */
    bool reads_replicates;
    bool reads_items;
    cJSON *readers; /* names of inputs */
};

struct gathering {
    const struct table_evaluation *ev;
    struct effect *list;
    size_t n;
    size_t cap;
    size_t *figures;    /* [contrast * (n_measures + 1) + measure]: 1 + its place; pooled last */
    const char *reader; /* the input at hand */
};

/* Fields whose interval is over items. */
static bool is_item_field(enum contrast_field f)
{
    return f == FIELD_ITEM_SE || f == FIELD_ITEM_LOW || f == FIELD_ITEM_HIGH;
}

/* Fields whose interval is over replicates. */
static bool is_replicate_field(enum contrast_field f)
{
    return f == FIELD_SD || f == FIELD_SE || f == FIELD_CI_LOW || f == FIELD_CI_HIGH;
}

/* Where the figure of a contrast is kept, whatever field of it is read. */
static size_t *figure_at(const struct gathering *g, const struct effect *e)
{
    const size_t n_measures = g->ev->rules->program->n_measures;
    return &g->figures[e->index * (n_measures + 1) +
                       (e->measure == INDEX_NONE ? n_measures : e->measure)];
}

/* The place in the list, or its length. */
static size_t find(const struct gathering *g, const struct effect *want)
{
    size_t i = 0;
    if (want->kind == COND_CONTRAST) {
        i = *figure_at(g, want);
        return i == 0 ? g->n : i - 1;
    }
    while (i < g->n && (g->list[i].kind != want->kind || !cond_same(g->list[i].cond, want->cond))) {
        i++;
    }
    return i;
}

/* The conditions of one input are adjacent, so the last reader is the only candidate. */
static void add_reader(struct effect *e, const char *reader)
{
    const int n = cJSON_GetArraySize(e->readers);
    const cJSON *last = n == 0 ? NULL : cJSON_GetArrayItem(e->readers, n - 1);
    if (last == NULL || strcmp(last->valuestring, reader) != 0) {
        json_push_string(e->readers, reader);
    }
}

/* Adds an effect, or a reader to one that is there. What its readers read decides which interval is
 * shown. */
static void gather(struct gathering *g, const struct effect *want)
{
    const size_t i = find(g, want);
    if (i == g->n) {
        ARRAY_GROW(g->list, g->n, g->cap);
        g->list[i] = *want;
        g->list[i].readers = json_array();
        g->n++;
        if (want->kind == COND_CONTRAST) {
            *figure_at(g, want) = g->n;
        }
    }
    struct effect *e = &g->list[i];
    e->reads_replicates = e->reads_replicates || want->reads_replicates;
    e->reads_items = e->reads_items || want->reads_items;
    add_reader(e, g->reader);
}

/* The measures behind a pooled figure, including those that may still clear. */
static void gather_members(struct gathering *g, size_t contrast)
{
    const struct plan_program *p = g->ev->rules->program;
    for (size_t m = 0; m < p->n_measures; m++) {
        if (contrast_pools(g->ev, contrast, m) != TRUTH_FALSE) {
            gather(g, &(struct effect){.kind = COND_CONTRAST, .index = contrast, .measure = m});
        }
    }
}

/* A trend is one figure, whichever of its fields a condition reads: its slope represents it. */
static void gather_trend(struct gathering *g, const struct cond *c)
{
    struct cond *whole = arena_alloc(g->ev->arena, sizeof(*whole));
    *whole = *c;
    whole->field = FIELD_MEAN;
    gather(g, &(struct effect){
                  .cond = whole, .kind = c->kind, .index = c->index, .measure = INDEX_NONE});
}

/* Collects every quantity that a condition reads. */
static void gather_condition(struct gathering *g, const struct cond *c)
{
    struct effect want = {.cond = c, .kind = c->kind, .index = c->index, .measure = INDEX_NONE};
    if (c->kind == COND_CONTRAST) {
        want.measure = c->measure;
        want.reads_items = is_item_field(c->field);
        want.reads_replicates = is_replicate_field(c->field);
        gather(g, &want);
        /* A pooled figure is explained by the measures it is over. */
        if (c->measure == INDEX_NONE) {
            gather_members(g, c->index);
        }
    } else if (c->kind == COND_COUNTER || c->kind == COND_MEASURE || c->kind == COND_FACT ||
               c->kind == COND_RATIO || c->kind == COND_RANK) {
        gather(g, &want);
    } else if (c->kind == COND_TREND) {
        gather_trend(g, c);
    }
    for (size_t i = 0; i < c->n_kids; i++) {
        gather_condition(g, c->kids[i]);
    }
}

/* The table's inputs in order; then validities that void and do not hold, because they explain a
 * VOID. */
static void gather_all(struct gathering *g)
{
    const struct rules *r = g->ev->rules;
    const struct plan_program *p = r->program;
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        const struct plan_input *in = &p->inputs[p->table_inputs[i]];
        g->reader = in->name;
        for (size_t l = 0; l < in->n_levels; l++) {
            gather_condition(g, r->inputs[p->table_inputs[i]][l]);
        }
    }
    for (size_t i = 0; i < p->n_validity; i++) {
        const struct plan_validity *v = &p->validity[i];
        const char *ignored = NULL;
        if (v->on_fail == ON_FAIL_VOID && !v->timing &&
            evaluation_truth(g->ev, r->validity[i], TRUTH_UNKNOWN, &ignored) != TRUTH_TRUE) {
            g->reader = v->name;
            gather_condition(g, r->validity[i]);
        }
    }
}

/* ---- an element ---- */

/* What is subtracted: the two levels, or the two contrasts. */
static void put_sides(cJSON *o, const struct plan_program *p, const struct plan_contrast *k)
{
    json_put_string(o, "a",
                    k->is_difference ? p->contrasts[k->of].name
                                     : p->factors[k->factor].levels[k->level_a].text);
    json_put_string(o, "b",
                    k->is_difference ? p->contrasts[k->minus].name
                                     : p->factors[k->factor].levels[k->level_b].text);
}

/* The interval that the conditions read: over items if only item fields are read, or if replicates
 * have none. */
static void put_interval(cJSON *o, const struct effect *e, const struct figure *f)
{
    const struct number *over_replicates[] = {&f->fields[FIELD_CI_LOW], &f->fields[FIELD_CI_HIGH]};
    const struct number *over_items[] = {&f->fields[FIELD_ITEM_LOW], &f->fields[FIELD_ITEM_HIGH]};
    const bool replicates_known =
        number_is_point(over_replicates[0]) && number_is_point(over_replicates[1]);
    const bool items_known = number_is_point(over_items[0]) && number_is_point(over_items[1]);
    /* Items only where nothing that reads this figure asks for replicates. */
    const bool items = items_known && !e->reads_replicates && (e->reads_items || !replicates_known);
    const struct number **of = items ? over_items : over_replicates;
    if (!items && !replicates_known) {
        json_put_string(o, "interval_why", of[0]->known ? "known only as a bound" : of[0]->why);
        return;
    }
    json_put_number(o, "low", of[0]->lo);
    json_put_number(o, "high", of[1]->lo);
    json_put_string(o, "over", items ? "items" : "replicates");
}

/* The value, or null with its reason. */
static void put_value_and_why(cJSON *o, const struct number *x)
{
    verdict_json_put_value(o, "value", x);
    if (!x->known) {
        json_put_string(o, "why", x->why);
    }
}

/* The name as the conditions write it. */
static const char *name_of(const struct table_evaluation *ev, const struct effect *e)
{
    const struct plan_program *p = ev->rules->program;
    if (e->kind == COND_CONTRAST) {
        const char *name = p->contrasts[e->index].name;
        return e->measure == INDEX_NONE
                   ? arena_printf(ev->arena, "contrast.%s", name)
                   : arena_printf(ev->arena, "contrast.%s[%s]", name, p->measures[e->measure].name);
    }
    struct strbuf text = STRBUF_INIT;
    cond_print(e->cond, p, &ev->rules->facts, &text);
    const char *kept = arena_strdup(ev->arena, text.buf);
    strbuf_release(&text);
    return kept;
}

/* The metric is named as well, for measures without a known unit. */
static void put_unit(cJSON *o, const struct plan_program *p, size_t measure)
{
    const struct plan_measure *m = &p->measures[measure];
    json_put_string(o, "unit", measure_unit(p, m));
    json_put_string(o, "metric", m->metric_text);
}

/* One contrast in one measure. */
static void put_difference(cJSON *o, const struct table_evaluation *ev, const struct effect *e)
{
    const struct plan_program *p = ev->rules->program;
    const struct figure *f = &ev->per_measure[e->index * p->n_measures + e->measure];
    json_put_string(o, "kind", "difference");
    put_sides(o, p, &p->contrasts[e->index]);
    put_value_and_why(o, &f->fields[FIELD_MEAN]);
    put_interval(o, e, f);
    verdict_json_put_value(o, "n", &f->fields[FIELD_N]);
    put_unit(o, p, e->measure);
}

/* The unit that all measures share that a pooled figure may be over; null: they share none. */
static void put_pooled_unit(cJSON *o, const struct table_evaluation *ev, size_t contrast)
{
    const struct plan_program *p = ev->rules->program;
    const char *unit = NULL;
    bool mixed = false;
    for (size_t m = 0; m < p->n_measures; m++) {
        if (contrast_pools(ev, contrast, m) == TRUTH_FALSE) {
            continue;
        }
        const char *own = measure_unit(p, &p->measures[m]);
        mixed = mixed || own == NULL || (unit != NULL && strcmp(unit, own) != 0);
        unit = own;
    }
    json_put_string(o, "unit", mixed ? NULL : unit);
}

/* A pooled figure has a range over its pairs instead of an interval. */
static void put_pooled(cJSON *o, const struct table_evaluation *ev, const struct effect *e)
{
    const struct plan_program *p = ev->rules->program;
    const struct plan_contrast *k = &p->contrasts[e->index];
    const struct figure *f = &ev->pooled[e->index];
    json_put_string(o, "kind", "pooled");
    put_sides(o, p, k);
    json_put_string(o, "pooled_over", k->over == OVER_CLEARED ? "cleared" : "counted");
    put_value_and_why(o, &f->fields[FIELD_MEAN]);
    verdict_json_put_value(o, "min", &f->fields[FIELD_MIN]);
    verdict_json_put_value(o, "max", &f->fields[FIELD_MAX]);
    verdict_json_put_value(o, "n", &f->fields[FIELD_N]);
    put_pooled_unit(o, ev, e->index);
}

/* A counter, with the measures that clear and those that may. */
static void put_counter(cJSON *o, const struct table_evaluation *ev, const struct effect *e)
{
    const struct plan_program *p = ev->rules->program;
    cJSON *clear = json_array();
    cJSON *open = json_array();
    int64_t n = 0;
    for (size_t m = 0; m < p->n_measures; m++) {
        if (!rules_in_counters(ev->rules, m)) {
            continue;
        }
        const enum truth t = ev->clears[e->index * p->n_measures + m];
        n++;
        if (t != TRUTH_FALSE) {
            json_push_string(t == TRUTH_TRUE ? clear : open, p->measures[m].name);
        }
    }
    json_put_string(o, "kind", "counter");
    put_value_and_why(o, &ev->counters[e->index]);
    json_put_int(o, "n", n);
    json_put_string(o, "unit", "measures");
    json_put_string(o, "clears",
                    p->counters[e->index].clears == CLEARS_EVERY_CELL ? "every_cell" : "arm_means");
    json_put(o, "clear", clear);
    json_put(o, "open", open);
}

/* The mean of a level; n counts the cells that have a score. */
static void put_arm(cJSON *o, const struct table_evaluation *ev, const struct effect *e)
{
    const struct plan_program *p = ev->rules->program;
    const struct cond *c = e->cond;
    int64_t n = 0;
    for (size_t i = 0; i < p->n_cells; i++) {
        const struct score *s = &ev->reading->scores[c->measure * p->n_cells + i];
        n += p->cells[i].levels[c->factor] == c->level_a && s->value.known ? 1 : 0;
    }
    const struct number mean = evaluation_number(ev, c);
    json_put_string(o, "kind", "mean");
    put_value_and_why(o, &mean);
    json_put_int(o, "n", n);
    put_unit(o, p, c->measure);
}

/* Facts have no unit: a worker may report anything. */
static void put_fact(cJSON *o, const struct table_evaluation *ev, const struct effect *e)
{
    const struct number value = evaluation_number(ev, e->cond);
    json_put_string(o, "kind", e->kind == COND_RATIO ? "ratio" : "fact");
    put_value_and_why(o, &value);
    json_put_null(o, "unit");
}

/* The rank of a level among all of its factor. */
static void put_rank(cJSON *o, const struct table_evaluation *ev, const struct effect *e)
{
    const struct number value = evaluation_number(ev, e->cond);
    json_put_string(o, "kind", "rank");
    put_value_and_why(o, &value);
    json_put_int(o, "n", (int64_t)ev->rules->program->factors[e->cond->factor].n_levels);
    json_put_null(o, "unit");
}

/* The slope for each step of the levels, whichever field of it is read, with its interval. */
static void put_trend(cJSON *o, const struct table_evaluation *ev, const struct effect *e)
{
    static const struct {
        const char *key;
        enum contrast_field field;
    } ends[] = {{"low", FIELD_CI_LOW}, {"high", FIELD_CI_HIGH}};
    struct cond c = *e->cond;
    c.field = FIELD_MEAN;
    const struct number slope = evaluation_number(ev, &c);
    json_put_string(o, "kind", "trend");
    put_value_and_why(o, &slope);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        c.field = ends[i].field;
        const struct number end = evaluation_number(ev, &c);
        if (number_is_point(&end)) {
            json_put_number(o, ends[i].key, end.lo);
        } else if (i == 0) {
            json_put_string(o, "interval_why", end.known ? "known only as a bound" : end.why);
        }
    }
    c.field = FIELD_N;
    const struct number n = evaluation_number(ev, &c);
    json_put_string(o, "over", "replicates");
    verdict_json_put_value(o, "n", &n);
    put_unit(o, ev->rules->program, c.measure);
}

/* One element of "effects", by kind. */
static cJSON *effect_json(const struct table_evaluation *ev, const struct effect *e)
{
    cJSON *o = json_object();
    json_put_string(o, "name", name_of(ev, e));
    if (e->kind == COND_COUNTER) {
        put_counter(o, ev, e);
    } else if (e->kind == COND_MEASURE) {
        put_arm(o, ev, e);
    } else if (e->kind == COND_RANK) {
        put_rank(o, ev, e);
    } else if (e->kind == COND_TREND) {
        put_trend(o, ev, e);
    } else if (e->kind != COND_CONTRAST) {
        put_fact(o, ev, e);
    } else if (e->measure == INDEX_NONE) {
        put_pooled(o, ev, e);
    } else {
        put_difference(o, ev, e);
    }
    json_put(o, "read_by", e->readers);
    return o;
}

/* Two passes: what is read, then its values. */
cJSON *effects_json(const struct table_evaluation *ev)
{
    assert(ev != NULL && ev->rules != NULL);
    const struct plan_program *p = ev->rules->program;
    struct gathering g = {.ev = ev};
    cJSON *list = json_array();
    g.figures = xcalloc(p->n_contrasts * (p->n_measures + 1), sizeof(*g.figures));
    gather_all(&g);
    for (size_t i = 0; i < g.n; i++) {
        json_push(list, effect_json(ev, &g.list[i]));
    }
    free(g.figures);
    free(g.list);
    return list;
}

/* ---- the first error ---- */

/* Whether a task was never run because of another. */
static bool is_of_dependency(const struct evidence_task *t)
{
    return t->cause != NULL && cause_from_name(t->cause) == CAUSE_DEPENDENCY;
}

/* The task that lost this one: itself, or of those that it comes after the first whose loss, by
 * task_coverage.h, is its own. */
static size_t failed_task(const struct coverage *c, const struct evidence *e, size_t task)
{
    const size_t n_stages = e->program->n_stages;
    const size_t first = task - task % n_stages;
    size_t failed = task;
    if (!is_of_dependency(&e->tasks[task])) {
        return task;
    }
    struct stage_set *before = asked_before(e->program);
    for (size_t s = 0; s < n_stages && failed == task; s++) {
        const size_t i = first + s;
        /* The failed task must have the same root cause and the same limits, or it is not where
         * this loss began. */
        if (i != task && stage_set_has(&before[task - first], s) &&
            !is_of_dependency(&e->tasks[i]) && c->root[i] != CAUSE_NONE &&
            c->root[i] == c->root[task] && c->narrower[i] == c->narrower[task]) {
            failed = i;
        }
    }
    free(before);
    return failed;
}

/* `task` is NULL where no single task is to blame. */
static cJSON *error_json(const char *task, const char *what)
{
    cJSON *o = json_object();
    json_put_string(o, "task", task);
    json_put_string(o, "what", what);
    return o;
}

/* "CELL/STAGE", as commands take it. */
static const char *task_name(const struct table_evaluation *ev, size_t task)
{
    const struct plan_program *p = ev->rules->program;
    return arena_printf(ev->arena, "%s/%s", p->cells[task / p->n_stages].name,
                        p->stages[task % p->n_stages].name);
}

/* The task that started the loss, which may be an earlier one of the cell. */
static cJSON *lost_task(const struct table_evaluation *ev, const struct coverage *c,
                        const struct evidence *e, size_t task)
{
    const size_t failed = failed_task(c, e, task);
    const struct evidence_task *t = &e->tasks[failed];
    const char *name = task_name(ev, failed);
    const char *narrower = c->narrower[failed];
    return error_json(name, arena_printf(ev->arena, "%s: %s (%s)%s%s", name,
                                         t->end == TASK_END_BLOCKED ? "blocked" : "never run",
                                         t->cause == NULL ? "no cause" : t->cause,
                                         narrower == NULL ? "" : " under narrower [run] limits: ",
                                         narrower == NULL ? "" : narrower));
}

/* The second run of an apparatus check that voids. */
static cJSON *voiding_check(const struct table_evaluation *ev, const struct evidence *e)
{
    const size_t i = evidence_failed_check(e);
    if (i == INDEX_NONE) {
        return NULL;
    }
    const struct evidence_check *c = &e->checks[i];
    const char *name = arena_printf(ev->arena, "apparatus/%s", e->program->apparatus[i].name);
    return error_json(name, arena_printf(ev->arena, "%s: %s (%s)", name,
                                         c->end == TASK_END_BLOCKED ? "blocked" : "never run",
                                         c->cause == NULL ? "no cause" : c->cause));
}

/* The first validity that voids. Those on timings are not part of the verdict. */
static cJSON *voiding_validity(const struct table_evaluation *ev)
{
    const struct plan_program *p = ev->rules->program;
    for (size_t i = 0; i < p->n_validity; i++) {
        const struct plan_validity *v = &p->validity[i];
        const char *why = "undetermined";
        if (v->on_fail != ON_FAIL_VOID || v->timing) {
            continue;
        }
        const enum truth t = evaluation_truth(ev, ev->rules->validity[i], TRUTH_UNKNOWN, &why);
        if (t != TRUTH_TRUE) {
            return error_json(
                NULL, arena_printf(ev->arena, "validity %s, %s, %s%s", v->name, v->condition.text,
                                   t == TRUTH_FALSE ? "does not hold" : "is unknown: ",
                                   t == TRUTH_FALSE ? "" : why));
        }
    }
    return NULL;
}

/* Whether a measure bears on the outcome: counted, or read by an input's condition. */
static bool table_reads(const struct plan_program *p, const struct plan_measure *m)
{
    bool reads = m->counted;
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        const struct plan_input *in = &p->inputs[p->table_inputs[i]];
        for (size_t l = 0; l < in->n_levels && !reads; l++) {
            reads = condition_reads_measure(in->levels[l].condition.text, m->name);
        }
    }
    return reads;
}

/* Of the scores that a counted measure or the table reads, and of lost tasks of their stages, which
 * the table may need for a fact; those that are excluded come last. */
static cJSON *open_score(const struct table_evaluation *ev, const struct coverage *c,
                         const struct evidence *e, bool excluded)
{
    const struct plan_program *p = ev->rules->program;
    for (size_t i = 0; i < p->n_measures * p->n_cells; i++) {
        const struct score *s = &ev->reading->scores[i];
        const struct plan_measure *m = &p->measures[i / p->n_cells];
        const size_t task = i % p->n_cells * p->n_stages + m->stage;
        if (s->value.known || s->excluded != excluded || !program_stage_is_budgeted(p, m->stage)) {
            continue;
        }
        if (e->tasks[task].end != TASK_END_DONE && e->tasks[task].end != TASK_END_PENDING) {
            /* A lost task explains more than its missing score. */
            return lost_task(ev, c, e, task);
        }
        if (!table_reads(p, m)) {
            continue;
        }
        return error_json(task_name(ev, task),
                          arena_printf(ev->arena, "%s of %s: %s", m->name,
                                       p->cells[i % p->n_cells].name, s->value.why));
    }
    return NULL;
}

/* Ordered as the verdict decides: the budget, apparatus, validity, then undetermined records. */
cJSON *effects_first_error(const struct table_evaluation *ev, const struct coverage *c,
                           const struct evidence *e)
{
    assert(ev != NULL && c != NULL && e != NULL && e->program == ev->rules->program);
    for (size_t i = 0; coverage_over_budget(c) && i < program_n_tasks(e->program); i++) {
        if (c->excluded[i] && program_stage_is_budgeted(e->program, i % e->program->n_stages)) {
            return lost_task(ev, c, e, i);
        }
    }
    cJSON *found = voiding_check(ev, e);
    found = found == NULL ? voiding_validity(ev) : found;
    found = found == NULL ? open_score(ev, c, e, false) : found;
    return found == NULL ? open_score(ev, c, e, true) : found;
}
