/*
 * Rationals of 128 bits, linear expressions over them, and the decision whether a system of linear
 * inequalities may have a solution. Every operation detects overflow and gives the value `ok =
 * false`, and a row with such a value is dropped. Dropping a row can only make a system easier to
 * satisfy, so a proof of impossibility stays sound. Systems are small (tens of rows), but a check
 * solves thousands of them: rows are integers without a common divisor, and redundant bounds are
 * merged as they are added.
 */
#include "truthtable/prove/rational.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"

/* Euclid's algorithm on machine words. */
static uint64_t gcd_of_small(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

/* The greatest common divisor of absolute values; 0 and a give a. */
static i128 gcd_of(i128 a, i128 b)
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    /* 128-bit division is a function call; most numbers are small. */
    while (b != 0 && (a > UINT64_MAX || b > UINT64_MAX)) {
        i128 t = a % b;
        a = b;
        b = t;
    }
    return b == 0 ? a : (i128)gcd_of_small((uint64_t)a, (uint64_t)b);
}
static const struct rational overflowed = {.num = 0, .den = 1, .ok = false};

/* Kept well inside 128 bits, so that negation and comparison never overflow. */
static bool is_small(i128 v)
{
    const i128 limit = (i128)1 << 120;
    return v < limit && v > -limit;
}

/* Lowest terms with a positive denominator, or `overflowed`. */
static struct rational normal(i128 num, i128 den)
{
    if (den == 0 || !is_small(num) || !is_small(den)) {
        return overflowed;
    }
    if (den == 1) {
        return (struct rational){.num = num, .den = 1, .ok = true};
    }
    i128 g = gcd_of(num, den);
    g = den < 0 ? -g : g;
    return (struct rational){.num = num / g, .den = den / g, .ok = true};
}

/* The only conversion that cannot fail. */
struct rational rational_of_int(long v)
{
    return (struct rational){.num = v, .den = 1, .ok = true};
}

/* Uses the shortest decimal that reads back as this double, so that a plan's 0.1 is 1/10 and not
 * 3602879701896397/2^55. */
struct rational rational_of_double(double v)
{
    char text[JSON_NUMBER_MAX];
    json_number_text(v, text);
    i128 num = 0;
    int scale = 0;
    bool point = false;
    const char *p = text[0] == '-' ? text + 1 : text;
    for (; *p != '\0' && *p != 'e'; p++) {
        if (*p == '.') {
            point = true;
        } else {
            num = num * 10 + (*p - '0');
            scale += point ? 1 : 0;
        }
    }
    scale -= *p == 'e' ? (int)strtol(p + 1, NULL, 10) : 0;
    i128 power = 1;
    for (int i = abs(scale); i > 0; i--) {
        if (!is_small(power * 10)) {
            return overflowed;
        }
        power *= 10;
    }
    /* The digits without their point, to be divided by a power of ten. */
    num = text[0] == '-' ? -num : num;
    struct rational r = normal(num, scale > 0 ? power : 1);
    return scale >= 0 ? r : rational_mul(r, normal(power, 1));
}

/* Adding 0 needs no common denominator and so cannot overflow. */
struct rational rational_add(struct rational a, struct rational b)
{
    i128 left;
    i128 right;
    i128 num;
    i128 den;
    if (a.ok && b.ok && (a.num == 0 || b.num == 0)) {
        return a.num == 0 ? b : a;
    }
    if (!a.ok || !b.ok || __builtin_mul_overflow(a.num, b.den, &left) ||
        __builtin_mul_overflow(b.num, a.den, &right) || __builtin_add_overflow(left, right, &num) ||
        __builtin_mul_overflow(a.den, b.den, &den)) {
        return overflowed;
    }
    return normal(num, den);
}

/* 0 times anything that is valid is 0, whatever its denominator. */
struct rational rational_mul(struct rational a, struct rational b)
{
    i128 num;
    i128 den;
    if (a.ok && b.ok && (a.num == 0 || b.num == 0)) {
        return rational_of_int(0);
    }
    if (!a.ok || !b.ok || __builtin_mul_overflow(a.num, b.num, &num) ||
        __builtin_mul_overflow(a.den, b.den, &den)) {
        return overflowed;
    }
    return normal(num, den);
}

/* 1/0 overflows, and the row with it is dropped. */
struct rational rational_inverse(struct rational a)
{
    return a.ok ? normal(a.den, a.num) : overflowed;
}

/* All coefficients are set, because the other functions read the whole array. */
struct linear linear_constant(struct rational c)
{
    struct linear e;
    e.constant = c;
    for (size_t i = 0; i < LINEAR_VARS_MAX; i++) {
        e.coef[i] = rational_of_int(0);
    }
    return e;
}

/* The expression that is one variable. */
struct linear linear_variable(size_t i)
{
    struct linear e = linear_constant(rational_of_int(0));
    e.coef[i] = rational_of_int(1);
    return e;
}

/* Coefficient by coefficient; an overflow stays in its coefficient. */
struct linear linear_add(const struct linear *a, const struct linear *b)
{
    struct linear e;
    e.constant = rational_add(a->constant, b->constant);
    for (size_t i = 0; i < LINEAR_VARS_MAX; i++) {
        e.coef[i] = rational_add(a->coef[i], b->coef[i]);
    }
    return e;
}

/* Every coefficient times a constant. */
struct linear linear_scale(const struct linear *a, struct rational by)
{
    struct linear e;
    e.constant = rational_mul(a->constant, by);
    for (size_t i = 0; i < LINEAR_VARS_MAX; i++) {
        e.coef[i] = rational_mul(a->coef[i], by);
    }
    return e;
}

/* Whether no variable has a coefficient. One that has overflowed may have any value. */
bool linear_is_constant(const struct linear *a)
{
    for (size_t i = 0; i < LINEAR_VARS_MAX; i++) {
        if (!a->coef[i].ok || a->coef[i].num != 0) {
            return false;
        }
    }
    return true;
}

bool linear_is_exact(const struct linear *a)
{
    bool exact = a->constant.ok;
    for (size_t i = 0; i < LINEAR_VARS_MAX; i++) {
        exact = exact && a->coef[i].ok;
    }
    return exact;
}

/* Divides by the common divisor of the coefficients. Where a single integer variable is left, the
 * bound is rounded to the next integer: k > 2 is k >= 3. */
static void tighten(struct inequality *q, const struct linear_system *s)
{
    i128 g = 0;
    size_t n_vars = 0;
    size_t var = 0;
    for (size_t i = 0; i < s->n_vars; i++) {
        if (q->coef[i] != 0) {
            g = gcd_of(g, q->coef[i]);
            n_vars++;
            var = i;
        }
    }
    if (n_vars == 1 && s->integer[var]) {
        /* g k + c >= 0 is k >= -c / g; with a strict sign, g k + c >= 1 for an integer k and
         * integer c. */
        i128 c = q->strict ? q->constant - 1 : q->constant;
        q->coef[var] /= g;
        q->constant = c >= 0 ? c / g : -((-c + g - 1) / g);
        q->strict = false;
        return;
    }
    g = gcd_of(g, q->constant);
    if (g > 1) {
        q->constant /= g;
        for (size_t i = 0; i < s->n_vars; i++) {
            q->coef[i] /= g;
        }
    }
}

/* The least common multiple of all denominators; false if it does not fit or a value has
 * overflowed. */
static bool common_denominator(const struct linear *e, i128 *out)
{
    i128 lcm = 1;
    for (size_t i = 0; i <= LINEAR_VARS_MAX; i++) {
        const struct rational *r = i < LINEAR_VARS_MAX ? &e->coef[i] : &e->constant;
        if (r->ok && r->den == 1) {
            continue;
        }
        if (!r->ok || __builtin_mul_overflow(lcm / gcd_of(lcm, r->den), r->den, &lcm) ||
            !is_small(lcm)) {
            return false;
        }
    }
    *out = lcm;
    return true;
}

/* Rows beyond n are not read, so they are not copied. */
void system_copy(struct linear_system *to, const struct linear_system *from)
{
    memcpy(to->rows, from->rows, from->n * sizeof(from->rows[0]));
    memcpy(to->integer, from->integer, sizeof(from->integer));
    to->n = from->n;
    to->n_vars = from->n_vars;
}

/* Whether both bound the same single variable from the same side; then a says as much as b, or
 * more, when *tighter. */
static bool same_bound(const struct inequality *a, const struct inequality *b, size_t n_vars,
                       bool *tighter)
{
    i128 at_a;
    i128 at_b;
    size_t n = 0;
    for (size_t i = 0; i < n_vars; i++) {
        if (a->coef[i] == 0 && b->coef[i] == 0) {
            continue;
        }
        if (n++ > 0 || a->coef[i] == 0 || b->coef[i] == 0 || (a->coef[i] > 0) != (b->coef[i] > 0) ||
            __builtin_mul_overflow(a->constant, b->coef[i], &at_a) ||
            __builtin_mul_overflow(b->constant, a->coef[i], &at_b)) {
            return false;
        }
        /* coef x + c >= 0: the smaller c / |coef|, the tighter. */
        at_a = a->coef[i] > 0 ? at_a : -at_a;
        at_b = a->coef[i] > 0 ? at_b : -at_b;
        *tighter = at_a < at_b || (at_a == at_b && (a->strict || !b->strict));
    }
    return n == 1;
}

/* No variable is left: the row is either always true or a contradiction. */
static bool is_constant(const struct inequality *q, size_t n_vars)
{
    for (size_t i = 0; i < n_vars; i++) {
        if (q->coef[i] != 0) {
            return false;
        }
    }
    return true;
}

/* c >= 0 with a negative c, or c > 0 with c = 0. */
static bool is_contradiction(const struct inequality *q, size_t n_vars)
{
    return (q->constant < 0 || (q->constant == 0 && q->strict)) && is_constant(q, n_vars);
}

/* A bound takes the place of a looser one; what holds of any values is left out. */
static void add_row(struct linear_system *s, const struct inequality *q)
{
    if (is_constant(q, s->n_vars) && !is_contradiction(q, s->n_vars)) {
        return;
    }
    for (size_t r = 0; r < s->n; r++) {
        bool tighter = false;
        if (same_bound(&s->rows[r], q, s->n_vars, &tighter)) {
            s->rows[r] = tighter ? s->rows[r] : *q;
            return;
        }
    }
    if (s->n < LINEAR_INEQUALITIES_MAX) {
        s->rows[s->n++] = *q;
    }
}

/* Multiplies the row by the common denominator, so that its coefficients are integers. */
void system_add(struct linear_system *s, const struct linear *e, bool strict)
{
    struct inequality q = {.strict = strict};
    i128 lcm = 1;
    if (!common_denominator(e, &lcm)) {
        return;
    }
    for (size_t i = 0; i <= LINEAR_VARS_MAX; i++) {
        const struct rational *r = i < LINEAR_VARS_MAX ? &e->coef[i] : &e->constant;
        i128 *to = i < LINEAR_VARS_MAX ? &q.coef[i] : &q.constant;
        if (r->num != 0 && (__builtin_mul_overflow(r->num, lcm / r->den, to) || !is_small(*to))) {
            return;
        }
    }
    /* The system grows to the last variable that any of its rows has. */
    for (size_t i = s->n_vars; i < LINEAR_VARS_MAX; i++) {
        s->n_vars = q.coef[i] != 0 ? i + 1 : s->n_vars;
    }
    tighten(&q, s);
    add_row(s, &q);
}

/* low has a positive, high a negative coefficient of the variable: their positive combination
 * without it. */
static bool combine(const struct inequality *low, const struct inequality *high, size_t var,
                    size_t n_vars, struct inequality *out)
{
    i128 by_low = -high->coef[var];
    i128 by_high = low->coef[var];
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i <= n_vars; i++) {
        i128 a = i < n_vars ? low->coef[i] : low->constant;
        i128 b = i < n_vars ? high->coef[i] : high->constant;
        i128 sum;
        if (__builtin_mul_overflow(a, by_low, &a) || __builtin_mul_overflow(b, by_high, &b) ||
            __builtin_add_overflow(a, b, &sum) || !is_small(sum)) {
            return false;
        }
        *(i < n_vars ? &out->coef[i] : &out->constant) = sum;
    }
    out->strict = low->strict || high->strict;
    return true;
}

/* The variable whose elimination makes fewest rows; LINEAR_VARS_MAX when none is left. */
static size_t cheapest_variable(const struct linear_system *s)
{
    size_t best = LINEAR_VARS_MAX;
    size_t best_cost = 0;
    for (size_t v = 0; v < s->n_vars; v++) {
        size_t n_low = 0;
        size_t n_high = 0;
        for (size_t r = 0; r < s->n; r++) {
            n_low += s->rows[r].coef[v] > 0 ? 1 : 0;
            n_high += s->rows[r].coef[v] < 0 ? 1 : 0;
        }
        size_t cost = n_low * n_high;
        if (n_low + n_high > 0 && (best == LINEAR_VARS_MAX || cost < best_cost)) {
            best = v;
            best_cost = cost;
        }
    }
    return best;
}

/* Rows without the variable stay, pairs of the others are combined. What does not fit is left out.
 */
static void eliminate(const struct linear_system *s, size_t var, struct linear_system *next)
{
    next->n = 0;
    next->n_vars = s->n_vars;
    memcpy(next->integer, s->integer, sizeof(next->integer));
    for (size_t r = 0; r < s->n; r++) {
        if (s->rows[r].coef[var] == 0) {
            next->rows[next->n++] = s->rows[r];
        }
    }
    for (size_t a = 0; a < s->n; a++) {
        if (s->rows[a].coef[var] <= 0) {
            continue;
        }
        for (size_t b = 0; b < s->n; b++) {
            struct inequality q;
            if (s->rows[b].coef[var] < 0 && combine(&s->rows[a], &s->rows[b], var, s->n_vars, &q)) {
                tighten(&q, s);
                add_row(next, &q);
            }
        }
    }
}

/* Each elimination step ends with this test, which finds most contradictions before the last
 * variable. */
static bool has_contradiction(const struct linear_system *s)
{
    for (size_t r = 0; r < s->n; r++) {
        if (is_contradiction(&s->rows[r], s->n_vars)) {
            return true;
        }
    }
    return false;
}

/* Eliminates variable after variable, alternating between the two systems. What remains are
 * constants, and the original has a real solution only if none of them is a contradiction. */
bool system_may_hold(const struct linear_system *s, struct linear_system work[2])
{
    size_t side = 0;
    bool contradiction = has_contradiction(s);
    size_t var = cheapest_variable(s);
    while (!contradiction && var < LINEAR_VARS_MAX) {
        eliminate(s, var, &work[side]);
        s = &work[side];
        side = 1 - side;
        contradiction = has_contradiction(s);
        var = cheapest_variable(s);
    }
    return !contradiction;
}
