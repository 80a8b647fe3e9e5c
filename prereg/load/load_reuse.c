/*
 * Reads [reuse]: the folder of an earlier receipt, and which cells it gives results for. Names of
 * cells are kept as written, since the cells are not expanded yet; prereg/reuse/ resolves them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "prereg/load/load.h"

#define REUSE_CELLS_MAX ((size_t)4096)

/* { FACTOR = LEVEL, ... }: replicates may be named, unlike in what is compared. */
static void load_selection(struct load *l, struct plan_reuse_cells *c, const struct toml_node *t)
{
    c->where = arena_array(&l->p->arena, t->n_items, sizeof(*c->where));
    for (size_t i = 0; i < t->n_items; i++) {
        const struct toml_node *m = t->items[i];
        const size_t factor = load_lookup_key(l, m, names_factors(l->p));
        if (factor != INDEX_NONE) {
            const size_t level = load_level(l, &l->p->factors[factor], m);
            c->where[c->n_where++] = (struct plan_setting){.factor = factor, .level = level};
        }
    }
    if (t->n_items == 0) {
        load_error(l, t,
                   "expected a level of a factor or more; all that the receipt has is "
                   "cells = \"matching\"");
    }
}

static void load_cells(struct load *l, const struct toml_node *list)
{
    struct plan_reuse *r = &l->p->reuse;
    if (list->n_items == 0 || list->n_items > REUSE_CELLS_MAX) {
        load_error(l, list, "expected 1 to %zu entries, found %zu", REUSE_CELLS_MAX, list->n_items);
        return;
    }
    r->cells = arena_array(&l->p->arena, list->n_items, sizeof(*r->cells));
    for (size_t i = 0; i < list->n_items; i++) {
        const struct toml_node *n = list->items[i];
        struct plan_reuse_cells *c = &r->cells[r->n_cells++];
        *c = (struct plan_reuse_cells){.place = load_place(n)};
        if (n->kind == TOML_STRING) {
            c->name = n->string;
        } else if (load_is(l, n, TOML_TABLE)) {
            load_selection(l, c, n);
        }
    }
}

void load_reuse(struct load *l)
{
    static const char *const keys[] = {"receipt", "cells"};
    struct plan_program *p = l->p;
    const struct toml_node *t = toml_member(l->root, "reuse");
    const char *receipt = NULL;
    if (t == NULL || !load_is(l, t, TOML_TABLE)) {
        return;
    }
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    p->reuse.place = load_key_place(t);
    if (load_text(l, t, "receipt", true, &receipt)) {
        char *path = path_absolute(p->folder, receipt);
        p->reuse.receipt = arena_strdup(&p->arena, path);
        free(path);
    }
    const struct toml_node *cells = toml_member(t, "cells");
    if (cells == NULL) {
        load_error_key(l, t,
                       "\"cells\" is missing: \"matching\", or a list of names of cells and "
                       "{ FACTOR = LEVEL }");
    } else if (cells->kind == TOML_STRING && strcmp(cells->string, "matching") == 0) {
        p->reuse.matching = true;
    } else if (cells->kind != TOML_ARRAY) {
        load_error(l, cells,
                   "expected \"matching\", or a list of names of cells and "
                   "{ FACTOR = LEVEL }");
    } else {
        load_cells(l, cells);
    }
}
