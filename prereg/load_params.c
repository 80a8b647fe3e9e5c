/* Parameters that depend on the cell: [stage.X.when.FACTOR] and "$factor". */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/load.h"

/* A string of the form $name stands for a factor's level; every other string is itself. */
static void check_substitutions(struct load *l, const struct toml_node *n)
{
    for (size_t i = 0; i < n->n_items; i++) {
        check_substitutions(l, n->items[i]);
    }
    if (n->kind != TOML_STRING || n->string[0] != '$' || !text_is_name(n->string + 1)) {
        return;
    }
    struct toml_node name = *n;
    name.string = n->string + 1;
    (void)load_lookup(l, &name, names_factors(l->p));
}

static void check_when_factor(struct load *l, const struct toml_node *table)
{
    const struct factor *f = &l->p->factors[program_find_factor(l->p, table->key)];
    if (!load_is(l, table, TOML_TABLE)) {
        return;
    }
    size_t *seen = xcalloc(f->n_levels, sizeof(*seen));
    for (size_t i = 0; i < table->n_items; i++) {
        const struct toml_node *m = table->items[i];
        size_t level = program_find_level(f, m->key);
        if (f->n_levels == 0) {
            continue; /* said already */
        }
        if (level == INDEX_NONE) {
            (void)load_lookup_key(l, m, names_levels(f));
        } else if (seen[level]++ > 0) {
            load_error_key(l, m, "level \"%s\" stands twice", f->levels[level].text);
        }
        if (load_is(l, m, TOML_TABLE)) {
            check_substitutions(l, m);
        }
    }
    free(seen);
}

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

void load_params(struct load *l)
{
    const struct toml_node *section = toml_member(l->root, "stage");
    for (size_t i = 0; i < l->p->n_stages; i++) {
        check_stage(l, toml_member(section, l->p->stages[i].name));
    }
}
