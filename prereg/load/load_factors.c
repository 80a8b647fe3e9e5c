/* [[factor]] and [data]: what differs between cells, and the pinned files. Levels are identified
 * by their text, numbers by their shortest decimal, so that 1 and 1.0 are the same level. That
 * data exists is not checked here (program_check_files()). */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/load/load.h"

#define FACTORS_MAX ((size_t)32)
#define DATA_MAX    ((size_t)1024)

/* The level as cell names show it; NULL for a value that cannot be a level. */
static const char *level_text(struct load *l, const struct toml_node *n)
{
    char number[JSON_NUMBER_MAX];
    switch (n->kind) {
    case TOML_STRING: return n->string;
    case TOML_BOOLEAN: return n->boolean ? "true" : "false";
    case TOML_INTEGER:
    case TOML_FLOAT:
        json_number_text(n->json->valuedouble, number);
        return arena_strdup(&l->p->arena, number);
    case TOML_TABLE:
    case TOML_ARRAY:
    case TOML_DATE: return NULL;
    }
    return NULL;
}

struct numbered {
    const char *text;
    size_t index;
};

static int by_text(const void *a, const void *b)
{
    const struct numbered *x = a;
    const struct numbered *y = b;
    int c = strcmp(x->text, y->text);
    return c != 0 ? c : (x->index < y->index ? -1 : 1);
}

/* Sorts by text, then reports every repeated level at its later place. */
static void check_duplicates(struct load *l, const struct plan_factor *f,
                             const struct toml_node *levels)
{
    struct numbered *order = xcalloc(f->n_levels, sizeof(*order));
    for (size_t i = 0; i < f->n_levels; i++) {
        order[i] = (struct numbered){.text = f->levels[i].text, .index = i};
    }
    qsort(order, f->n_levels, sizeof(*order), by_text);
    for (size_t i = 1; i < f->n_levels; i++) {
        if (strcmp(order[i - 1].text, order[i].text) == 0) {
            load_error(l, levels->items[order[i].index], "level \"%s\" is duplicated",
                       order[i].text);
        }
    }
    free(order);
}

/* Reads all levels; duplicates are searched only among valid ones. */
static void load_levels(struct load *l, struct plan_factor *f, const struct toml_node *levels)
{
    if (levels->n_items == 0) {
        load_error(l, levels, "no levels");
        return;
    }
    f->levels = arena_array(&l->p->arena, levels->n_items, sizeof(*f->levels));
    bool ok = true;
    for (size_t i = 0; i < levels->n_items; i++) {
        const struct toml_node *n = levels->items[i];
        const char *text = level_text(l, n);
        if (text == NULL) {
            load_error(l, n, "a level is a string, a number or true or false, not %s",
                       toml_kind_name(n->kind));
            ok = false;
        } else if (text[0] == '\0') {
            load_error(l, n, "a level without a name");
            ok = false;
        }
        f->levels[i] = (struct plan_level){.text = text == NULL ? "" : text, .value = n->json};
    }
    f->n_levels = levels->n_items;
    if (ok) {
        check_duplicates(l, f, levels);
    }
}

/* {name, levels, replicate}. The factor is counted last, so that its own name is not its
 * duplicate. */
static void load_factor(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"name", "levels", "replicate"};
    struct plan_program *p = l->p;
    struct plan_factor *f = &p->factors[p->n_factors];
    *f = (struct plan_factor){.name = "", .place = load_place(t)};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    if (load_text(l, t, "name", true, &f->name) &&
        load_name_ok(l, toml_member(t, "name"), f->name) &&
        names_find(names_factors(p), f->name) != INDEX_NONE) {
        load_error(l, toml_member(t, "name"), "factor \"%s\" is duplicated", f->name);
    }
    (void)load_bool(l, t, "replicate", &f->replicate);
    const struct toml_node *levels = load_need(l, t, "levels", TOML_ARRAY);
    if (levels != NULL) {
        load_levels(l, f, levels);
    }
    p->n_factors++;
}

void load_factors(struct load *l)
{
    const struct toml_node *tables = load_tables(l, "factor", FACTORS_MAX);
    if (toml_member(l->root, "factor") == NULL || (tables != NULL && tables->n_items == 0)) {
        load_missing(l, "no [[factor]]: nothing is compared");
    }
    if (tables == NULL) {
        return;
    }
    l->p->factors = arena_array(&l->p->arena, tables->n_items, sizeof(*l->p->factors));
    for (size_t i = 0; i < tables->n_items; i++) {
        load_factor(l, tables->items[i]);
    }
}

void load_data(struct load *l)
{
    struct plan_program *p = l->p;
    const struct toml_node *section = load_section(l, "data", TOML_STRING, DATA_MAX);
    if (section == NULL) {
        return;
    }
    p->data = arena_array(&p->arena, section->n_items, sizeof(*p->data));
    for (size_t i = 0; i < section->n_items; i++) {
        const struct toml_node *m = section->items[i];
        if (m->string[0] == '\0') {
            load_error(l, m, "an empty path");
        }
        char *abs_path = path_absolute(p->folder, m->string);
        p->data[p->n_data++] = (struct data_input){.name = m->key,
                                                   .path = m->string,
                                                   .abs_path = arena_strdup(&p->arena, abs_path),
                                                   .place = load_place(m)};
        free(abs_path);
    }
}
