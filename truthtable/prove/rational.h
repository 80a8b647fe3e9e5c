/*
 * Exact rationals of 128-bit integers and systems of linear inequalities over them, for proofs.
 * Every overflow is noticed: the proof is then not made, never made wrongly.
 */
#ifndef TRUTHTABLE_PROVE_RATIONAL_H
#define TRUTHTABLE_PROVE_RATIONAL_H

#include <stdbool.h>
#include <stddef.h>

#define LINEAR_VARS_MAX         24
#define LINEAR_INEQUALITIES_MAX 192

__extension__ typedef __int128 i128;

struct rational { /* den > 0, in lowest terms; !ok: overflowed */
    i128 num;
    i128 den;
    bool ok;
};

struct rational rational_of_int(long v);
/* The shortest decimal that reads back as v: 0.04 is 4/100. */
struct rational rational_of_double(double v);
struct rational rational_add(struct rational a, struct rational b);
struct rational rational_mul(struct rational a, struct rational b);
struct rational rational_inverse(struct rational a); /* of 0: not ok */

/* constant + sum of coef[i] * variable i */
struct linear {
    struct rational constant;
    struct rational coef[LINEAR_VARS_MAX];
};

struct linear linear_constant(struct rational c);
struct linear linear_variable(size_t i);
struct linear linear_add(const struct linear *a, const struct linear *b);
struct linear linear_scale(const struct linear *a, struct rational by);
bool linear_is_constant(const struct linear *a);
/* False after an overflow: an overflowed coefficient reads as 0 but is not known to be. */
bool linear_is_exact(const struct linear *a);

/* Integer form of `expression >= 0`, or > 0 when strict. */
struct inequality {
    i128 constant;
    i128 coef[LINEAR_VARS_MAX];
    bool strict;
};

struct linear_system {
    struct inequality rows[LINEAR_INEQUALITIES_MAX];
    size_t n;
    size_t n_vars;                 /* variables from here on are in no row */
    bool integer[LINEAR_VARS_MAX]; /* variables that take integer values only */
};

/* The rows that are there: a system is large, and proofs copy many. */
void system_copy(struct linear_system *to, const struct linear_system *from);
/* Adds e >= 0 (e > 0 when strict), or nothing where a row says as much already. A row that does not
 * fit is left out, which only weakens the system. */
void system_add(struct linear_system *s, const struct linear *e, bool strict);
/* False only when the system provably has no solution (Fourier and Motzkin's elimination, in the
 * two systems that the caller lends: a proof asks thousands of times). */
bool system_may_hold(const struct linear_system *s, struct linear_system work[2]);

#endif
