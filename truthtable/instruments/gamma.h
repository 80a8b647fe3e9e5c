/*
 * Regularised incomplete gamma functions, to 1e-12 relative in either tail, and the chi-square
 * distribution made of them.
 *     P(a, x) = 1/Gamma(a) int_0^x t^(a-1) e^-t dt,  Q = 1 - P.
 * By the series below x = a + 1, by the continued fraction above it, both times the Poisson density
 * in Loader's form, which does not cancel (Loader 2000, "Fast and accurate computation of binomial
 * probabilities").
 */
#ifndef TRUTHTABLE_INSTRUMENTS_GAMMA_H
#define TRUTHTABLE_INSTRUMENTS_GAMMA_H

struct gamma_tails {
    double p, q;
    double ln_p, ln_q; /* -INFINITY where the tail is exactly 0 */
};

/* a >= 1/2 and finite, x >= 0; all NaN otherwise. x may be infinite. */
struct gamma_tails gamma_regularised(double a, double x);
/* P(chi-square on df degrees <= x) and the rest: gamma_regularised(df / 2, x / 2). */
struct gamma_tails chi_square_tails(double x, double df);

#endif
