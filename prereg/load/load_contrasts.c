/* [contrast] and [counter]: what is compared with what, and what counts as cleared. Contrasts
 * are read in two passes, because a difference of contrasts may name one that is declared after
 * it. */
#include <string.h>

#include "base/xalloc.h"
#include "prereg/load/load.h"

#define CONTRASTS_MAX ((size_t)1024)
#define COUNTERS_MAX  ((size_t)64)

/* between = { FACTOR = [a, b] }: the contrast is a - b. */
static void load_between(struct load *l, struct plan_contrast *c, const struct toml_node *between)
{
    if (between->n_items != 1) {
        load_error(l, between, "expected one factor, found %zu", between->n_items);
        return;
    }
    const struct toml_node *m = between->items[0];
    c->factor = load_compared_factor(l, m);
    if (c->factor == INDEX_NONE || !load_is(l, m, TOML_ARRAY)) {
        return;
    }
    if (m->n_items != 2) {
        load_error(l, m, "expected two levels, [a, b] for a - b, found %zu", m->n_items);
        return;
    }
    const struct plan_factor *f = &l->p->factors[c->factor];
    c->level_a = load_level(l, f, m->items[0]);
    c->level_b = load_level(l, f, m->items[1]);
    if (c->level_a == c->level_b && c->level_a != INDEX_NONE) {
        load_error(l, m, "level \"%s\" is compared with itself", f->levels[c->level_a].text);
    }
}

/* between, where, over. "cleared" needs a counter; whether one binds is checked by
 * load_counters(). */
static void load_plain(struct load *l, struct plan_contrast *c, const struct toml_node *t)
{
    static const char *const over[] = {"counted", "cleared", NULL};
    const struct toml_node *between = load_need(l, t, "between", TOML_TABLE);
    if (between != NULL) {
        load_between(l, c, between);
    }
    const struct toml_node *table = load_member(l, t, "where", TOML_TABLE);
    if (table != NULL) {
        c->n_where = load_settings(l, table, c->factor, &c->where);
    }
    size_t word = 0;
    (void)load_word(l, t, "over", over, &word);
    c->over = word == 1 ? OVER_CLEARED : OVER_COUNTED;
    const struct toml_node *counters = toml_member(l->root, "counter");
    if (c->over == OVER_CLEARED && (counters == NULL || counters->n_items == 0)) {
        load_error(l, toml_member(t, "over"),
                   "\"cleared\" means under the binding counter, and there is no [counter]");
    }
}

/* The first pass; of a difference it only records that it is one. */
static void load_contrast(struct load *l, const struct toml_node *t)
{
    static const char *const plain_keys[] = {"between", "where", "over"};
    static const char *const difference_keys[] = {"of", "minus", "over"};
    struct plan_program *p = l->p;
    struct plan_contrast *c = &p->contrasts[p->n_contrasts++];
    *c = (struct plan_contrast){.name = t->key,
                                .factor = INDEX_NONE,
                                .level_a = INDEX_NONE,
                                .level_b = INDEX_NONE,
                                .of = INDEX_NONE,
                                .minus = INDEX_NONE,
                                .place = load_key_place(t)};
    c->is_difference = toml_member(t, "of") != NULL || toml_member(t, "minus") != NULL;
    if (c->is_difference) {
        load_check_keys(l, t, difference_keys, ARRAY_LEN(difference_keys));
    } else {
        load_check_keys(l, t, plain_keys, ARRAY_LEN(plain_keys));
        load_plain(l, c, t);
    }
}

/* Factors are unique within each `where`, so counting the shared ones is enough. */
static bool same_where_factors(const struct plan_contrast *a, const struct plan_contrast *b)
{
    size_t shared = 0;
    for (size_t i = 0; i < a->n_where; i++) {
        for (size_t k = 0; k < b->n_where; k++) {
            shared += a->where[i].factor == b->where[k].factor ? 1 : 0;
        }
    }
    return a->n_where == b->n_where && shared == a->n_where;
}

/* The second pass. A difference is taken setting by setting, so both sides must have the same
 * ones. */
static void load_difference(struct load *l, struct plan_contrast *c, const struct toml_node *t)
{
    static const char *const over[] = {"counted", "cleared", NULL};
    const struct plan_program *p = l->p;
    const char *const keys[] = {"of", "minus"};
    size_t *const out[] = {&c->of, &c->minus};
    for (size_t i = 0; i < 2; i++) {
        const struct toml_node *n = load_need(l, t, keys[i], TOML_STRING);
        if (n == NULL) {
            continue;
        }
        *out[i] = load_lookup(l, n, names_contrasts(l->p));
        if (*out[i] != INDEX_NONE && p->contrasts[*out[i]].is_difference) {
            load_error(l, n, "\"%s\" is itself a difference of contrasts", n->string);
            *out[i] = INDEX_NONE;
        }
    }
    size_t word = 0;
    (void)load_word(l, t, "over", over, &word);
    c->over = word == 1 ? OVER_CLEARED : OVER_COUNTED;
    if (c->of == INDEX_NONE || c->minus == INDEX_NONE) {
        return;
    }
    const struct plan_contrast *of = &p->contrasts[c->of];
    const struct plan_contrast *minus = &p->contrasts[c->minus];
    if (c->of == c->minus) {
        load_error(l, toml_member(t, "minus"), "\"%s\" minus itself", of->name);
    } else if (of->factor != INDEX_NONE && minus->factor != INDEX_NONE &&
               (of->factor != minus->factor || !same_where_factors(of, minus))) {
        load_error(l, toml_member(t, "minus"),
                   "\"%s\" and \"%s\" have different settings: they must compare levels of one "
                   "factor and restrict the same factors",
                   of->name, minus->name);
    }
}

void load_contrasts(struct load *l)
{
    struct plan_program *p = l->p;
    const struct toml_node *section = load_section(l, "contrast", TOML_TABLE, CONTRASTS_MAX);
    if (section == NULL) {
        return;
    }
    p->contrasts = arena_array(&p->arena, section->n_items, sizeof(*p->contrasts));
    for (size_t i = 0; i < section->n_items; i++) {
        load_contrast(l, section->items[i]);
    }
    for (size_t i = 0; i < section->n_items; i++) {
        if (p->contrasts[i].is_difference) {
            load_difference(l, &p->contrasts[i], section->items[i]);
        }
    }
}

/* {contrast, clears, binds}: the contrast must be between two levels. */
static void load_counter(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"contrast", "clears", "binds"};
    static const char *const clears[] = {"every_cell", "arm_means", NULL};
    struct plan_program *p = l->p;
    struct counter *c = &p->counters[p->n_counters++];
    *c = (struct counter){.name = t->key, .contrast = INDEX_NONE, .place = load_key_place(t)};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    const struct toml_node *n = load_need(l, t, "contrast", TOML_STRING);
    if (n != NULL) {
        c->contrast = load_lookup(l, n, names_contrasts(l->p));
    }
    if (c->contrast != INDEX_NONE && p->contrasts[c->contrast].is_difference) {
        load_error(l, n, "\"%s\" is a difference of contrasts and has no two arms", n->string);
    }
    size_t word = 0;
    if (load_need(l, t, "clears", TOML_STRING) != NULL) {
        (void)load_word(l, t, "clears", clears, &word);
    }
    c->clears = word == 1 ? CLEARS_ARM_MEANS : CLEARS_EVERY_CELL;
    (void)load_bool(l, t, "binds", &c->binds);
}

/* Exactly one counter binds, when there is any. */
void load_counters(struct load *l)
{
    struct plan_program *p = l->p;
    p->binding_counter = INDEX_NONE;
    const struct toml_node *section = load_section(l, "counter", TOML_TABLE, COUNTERS_MAX);
    if (section == NULL) {
        return;
    }
    p->counters = arena_array(&p->arena, section->n_items, sizeof(*p->counters));
    for (size_t i = 0; i < section->n_items; i++) {
        load_counter(l, section->items[i]);
    }
    for (size_t i = 0; i < p->n_counters; i++) {
        if (!p->counters[i].binds) {
            continue;
        }
        if (p->binding_counter != INDEX_NONE) {
            load_error(l, toml_member(section->items[i], "binds"),
                       "counter.%s binds already; exactly one may",
                       p->counters[p->binding_counter].name);
        } else {
            p->binding_counter = i;
        }
    }
    if (p->binding_counter == INDEX_NONE && p->n_counters > 0) {
        load_error_key(l, section, "none says binds = true; exactly one must");
    }
}
