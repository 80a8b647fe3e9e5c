/* [instrument.*]: finds the kind of each table, and checks the keys of that kind with their types
 * and ranges. The computation in truthtable/instruments reads the same table again as JSON and
 * relies on these checks. Some of them are about meaning, such as a term that would be fitted
 * twice. */
#include "prereg/load/load.h"

#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/program/instrument.h"

#define TERMS_MAX       ((size_t)1024)
#define PRIORS_MAX      ((size_t)64)
#define MODELS_MAX      ((size_t)256)
#define NAME_BYTES      ((size_t)256)
#define INSTRUMENTS_MAX ((size_t)256)

static bool few_enough(struct load *l, const struct toml_node *n, size_t max)
{
    if (n->n_items > max) {
        load_error(l, n, "%zu entries; the limit is %zu", n->n_items, max);
    }
    return n->n_items <= max;
}

/* An array of different strings that is not empty; NULL after an error, or when it is absent and
 * not needed. */
static const struct toml_node *string_list(struct load *l, const struct toml_node *t,
                                           const char *key, bool needed)
{
    const struct toml_node *list =
        needed ? load_need(l, t, key, TOML_ARRAY) : load_member(l, t, key, TOML_ARRAY);
    if (list == NULL || !few_enough(l, list, TERMS_MAX)) {
        return NULL;
    }
    bool ok = true;
    for (size_t i = 0; i < list->n_items; i++) {
        const struct toml_node *n = list->items[i];
        if (!load_is(l, n, TOML_STRING)) {
            ok = false;
            continue;
        }
        for (size_t k = 0; k < i; k++) {
            if (list->items[k]->kind == TOML_STRING &&
                strcmp(list->items[k]->string, n->string) == 0) {
                load_error(l, n, "\"%.80s\" is duplicated", n->string);
                ok = false;
                break;
            }
        }
    }
    return ok ? list : NULL;
}

static void need_some(struct load *l, const struct toml_node *list)
{
    if (list != NULL && list->n_items == 0) {
        load_error(l, list, "none");
    }
}

/* An array of names of measures; without it the instrument takes the counted ones. */
static void check_measures(struct load *l, const struct toml_node *t, const char *key, bool needed)
{
    const struct toml_node *list = string_list(l, t, key, needed);
    for (size_t i = 0; list != NULL && i < list->n_items; i++) {
        (void)load_lookup(l, list->items[i], names_measures(l->p));
    }
    need_some(l, list);
}

static const struct plan_contrast *find_contrast(struct load *l, const struct toml_node *t)
{
    const struct toml_node *n = load_need(l, t, "contrast", TOML_STRING);
    size_t k = n == NULL ? INDEX_NONE : load_lookup(l, n, names_contrasts(l->p));
    return k == INDEX_NONE ? NULL : &l->p->contrasts[k];
}

/* The member "contrast", which must be between two levels: the instrument compares two arms. */
static void check_two_arms(struct load *l, const struct toml_node *t)
{
    const struct plan_contrast *c = find_contrast(l, t);
    if (c != NULL && c->is_difference) {
        load_error(l, toml_member(t, "contrast"),
                   "\"%s\" is a difference of contrasts and has no two arms", c->name);
    }
}

/* NAME = standard deviation, each positive, at least one. */
static void check_priors(struct load *l, const struct toml_node *priors)
{
    if (!few_enough(l, priors, PRIORS_MAX)) {
        return;
    }
    for (size_t i = 0; i < priors->n_items; i++) {
        const struct toml_node *m = priors->items[i];
        if (load_is(l, m, TOML_FLOAT) && !(m->real > 0)) {
            load_error(l, m, "a standard deviation is more than 0");
        }
    }
    need_some(l, priors);
}

/* {contrast, priors, bounds, measures}: a Bayes factor for each prior. */
static void load_bayes(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"kind",   "contrast", "priors",
                                       "bounds", "measures", "discussion_only"};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    (void)find_contrast(l, t);
    const struct toml_node *priors = toml_member(t, "priors");
    if (priors != NULL && priors->kind != TOML_TABLE) {
        load_error(l, priors,
                   "expected a standard deviation for each named prior, as { wide = 0.05 }, found "
                   "%s",
                   toml_kind_name(priors->kind));
    } else {
        priors = load_need(l, t, "priors", TOML_TABLE);
        if (priors != NULL) {
            check_priors(l, priors);
        }
    }
    check_measures(l, t, "measures", false);
    const struct toml_node *bounds = load_member(l, t, "bounds", TOML_ARRAY);
    if (bounds != NULL &&
        (bounds->n_items != 2 || !load_is(l, bounds->items[0], TOML_FLOAT) ||
         !load_is(l, bounds->items[1], TOML_FLOAT) || !(bounds->items[0]->real > 0) ||
         !(bounds->items[0]->real < bounds->items[1]->real))) {
        load_error(l, bounds, "expected [low, high] with 0 < low < high");
    }
}

/* "arch" or "fact.train.router_load": a term of the model. */
static void check_term(struct load *l, const struct toml_node *n)
{
    if (strncmp(n->string, "fact.", 5) != 0) {
        (void)load_lookup(l, n, names_factors(l->p));
        return;
    }
    size_t stage = INDEX_NONE;
    (void)load_metric(l, n, n->string + 5, &stage);
}

static void load_mixed(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"kind", "response", "fixed", "random", "discussion_only"};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    check_measures(l, t, "response", true);
    const struct toml_node *fixed = string_list(l, t, "fixed", true);
    for (size_t i = 0; fixed != NULL && i < fixed->n_items; i++) {
        check_term(l, fixed->items[i]);
    }
    const struct toml_node *random = load_need(l, t, "random", TOML_STRING);
    if (random == NULL) {
        return;
    }
    (void)load_lookup(l, random, names_factors(l->p));
    for (size_t i = 0; fixed != NULL && i < fixed->n_items; i++) {
        if (strcmp(fixed->items[i]->string, random->string) == 0) {
            load_error(l, random,
                       "\"%.80s\" is among the fixed terms: its levels would be fitted twice",
                       random->string);
        }
    }
}

/* A loss is recognized by its direction; that it is in nats cannot be checked here. */
static void check_loss(struct load *l, const struct toml_node *n)
{
    size_t m = load_lookup(l, n, names_measures(l->p));
    if (m != INDEX_NONE && !l->p->measures[m].lower_better) {
        load_error(l, n, "measure.%s does not say better = \"lower\": a loss in nats is needed",
                   l->p->measures[m].name);
    }
}

/* Sources of a connector: SOURCE = MEASURE, each a loss, no measure twice. */
static void check_sources(struct load *l, const struct toml_node *sources)
{
    if (!few_enough(l, sources, MODELS_MAX)) {
        return;
    }
    for (size_t i = 0; i < sources->n_items; i++) {
        check_loss(l, sources->items[i]);
        for (size_t k = 0; k < i && sources->items[i]->kind == TOML_STRING; k++) {
            if (sources->items[k]->kind == TOML_STRING &&
                strcmp(sources->items[i]->string, sources->items[k]->string) == 0) {
                load_error(l, sources->items[i], "the measure of source \"%.64s\" already",
                           sources->items[k]->key);
            }
        }
    }
    need_some(l, sources);
}

/* {perplexity_ratio, condition}: one of them, or both. The ratio is above 1, since a ratio of 1
 * would always trigger. */
static void check_trigger(struct load *l, const struct toml_node *trigger)
{
    static const char *const keys[] = {"perplexity_ratio", "condition"};
    double ratio = 0;
    load_check_keys(l, trigger, keys, ARRAY_LEN(keys));
    if (toml_member(trigger, "condition") == NULL &&
        load_need(l, trigger, "perplexity_ratio", TOML_FLOAT) == NULL) {
        return;
    }
    if (load_number(l, trigger, "perplexity_ratio", &ratio) && !(ratio > 1)) {
        load_error(l, toml_member(trigger, "perplexity_ratio"), "%.15g is not more than 1", ratio);
    }
}

/* The trigger's condition; truthtable/ compiles it. */
static struct cond_text trigger_condition(struct load *l, const struct toml_node *t)
{
    const struct toml_node *trigger = toml_member(t, "trigger");
    const bool has =
        trigger != NULL && trigger->kind == TOML_TABLE && toml_member(trigger, "condition") != NULL;
    return has ? load_condition(l, trigger) : (struct cond_text){0};
}

/* {loss, contrast, sources, trigger}: without a contrast there must be a single candidate. */
static void load_connector(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"kind",    "loss",    "contrast",
                                       "sources", "trigger", "discussion_only"};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    const struct toml_node *loss = load_need(l, t, "loss", TOML_STRING);
    if (loss != NULL) {
        check_loss(l, loss);
    }
    if (toml_member(t, "contrast") != NULL) {
        check_two_arms(l, t);
    } else if (instrument_main_contrast(l->p) == INDEX_NONE) {
        load_error_key(l, t,
                       "\"contrast\" is missing: no counter binds, and not one contrast alone is "
                       "between two levels");
    }
    const struct toml_node *sources = load_member(l, t, "sources", TOML_TABLE);
    if (sources != NULL) {
        check_sources(l, sources);
    }
    const struct toml_node *trigger = load_member(l, t, "trigger", TOML_TABLE);
    if (trigger != NULL) {
        check_trigger(l, trigger);
    }
}

static void load_items(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"kind", "contrast", "measures", "cluster",
                                       "discussion_only"};
    const char *cluster = NULL;
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    check_two_arms(l, t);
    check_measures(l, t, "measures", false);
    if (load_text(l, t, "cluster", false, &cluster) && strcmp(cluster, "item") == 0) {
        load_error(l, toml_member(t, "cluster"), "every item would be a cluster of its own");
    }
}

static void load_router(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"kind", "stage", "components", "discussion_only"};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    const struct toml_node *stage = load_need(l, t, "stage", TOML_STRING);
    if (stage != NULL) {
        (void)load_lookup(l, stage, names_stages(l->p));
    }
    const struct toml_node *list = string_list(l, t, "components", false);
    for (size_t i = 0; list != NULL && i < list->n_items; i++) {
        if (list->items[i]->string[0] == '\0') {
            load_error(l, list->items[i], "an empty string");
        }
    }
    need_some(l, list);
}

/* MEASURE = published value. */
static void check_anchor(struct load *l, const struct toml_node *n)
{
    size_t m = load_lookup_key(l, n, names_measures(l->p));
    if (m == INDEX_NONE || !load_is(l, n, TOML_FLOAT)) {
        return;
    }
    if (measure_is_share(&l->p->measures[m]) && !(n->real >= 0 && n->real <= 1)) {
        load_error(l, n, "%.15g is outside 0..1: a share, as 0.90", n->real);
    }
}

/* A published model of an anchor: MEASURE = value; shares must be within 0..1. */
static void check_model(struct load *l, const struct toml_node *model)
{
    if (model->key[0] == '\0' || strlen(model->key) > NAME_BYTES) {
        load_error_key(l, model, "a model's name has 1 to %zu bytes", NAME_BYTES);
    }
    if (!load_is(l, model, TOML_TABLE)) {
        return;
    }
    for (size_t i = 0; i < model->n_items; i++) {
        check_anchor(l, model->items[i]);
    }
    need_some(l, model);
}

static void load_anchors(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"kind", "models", "source", "discussion_only"};
    const char *source = NULL;
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    (void)load_text(l, t, "source", true, &source);
    const struct toml_node *models = load_need(l, t, "models", TOML_TABLE);
    if (models == NULL || !few_enough(l, models, MODELS_MAX)) {
        return;
    }
    for (size_t i = 0; i < models->n_items; i++) {
        check_model(l, models->items[i]);
    }
    need_some(l, models);
}

static bool is_number(const struct toml_node *n)
{
    return n->kind == TOML_FLOAT || n->kind == TOML_INTEGER;
}

/* MEASURE = its place on the way, 1 the end. A metric NAME@F was measured at F. */
static size_t check_mark(struct load *l, const struct toml_node *mark)
{
    size_t m = load_lookup_key(l, mark, names_measures(l->p));
    if (!load_is(l, mark, TOML_FLOAT)) {
        return m;
    }
    if (!(mark->real > 0 && mark->real <= 1)) {
        load_error(l, mark, "%.15g is not a fraction of the horizon: above 0 and at most 1",
                   mark->real);
    }
    const char *at = m == INDEX_NONE ? NULL : strrchr(l->p->measures[m].metric, '@');
    double said = 0;
    struct err unused = {0};
    if (at != NULL && text_to_double(at + 1, &said, &unused) == 0 && said != mark->real) {
        load_error(l, mark, "%s is measured at %s, not at %.15g", l->p->measures[m].metric_text,
                   at + 1, mark->real);
    }
    return m;
}

/* { MEASURE = place }: two or more, each at a place of its own, better in one direction. */
static void check_marks(struct load *l, const struct toml_node *marks)
{
    size_t first = INDEX_NONE;
    if (!few_enough(l, marks, TERMS_MAX)) {
        return;
    }
    if (marks->n_items < 2) {
        load_error(l, marks, "a course needs two marks or more, as { early = 0.2, loss = 1.0 }");
    }
    for (size_t i = 0; i < marks->n_items; i++) {
        const struct toml_node *mark = marks->items[i];
        size_t m = check_mark(l, mark);
        first = first == INDEX_NONE ? m : first;
        if (m != INDEX_NONE &&
            l->p->measures[m].lower_better != l->p->measures[first].lower_better) {
            load_error_key(l, mark, "\"better\" of measure.%s differs from that of measure.%s",
                           l->p->measures[m].name, l->p->measures[first].name);
        }
        for (size_t k = 0; k < i && is_number(mark); k++) {
            if (is_number(marks->items[k]) && marks->items[k]->real == mark->real) {
                load_error(l, mark, "the place of \"%.64s\" already", marks->items[k]->key);
            }
        }
    }
}

/* {contrast, marks}: the contrast's gap over the marks of a run. */
static void load_course(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"kind", "contrast", "marks", "discussion_only"};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    check_two_arms(l, t);
    const struct toml_node *marks = load_need(l, t, "marks", TOML_TABLE);
    if (marks != NULL) {
        check_marks(l, marks);
    }
}

/* ---- the section ---- */

/* An instrument named after a kind is of that kind unless it says otherwise. */
static enum instrument_kind kind_of(struct load *l, const struct toml_node *t)
{
    const char *kinds[INSTRUMENT_KIND_NR + 1] = {NULL};
    for (size_t k = 0; k < INSTRUMENT_KIND_NR; k++) {
        kinds[k] = instrument_kind_name((enum instrument_kind)k);
    }
    if (toml_member(t, "kind") != NULL) {
        size_t kind = INSTRUMENT_KIND_NR;
        (void)load_word(l, t, "kind", kinds, &kind);
        return (enum instrument_kind)kind;
    }
    enum instrument_kind kind = instrument_kind_find(t->key);
    if (kind == INSTRUMENT_KIND_NR) {
        struct strbuf list = STRBUF_INIT;
        for (size_t k = 0; kinds[k] != NULL; k++) {
            strbuf_addf(&list, "%s\"%s\"",
                        k == 0                 ? ""
                        : kinds[k + 1] == NULL ? " or "
                                               : ", ",
                        kinds[k]);
        }
        load_error_key(l, t, "\"kind\" is missing: %s", list.buf);
        strbuf_release(&list);
    }
    return kind;
}

/* The kind decides which check runs; a table of unknown kind is stored so that names stay
 * complete. */
void load_instruments(struct load *l)
{
    static void (*const checks[INSTRUMENT_KIND_NR])(struct load *, const struct toml_node *) = {
        [INSTRUMENT_BAYES] = load_bayes,         [INSTRUMENT_MIXED] = load_mixed,
        [INSTRUMENT_CONNECTOR] = load_connector, [INSTRUMENT_ITEMS] = load_items,
        [INSTRUMENT_ROUTER] = load_router,       [INSTRUMENT_ANCHORS] = load_anchors,
        [INSTRUMENT_COURSE] = load_course};
    struct plan_program *p = l->p;
    const struct toml_node *section = load_section(l, "instrument", TOML_TABLE, INSTRUMENTS_MAX);
    if (section == NULL) {
        return;
    }
    p->instruments = arena_array(&p->arena, section->n_items, sizeof(*p->instruments));
    for (size_t i = 0; i < section->n_items; i++) {
        const struct toml_node *t = section->items[i];
        bool discussion_only = false;
        enum instrument_kind kind = kind_of(l, t);
        if (instrument_name_is_taken(t->key)) {
            load_error_key(l, t,
                           "every report gives an instrument of this name without a declaration: "
                           "choose another");
        }
        (void)load_bool(l, t, "discussion_only", &discussion_only);
        if (kind != INSTRUMENT_KIND_NR) {
            checks[kind](l, t);
        }
        p->instruments[p->n_instruments++] = (struct plan_instrument){
            .name = t->key,
            .kind = kind == INSTRUMENT_KIND_NR ? "" : instrument_kind_name(kind),
            .spec = t->json,
            .trigger =
                kind == INSTRUMENT_CONNECTOR ? trigger_condition(l, t) : (struct cond_text){0}};
    }
}
