/* [instrument.*]: declared and checked here, computed elsewhere. */
#include <string.h>

#include "base/xalloc.h"
#include "prereg/load.h"

#define INSTRUMENTS_MAX ((size_t)256)
#define TERMS_MAX       ((size_t)1024)

static const char *const KINDS[] = {"bayes", "mixed", "connector", NULL};
#define N_KINDS (ARRAY_LEN(KINDS) - 1)

static void check_bayes(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"kind", "contrast", "priors", "bounds"};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    const struct toml_node *contrast = load_need(l, t, "contrast", TOML_STRING);
    if (contrast != NULL) {
        (void)load_lookup(l, contrast, names_contrasts(l->p));
    }
    const struct toml_node *priors = load_need(l, t, "priors", TOML_TABLE);
    for (size_t i = 0; priors != NULL && i < priors->n_items; i++) {
        const struct toml_node *m = priors->items[i];
        if (load_is(l, m, TOML_FLOAT) && !(m->real > 0)) {
            load_error(l, m, "a standard deviation is more than 0");
        }
    }
    if (priors != NULL && priors->n_items == 0) {
        load_error(l, priors, "none");
    }
    const struct toml_node *bounds = load_member(l, t, "bounds", TOML_ARRAY);
    if (bounds != NULL &&
        (bounds->n_items != 2 || !load_is(l, bounds->items[0], TOML_FLOAT) ||
         !load_is(l, bounds->items[1], TOML_FLOAT) || !(bounds->items[0]->real > 0) ||
         !(bounds->items[0]->real < bounds->items[1]->real))) {
        load_error(l, bounds, "expected [low, high] with 0 < low < high");
    }
}

/* "arch" or "fact.train.router_load": a column of the model. */
static void check_term(struct load *l, const struct toml_node *n)
{
    if (n->kind != TOML_STRING || strncmp(n->string, "fact.", 5) != 0) {
        (void)load_lookup(l, n, names_factors(l->p));
        return;
    }
    size_t stage = INDEX_NONE;
    (void)load_metric(l, n, n->string + 5, &stage);
}

static void check_mixed(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"kind", "response", "fixed", "random"};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    const struct toml_node *response = load_need(l, t, "response", TOML_ARRAY);
    const struct toml_node *fixed = load_need(l, t, "fixed", TOML_ARRAY);
    for (size_t i = 0; response != NULL && i < response->n_items && i < TERMS_MAX; i++) {
        (void)load_lookup(l, response->items[i], names_measures(l->p));
    }
    if (response != NULL && response->n_items == 0) {
        load_error(l, response, "none");
    }
    for (size_t i = 0; fixed != NULL && i < fixed->n_items && i < TERMS_MAX; i++) {
        check_term(l, fixed->items[i]);
    }
    const struct toml_node *random = load_need(l, t, "random", TOML_STRING);
    if (random != NULL) {
        (void)load_lookup(l, random, names_factors(l->p));
    }
}

static void check_connector(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"kind", "loss", "trigger"};
    static const char *const trigger_keys[] = {"perplexity_ratio"};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    const struct toml_node *loss = load_need(l, t, "loss", TOML_STRING);
    if (loss != NULL) {
        (void)load_lookup(l, loss, names_measures(l->p));
    }
    const struct toml_node *trigger = load_need(l, t, "trigger", TOML_TABLE);
    if (trigger == NULL) {
        return;
    }
    load_check_keys(l, trigger, trigger_keys, ARRAY_LEN(trigger_keys));
    double ratio = 0;
    if (load_need(l, trigger, "perplexity_ratio", TOML_FLOAT) != NULL &&
        load_number(l, trigger, "perplexity_ratio", &ratio) && !(ratio > 1)) {
        load_error(l, toml_member(trigger, "perplexity_ratio"), "%.17g is not more than 1", ratio);
    }
}

/* An instrument named after a kind is of that kind unless it says otherwise. */
static size_t instrument_kind(struct load *l, const struct toml_node *t)
{
    size_t kind = names_find((struct names){"kind", KINDS, N_KINDS, sizeof(KINDS[0])}, t->key);
    if (toml_member(t, "kind") != NULL) {
        kind = INDEX_NONE;
        (void)load_word(l, t, "kind", KINDS, &kind);
    } else if (kind == INDEX_NONE) {
        load_error_key(l, t, "\"kind\" is missing: \"bayes\", \"mixed\" or \"connector\"");
    }
    return kind;
}

void load_instruments(struct load *l)
{
    static void (*const checks[])(struct load *, const struct toml_node *) = {
        check_bayes, check_mixed, check_connector};
    struct program *p = l->p;
    const struct toml_node *section = load_section(l, "instrument", TOML_TABLE, INSTRUMENTS_MAX);
    if (section == NULL) {
        return;
    }
    p->instruments = arena_array(&p->arena, section->n_items, sizeof(*p->instruments));
    for (size_t i = 0; i < section->n_items; i++) {
        const struct toml_node *t = section->items[i];
        size_t kind = instrument_kind(l, t);
        if (kind != INDEX_NONE) {
            checks[kind](l, t);
        }
        p->instruments[p->n_instruments++] = (struct instrument){
            .name = t->key, .kind = kind == INDEX_NONE ? "" : KINDS[kind], .spec = t->json};
    }
}
