/*
 * Refuses flags and targets under which operations are not those of docs/arithmetic.md: the bytes
 * of weights, scores and verdicts would differ from everybody else's, and no test of one build
 * would show it. Contraction has no macro: the build turns it off after a builder's own flags.
 */
#ifndef BASE_MATH_STRICT_H
#define BASE_MATH_STRICT_H

#include <float.h>

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) ||     \
    defined(__NO_SIGNED_ZEROS__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "docs/arithmetic.md: build without -ffast-math, -Ofast and their parts"
#endif
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16 /* 16: wider than _Float16 alone */
#error "docs/arithmetic.md: float and double must be computed as such (no x87)"
#endif

#endif
