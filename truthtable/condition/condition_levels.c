/*
 * Parses what is over all levels of a factor: rank(...) of one level by a measure, and trend(...)
 * of a measure or a contrast, each restricted by further factors and their levels. A factor of
 * replicates has no levels to compare, and a contrast must leave free what a trend goes over.
 */
#include "base/xalloc.h"
#include "truthtable/condition/condition_parse.h"

/* A factor whose levels are compared. Replicates are repetitions, and have no order. */
static bool take_compared_factor(struct cond_parser *ps, struct cond *c)
{
    const struct plan_program *p = ps->program;
    if (!cond_expect(ps, ',')) {
        return false;
    }
    const size_t offset = ps->tok.offset;
    c->factor = cond_take_name(ps, "factor",
                               COND_NAMES(p->factors, p->n_factors, struct plan_factor, name));
    if (!ps->failed && p->factors[c->factor].replicate) {
        (void)cond_fail(ps, offset, "factor %s holds replicates, which are never compared",
                        p->factors[c->factor].name);
    }
    return !ps->failed;
}

/* {, factor, 'level'}: each of another factor, which is not the one compared. */
static bool take_where(struct cond_parser *ps, struct cond *c)
{
    const struct plan_program *p = ps->program;
    struct plan_setting *where = arena_array(ps->facts->arena, p->n_factors, sizeof(*where));
    c->where = where;
    while (token_is_char(&ps->tok, ',')) {
        cond_advance(ps);
        const size_t offset = ps->tok.offset;
        size_t f = cond_take_name(ps, "factor",
                                  COND_NAMES(p->factors, p->n_factors, struct plan_factor, name));
        bool taken = f == c->factor;
        for (size_t i = 0; !ps->failed && i < c->n_where; i++) {
            taken = taken || where[i].factor == f;
        }
        if (!ps->failed && (taken || p->factors[f].replicate)) {
            (void)cond_fail(ps, offset, "factor %s %s", p->factors[f].name,
                            taken ? "is named already" : "holds replicates: choose another");
        }
        size_t level = INDEX_NONE;
        if (ps->failed || !cond_take_level(ps, &p->factors[f], &level)) {
            return false;
        }
        where[c->n_where++] = (struct plan_setting){f, level};
    }
    return !ps->failed;
}

/* measure.M, without a level. */
static bool take_measure(struct cond_parser *ps, struct cond *c)
{
    const struct plan_program *p = ps->program;
    if (!cond_expect(ps, '.')) {
        return false;
    }
    c->measure = cond_take_name(ps, "measure",
                                COND_NAMES(p->measures, p->n_measures, struct plan_measure, name));
    return !ps->failed;
}

/* rank(measure.M, factor, 'level' {, factor, 'level'}): 1 is the best. */
struct cond *cond_parse_rank(struct cond_parser *ps)
{
    struct cond *c = cond_new(ps, COND_RANK, ps->tok.offset);
    struct token t;
    cond_advance(ps);
    if (c == NULL || !cond_expect(ps, '(') || !cond_take(ps, TOKEN_WORD, "a measure", &t)) {
        return NULL;
    }
    if (!cond_token_is(&t, "measure")) {
        return cond_fail(ps, t.offset,
                         "a rank is one by a measure: rank(measure.NAME, factor, 'level')");
    }
    if (!take_measure(ps, c) || !take_compared_factor(ps, c) ||
        !cond_take_level(ps, &ps->program->factors[c->factor], &c->level_a) || !take_where(ps, c)) {
        return NULL;
    }
    return cond_expect(ps, ')') ? c : NULL;
}

static const enum contrast_field trend_fields[] = {FIELD_MEAN, FIELD_N, FIELD_SE, FIELD_CI_LOW,
                                                   FIELD_CI_HIGH};

const char *trend_field_name(enum contrast_field f)
{
    return f == FIELD_MEAN ? "slope" : contrast_field_name(f);
}

static struct cond *take_trend_field(struct cond_parser *ps, struct cond *c)
{
    const char *known[ARRAY_LEN(trend_fields)];
    struct token t;
    if (!cond_expect(ps, '.') || !cond_take(ps, TOKEN_WORD, "a field", &t)) {
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(trend_fields); i++) {
        known[i] = trend_field_name(trend_fields[i]);
        if (cond_token_is(&t, known[i])) {
            c->field = trend_fields[i];
            return c;
        }
    }
    return cond_fail_unknown(ps, &t, "field of a trend", known, ARRAY_LEN(known));
}

/* contrast.K[M] of two levels, over a factor that it leaves free. */
static bool take_contrast(struct cond_parser *ps, struct cond *c)
{
    const struct plan_program *p = ps->program;
    const size_t offset = ps->tok.offset;
    if (!cond_expect(ps, '.')) {
        return false;
    }
    c->index = cond_take_name(ps, "contrast",
                              COND_NAMES(p->contrasts, p->n_contrasts, struct plan_contrast, name));
    if (!ps->failed && p->contrasts[c->index].is_difference) {
        (void)cond_fail(ps, offset + 1,
                        "contrast %s is a difference of contrasts: take the trend "
                        "of one between two levels",
                        p->contrasts[c->index].name);
    }
    if (ps->failed || !cond_expect(ps, '[')) {
        return false;
    }
    c->measure = cond_take_name(ps, "measure",
                                COND_NAMES(p->measures, p->n_measures, struct plan_measure, name));
    return !ps->failed && cond_expect(ps, ']');
}

/* Whether a contrast fixes the factor: its own, or one of its `where`. */
static bool is_fixed(const struct plan_contrast *k, size_t factor)
{
    bool fixed = k->factor == factor;
    for (size_t i = 0; i < k->n_where; i++) {
        fixed = fixed || k->where[i].factor == factor;
    }
    return fixed;
}

/* Every level must have settings of the contrast. */
static bool check_free(struct cond_parser *ps, const struct cond *c)
{
    const struct plan_program *p = ps->program;
    const struct plan_contrast *k = c->index == INDEX_NONE ? NULL : &p->contrasts[c->index];
    size_t fixed = k != NULL && is_fixed(k, c->factor) ? c->factor : INDEX_NONE;
    for (size_t i = 0; k != NULL && i < c->n_where && fixed == INDEX_NONE; i++) {
        fixed = is_fixed(k, c->where[i].factor) ? c->where[i].factor : INDEX_NONE;
    }
    if (fixed != INDEX_NONE) {
        (void)cond_fail(ps, c->offset, "contrast %s does not leave factor %s free", k->name,
                        p->factors[fixed].name);
    } else if (p->factors[c->factor].n_levels < 2) {
        (void)cond_fail(ps, c->offset, "factor %s has one level, and one has no trend",
                        p->factors[c->factor].name);
    }
    return !ps->failed;
}

/* trend(measure.M | contrast.K[M], factor {, factor, 'level'}).FIELD */
struct cond *cond_parse_trend(struct cond_parser *ps)
{
    struct cond *c = cond_new(ps, COND_TREND, ps->tok.offset);
    struct token t;
    cond_advance(ps);
    if (c == NULL || !cond_expect(ps, '(') ||
        !cond_take(ps, TOKEN_WORD, "a measure or a contrast", &t)) {
        return NULL;
    }
    const bool of_contrast = cond_token_is(&t, "contrast");
    if (!of_contrast && !cond_token_is(&t, "measure")) {
        return cond_fail(ps, t.offset,
                         "a trend is one of measure.NAME or of contrast.NAME[MEASURE]");
    }
    if (!(of_contrast ? take_contrast(ps, c) : take_measure(ps, c)) ||
        !take_compared_factor(ps, c) || !take_where(ps, c) || !check_free(ps, c) ||
        !cond_expect(ps, ')')) {
        return NULL;
    }
    return take_trend_field(ps, c);
}
