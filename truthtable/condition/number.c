/*
 * Interval arithmetic in float64 and Kleene's three-valued logic, as number.h defines them. A range
 * operation applies the operation to the ends and takes the hull. It relies on round-to-nearest
 * being monotone, so it never changes the rounding mode. An open end survives only where rounding
 * cannot have moved the result onto the bound: in negation, minimum and maximum, and in a
 * difference that is exactly zero. Comparisons are false or true only if they are so for every pair
 * of values.
 */
#include "truthtable/condition/number.h"

#include <math.h>
#include <stddef.h>

static const char not_finite[] = "a computation has no finite result";
static const char division_by_zero[] = "a division by zero";

struct number number_point(double v)
{
    if (!isfinite(v)) {
        return number_unknown(not_finite);
    }
    return (struct number){.known = true, .lo = v, .hi = v};
}

struct number number_unknown(const char *why)
{
    return (struct number){.known = false, .why = why};
}

struct number number_range(double lo, double hi)
{
    return (struct number){.known = true, .lo = lo, .hi = hi};
}

struct number number_bound(double bound, bool above)
{
    if (!isfinite(bound)) {
        return number_unknown(not_finite);
    }
    struct number x = {.known = true, .lo = -(double)INFINITY, .hi = (double)INFINITY};
    if (above) {
        x.lo = bound;
        x.lo_open = true;
    } else {
        x.hi = bound;
        x.hi_open = true;
    }
    return x;
}

bool number_is_point(const struct number *x)
{
    return x->known && x->lo == x->hi;
}

/* The unknown one of two operands, the first one's reason first. */
static struct number first_unknown(struct number a, struct number b)
{
    return a.known ? b : a;
}

/* Ends that became NaN, a point that overflowed, or a range that lies beyond every finite value
 * have no meaning left. */
static struct number checked(struct number r, bool was_point)
{
    const double inf = (double)INFINITY;
    if (isnan(r.lo) || isnan(r.hi) || r.lo == inf || r.hi == -inf ||
        (was_point && (!isfinite(r.lo) || !isfinite(r.hi)))) {
        return number_unknown(not_finite);
    }
    return r;
}

/* Only two ordinary values make a point. A result of ranges may be unbounded without being an
 * overflow. */
static bool both_points(const struct number *a, const struct number *b)
{
    return number_is_point(a) && number_is_point(b);
}

/* The ends of a sum are closed: rounding may reach them even where an operand is open. */
struct number number_add(struct number a, struct number b)
{
    if (!a.known || !b.known) {
        return first_unknown(a, b);
    }
    return checked(number_range(a.lo + b.lo, a.hi + b.hi), both_points(&a, &b));
}

struct number number_sub(struct number a, struct number b)
{
    if (!a.known || !b.known) {
        return first_unknown(a, b);
    }
    struct number r = number_range(a.lo - b.hi, a.hi - b.lo);
    /* Different doubles never subtract to zero, so that a strict bound stays strict at zero.
     * Elsewhere rounding may reach the bound itself. */
    /* Only at zero is the strictness kept. */
    r.lo_open = r.lo == 0 && (a.lo_open || b.hi_open);
    r.hi_open = r.hi == 0 && (a.hi_open || b.lo_open);
    return checked(r, both_points(&a, &b));
}

/* The least and greatest of the four products or quotients of ends. 0 * infinity is NaN: the result
 * is then unknown. */
static struct number hull(const double v[4])
{
    struct number r = number_range(v[0], v[0]);
    for (size_t i = 1; i < 4; i++) {
        if (isnan(v[i])) {
            return number_unknown(not_finite);
        }
        r.lo = v[i] < r.lo ? v[i] : r.lo;
        r.hi = v[i] > r.hi ? v[i] : r.hi;
    }
    return r;
}

struct number number_mul(struct number a, struct number b)
{
    if (!a.known || !b.known) {
        return first_unknown(a, b);
    }
    const double v[4] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
    return checked(hull(v), both_points(&a, &b));
}

/* A divisor whose range contains 0 makes the quotient unknown, not unbounded. */
struct number number_div(struct number a, struct number b)
{
    if (!a.known || !b.known) {
        return first_unknown(a, b);
    }
    if (b.lo <= 0 && b.hi >= 0) {
        return number_unknown(division_by_zero);
    }
    const double v[4] = {a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi};
    return checked(hull(v), both_points(&a, &b));
}

struct number number_neg(struct number a)
{
    if (!a.known) {
        return a;
    }
    struct number r = number_range(-a.hi, -a.lo);
    r.lo_open = a.hi_open;
    r.hi_open = a.lo_open;
    return r;
}

/* A range across 0 begins at 0, which it contains. */
struct number number_abs(struct number a)
{
    if (!a.known || a.lo >= 0) {
        return a;
    }
    if (a.hi <= 0) {
        return number_neg(a);
    }
    return number_range(0, -a.lo > a.hi ? -a.lo : a.hi);
}

struct number number_min(struct number a, struct number b)
{
    if (!a.known || !b.known) {
        return first_unknown(a, b);
    }
    struct number r = {.known = true};
    r.lo = a.lo < b.lo ? a.lo : b.lo;
    r.hi = a.hi < b.hi ? a.hi : b.hi;
    /* An end is open only where every operand that reaches it is. */
    r.lo_open = (a.lo > r.lo || a.lo_open) && (b.lo > r.lo || b.lo_open);
    r.hi_open = (a.hi == r.hi && a.hi_open) || (b.hi == r.hi && b.hi_open);
    return r;
}

/* max(a, b) = -min(-a, -b), so that the rule for open ends exists only once. */
struct number number_max(struct number a, struct number b)
{
    return number_neg(number_min(number_neg(a), number_neg(b)));
}

/* a < b: true if every a is below every b, false if no a is below any b. Ends that touch decide
 * only where one of them is open. */
static enum truth less(const struct number *a, const struct number *b)
{
    if (a->hi < b->lo || (a->hi == b->lo && (a->hi_open || b->lo_open))) {
        return TRUTH_TRUE;
    }
    return a->lo >= b->hi ? TRUTH_FALSE : TRUTH_UNKNOWN;
}

/* Equality of ranges is unknown unless they are disjoint; two points have no third case. */
static enum truth equal(const struct number *a, const struct number *b)
{
    if (less(a, b) == TRUTH_TRUE || less(b, a) == TRUTH_TRUE) {
        return TRUTH_FALSE;
    }
    return both_points(a, b) ? TRUTH_TRUE : TRUTH_UNKNOWN;
}

/* Every operator is reduced to `less` and `equal`, so that a <= b and b < a can never both hold. */
enum truth number_compare(struct number a, enum relop op, struct number b)
{
    if (!a.known || !b.known) {
        return TRUTH_UNKNOWN;
    }
    switch (op) {
    case REL_LT: return less(&a, &b);
    case REL_GT: return less(&b, &a);
    /* a <= b is not (b < a); unknown stays unknown. */
    case REL_LE: return truth_not(less(&b, &a));
    case REL_GE: return truth_not(less(&a, &b));
    case REL_EQ: return equal(&a, &b);
    case REL_NE: return truth_not(equal(&a, &b));
    }
    return TRUTH_UNKNOWN;
}

enum truth truth_and(enum truth a, enum truth b)
{
    if (a == TRUTH_FALSE || b == TRUTH_FALSE) {
        return TRUTH_FALSE;
    }
    return a == TRUTH_TRUE && b == TRUTH_TRUE ? TRUTH_TRUE : TRUTH_UNKNOWN;
}

enum truth truth_or(enum truth a, enum truth b)
{
    return truth_not(truth_and(truth_not(a), truth_not(b)));
}

enum truth truth_not(enum truth a)
{
    return a == TRUTH_UNKNOWN ? TRUTH_UNKNOWN : truth_of(a == TRUTH_FALSE);
}

enum truth truth_of(bool b)
{
    return b ? TRUTH_TRUE : TRUTH_FALSE;
}
