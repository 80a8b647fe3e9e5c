/*
 * The elementary functions of everything that reaches weights, scores or a verdict: the same bits
 * on every machine. libm's are used for none of these, since they differ between versions,
 * processors and systems in the last digit.
 *
 * Each is a fixed sequence of additions, multiplications, divisions and square roots of IEEE
 * doubles, rounded to nearest, without fused multiply-add: docs/arithmetic.md lists them. The
 * errors in units in the last place are bounds that tests/unit/base/math holds against MPFR.
 *
 * Subnormal numbers do not occur: an argument below 2^-1022 in magnitude counts as zero unless the
 * function is x itself there, and so does a result. Flush-to-zero therefore changes nothing.
 */
#ifndef BASE_MATH_ELEMENTARY_H
#define BASE_MATH_ELEMENTARY_H

#include "base/math/strict.h"

/* ln 2, the nearest double. */
#define ELEMENTARY_LN_2 0x1.62e42fefa39efp-1

/* e^x; under 0.54 units. 0 below about -708.39, infinity above about 709.78. */
double elementary_exp(double x);
/* e^x - 1; under 0.65 units. x itself for |x| < 2^-54. */
double elementary_expm1(double x);
/* Natural logarithm; under 0.6 units. -infinity of zero, NaN of negative numbers. */
double elementary_log(double x);
/* ln (1 + x); under 0.65 units. x itself for |x| < 2^-54. */
double elementary_log1p(double x);
/* To the bases 2 and 10; under 0.51 units, so exact for exact powers. */
double elementary_log2(double x);
double elementary_log10(double x);
/* x^y for x >= 0; under 0.9 units. 1 for y = 0 and for x = 1; NaN for x < 0. */
double elementary_pow(double x, double y);

/* Under 0.82 units for |x| <= 2^24, NaN beyond. */
double elementary_sin(double x);
double elementary_cos(double x);
/* -pi/2 .. pi/2; under 0.55 units. */
double elementary_atan(double x);

/* The root of a^2 + b^2, without overflow on the way; under 0.6 units. */
double elementary_hypot(double a, double b);
/* 1 - erf x; under 0.7 units below 2, under 4 above. 0 where it is below 2^-1022. */
double elementary_erfc(double x);

#endif
