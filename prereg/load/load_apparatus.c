/* [apparatus.*]: what a reference model must score before any counted evaluation may start, and
 * again after the last one. */
#include <string.h>

#include "base/xalloc.h"
#include "prereg/load/load.h"
#include "prereg/program/apparatus_name.h"

#define APPARATUS_MAX ((size_t)64)

/* Checks value and tolerance of a metric that some measure reads as a share: 27.37 written for
 * 0.2737 would never hold, and a tolerance of 1 always. */
static void check_share(struct load *l, const struct plan_apparatus *a, const struct toml_node *t)
{
    const struct plan_measure *share = NULL;
    for (size_t i = 0; i < l->p->n_measures; i++) {
        const struct plan_measure *m = &l->p->measures[i];
        if (strcmp(m->metric_text, a->metric_text) == 0 && measure_is_share(m)) {
            share = m;
        }
    }
    if (share != NULL && !(a->value >= 0 && a->value <= 1)) {
        load_error(l, toml_member(t, "value"), "%.15g is outside 0..1: a share, as 0.90", a->value);
    } else if (share != NULL && a->value - a->within <= 0 && a->value + a->within >= 1) {
        load_error(l, toml_member(t, "within"), "every score would hold");
    }
}

/* A tolerance; *out stays as it is where none is stated. */
static void load_tolerance(struct load *l, const struct toml_node *t, const char *key, double *out)
{
    if (load_number(l, t, key, out) && !(*out >= 0)) {
        load_error(l, toml_member(t, key), "a tolerance is not negative");
    }
}

/* {metric, value, within, again}: all but the last are needed, and the metric must be one of the
 * check's stage. */
static void load_expect(struct load *l, struct plan_apparatus *a, const struct toml_node *t)
{
    static const char *const keys[] = {"metric", "value", "within", "again"};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    if (load_text(l, t, "metric", true, &a->metric_text)) {
        const struct toml_node *at = toml_member(t, "metric");
        size_t stage = INDEX_NONE;
        const char *metric = load_metric(l, at, a->metric_text, &stage);
        a->metric = metric == NULL ? "" : metric;
        if (stage != INDEX_NONE && a->stage != INDEX_NONE && stage != a->stage) {
            load_error(l, at, "\"%s\" is not a metric of stage \"%s\"", a->metric_text,
                       l->p->stages[a->stage].name);
        }
    }
    if (load_need(l, t, "value", TOML_FLOAT) != NULL) {
        (void)load_number(l, t, "value", &a->value);
    }
    if (load_need(l, t, "within", TOML_FLOAT) != NULL) {
        load_tolerance(l, t, "within", &a->within);
    }
    load_tolerance(l, t, "again", &a->again);
    check_share(l, a, t);
}

/* The "$factor" in it, at any depth; NULL: none. */
static const char *find_factor(const struct plan_program *p, const cJSON *v)
{
    if (cJSON_IsString(v) && v->valuestring[0] == '$' &&
        program_find_factor(p, v->valuestring + 1) != INDEX_NONE) {
        return v->valuestring;
    }
    const char *found = NULL;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, v)
    {
        found = found != NULL ? found : find_factor(p, item);
    }
    return found;
}

/* A reference model belongs to no cell: the stage's parameters must be the same in every cell,
 * and the model replaces the input that the stage waits for. */
static void check_stage(struct load *l, const struct toml_node *at, const struct plan_stage *s)
{
    const char *factor = find_factor(l->p, s->params);
    if (s->n_after == 0) {
        load_error(l, at,
                   "stage \"%s\" comes after no stage: it has no input that a reference model "
                   "could replace",
                   s->name);
    }
    if (factor != NULL || (s->when != NULL && s->when->child != NULL)) {
        load_error(l, at,
                   "the parameters of stage \"%s\" depend on a factor (%s): a reference model has "
                   "no cell",
                   s->name, factor != NULL ? factor : "[stage.when]");
    }
}

/* Adds NAME@end for each of the n checks. */
static void add_ends(struct plan_program *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct plan_apparatus *end = &p->apparatus[p->n_apparatus++];
        *end = p->apparatus[i];
        end->name = arena_printf(&p->arena, "%s" APPARATUS_END, p->apparatus[i].name);
        end->first = i;
    }
}

/* Every table becomes an entry, also a faulty one: later readers report what they find in it. */
void load_apparatus(struct load *l)
{
    static const char *const keys[] = {"stage", "model", "expect"};
    struct plan_program *p = l->p;
    const struct toml_node *section = load_section(l, "apparatus", TOML_TABLE, APPARATUS_MAX);
    if (section == NULL) {
        return;
    }
    p->apparatus = arena_array(&p->arena, 2 * section->n_items, sizeof(*p->apparatus));
    for (size_t i = 0; i < section->n_items; i++) {
        const struct toml_node *t = section->items[i];
        struct plan_apparatus *a = &p->apparatus[p->n_apparatus++];
        *a = (struct plan_apparatus){.name = t->key,
                                     .first = INDEX_NONE,
                                     .stage = INDEX_NONE,
                                     .model = "",
                                     .metric_text = "",
                                     .metric = "",
                                     .spec = t->json,
                                     .place = load_key_place(t)};
        load_check_keys(l, t, keys, ARRAY_LEN(keys));
        const struct toml_node *stage = load_need(l, t, "stage", TOML_STRING);
        if (stage != NULL) {
            a->stage = load_lookup(l, stage, names_stages(l->p));
        }
        if (a->stage != INDEX_NONE) {
            check_stage(l, stage, &p->stages[a->stage]);
        }
        (void)load_text(l, t, "model", true, &a->model);
        const struct toml_node *expect = load_need(l, t, "expect", TOML_TABLE);
        if (expect != NULL) {
            load_expect(l, a, expect);
        }
    }
    add_ends(p, section->n_items);
}
