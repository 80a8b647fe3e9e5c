/*
 * Three-valued truth (Kleene's) and numbers that may be unknown or known only within bounds.
 *
 * A number is either unknown, with a reason, or a range lo..hi: a point (lo == hi) for an ordinary
 * value, the possible values of a counter, or the open side of a censored record. Unknown is not a
 * range: whatever is computed from it is unknown, so that no identity such as abs(x) >= 0 turns a
 * missing record into a fact. Points use plain float64 arithmetic in the order written. For ranges
 * each operation is applied to the ends; rounding is monotone, so that a range holds every value
 * that the same operations give for a point inside the operands.
 */
#ifndef TRUTHTABLE_CONDITION_NUMBER_H
#define TRUTHTABLE_CONDITION_NUMBER_H

#include <stdbool.h>

#include "prereg/program/condition_lex.h"

enum truth { TRUTH_FALSE, TRUTH_TRUE, TRUTH_UNKNOWN };

struct number {
    bool known;      /* false: nothing else but why is set */
    bool lo_open;    /* the value is > lo, not >= lo */
    bool hi_open;    /* the value is < hi */
    double lo;       /* -infinity: unbounded */
    double hi;       /* +infinity: unbounded */
    const char *why; /* unknown: the reason, never NULL; borrowed */
};

struct number number_point(double v); /* not finite: unknown */
struct number number_unknown(const char *why);
/* lo <= hi; the ends are in. */
struct number number_range(double lo, double hi);
/* A censored value: above: > bound; else < bound. */
struct number number_bound(double bound, bool above);
bool number_is_point(const struct number *x);

/* An operation that has no finite result (a division by zero, an overflow) is unknown. */
struct number number_add(struct number a, struct number b);
struct number number_sub(struct number a, struct number b);
struct number number_mul(struct number a, struct number b);
struct number number_div(struct number a, struct number b);
struct number number_neg(struct number a);
struct number number_abs(struct number a);
struct number number_min(struct number a, struct number b);
struct number number_max(struct number a, struct number b);
enum truth number_compare(struct number a, enum relop op, struct number b);

enum truth truth_and(enum truth a, enum truth b);
enum truth truth_or(enum truth a, enum truth b);
enum truth truth_not(enum truth a);
enum truth truth_of(bool b);

#endif
