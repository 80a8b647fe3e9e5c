/*
 * Evaluates a compiled condition over one reading. Numbers are ranges and comparisons three-valued
 * (number.h), so a condition is true or false only if it is so for everything that is still
 * missing. The parser has checked the types: the switches name every kind, and a kind of the other
 * type cannot occur. The first reason met for something unknown becomes the reason of the result.
 */
#include <assert.h>
#include <math.h>

#include "base/math/elementary.h"
#include "truthtable/evaluate/evaluation.h"

struct evaluating {
    const struct table_evaluation *ev;
    enum truth otherwise;
    const char *why; /* the first reason met for something unknown */
};

static struct number number_at(struct evaluating *x, const struct cond *c);

/* Keeps the first reason; later ones are often its consequences. */
static void note_why(struct evaluating *x, const char *why)
{
    if (x->why == NULL) {
        x->why = why;
    }
}

/* Geometric mean of fact(a) / fact(b) over the cells that differ in the factor alone. */
static struct number ratio_of(const struct table_evaluation *ev, const struct cond *c)
{
    assert(c->kind == COND_RATIO);
    const struct plan_program *p = ev->rules->program;
    const struct number *facts = &ev->reading->facts[c->fact * p->n_cells];
    const bool *excluded = &ev->reading->fact_excluded[c->fact * p->n_cells];
    /* Cells that differ in the factor alone are a fixed number of cells apart. */
    size_t stride = 1;
    for (size_t f = c->factor + 1; f < p->n_factors; f++) {
        stride *= p->factors[f].n_levels;
    }
    double sum = 0;
    size_t n = 0;
    for (size_t a = 0; a < p->n_cells; a++) {
        size_t b = a + (c->level_b - c->level_a) * stride;
        if (p->cells[a].levels[c->factor] != c->level_a || excluded[a] || excluded[b]) {
            continue;
        }
        /* One missing fact makes the whole mean unknown: the mean of the rest would be another
         * quantity. */
        if (!facts[a].known || !facts[b].known) {
            return facts[a].known ? facts[b] : facts[a];
        }
        if (!number_is_point(&facts[a]) || !number_is_point(&facts[b])) {
            return number_unknown("a fact is known only as a bound");
        }
        if (!(facts[a].lo > 0) || !(facts[b].lo > 0)) {
            return number_unknown("a ratio needs facts above 0");
        }
        /* A geometric mean, so that ratio(a, b) is 1 / ratio(b, a). */
        sum += elementary_log(facts[a].lo / facts[b].lo);
        n++;
    }
    return n == 0 ? number_unknown("no matched cells are left")
                  : number_point(elementary_exp(sum / (double)n));
}

/* The mean of a fact over the cells that are left. */
static struct number fact_mean(const struct table_evaluation *ev, size_t fact)
{
    assert(fact < ev->rules->facts.n);
    const struct plan_program *p = ev->rules->program;
    struct number sum = number_point(0);
    size_t n = 0;
    for (size_t i = fact * p->n_cells; i < (fact + 1) * p->n_cells; i++) {
        if (!ev->reading->fact_excluded[i]) {
            sum = number_add(sum, ev->reading->facts[i]);
            n++;
        }
    }
    return n == 0 ? number_unknown("no cell is left") : number_div(sum, number_point((double)n));
}

/* A field of a figure that evaluate_contrasts() has computed. */
static struct number contrast_value(const struct table_evaluation *ev, const struct cond *c)
{
    assert(c->kind == COND_CONTRAST && c->index < ev->rules->program->n_contrasts);
    const struct figure *f =
        c->measure == INDEX_NONE
            ? &ev->pooled[c->index]
            : &ev->per_measure[c->index * ev->rules->program->n_measures + c->measure];
    return f->fields[c->field];
}

/* Applies an operation from left to right, as it was written. */
static struct number fold(struct evaluating *x, const struct cond *c,
                          struct number (*op)(struct number, struct number))
{
    struct number r = number_at(x, c->kids[0]);
    for (size_t i = 1; i < c->n_kids; i++) {
        r = op(r, number_at(x, c->kids[i]));
    }
    return r;
}

/* In a verdict no instrument has an answer; only forecasts are evaluated with some. */
static const struct instrument_answer *instrument_answer(const struct table_evaluation *ev,
                                                         const struct cond *c)
{
    static const struct instrument_answer none = {
        .truth = TRUTH_UNKNOWN,
        .number = {.why = "instruments are computed apart from the verdict"}};
    return ev->instruments == NULL ? &none : &ev->instruments[c->index][c->instrument_field];
}

/* The value of a node that is a number. */
static struct number number_raw(struct evaluating *x, const struct cond *c)
{
    switch (c->kind) {
    case COND_NUMBER: return number_point(c->number);
    case COND_ADD: return fold(x, c, number_add);
    case COND_SUB: return fold(x, c, number_sub);
    case COND_MUL: return fold(x, c, number_mul);
    case COND_DIV: return fold(x, c, number_div);
    case COND_MIN: return fold(x, c, number_min);
    case COND_MAX: return fold(x, c, number_max);
    case COND_NEG: return number_neg(number_at(x, c->kids[0]));
    case COND_ABS: return number_abs(number_at(x, c->kids[0]));
    case COND_RATIO: return ratio_of(x->ev, c);
    case COND_COUNTER: return x->ev->counters[c->index];
    case COND_CONTRAST: return contrast_value(x->ev, c);
    case COND_MEASURE: return level_mean(x->ev, c->measure, c->factor, c->level_a);
    case COND_FACT: return fact_mean(x->ev, c->fact);
    case COND_RANK: return rank_of_level(x->ev, c);
    case COND_TREND: return trend_of_levels(x->ev, c);
    case COND_INSTRUMENT: return instrument_answer(x->ev, c)->number;
    case COND_OR:
    case COND_AND:
    case COND_NOT:
    case COND_CHAIN:
    case COND_WITHIN:
    case COND_OTHERWISE: break;
    }
    return number_unknown("not a number"); /* the parser keeps truth out of arithmetic */
}

/* The same, noting the reason if it is unknown. */
static struct number number_at(struct evaluating *x, const struct cond *c)
{
    struct number r = number_raw(x, c);
    if (!r.known) {
        note_why(x, r.why);
    }
    return r;
}

/* Ranges that overlap compare as unknown, with a reason of their own. */
static enum truth compare(struct evaluating *x, struct number a, enum relop op, struct number b)
{
    enum truth t = number_compare(a, op, b);
    if (t == TRUTH_UNKNOWN) {
        note_why(x, "a value is known only within bounds");
    }
    return t;
}

/* a < b <= c: every link must hold; each value is computed once. */
static enum truth chain_truth(struct evaluating *x, const struct cond *c)
{
    enum truth all = TRUTH_TRUE;
    struct number left = number_at(x, c->kids[0]);
    for (size_t i = 1; i < c->n_kids; i++) {
        struct number right = number_at(x, c->kids[i]);
        all = truth_and(all, compare(x, left, c->ops[i - 1], right));
        left = right;
    }
    return all;
}

/* The truth of a node. */
static enum truth truth_at(struct evaluating *x, const struct cond *c)
{
    enum truth t;
    switch (c->kind) {
    case COND_OR:
        t = TRUTH_FALSE;
        for (size_t i = 0; i < c->n_kids; i++) {
            t = truth_or(t, truth_at(x, c->kids[i]));
        }
        return t;
    case COND_AND:
        t = TRUTH_TRUE;
        for (size_t i = 0; i < c->n_kids; i++) {
            t = truth_and(t, truth_at(x, c->kids[i]));
        }
        return t;
    case COND_NOT: return truth_not(truth_at(x, c->kids[0]));
    case COND_CHAIN: return chain_truth(x, c);
    case COND_WITHIN: {
        /* X within T: |X - 1| <= T. */
        struct number off = number_abs(number_sub(number_at(x, c->kids[0]), number_point(1)));
        return compare(x, off, REL_LE, number_point(c->number));
    }
    case COND_OTHERWISE: return x->otherwise;
    case COND_INSTRUMENT:
        t = instrument_answer(x->ev, c)->truth;
        if (t == TRUTH_UNKNOWN) {
            note_why(x, instrument_answer(x->ev, c)->number.why);
        }
        return t;
    case COND_NUMBER:
    case COND_ADD:
    case COND_SUB:
    case COND_MUL:
    case COND_DIV:
    case COND_NEG:
    case COND_ABS:
    case COND_MIN:
    case COND_MAX:
    case COND_RATIO:
    case COND_COUNTER:
    case COND_CONTRAST:
    case COND_MEASURE:
    case COND_FACT:
    case COND_RANK:
    case COND_TREND: break;
    }
    return TRUTH_UNKNOWN; /* the parser keeps numbers out of logic */
}

/* *why is set only if the result is unknown. A truth that is known may rest on unknown parts. */
enum truth evaluation_truth(const struct table_evaluation *ev, const struct cond *c,
                            enum truth otherwise, const char **why)
{
    assert(c != NULL); /* conditions that do not compile are never evaluated */
    struct evaluating x = {.ev = ev, .otherwise = otherwise};
    enum truth t = truth_at(&x, c);
    if (t == TRUTH_UNKNOWN && x.why != NULL) {
        *why = x.why;
    }
    return t;
}

/* For numbers outside of a comparison, as the effects show them. */
struct number evaluation_number(const struct table_evaluation *ev, const struct cond *c)
{
    assert(c != NULL);
    struct evaluating x = {.ev = ev, .otherwise = TRUTH_UNKNOWN};
    return number_at(&x, c);
}
