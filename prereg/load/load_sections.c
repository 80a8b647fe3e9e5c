/* [exclusion], [validity], [forecast], [pin], [lock] and [release]: the small sections, each a few
 * keys with ranges. Conditions are stored as text; truthtable/ compiles them. */
#include <string.h>

#include "base/xalloc.h"
#include "prereg/load/load.h"

#define RULES_MAX     ((size_t)1024)
#define PIN_FILES_MAX ((size_t)4096)

/* budget: the share of tasks that may be lost; every_cell: whether an excluded cell fails a
 * counter. */
void load_exclusion(struct load *l)
{
    static const char *const keys[] = {"budget", "every_cell"};
    static const char *const every_cell[] = {"unknown", "fails", NULL};
    const struct toml_node *t = load_member(l, l->root, "exclusion", TOML_TABLE);
    if (t == NULL) {
        return;
    }
    struct plan_program *p = l->p;
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    if (load_number(l, t, "budget", &p->exclusion_budget) &&
        !(p->exclusion_budget >= 0 && p->exclusion_budget < 1)) {
        load_error(l, toml_member(t, "budget"),
                   "%.15g is not a share of the tasks: 0 or more, less than 1",
                   p->exclusion_budget);
    }
    size_t word = 0;
    (void)load_word(l, t, "every_cell", every_cell, &word);
    p->excluded_fails = word == 1;
}

/* {condition, on_fail, timing}. */
static void load_validity_entry(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"condition", "on_fail", "timing"};
    static const char *const on_fail[] = {"flag", "void", NULL};
    struct plan_validity *v = &l->p->validity[l->p->n_validity++];
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    *v = (struct plan_validity){.name = t->key, .condition = load_condition(l, t)};
    size_t word = 0;
    if (load_need(l, t, "on_fail", TOML_STRING) != NULL) {
        (void)load_word(l, t, "on_fail", on_fail, &word);
    }
    v->on_fail = word == 1 ? ON_FAIL_VOID : ON_FAIL_FLAG;
    (void)load_bool(l, t, "timing", &v->timing);
    if (v->timing && v->on_fail == ON_FAIL_VOID) {
        load_error(l, toml_member(t, "timing"),
                   "what rests on timings cannot void: the verdict would depend on the machine");
    }
}

void load_validity(struct load *l)
{
    const struct toml_node *section = load_section(l, "validity", TOML_TABLE, RULES_MAX);
    if (section == NULL) {
        return;
    }
    l->p->validity = arena_array(&l->p->arena, section->n_items, sizeof(*l->p->validity));
    for (size_t i = 0; i < section->n_items; i++) {
        load_validity_entry(l, section->items[i]);
    }
}

/* {condition, confidence}; the confidence is strictly between 0 and 1, or its score would be
 * infinite. */
void load_forecasts(struct load *l)
{
    static const char *const keys[] = {"condition", "confidence"};
    struct plan_program *p = l->p;
    const struct toml_node *section = load_section(l, "forecast", TOML_TABLE, RULES_MAX);
    if (section == NULL) {
        return;
    }
    p->forecasts = arena_array(&p->arena, section->n_items, sizeof(*p->forecasts));
    for (size_t i = 0; i < section->n_items; i++) {
        const struct toml_node *t = section->items[i];
        struct plan_forecast *f = &p->forecasts[p->n_forecasts++];
        load_check_keys(l, t, keys, ARRAY_LEN(keys));
        *f = (struct plan_forecast){.name = t->key, .condition = load_condition(l, t)};
        if (load_need(l, t, "confidence", TOML_FLOAT) != NULL &&
            load_number(l, t, "confidence", &f->confidence) &&
            !(f->confidence > 0 && f->confidence < 1)) {
            load_error(l, toml_member(t, "confidence"), "%.15g is not between 0 and 1",
                       f->confidence);
        }
    }
}

/* files: more files to pin; workers: what happens when a worker has changed; gpu: the model of GPU
 * that is part of the apparatus. */
void load_pin(struct load *l)
{
    static const char *const keys[] = {"files", "workers", "gpu"};
    static const char *const workers[] = {"refuse", "record", NULL};
    struct plan_program *p = l->p;
    const struct toml_node *t = load_member(l, l->root, "pin", TOML_TABLE);
    if (t == NULL) {
        return;
    }
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    size_t word = 0;
    (void)load_word(l, t, "workers", workers, &word);
    p->pin_workers_record = word == 1;
    if (load_text(l, t, "gpu", false, &p->pin_gpu)) {
        p->pin_gpu_place = load_place(toml_member(t, "gpu"));
    }
    const struct toml_node *files = load_member(l, t, "files", TOML_ARRAY);
    if (files == NULL) {
        return;
    }
    if (files->n_items > PIN_FILES_MAX) {
        load_error(l, files, "%zu entries; the limit is %zu", files->n_items, PIN_FILES_MAX);
        return;
    }
    p->pin_files = arena_array(&p->arena, files->n_items, sizeof(*p->pin_files));
    for (size_t i = 0; i < files->n_items; i++) {
        const struct toml_node *n = files->items[i];
        if (!load_is(l, n, TOML_STRING)) {
            continue;
        }
        if (n->string[0] == '\0') {
            load_error(l, n, "an empty path");
        } else if (names_find(
                       (struct names){"file", p->pin_files, p->n_pin_files, sizeof(*p->pin_files)},
                       n->string) != INDEX_NONE) {
            load_error(l, n, "\"%s\" is duplicated", n->string);
        }
        p->pin_files[p->n_pin_files++] = n->string;
    }
}

void load_lock_rule(struct load *l)
{
    static const char *const keys[] = {"sign"};
    static const char *const sign[] = {"optional", "required", NULL};
    const struct toml_node *t = load_member(l, l->root, "lock", TOML_TABLE);
    if (t == NULL) {
        return;
    }
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    size_t word = 0;
    (void)load_word(l, t, "sign", sign, &word);
    l->p->sign_required = word == 1;
}

/* requires: roles, each once; an empty list would say that nothing is required. */
void load_release(struct load *l)
{
    static const char *const keys[] = {"requires"};
    const struct names roles = {"role", release_roles, ROLE_NR, sizeof(*release_roles)};
    bool *required = l->p->release.required;
    const struct toml_node *t = load_member(l, l->root, "release", TOML_TABLE);
    if (t == NULL) {
        return;
    }
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    const struct toml_node *list = load_need(l, t, "requires", TOML_ARRAY);
    if (list != NULL && list->n_items == 0) {
        load_error(l, list,
                   "no role; expected some of \"scientific\", \"statistical\" and "
                   "\"adversarial\"");
    }
    for (size_t i = 0; list != NULL && i < list->n_items; i++) {
        const struct toml_node *n = list->items[i];
        const size_t role = load_is(l, n, TOML_STRING) ? load_lookup(l, n, roles) : INDEX_NONE;
        if (role != INDEX_NONE && required[role]) {
            load_error(l, n, "\"%s\" is duplicated", n->string);
        } else if (role != INDEX_NONE) {
            required[role] = true;
        }
    }
}
