/*
 * Whether some level of an input must turn out true, whatever is still missing (program.md §2,
 * Input: "proved that one of the open levels must hold").
 *
 * Each comparison of the levels' conditions speaks of a quantity: a number held against constants,
 * two numbers held against each other, or else a truth value of its own. Every combination of
 * values that the quantities may still take, as far as the constants tell them apart, is tried.
 * Where each of them makes some level true, the levels cannot all turn out false: comparisons with
 * a bound or with an unknown are false only where they are false for every value. Quantities are
 * taken as independent, and the limits depend on the conditions alone, so that more data never
 * takes a proof back.
 */
#include <assert.h>
#include <math.h>

#include "truthtable/evaluate/evaluation.h"

#define QUANTITIES_MAX   8
#define CONSTANTS_MAX    32 /* that one quantity is held against */
#define VALUES_MAX       (3 * CONSTANTS_MAX + 2)
#define COMBINATIONS_MAX 4096 /* of the values of all quantities */

struct quantity {
    const struct cond *left;
    const struct cond *right; /* NULL: constants; else the values are the signs of left - right */
    bool is_truth;            /* `left` is a condition, its values are 0 and 1 */
    double constants[CONSTANTS_MAX];
    size_t n_constants;
    double values[VALUES_MAX]; /* that it may still take */
    size_t n_values;
    size_t at; /* the value that is tried */
};

struct cover {
    const struct table_evaluation *ev;
    struct quantity quantities[QUANTITIES_MAX];
    size_t n;
    bool failed;     /* too much to be tried */
    enum truth none; /* what `otherwise` means: no level before is true */
};

/* Whether an expression consists of literals only. */
static bool is_constant(const struct cond *c)
{
    bool constant = c->kind == COND_NUMBER || c->n_kids > 0;
    for (size_t i = 0; i < c->n_kids && constant; i++) {
        constant = is_constant(c->kids[i]);
    }
    return constant;
}

/* Finds or adds a quantity; equal expressions in different conditions share one. */
static struct quantity *quantity_of(struct cover *c, const struct cond *left,
                                    const struct cond *right)
{
    assert(left != NULL);
    for (size_t i = 0; i < c->n; i++) {
        struct quantity *q = &c->quantities[i];
        if ((q->right == NULL) == (right == NULL) && cond_same(q->left, left) &&
            (right == NULL || cond_same(q->right, right))) {
            return q;
        }
    }
    if (c->n == QUANTITIES_MAX) {
        c->failed = true;
        return NULL;
    }
    c->quantities[c->n] =
        (struct quantity){.left = left, .right = right, .is_truth = cond_is_truth(left)};
    return &c->quantities[c->n++];
}

/* The operator with its operands exchanged. */
static enum relop mirrored(enum relop op)
{
    switch (op) {
    case REL_LT: return REL_GT;
    case REL_LE: return REL_GE;
    case REL_GT: return REL_LT;
    case REL_GE: return REL_LE;
    case REL_EQ:
    case REL_NE: break;
    }
    return op;
}

/* The quantity of `a op b` and what it is compared with; NULL: both are constants, or `failed`. */
static struct quantity *split(struct cover *c, const struct cond *a, const struct cond *b,
                              enum relop *op, double *constant)
{
    if (is_constant(a) && is_constant(b)) {
        return NULL;
    }
    if (is_constant(a)) {
        const struct cond *swap = a;
        a = b;
        b = swap;
        *op = mirrored(*op);
    }
    struct number x = is_constant(b) ? evaluation_number(c->ev, b) : number_point(0);
    if (!x.known) {
        c->failed = true;
        return NULL;
    }
    *constant = x.lo;
    return quantity_of(c, a, is_constant(b) ? NULL : b);
}

/* Adds a constant that the quantity is compared with, once. Two expressions as a quantity have no
 * constants. */
static void note_constant(struct cover *c, struct quantity *q, double constant)
{
    if (q == NULL || q->right != NULL) {
        return;
    }
    for (size_t i = 0; i < q->n_constants; i++) {
        if (number_compare(number_point(q->constants[i]), REL_EQ, number_point(constant)) ==
            TRUTH_TRUE) {
            return;
        }
    }
    if (q->n_constants == CONSTANTS_MAX) {
        c->failed = true;
        return;
    }
    q->constants[q->n_constants++] = constant;
}

/* Collects every comparison of a condition. Anything else, such as "within", is a truth value of
 * its own. */
static void gather_quantities(struct cover *c, const struct cond *cond)
{
    if (cond->kind == COND_CHAIN) {
        for (size_t i = 0; i + 1 < cond->n_kids; i++) {
            enum relop op = cond->ops[i];
            double constant = 0;
            struct quantity *q = split(c, cond->kids[i], cond->kids[i + 1], &op, &constant);
            note_constant(c, q, constant);
        }
    } else if (cond->kind == COND_OR || cond->kind == COND_AND || cond->kind == COND_NOT) {
        for (size_t i = 0; i < cond->n_kids; i++) {
            gather_quantities(c, cond->kids[i]);
        }
    } else if (cond->kind != COND_OTHERWISE) {
        (void)quantity_of(c, cond, NULL);
    }
}

/* Counters, ranks and signs have integer values, which spares the values between. */
static bool is_integer(const struct cond *c)
{
    return c->kind == COND_COUNTER || c->kind == COND_RANK ||
           (c->kind == COND_CONTRAST && c->field == FIELD_SIGN);
}

/* Adds a value if what is known does not rule it out. */
static void take_value(struct quantity *q, const struct number *within, double v)
{
    if (isfinite(v) && v >= within->lo && v <= within->hi) {
        q->values[q->n_values++] = v;
    }
}

/* The values that a quantity of which nothing is known may take. */
static struct number widest(const struct plan_program *p, const struct cond *of)
{
    return of->kind == COND_RANK ? number_range(1, (double)p->factors[of->factor].n_levels)
           : of->kind == COND_CONTRAST && is_integer(of)
               ? number_range(-1, 1)
               : number_range(-(double)INFINITY, (double)INFINITY);
}

/* Each constant, one value on either side of it, and the ends of what is known. */
static void take_number_values(const struct cover *c, struct quantity *q)
{
    const bool integer = is_integer(q->left);
    struct number within = evaluation_number(c->ev, q->left);
    if (!within.known) {
        within = widest(c->ev->rules->program, q->left);
    }
    for (size_t i = 0; i < q->n_constants; i++) {
        const double t = q->constants[i];
        take_value(q, &within, integer ? ceil(t) - 1 : nextafter(t, -(double)INFINITY));
        take_value(q, &within, integer ? floor(t) + 1 : nextafter(t, (double)INFINITY));
        if (!integer || (floor(t) >= t && ceil(t) <= t)) {
            take_value(q, &within, t);
        }
    }
    take_value(q, &within, within.lo);
    take_value(q, &within, within.hi);
}

/* The values that a quantity may still take: both truth values, representatives between the
 * constants, or the signs of a difference. */
static void take_values(const struct cover *c, struct quantity *q)
{
    static const enum relop of_sign[] = {REL_LT, REL_EQ, REL_GT};
    const char *why = NULL;
    if (q->is_truth) {
        enum truth t = evaluation_truth(c->ev, q->left, TRUTH_UNKNOWN, &why);
        for (int v = t == TRUTH_TRUE ? 1 : 0; v <= (t == TRUTH_FALSE ? 0 : 1); v++) {
            q->values[q->n_values++] = v;
        }
    } else if (q->right == NULL) {
        take_number_values(c, q);
    } else {
        struct number a = evaluation_number(c->ev, q->left);
        struct number b = evaluation_number(c->ev, q->right);
        for (int sign = -1; sign <= 1; sign++) {
            if (number_compare(a, of_sign[sign + 1], b) != TRUTH_FALSE) {
                q->values[q->n_values++] = sign;
            }
        }
    }
}

/* Of the conditions alone: however narrow the values become, it stays the same. */
static bool is_too_much(const struct cover *c)
{
    size_t n = 1;
    for (size_t i = 0; i < c->n && n <= COMBINATIONS_MAX; i++) {
        n *= 3 * c->quantities[i].n_constants + 3;
    }
    return n > COMBINATIONS_MAX;
}

static enum truth tried_truth(struct cover *c, const struct cond *cond);

/* One comparison under the values being tried. */
static enum truth tried_link(struct cover *c, const struct cond *a, enum relop op,
                             const struct cond *b)
{
    double constant = 0;
    struct quantity *q = split(c, a, b, &op, &constant);
    struct number x = q == NULL ? evaluation_number(c->ev, a) : number_point(q->values[q->at]);
    return number_compare(x, op, q == NULL ? evaluation_number(c->ev, b) : number_point(constant));
}

/* "or", "and" and chains under the values being tried. */
static enum truth tried_joined(struct cover *c, const struct cond *cond)
{
    enum truth t = truth_of(cond->kind != COND_OR);
    for (size_t i = 0; i + (cond->kind == COND_CHAIN ? 1 : 0) < cond->n_kids; i++) {
        if (cond->kind == COND_OR) {
            t = truth_or(t, tried_truth(c, cond->kids[i]));
        } else if (cond->kind == COND_AND) {
            t = truth_and(t, tried_truth(c, cond->kids[i]));
        } else {
            t = truth_and(t, tried_link(c, cond->kids[i], cond->ops[i], cond->kids[i + 1]));
        }
    }
    return t;
}

/* A condition under the values that are tried. */
static enum truth tried_truth(struct cover *c, const struct cond *cond)
{
    if (cond->kind == COND_OR || cond->kind == COND_AND || cond->kind == COND_CHAIN) {
        return tried_joined(c, cond);
    }
    if (cond->kind == COND_NOT) {
        return truth_not(tried_truth(c, cond->kids[0]));
    }
    if (cond->kind == COND_OTHERWISE) {
        return c->none;
    }
    const struct quantity *q = quantity_of(c, cond, NULL);
    return q == NULL ? TRUTH_UNKNOWN : truth_of(q->values[q->at] > 0);
}

/* Evaluates the levels in order, with "otherwise" as it would be. */
static bool some_level_holds(struct cover *c, const struct cond *const *levels, size_t n)
{
    c->none = TRUTH_TRUE;
    for (size_t l = 0; l < n; l++) {
        c->none = truth_and(c->none, truth_not(tried_truth(c, levels[l])));
    }
    return c->none == TRUTH_FALSE;
}

/* On to the next combination; false after the last. */
static bool next_combination(struct cover *c)
{
    for (size_t i = 0; i < c->n; i++) {
        if (++c->quantities[i].at < c->quantities[i].n_values) {
            return true;
        }
        c->quantities[i].at = 0;
    }
    return false;
}

/* An input that ends in "otherwise" is always covered. For others, failing to prove it is the safe
 * answer: all levels then stay possible. */
bool input_is_covered(const struct table_evaluation *ev, size_t input)
{
    assert(input < ev->rules->program->n_inputs);
    const struct cond *const *levels = ev->rules->inputs[input];
    const size_t n = ev->rules->program->inputs[input].n_levels;
    if (levels[n - 1]->kind == COND_OTHERWISE) {
        return true;
    }
    struct cover c = {.ev = ev};
    for (size_t l = 0; l < n; l++) {
        gather_quantities(&c, levels[l]);
    }
    if (c.failed || is_too_much(&c)) {
        return false;
    }
    for (size_t i = 0; i < c.n; i++) {
        take_values(&c, &c.quantities[i]);
        if (c.quantities[i].n_values == 0) {
            return false;
        }
    }
    do {
        if (!some_level_holds(&c, levels, n)) {
            return false;
        }
    } while (next_combination(&c));
    return true;
}
