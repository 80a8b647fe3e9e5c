/*
 * Reads [scope]: what the author claims and does not claim, the confounds that are admitted, the
 * mechanism in mind and the work that would follow, all before there are data. Texts are kept as
 * they are written. Whether a confound's column exists, and which one is missing, is for `check`,
 * which computes what is held fixed.
 */
#include "base/xalloc.h"
#include "prereg/load/load.h"

#define SCOPE_TEXTS_MAX ((size_t)256)

/* An array of as many items as a report bears; NULL (and an error where it is something else). */
static const struct toml_node *load_scope_list(struct load *l, const struct toml_node *t,
                                               const char *key)
{
    const struct toml_node *list = load_member(l, t, key, TOML_ARRAY);
    if (list != NULL && list->n_items > SCOPE_TEXTS_MAX) {
        load_error(l, list, "%zu entries; the limit is %zu", list->n_items, SCOPE_TEXTS_MAX);
        return NULL;
    }
    return list;
}

/* Sentences, none of them empty. */
static void load_scope_texts(struct load *l, const struct toml_node *t, const char *key,
                             struct plan_texts *out)
{
    const struct toml_node *list = load_scope_list(l, t, key);
    if (list == NULL) {
        return;
    }
    out->items = arena_array(&l->p->arena, list->n_items, sizeof(*out->items));
    for (size_t i = 0; i < list->n_items; i++) {
        const struct toml_node *n = list->items[i];
        if (!load_is(l, n, TOML_STRING)) {
            continue;
        }
        if (n->string[0] == '\0') {
            load_error(l, n, "an empty text");
        }
        out->items[out->n++] = n->string;
    }
}

/* {column, text}: the column may be left out where nothing computes the confound. */
static void load_confounds(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"column", "text"};
    struct plan_scope *scope = &l->p->scope;
    const struct toml_node *list = load_scope_list(l, t, "confounds");
    if (list == NULL) {
        return;
    }
    scope->confounds = arena_array(&l->p->arena, list->n_items, sizeof(*scope->confounds));
    for (size_t i = 0; i < list->n_items; i++) {
        const struct toml_node *n = list->items[i];
        if (!load_is(l, n, TOML_TABLE)) {
            continue;
        }
        struct plan_confound *c = &scope->confounds[scope->n_confounds++];
        load_check_keys(l, n, keys, ARRAY_LEN(keys));
        *c = (struct plan_confound){.text = "", .place = load_place(n)};
        (void)load_text(l, n, "text", true, &c->text);
        if (load_text(l, n, "column", false, &c->column)) {
            c->place = load_place(toml_member(n, "column"));
        }
    }
}

/* {text, forecast}: the forecast that would show it is scored like any other. */
static void load_mechanism(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"text", "forecast"};
    struct plan_program *p = l->p;
    const struct toml_node *m = load_member(l, t, "mechanism", TOML_TABLE);
    if (m == NULL) {
        return;
    }
    load_check_keys(l, m, keys, ARRAY_LEN(keys));
    (void)load_text(l, m, "text", true, &p->scope.mechanism);
    const struct toml_node *forecast = load_member(l, m, "forecast", TOML_STRING);
    if (forecast != NULL) {
        const struct names known = {"forecast", p->forecasts, p->n_forecasts,
                                    sizeof(*p->forecasts)};
        p->scope.forecast = load_lookup(l, forecast, known);
    }
}

void load_scope(struct load *l)
{
    static const char *const keys[] = {"claims", "not_claimed", "confounds", "mechanism",
                                       "forward_work"};
    struct plan_scope *scope = &l->p->scope;
    *scope = (struct plan_scope){.forecast = INDEX_NONE};
    const struct toml_node *t = load_member(l, l->root, "scope", TOML_TABLE);
    if (t == NULL) {
        return;
    }
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    scope->declared = true;
    scope->place = load_place(t);
    load_scope_texts(l, t, "claims", &scope->claims);
    load_scope_texts(l, t, "not_claimed", &scope->not_claimed);
    load_scope_texts(l, t, "forward_work", &scope->forward_work);
    load_confounds(l, t);
    load_mechanism(l, t);
}
