/*
 * The members of verdict.json that are made from one evaluation. A number that is not a point
 * becomes null, with its bounds beside it and its reason in "why", so a reader never mistakes a
 * missing value for 0. The order of members is part of the format: the same records give the same
 * bytes.
 */
#include "truthtable/evaluate/verdict_json.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "prereg/program/same_work.h"
#include "truthtable/condition/equal_pairs.h"

/* null and "<key>_bounds" tell a range from a number. */
void verdict_json_put_value(cJSON *obj, const char *key, const struct number *x)
{
    assert(obj != NULL && key != NULL && x != NULL);
    if (number_is_point(x)) {
        json_put_number(obj, key, x->lo);
        return;
    }
    json_put_null(obj, key);
    if (x->known) {
        char name[64];
        cJSON *bounds = json_array();
        json_push_number(bounds, x->lo); /* null where unbounded */
        json_push_number(bounds, x->hi);
        (void)snprintf(name, sizeof(name), "%s_bounds", key);
        json_put(obj, name, bounds);
    }
}

/* true, false, or null for unknown. */
static cJSON *truth_json(enum truth t)
{
    return t == TRUTH_UNKNOWN ? cJSON_CreateNull() : cJSON_CreateBool(t == TRUTH_TRUE);
}

/* For each input its level, the levels that are possible, and what each condition holds as. */
cJSON *verdict_json_inputs(const struct table_evaluation *ev)
{
    assert(ev != NULL && ev->rules != NULL);
    const struct plan_program *p = ev->rules->program;
    cJSON *list = json_array();
    for (size_t i = 0; i < p->n_inputs; i++) {
        const struct plan_input *in = &p->inputs[i];
        const struct input_state *st = &ev->inputs[i];
        cJSON *o = json_object();
        cJSON *possible = json_array();
        cJSON *holds = json_array();
        json_put_string(o, "name", in->name);
        /* null while more than one level is possible. */
        json_put_string(o, "level", st->level == INDEX_NONE ? NULL : in->levels[st->level].name);
        for (size_t l = 0; l < in->n_levels; l++) {
            if (st->possible[l]) {
                json_push_string(possible, in->levels[l].name);
            }
            json_push(holds, truth_json(st->holds[l]));
        }
        json_put(o, "possible", possible);
        json_put_string(o, "why", st->why);
        json_put(o, "holds", holds);
        json_push(list, o);
    }
    return list;
}

/* [least, most]: equal ends once nothing is missing. */
cJSON *verdict_json_counters(const struct table_evaluation *ev)
{
    assert(ev != NULL && ev->rules != NULL);
    const struct plan_program *p = ev->rules->program;
    cJSON *o = json_object();
    for (size_t i = 0; i < p->n_counters; i++) {
        cJSON *range = json_array();
        json_push_number(range, ev->counters[i].lo);
        json_push_number(range, ev->counters[i].hi);
        json_put(o, p->counters[i].name, range);
    }
    return o;
}

/* Cells by name. */
static cJSON *excluded_json(const struct plan_program *p, const size_t *cells, size_t n)
{
    cJSON *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_push_string(list, p->cells[cells[i]].name);
    }
    return list;
}

/* The fields named, then `excluded`, then the first reason for a null among them. */
static void put_fields(cJSON *o, const struct plan_program *p, const struct figure *f,
                       const enum contrast_field *fields, size_t n)
{
    const char *why = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct number *x = &f->fields[fields[i]];
        verdict_json_put_value(o, contrast_field_name(fields[i]), x);
        /* A Bayes factor is absent by plan more often than by accident. */
        if (!x->known && why == NULL && fields[i] != FIELD_BF10) {
            why = x->why;
        }
    }
    json_put(o, "excluded", excluded_json(p, f->excluded, f->n_excluded));
    if (why != NULL) {
        json_put_string(o, "why", why);
    }
}

/* What sampling items leaves open, of a proportion. */
static void put_items(cJSON *o, const struct plan_measure *m, const struct figure *f)
{
    const struct number *se = &f->fields[FIELD_ITEM_SE];
    if (!measure_is_share(m)) {
        return;
    }
    for (int i = FIELD_ITEM_SE; i <= FIELD_ITEM_HIGH; i++) {
        verdict_json_put_value(o, contrast_field_name((enum contrast_field)i), &f->fields[i]);
    }
    if (!se->known) {
        json_put_string(o, "item_why", se->why);
    }
}

/* One contrast in one measure, with its settings. */
static cJSON *measure_figure_json(const struct table_evaluation *ev, size_t contrast,
                                  size_t measure)
{
    static const enum contrast_field fields[] = {FIELD_N,      FIELD_MEAN,    FIELD_SD,  FIELD_SE,
                                                 FIELD_CI_LOW, FIELD_CI_HIGH, FIELD_BF10};
    const struct plan_program *p = ev->rules->program;
    const struct figure *f = &ev->per_measure[contrast * p->n_measures + measure];
    const struct contrast_layout *cl = &ev->rules->layout.contrasts[contrast];
    cJSON *o = json_object();
    cJSON *settings = json_array();
    json_put_string(o, "measure", p->measures[measure].name);
    json_put_bool(o, "counted", p->measures[measure].counted);
    put_fields(o, p, f, fields, sizeof(fields) / sizeof(fields[0]));
    put_items(o, &p->measures[measure], f);
    for (size_t s = 0; s < cl->n_settings; s++) {
        cJSON *at = json_object();
        json_put_string(at, "setting", cl->names[s]);
        verdict_json_put_value(at, "difference", &f->settings[s]);
        json_push(settings, at);
    }
    json_put(o, "settings", settings);
    return o;
}

/* What is compared, and under which pinned levels; of a difference, its two contrasts. */
static void put_sides(cJSON *o, const struct plan_program *p, const struct plan_contrast *k)
{
    if (k->is_difference) {
        json_put_string(o, "of", p->contrasts[k->of].name);
        json_put_string(o, "minus", p->contrasts[k->minus].name);
        return;
    }
    const struct plan_factor *f = &p->factors[k->factor];
    cJSON *between = json_object();
    json_put_string(between, "factor", f->name);
    json_put_string(between, "a", f->levels[k->level_a].text);
    json_put_string(between, "b", f->levels[k->level_b].text);
    json_put(o, "between", between);
    cJSON *where = json_object();
    for (size_t i = 0; i < k->n_where; i++) {
        const struct plan_factor *w = &p->factors[k->where[i].factor];
        json_put_string(where, w->name, w->levels[k->where[i].level].text);
    }
    json_put(o, "where", where);
}

/* Every contrast with its pooled figures and one element for each measure. */
cJSON *verdict_json_contrasts(const struct table_evaluation *ev)
{
    assert(ev != NULL && ev->rules != NULL);
    static const enum contrast_field fields[] = {
        FIELD_N, FIELD_MEAN, FIELD_MIN, FIELD_MAX, FIELD_MAX_ABS, FIELD_MEAN_ABS, FIELD_SIGN};
    const struct plan_program *p = ev->rules->program;
    cJSON *list = json_array();
    for (size_t k = 0; k < p->n_contrasts; k++) {
        cJSON *o = json_object();
        cJSON *pooled = json_object();
        cJSON *measures = json_array();
        json_put_string(o, "name", p->contrasts[k].name);
        put_sides(o, p, &p->contrasts[k]);
        json_put_string(o, "over", p->contrasts[k].over == OVER_CLEARED ? "cleared" : "counted");
        put_fields(pooled, p, &ev->pooled[k], fields, sizeof(fields) / sizeof(fields[0]));
        json_put(o, "pooled", pooled);
        for (size_t m = 0; m < p->n_measures; m++) {
            json_push(measures, measure_figure_json(ev, k, m));
        }
        json_put(o, "measures", measures);
        json_push(list, o);
    }
    return list;
}

/* One pair of conditions in one measure. */
static cJSON *pair_json(const struct table_evaluation *ev, size_t measure, size_t a, size_t b)
{
    const struct plan_program *p = ev->rules->program;
    struct condition_pair pair = evaluation_pair(ev, measure, a, b);
    cJSON *o = json_object();
    json_put_string(o, "measure", p->measures[measure].name);
    json_put_string(o, "a", p->conditions[a].name);
    json_put_string(o, "b", p->conditions[b].name);
    verdict_json_put_value(o, "difference", &pair.mean);
    verdict_json_put_value(o, "se", &pair.se);
    if (!pair.se.known) {
        json_put_string(o, "why", pair.mean.known ? pair.se.why : pair.mean.why);
    }
    verdict_json_put_value(o, "n", &pair.n);
    json_put(o, "excluded", excluded_json(p, pair.excluded, pair.n_excluded));
    return o;
}

/* All pairs grow with the square of the conditions; above PAIRS_MAX only their number is
 * written. */
cJSON *verdict_json_pairs(const struct table_evaluation *ev)
{
    assert(ev != NULL && ev->rules != NULL);
    const struct plan_program *p = ev->rules->program;
    cJSON *o = json_object();
    cJSON *list = json_array();
    size_t n_counted = 0;
    for (size_t m = 0; m < p->n_measures; m++) {
        n_counted += p->measures[m].counted ? 1 : 0;
    }
    /* Pairs of conditions times counted measures. */
    size_t n = p->n_conditions * (p->n_conditions - (p->n_conditions > 0 ? 1 : 0)) / 2 * n_counted;
    for (size_t m = 0; m < p->n_measures && n <= PAIRS_MAX; m++) {
        for (size_t a = 0; a < p->n_conditions && p->measures[m].counted; a++) {
            for (size_t b = a + 1; b < p->n_conditions; b++) {
                json_push(list, pair_json(ev, m, a, b));
            }
        }
    }
    json_put_int(o, "n", (int64_t)n);
    json_put(o, "list", list);
    return o;
}

/* "pending" occurs only before the end of a program. */
static cJSON *tally_json(const struct tally *t)
{
    cJSON *o = json_object();
    json_put_int(o, "planned", (int64_t)t->planned);
    json_put_int(o, "done", (int64_t)t->done);
    json_put_int(o, "blocked", (int64_t)t->blocked);
    json_put_int(o, "never_run", (int64_t)t->never_run);
    if (t->pending > 0) {
        json_put_int(o, "pending", (int64_t)t->pending);
    }
    if (t->reused > 0) {
        json_put_int(o, "reused", (int64_t)t->reused);
    }
    return o;
}

/* The accounting: planned = done + blocked + never run, for tasks, records and counted tasks. */
cJSON *verdict_json_coverage(const struct coverage *c)
{
    assert(c != NULL);
    cJSON *o = json_object();
    cJSON *counted = tally_json(&c->counted);
    json_put_int(counted, "excluded", (int64_t)c->n_excluded);
    json_put_int(counted, "budget", (int64_t)c->budget);
    json_put(o, "tasks", tally_json(&c->tasks));
    json_put(o, "records", tally_json(&c->records));
    json_put(o, "counted", counted);
    if (c->reused_root != NULL) {
        cJSON *reused = json_object();
        json_put_string(reused, "root", c->reused_root);
        json_put_int(reused, "cells", (int64_t)c->reused_cells);
        json_put_int(reused, "tasks", (int64_t)c->reused_tasks);
        json_put(o, "reused", reused);
    }
    return o;
}

/* Conditions on timings are kept apart: they would make two equal runs differ in bytes. */
cJSON *verdict_json_validity(const struct table_evaluation *ev, bool timing)
{
    assert(ev != NULL && ev->rules != NULL);
    const struct plan_program *p = ev->rules->program;
    cJSON *list = json_array();
    for (size_t i = 0; i < p->n_validity; i++) {
        const struct plan_validity *v = &p->validity[i];
        const char *why = NULL;
        /* One list for the verdict, the other for provenance.json. */
        if (v->timing != timing) {
            continue;
        }
        enum truth t = evaluation_truth(ev, ev->rules->validity[i], TRUTH_UNKNOWN, &why);
        cJSON *o = json_object();
        json_put_string(o, "name", v->name);
        json_put_string(o, "condition", v->condition.text);
        json_put_string(o, "on_fail", v->on_fail == ON_FAIL_VOID ? "void" : "flag");
        json_put(o, "holds", truth_json(t));
        json_put_string(o, "why", why);
        json_push(list, o);
    }
    return list;
}

/* Imported records without n rest on the plan's number of items. */
static void note_items(const struct table_evaluation *ev, cJSON *notes)
{
    const struct plan_program *p = ev->rules->program;
    for (size_t m = 0; m < p->n_measures; m++) {
        size_t n = 0;
        for (size_t c = 0; c < p->n_cells; c++) {
            const struct score *s = &ev->reading->scores[m * p->n_cells + c];
            /* Unknown scores rest on no count. */
            n += s->n_from_items && s->value.known ? 1 : 0;
        }
        if (n > 0) {
            char text[256];
            (void)snprintf(text, sizeof(text),
                           "%s: %zu of %zu records have no item count; the plan's %lld stands in",
                           p->measures[m].name, n, p->n_cells, (long long)p->measures[m].items);
            json_push_string(notes, text);
        }
    }
}

/* A score that was known before the lock supports no claim that the plan was made without it. */
static void note_reused(const struct table_evaluation *ev, const struct coverage *c, cJSON *notes)
{
    const size_t n = ev->rules->program->n_cells;
    char text[256];
    if (c->reused_root != NULL) {
        (void)snprintf(text, sizeof(text),
                       "%zu of %zu cells are reused from an earlier receipt (root %.16s): their "
                       "scores were known before this program was locked, so they do not confirm "
                       "what it predicts",
                       c->reused_cells, n, c->reused_root);
        json_push_string(notes, text);
    }
}

/* What ran once for several cells, and the comparisons that are none for it. */
static void note_same_work(const struct table_evaluation *ev, cJSON *notes)
{
    const struct plan_program *p = ev->rules->program;
    char text[256];
    const size_t n = program_n_other_names(p);
    if (n > 0) {
        (void)snprintf(text, sizeof(text),
                       "%zu of %zu tasks are another name of a work: its result is theirs, too", n,
                       program_n_tasks(p));
        json_push_string(notes, text);
    }
    for (size_t i = 0; n > 0 && i < p->n_contrasts * p->n_measures; i++) {
        const size_t k = i / p->n_measures;
        const size_t m = i % p->n_measures;
        if (contrast_is_equal(p, &ev->rules->layout, k, m)) {
            (void)snprintf(text, sizeof(text), "contrast %.80s in %.80s is 0 by construction",
                           p->contrasts[k].name, p->measures[m].name);
            json_push_string(notes, text);
        }
    }
}

#define COPIES_SHOWN 20

/* First, because copies among the replicates change what everything else means. */
static void note_copies(const struct table_evaluation *ev, cJSON *notes)
{
    const struct table_reading *r = ev->reading;
    const size_t n = ev->rules->program->n_measures * ev->rules->program->n_cells;
    size_t n_said = 0;
    for (size_t i = 0; i < n && r->n_copies > 0 && n_said < COPIES_SHOWN; i++) {
        const char *copy = r->scores[i].copy;
        /* Several scores may be copies for the same reason, which is noted once. */
        bool said = copy == NULL;
        for (const cJSON *o = notes->child; o != NULL && !said; o = o->next) {
            said = strcmp(o->valuestring, copy) == 0;
        }
        if (!said) {
            json_push_string(notes, copy);
            n_said++;
        }
    }
}

/* "2", or "1 to 3". */
static void counter_text(const struct number *k, char out[static 64])
{
    int n = snprintf(out, 64, "%.0f", k->lo);
    if (k->hi > k->lo) {
        (void)snprintf(out + n, 64 - (size_t)n, " to %.0f", k->hi);
    }
}

/* Counters that disagree with the binding one are worth a sentence: the choice of counter then
 * matters. */
static void note_counters(const struct table_evaluation *ev, cJSON *notes)
{
    const struct plan_program *p = ev->rules->program;
    for (size_t i = 0; i < p->n_counters && p->binding_counter != INDEX_NONE; i++) {
        const struct number *own = &ev->counters[i];
        const struct number *binding = &ev->counters[p->binding_counter];
        if (own->lo != binding->lo || own->hi != binding->hi) {
            char text[512];
            char here[64];
            char there[64];
            counter_text(own, here);
            counter_text(binding, there);
            (void)snprintf(text, sizeof(text),
                           "counters disagree: %s is %s, %s (which binds) is %s",
                           p->counters[i].name, here, p->counters[p->binding_counter].name, there);
            json_push_string(notes, text);
        }
    }
}

/* In the order of their weight. */
cJSON *verdict_json_notes(const struct table_evaluation *ev, const struct coverage *c)
{
    assert(ev != NULL && ev->rules != NULL && c != NULL);
    cJSON *notes = json_array();
    note_copies(ev, notes);
    note_reused(ev, c, notes);
    note_same_work(ev, notes);
    note_items(ev, notes);
    note_counters(ev, notes);
    return notes;
}
