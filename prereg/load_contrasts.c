/* [contrast] and [counter]: what is compared with what, and what counts as cleared. */
#include <string.h>

#include "base/json.h"
#include "base/xalloc.h"
#include "prereg/load.h"

#define CONTRASTS_MAX ((size_t)1024)
#define COUNTERS_MAX  ((size_t)64)

/* A value that names a level of f: compared as text, so that 2e-3 finds 0.002. */
static size_t find_level(struct load *l, const struct factor *f, const struct toml_node *n,
                         const char *where)
{
    char number[JSON_NUMBER_MAX];
    const char *text = NULL;
    if (n->kind == TOML_STRING) {
        text = n->string;
    } else if (n->kind == TOML_BOOLEAN) {
        text = n->boolean ? "true" : "false";
    } else if (n->kind == TOML_INTEGER || n->kind == TOML_FLOAT) {
        json_number_text(n->json->valuedouble, number);
        text = number;
    } else {
        load_error(l, n, "%s: expected a level of factor %s, found %s", where, f->name,
                   toml_kind_name(n->kind));
        return INDEX_NONE;
    }
    size_t level = program_find_level(f, text);
    if (level == INDEX_NONE) {
        const char **known = xcalloc(f->n_levels, sizeof(*known));
        for (size_t i = 0; i < f->n_levels; i++) {
            known[i] = f->levels[i].text;
        }
        const char *what = arena_printf(&l->p->arena, "level of factor %s:", f->name);
        load_unknown(l, n, what, text, known, f->n_levels);
        free(known);
    }
    return level;
}

/* The factor that a member of `between` or `where` names by its key: never a replicate. */
static size_t find_factor(struct load *l, const struct toml_node *m, const char *where)
{
    struct toml_node name = *m;
    name.kind = TOML_STRING;
    name.string = m->key;
    name.line = m->key_line;
    name.column = m->key_column;
    size_t factor =
        load_lookup(l, &name, "factor", l->p->factors, l->p->n_factors, sizeof(struct factor));
    if (factor != INDEX_NONE && l->p->factors[factor].replicate) {
        load_error_key(l, m, "%s: %s is a replicate, not a thing to compare", where, m->key);
        return INDEX_NONE;
    }
    return factor;
}

static void load_between(struct load *l, struct contrast *c, const struct toml_node *between,
                         const char *where)
{
    if (between->n_items != 1) {
        load_error(l, between, "%s.between: expected one factor, found %zu", where,
                   between->n_items);
        return;
    }
    const struct toml_node *m = between->items[0];
    c->factor = find_factor(l, m, where);
    if (c->factor == INDEX_NONE || !load_is(l, m, where, TOML_ARRAY)) {
        return;
    }
    if (m->n_items != 2) {
        load_error(l, m, "%s.between: expected two levels, [a, b] for a - b, found %zu", where,
                   m->n_items);
        return;
    }
    const struct factor *f = &l->p->factors[c->factor];
    c->level_a = find_level(l, f, m->items[0], where);
    c->level_b = find_level(l, f, m->items[1], where);
    if (c->level_a == c->level_b && c->level_a != INDEX_NONE) {
        load_error(l, m, "%s.between: level \"%s\" is compared with itself", where,
                   f->levels[c->level_a].text);
    }
}

static void load_where(struct load *l, struct contrast *c, const struct toml_node *table,
                       const char *where)
{
    c->where = arena_array(&l->p->arena, table->n_items, sizeof(*c->where));
    for (size_t i = 0; i < table->n_items; i++) {
        const struct toml_node *m = table->items[i];
        size_t factor = find_factor(l, m, where);
        if (factor == INDEX_NONE) {
            continue;
        }
        if (factor == c->factor) {
            load_error_key(l, m, "%s.where: %s is the factor that is compared", where, m->key);
            continue;
        }
        size_t level = find_level(l, &l->p->factors[factor], m, where);
        c->where[c->n_where++] = (struct setting){.factor = factor, .level = level};
    }
}

static void load_plain(struct load *l, struct contrast *c, const struct toml_node *t,
                       const char *where)
{
    static const char *const over[] = {"counted", "cleared"};
    const struct toml_node *between = load_need(l, t, where, "between", TOML_TABLE);
    if (between != NULL) {
        load_between(l, c, between, where);
    }
    const struct toml_node *table = load_member(l, t, where, "where", TOML_TABLE);
    if (table != NULL) {
        load_where(l, c, table, where);
    }
    size_t word = 0;
    (void)load_word(l, t, where, "over", over, ARRAY_LEN(over), &word);
    c->over = word == 1 ? OVER_CLEARED : OVER_COUNTED;
    const struct toml_node *counters = toml_member(l->root, "counter");
    if (c->over == OVER_CLEARED && (counters == NULL || counters->n_items == 0)) {
        load_error(
            l, toml_member(t, "over"),
            "%s.over: \"cleared\" means under the binding counter, and there is no [counter]",
            where);
    }
}

static void load_contrast(struct load *l, const struct toml_node *t)
{
    static const char *const plain_keys[] = {"between", "where", "over"};
    static const char *const difference_keys[] = {"of", "minus", "over"};
    struct program *p = l->p;
    struct contrast *c = &p->contrasts[p->n_contrasts++];
    *c = (struct contrast){.name = t->key,
                           .factor = INDEX_NONE,
                           .level_a = INDEX_NONE,
                           .level_b = INDEX_NONE,
                           .of = INDEX_NONE,
                           .minus = INDEX_NONE,
                           .place = {.line = t->key_line, .column = t->key_column}};
    const char *where = arena_printf(&p->arena, "contrast.%s", t->key);
    c->is_difference = toml_member(t, "of") != NULL || toml_member(t, "minus") != NULL;
    if (c->is_difference) {
        load_check_keys(l, t, where, difference_keys, ARRAY_LEN(difference_keys));
    } else {
        load_check_keys(l, t, where, plain_keys, ARRAY_LEN(plain_keys));
        load_plain(l, c, t, where);
    }
}

static bool same_where_factors(const struct contrast *a, const struct contrast *b)
{
    size_t shared = 0;
    for (size_t i = 0; i < a->n_where; i++) {
        for (size_t k = 0; k < b->n_where; k++) {
            shared += a->where[i].factor == b->where[k].factor ? 1 : 0;
        }
    }
    return a->n_where == b->n_where && shared == a->n_where;
}

/* A difference goes setting by setting: both sides must have the same settings. */
static void load_difference(struct load *l, struct contrast *c, const struct toml_node *t)
{
    static const char *const over[] = {"counted", "cleared"};
    const struct program *p = l->p;
    const char *where = arena_printf(&l->p->arena, "contrast.%s", t->key);
    const char *const keys[] = {"of", "minus"};
    size_t *const out[] = {&c->of, &c->minus};
    for (size_t i = 0; i < 2; i++) {
        const struct toml_node *n = load_need(l, t, where, keys[i], TOML_STRING);
        if (n == NULL) {
            continue;
        }
        *out[i] = load_lookup(l, n, "contrast", p->contrasts, p->n_contrasts, sizeof(*c));
        if (*out[i] != INDEX_NONE && p->contrasts[*out[i]].is_difference) {
            load_error(l, n, "%s.%s: \"%s\" is itself a difference of contrasts", where, keys[i],
                       n->string);
            *out[i] = INDEX_NONE;
        }
    }
    size_t word = 0;
    (void)load_word(l, t, where, "over", over, ARRAY_LEN(over), &word);
    c->over = word == 1 ? OVER_CLEARED : OVER_COUNTED;
    if (c->of == INDEX_NONE || c->minus == INDEX_NONE) {
        return;
    }
    const struct contrast *of = &p->contrasts[c->of];
    const struct contrast *minus = &p->contrasts[c->minus];
    if (c->of == c->minus) {
        load_error(l, toml_member(t, "minus"), "%s: \"%s\" minus itself", where, of->name);
    } else if (of->factor != INDEX_NONE && minus->factor != INDEX_NONE &&
               (of->factor != minus->factor || !same_where_factors(of, minus))) {
        load_error(l, toml_member(t, "minus"),
                   "%s: \"%s\" and \"%s\" have different settings: they must compare levels of one "
                   "factor and restrict the same factors",
                   where, of->name, minus->name);
    }
}

void load_contrasts(struct load *l)
{
    struct program *p = l->p;
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

static void load_counter(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"contrast", "clears", "binds"};
    static const char *const clears[] = {"every_cell", "arm_means"};
    struct program *p = l->p;
    struct counter *c = &p->counters[p->n_counters++];
    *c = (struct counter){.name = t->key,
                          .contrast = INDEX_NONE,
                          .place = {.line = t->key_line, .column = t->key_column}};
    const char *where = arena_printf(&p->arena, "counter.%s", t->key);
    load_check_keys(l, t, where, keys, ARRAY_LEN(keys));
    const struct toml_node *n = load_need(l, t, where, "contrast", TOML_STRING);
    if (n != NULL) {
        c->contrast =
            load_lookup(l, n, "contrast", p->contrasts, p->n_contrasts, sizeof(struct contrast));
    }
    if (c->contrast != INDEX_NONE && p->contrasts[c->contrast].is_difference) {
        load_error(l, n, "%s.contrast: \"%s\" is a difference of contrasts and has no two arms",
                   where, n->string);
    }
    size_t word = 0;
    if (load_need(l, t, where, "clears", TOML_STRING) != NULL) {
        (void)load_word(l, t, where, "clears", clears, ARRAY_LEN(clears), &word);
    }
    c->clears = word == 1 ? CLEARS_ARM_MEANS : CLEARS_EVERY_CELL;
    (void)load_bool(l, t, where, "binds", &c->binds);
}

void load_counters(struct load *l)
{
    struct program *p = l->p;
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
                       "counter.%s.binds: counter.%s binds already; exactly one may",
                       p->counters[i].name, p->counters[p->binding_counter].name);
        } else {
            p->binding_counter = i;
        }
    }
    if (p->binding_counter == INDEX_NONE && p->n_counters > 0) {
        load_error_key(l, section, "counter: none says binds = true; exactly one must");
    }
}
