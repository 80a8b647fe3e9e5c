/*
 * Reads [[same_work]]: across which levels of a factor, where, and in which stages the tasks are
 * one work. That the parameters agree is for `check`, which can ask the worker; what is refused
 * here is what could not be one work whatever the parameters are.
 */
#include "base/xalloc.h"
#include "prereg/load/load.h"

#define SAME_WORK_MAX ((size_t)64)

/* levels = [a, b, ...]: two or more of the factor's, each once; all of them by default. */
static void load_same_levels(struct load *l, struct plan_same_work *e, const struct toml_node *t)
{
    const struct plan_factor *f = &l->p->factors[e->factor];
    const struct toml_node *list = load_member(l, t, "levels", TOML_ARRAY);
    e->levels =
        arena_array(&l->p->arena, list == NULL ? f->n_levels : list->n_items, sizeof(*e->levels));
    for (size_t i = 0; list == NULL && i < f->n_levels; i++) {
        e->levels[e->n_levels++] = i;
    }
    for (size_t i = 0; list != NULL && i < list->n_items; i++) {
        size_t level = load_level(l, f, list->items[i]);
        for (size_t k = 0; k < e->n_levels && level != INDEX_NONE; k++) {
            if (e->levels[k] == level) {
                load_error(l, list->items[i], "level \"%s\" is duplicated", f->levels[level].text);
                level = INDEX_NONE;
            }
        }
        if (level != INDEX_NONE) {
            e->levels[e->n_levels++] = level;
        }
    }
    if (list != NULL && list->n_items < 2) {
        load_error(l, list, "expected two levels or more, found %zu", list->n_items);
    }
}

/* A stage whose input differs is not the same work, whatever its own parameters are. */
static void check_inputs_same(struct load *l, const struct plan_same_work *e,
                              const struct toml_node *list)
{
    const struct plan_program *p = l->p;
    for (size_t s = 0; s < p->n_stages; s++) {
        for (size_t i = 0; stage_set_has(&e->stages, s) && i < p->stages[s].n_after; i++) {
            const size_t before = p->stages[s].after[i];
            if (!stage_set_has(&e->stages, before)) {
                load_error(l, list,
                           "\"%s\" comes after \"%s\", which is not listed: with another input it "
                           "is not the same work; add \"%s\"",
                           p->stages[s].name, p->stages[before].name, p->stages[before].name);
            }
        }
    }
}

/* stages = ["train", ...]; all of them by default. */
static void load_same_stages(struct load *l, struct plan_same_work *e, const struct toml_node *t)
{
    const struct toml_node *list = load_member(l, t, "stages", TOML_ARRAY);
    bool sound = true;
    for (size_t s = 0; list == NULL && s < l->p->n_stages; s++) {
        stage_set_add(&e->stages, s);
    }
    for (size_t i = 0; list != NULL && i < list->n_items; i++) {
        const size_t stage = load_lookup(l, list->items[i], names_stages(l->p));
        sound = sound && stage != INDEX_NONE;
        stage_set_add(&e->stages, stage);
    }
    if (list != NULL && list->n_items == 0) {
        load_error(l, list, "expected one stage or more, found none");
    } else if (list != NULL && sound) {
        check_inputs_same(l, e, list);
    }
}

/* Replicates are never one work: they would have no spread. */
static size_t load_across(struct load *l, const struct toml_node *t)
{
    const struct toml_node *across = load_need(l, t, "across", TOML_STRING);
    const size_t factor = across == NULL ? INDEX_NONE : load_lookup(l, across, names_factors(l->p));
    if (factor == INDEX_NONE) {
        return INDEX_NONE;
    }
    if (l->p->factors[factor].replicate) {
        load_error(l, across,
                   "\"%s\" is a replicate factor: replicates that are one work have no "
                   "spread; declare a single level instead",
                   across->string);
        return INDEX_NONE;
    }
    if (l->p->factors[factor].n_levels == 1) {
        load_error(l, across, "\"%s\" has one level: there is nothing to run once instead of twice",
                   across->string);
        return INDEX_NONE;
    }
    return factor;
}

static void load_entry(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"across", "levels", "where", "stages"};
    struct plan_program *p = l->p;
    struct plan_same_work *e = &p->same_work[p->n_same_work];
    *e = (struct plan_same_work){.factor = INDEX_NONE, .place = load_place(t)};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    e->factor = load_across(l, t);
    if (e->factor == INDEX_NONE) {
        return; /* what follows is relative to it */
    }
    load_same_levels(l, e, t);
    const struct toml_node *where = load_member(l, t, "where", TOML_TABLE);
    if (where != NULL) {
        e->n_where = load_settings(l, where, e->factor, &e->where);
    }
    load_same_stages(l, e, t);
    p->n_same_work++;
}

void load_same_work(struct load *l)
{
    struct toml_node *section = load_tables(l, "same_work", SAME_WORK_MAX);
    if (section == NULL) {
        return;
    }
    l->p->same_work = arena_array(&l->p->arena, section->n_items, sizeof(*l->p->same_work));
    for (size_t i = 0; i < section->n_items; i++) {
        load_entry(l, section->items[i]);
    }
}
