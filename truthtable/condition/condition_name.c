/*
 * Resolves names such as contrast.arch[mmlu].mean to indices of the program, one function per root.
 * A name that does not exist gets a message with the nearest existing one; lists of names are
 * searched through one view over the program's arrays (struct cond_names). The names of facts are
 * not known before workers run, so they are numbered in order of first use.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "prereg/program/instrument.h"
#include "truthtable/condition/condition_parse.h"

static const char *const field_names[FIELD_NR] = {
    [FIELD_MEAN] = "mean",
    [FIELD_N] = "n",
    [FIELD_SD] = "sd",
    [FIELD_SE] = "se",
    [FIELD_CI_LOW] = "ci_low",
    [FIELD_CI_HIGH] = "ci_high",
    [FIELD_BF10] = "bf10",
    [FIELD_ITEM_SE] = "item_se",
    [FIELD_ITEM_LOW] = "item_low",
    [FIELD_ITEM_HIGH] = "item_high",
    [FIELD_MIN] = "min",
    [FIELD_MAX] = "max",
    [FIELD_MAX_ABS] = "max_abs",
    [FIELD_MEAN_ABS] = "mean_abs",
    [FIELD_SIGN] = "sign",
};

/* The names are also the keys of verdict.json. */
const char *contrast_field_name(enum contrast_field f)
{
    return f < FIELD_NR ? field_names[f] : "?";
}

/* The member is copied out, because `offset` is only known to the caller's type. */
static const char *named_at(const struct cond_names *list, size_t i)
{
    const char *item = (const char *)list->items + i * list->size + list->offset;
    const char *name;
    memcpy(&name, item, sizeof(name));
    return name;
}

/* The index of the name in the list; INDEX_NONE after an error that suggests the nearest. */
static size_t resolve(struct cond_parser *ps, const struct token *t, const char *what,
                      const struct cond_names *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (cond_token_is(t, named_at(list, i))) {
            return i;
        }
    }
    const char **known = xcalloc(list->n + 1, sizeof(*known));
    for (size_t i = 0; i < list->n; i++) {
        known[i] = named_at(list, i);
    }
    (void)cond_fail_unknown(ps, t, what, known, list->n);
    free(known);
    return INDEX_NONE;
}

size_t cond_take_name(struct cond_parser *ps, const char *what, struct cond_names list)
{
    struct token t;
    return cond_take(ps, TOKEN_WORD, what, &t) ? resolve(ps, &t, what, &list) : INDEX_NONE;
}

/* counter.NAME; the root and its point are already consumed, here and in the functions below. */
static struct cond *parse_counter(struct cond_parser *ps, struct cond *c)
{
    const struct plan_program *p = ps->program;
    c->index =
        cond_take_name(ps, "counter", COND_NAMES(p->counters, p->n_counters, struct counter, name));
    return ps->failed ? NULL : c;
}

/* The enum lists per-measure fields before pooled ones; mean and n belong to both. */
static bool field_fits(enum contrast_field f, bool pooled)
{
    if (f == FIELD_MEAN || f == FIELD_N) {
        return true;
    }
    return pooled == (f >= FIELD_MIN);
}

/* Fields over items need a measure that is a proportion. */
static struct cond *check_item_field(struct cond_parser *ps, struct cond *c, const struct token *t)
{
    const bool of_items = c->field >= FIELD_ITEM_SE && c->field <= FIELD_ITEM_HIGH;
    if (!of_items || measure_is_share(&ps->program->measures[c->measure])) {
        return c;
    }
    return cond_fail(ps, t->offset,
                     "%s needs a proportion, and measure %s has neither `chance` nor `floor`",
                     field_names[c->field], ps->program->measures[c->measure].name);
}

/* Suggests only fields that exist for this kind of figure, pooled or per measure. */
static struct cond *parse_field(struct cond_parser *ps, struct cond *c)
{
    struct token t;
    const char *known[FIELD_NR];
    size_t n = 0;
    bool pooled = c->measure == INDEX_NONE;
    if (!cond_take(ps, TOKEN_WORD, "a field", &t)) {
        return NULL;
    }
    for (size_t f = 0; f < FIELD_NR; f++) {
        if (!field_fits((enum contrast_field)f, pooled)) {
            continue;
        }
        if (cond_token_is(&t, field_names[f])) {
            c->field = (enum contrast_field)f;
            return check_item_field(ps, c, &t);
        }
        known[n++] = field_names[f];
    }
    return cond_fail_unknown(ps, &t, pooled ? "pooled field" : "per-measure field", known, n);
}

/* contrast.NAME.FIELD is pooled; contrast.NAME[MEASURE].FIELD is per measure. */
static struct cond *parse_contrast(struct cond_parser *ps, struct cond *c)
{
    const struct plan_program *p = ps->program;
    c->index = cond_take_name(ps, "contrast",
                              COND_NAMES(p->contrasts, p->n_contrasts, struct plan_contrast, name));
    if (!ps->failed && token_is_char(&ps->tok, '[')) {
        cond_advance(ps);
        c->measure = cond_take_name(
            ps, "measure", COND_NAMES(p->measures, p->n_measures, struct plan_measure, name));
        if (ps->failed || !cond_expect(ps, ']')) {
            return NULL;
        }
    }
    return !ps->failed && cond_expect(ps, '.') ? parse_field(ps, c) : NULL;
}

/* 'it''s' -> it's */
static char *unquoted(struct cond_parser *ps, const struct token *t)
{
    char *s = arena_alloc(ps->facts->arena, t->len + 1);
    size_t n = 0;
    for (size_t i = 0; i < t->len; i++) {
        s[n++] = t->start[i];
        i += t->start[i] == '\'' ? 1 : 0;
    }
    return s;
}

/* Reports an unknown level with the nearest level of this factor. */
static struct cond *fail_level(struct cond_parser *ps, const struct token *t,
                               const struct plan_factor *f)
{
    struct cond_names list = COND_NAMES(f->levels, f->n_levels, struct plan_level, text);
    (void)resolve(ps, t, "level", &list);
    return NULL;
}

/* The one factor that has this level. */
static struct cond *parse_level_of_any(struct cond_parser *ps, struct cond *c)
{
    const struct plan_program *p = ps->program;
    struct token t;
    if (!cond_take(ps, TOKEN_STRING, "a level in single quotes", &t)) {
        return NULL;
    }
    const char *text = unquoted(ps, &t);
    for (size_t f = 0; f < p->n_factors; f++) {
        size_t level = program_find_level(&p->factors[f], text);
        /* A level is named without its factor, so exactly one factor may have it. */
        if (level == INDEX_NONE) {
            continue;
        }
        if (c->factor != INDEX_NONE) {
            return cond_fail(ps, t.offset, "level '%s' is one of factor %s and of factor %s", text,
                             p->factors[c->factor].name, p->factors[f].name);
        }
        c->factor = f;
        c->level_a = level;
    }
    return c->factor == INDEX_NONE ? cond_fail(ps, t.offset, "no factor has a level '%.64s'", text)
                                   : c;
}

/* measure.NAME['LEVEL'].mean. A mean over all cells does not exist, and the message says what to
 * write. */
static struct cond *parse_measure(struct cond_parser *ps, struct cond *c)
{
    const struct plan_program *p = ps->program;
    struct token t;
    c->measure = cond_take_name(ps, "measure",
                                COND_NAMES(p->measures, p->n_measures, struct plan_measure, name));
    if (!ps->failed && token_is_char(&ps->tok, '.')) {
        return cond_fail(ps, ps->tok.offset,
                         "a mean of measure.%s is that of one level: measure.%s['LEVEL'].mean",
                         p->measures[c->measure].name, p->measures[c->measure].name);
    }
    if (ps->failed || !cond_expect(ps, '[') || parse_level_of_any(ps, c) == NULL ||
        !cond_expect(ps, ']') || !cond_expect(ps, '.') || !cond_take(ps, TOKEN_WORD, "mean", &t)) {
        return NULL;
    }
    static const char *const known[] = {"mean"};
    return cond_token_is(&t, "mean") ? c : cond_fail_unknown(ps, &t, "field", known, 1);
}

/* Finds or adds a fact. The table is shared by all conditions of a program; old arrays stay in the
 * arena. */
static size_t fact_index(struct fact_table *table, size_t stage, const struct token *t)
{
    for (size_t i = 0; i < table->n; i++) {
        if (table->refs[i].stage == stage && cond_token_is(t, table->refs[i].name)) {
            return i;
        }
    }
    if (table->n == table->cap) {
        size_t cap = table->cap == 0 ? 8 : table->cap * 2;
        /* The old array stays in the arena: tables are small. */
        struct fact_ref *refs = arena_array(table->arena, cap, sizeof(*refs));
        if (table->n > 0) {
            memcpy(refs, table->refs, table->n * sizeof(*refs));
        }
        table->refs = refs;
        table->cap = cap;
    }
    table->refs[table->n] =
        (struct fact_ref){.stage = stage, .name = arena_strndup(table->arena, t->start, t->len)};
    return table->n++;
}

/* STAGE "." NAME; a fact's name is open: what a worker reports. */
static struct cond *parse_fact(struct cond_parser *ps, struct cond *c)
{
    const struct plan_program *p = ps->program;
    struct token t;
    size_t stage =
        cond_take_name(ps, "stage", COND_NAMES(p->stages, p->n_stages, struct plan_stage, name));
    if (ps->failed || !cond_expect(ps, '.') || !cond_take(ps, TOKEN_WORD, "a fact's name", &t)) {
        return NULL;
    }
    c->fact = fact_index(ps->facts, stage, &t);
    return c;
}

/* One of the closed list of the instrument's kind. */
static struct cond *take_field(struct cond_parser *ps, struct cond *c, enum instrument_kind kind)
{
    struct token t;
    size_t n = 0;
    const struct instrument_field *fields = instrument_fields(kind, &n);
    struct cond_names list = COND_NAMES(fields, n, struct instrument_field, name);
    char what[64];
    (void)snprintf(what, sizeof(what), "field of a %s instrument", instrument_kind_name(kind));
    if (!cond_take(ps, TOKEN_WORD, "a field", &t)) {
        return NULL;
    }
    c->instrument_field = resolve(ps, &t, what, &list);
    if (ps->failed) {
        return NULL;
    }
    c->is_truth = fields[c->instrument_field].is_truth;
    c->name = fields[c->instrument_field].name;
    return c;
}

/* Instruments never bind a verdict, so only forecasts may read them. */
static struct cond *parse_instrument(struct cond_parser *ps, struct cond *c)
{
    const struct plan_program *p = ps->program;
    if (ps->use != COND_USE_FORECAST) {
        return cond_fail(ps, c->offset,
                         "instruments say what the data says and never bind: forecasts only");
    }
    c->index =
        cond_take_name(ps, "instrument",
                       COND_NAMES(p->instruments, p->n_instruments, struct plan_instrument, name));
    if (ps->failed || !cond_expect(ps, '.')) {
        return NULL;
    }
    enum instrument_kind kind = instrument_kind_find(p->instruments[c->index].kind);
    return kind == INSTRUMENT_KIND_NR ? cond_fail(ps, c->offset, "an instrument of no kind")
                                      : take_field(ps, c, kind);
}

/* The first word decides what the rest of the name must be. */
struct cond *cond_parse_name(struct cond_parser *ps)
{
    static const struct {
        const char *root;
        enum cond_kind kind;
        struct cond *(*parse)(struct cond_parser *, struct cond *);
    } roots[] = {{"counter", COND_COUNTER, parse_counter},
                 {"contrast", COND_CONTRAST, parse_contrast},
                 {"measure", COND_MEASURE, parse_measure},
                 {"fact", COND_FACT, parse_fact},
                 {"instrument", COND_INSTRUMENT, parse_instrument}};
    static const char *const known[] = {"counter", "contrast", "measure",  "fact", "instrument",
                                        "ratio",   "rank",     "trend",    "abs",  "min",
                                        "max",     "not",      "otherwise"};
    struct token t = ps->tok;
    cond_advance(ps);
    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        if (token_is_word(&t, roots[i].root)) {
            struct cond *c = cond_new(ps, roots[i].kind, t.offset);
            return c != NULL && cond_expect(ps, '.') ? roots[i].parse(ps, c) : NULL;
        }
    }
    return cond_fail_unknown(ps, &t, "name", known, ARRAY_LEN(known));
}

bool cond_take_level(struct cond_parser *ps, const struct plan_factor *f, size_t *level)
{
    struct token t;
    if (!cond_expect(ps, ',') || !cond_take(ps, TOKEN_STRING, "a level in single quotes", &t)) {
        return false;
    }
    *level = program_find_level(f, unquoted(ps, &t));
    return *level != INDEX_NONE || fail_level(ps, &t, f) != NULL;
}

/* ratio(fact.STAGE.NAME, factor, 'a', 'b'): both levels belong to one factor, and differ. */
struct cond *cond_parse_ratio(struct cond_parser *ps)
{
    const struct plan_program *p = ps->program;
    struct cond *c = cond_new(ps, COND_RATIO, ps->tok.offset);
    struct token t;
    cond_advance(ps);
    if (c == NULL || !cond_expect(ps, '(') || !cond_take(ps, TOKEN_WORD, "a fact", &t)) {
        return NULL;
    }
    if (!cond_token_is(&t, "fact")) {
        return cond_fail(ps, t.offset,
                         "a ratio is one of facts: ratio(fact.STAGE.NAME, factor, 'a', 'b')");
    }
    if (!cond_expect(ps, '.') || parse_fact(ps, c) == NULL || !cond_expect(ps, ',')) {
        return NULL;
    }
    c->factor = cond_take_name(ps, "factor",
                               COND_NAMES(p->factors, p->n_factors, struct plan_factor, name));
    if (ps->failed || !cond_take_level(ps, &p->factors[c->factor], &c->level_a) ||
        !cond_take_level(ps, &p->factors[c->factor], &c->level_b)) {
        return NULL;
    }
    /* Such a condition would be constant, and was surely meant differently. */
    if (c->level_a == c->level_b) {
        return cond_fail(ps, c->offset, "a level's ratio to itself is always 1");
    }
    return cond_expect(ps, ')') ? c : NULL;
}
