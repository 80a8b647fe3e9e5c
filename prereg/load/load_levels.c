/* Levels of factors as contrasts and [[same_work]] name them: by text, in any notation of a number,
 * of factors that may be compared. */
#include "base/json/json.h"
#include "prereg/load/load.h"

size_t load_level(struct load *l, const struct plan_factor *f, const struct toml_node *n)
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
        load_error(l, n, "expected a level of factor %s, found %s", f->name,
                   toml_kind_name(n->kind));
        return INDEX_NONE;
    }
    size_t level = program_find_level(f, text);
    if (level == INDEX_NONE && f->n_levels > 0) {
        struct toml_node at = *n;
        at.kind = TOML_STRING;
        at.string = text;
        (void)load_lookup(l, &at, names_levels(f));
    }
    return level;
}

size_t load_compared_factor(struct load *l, const struct toml_node *m)
{
    size_t factor = load_lookup_key(l, m, names_factors(l->p));
    if (factor != INDEX_NONE && l->p->factors[factor].replicate) {
        load_error_key(l, m, "a replicate is not a thing to compare");
        return INDEX_NONE;
    }
    return factor;
}

size_t load_settings(struct load *l, const struct toml_node *table, size_t compared,
                     struct plan_setting **out)
{
    size_t n = 0;
    *out = arena_array(&l->p->arena, table->n_items, sizeof(**out));
    for (size_t i = 0; i < table->n_items; i++) {
        const struct toml_node *m = table->items[i];
        size_t factor = load_compared_factor(l, m);
        if (factor == INDEX_NONE) {
            continue;
        }
        if (factor == compared) {
            load_error_key(l, m, "this is the factor that is compared");
            continue;
        }
        size_t level = load_level(l, &l->p->factors[factor], m);
        (*out)[n++] = (struct plan_setting){.factor = factor, .level = level};
    }
    return n;
}
