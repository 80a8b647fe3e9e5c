/* Parameters that depend on the cell: [stage.X.when.FACTOR] and "$factor". They are only checked
 * here; program_task_params() applies them for each cell. The places of all parameters are
 * recorded, so that an error that a worker reports can point at the line that sets the
 * parameter. */
#include <string.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/load/load.h"

/* "$Ir" names nothing and stays what it is; where a factor is called "lr", that was hardly meant.
 */
static void warn_of_near(struct load *l, const struct toml_node *n)
{
    const char *near = load_nearest(n->string + 1, names_factors(l->p));
    const bool is_word = (n->string[1] | 0x20) >= 'a' && (n->string[1] | 0x20) <= 'z';
    if (near != NULL && is_word) {
        load_warn(l, n, "\"%.80s\" names no factor and stays a string; did you mean \"$%s\"?",
                  n->string, near);
    }
}

/* A string of the form $name is replaced by a factor's level; every other string is itself. */
static void check_substitutions(struct load *l, const struct toml_node *n)
{
    for (size_t i = 0; i < n->n_items; i++) {
        check_substitutions(l, n->items[i]);
    }
    if (n->kind != TOML_STRING || n->string[0] != '$') {
        return;
    }
    if (!text_is_name(n->string + 1)) {
        warn_of_near(l, n);
        return;
    }
    struct toml_node name = *n;
    name.string = n->string + 1;
    (void)load_lookup(l, &name, names_factors(l->p));
}

/* Every key must be a level of the factor, in any notation, each at most once. */
static void check_when_factor(struct load *l, const struct toml_node *table)
{
    const struct plan_factor *f = &l->p->factors[program_find_factor(l->p, table->key)];
    if (!load_is(l, table, TOML_TABLE)) {
        return;
    }
    size_t *seen = xcalloc(f->n_levels, sizeof(*seen));
    for (size_t i = 0; i < table->n_items; i++) {
        const struct toml_node *m = table->items[i];
        size_t level = program_find_level(f, m->key);
        if (f->n_levels == 0) {
            continue; /* reported already */
        }
        if (level == INDEX_NONE) {
            (void)load_lookup_key(l, m, names_levels(f));
        } else if (seen[level]++ > 0) {
            load_error_key(l, m, "level \"%s\" is duplicated", f->levels[level].text);
        }
        if (load_is(l, m, TOML_TABLE)) {
            check_substitutions(l, m);
        }
    }
    free(seen);
}

/* Checks params and every table under `when`; wrong types were reported by load_stages(). */
static void check_stage(struct load *l, const struct toml_node *t)
{
    const struct toml_node *params = toml_member(t, "params");
    const struct toml_node *when = toml_member(t, "when");
    if (params != NULL && params->kind == TOML_TABLE) {
        check_substitutions(l, params);
    }
    for (size_t i = 0; when != NULL && when->kind == TOML_TABLE && i < when->n_items; i++) {
        if (load_lookup_key(l, when->items[i], names_factors(l->p)) != INDEX_NONE) {
            check_when_factor(l, when->items[i]);
        }
    }
}

/* ---- places of parameters ---- */

struct param_places {
    struct load *l;
    struct plan_stage *stage;
    size_t cap;
    size_t factor;
    size_t level;
};

/* Records the place of every key below the table; tables are entered, arrays are not. */
static void add_places(struct param_places *at, const struct toml_node *table, const char *prefix)
{
    for (size_t i = 0; i < table->n_items; i++) {
        const struct toml_node *m = table->items[i];
        const char *path =
            arena_printf(&at->l->p->arena, "%s%s%s", prefix, prefix[0] == '\0' ? "" : ".", m->key);
        if (at->stage->n_params_at == at->cap) {
            size_t cap = at->cap == 0 ? 32 : 2 * at->cap;
            struct param_place *more = arena_array(&at->l->p->arena, cap, sizeof(*more));
            if (at->cap > 0) {
                memcpy(more, at->stage->params_at, at->cap * sizeof(*more));
            }
            at->stage->params_at = more;
            at->cap = cap;
        }
        at->stage->params_at[at->stage->n_params_at++] =
            (struct param_place){path, at->factor, at->level, load_key_place(m)};
        if (m->kind == TOML_TABLE) {
            add_places(at, m, path);
        }
    }
}

/* Places in params first, then those under `when`: later ones override, as their values do. */
static void note_places(struct load *l, struct plan_stage *s, const struct toml_node *t)
{
    const struct toml_node *params = toml_member(t, "params");
    const struct toml_node *when = toml_member(t, "when");
    struct param_places at = {.l = l, .stage = s, .factor = INDEX_NONE};
    if (params != NULL && params->kind == TOML_TABLE) {
        add_places(&at, params, "");
    }
    for (size_t i = 0; when != NULL && when->kind == TOML_TABLE && i < when->n_items; i++) {
        const struct toml_node *of = when->items[i];
        at.factor = program_find_factor(l->p, of->key);
        for (size_t k = 0; at.factor != INDEX_NONE && of->kind == TOML_TABLE && k < of->n_items;
             k++) {
            at.level = program_find_level(&l->p->factors[at.factor], of->items[k]->key);
            if (at.level != INDEX_NONE && of->items[k]->kind == TOML_TABLE) {
                add_places(&at, of->items[k], "");
            }
        }
    }
}

void load_params(struct load *l)
{
    const struct toml_node *section = toml_member(l->root, "stage");
    for (size_t i = 0; i < l->p->n_stages; i++) {
        check_stage(l, toml_member(section, l->p->stages[i].name));
        note_places(l, &l->p->stages[i], toml_member(section, l->p->stages[i].name));
    }
}
