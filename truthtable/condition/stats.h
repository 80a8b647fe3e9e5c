/*
 * The formulas behind gates, contrasts and proofs (docs/statistics.md). Plain float64 in a fixed
 * order. Each returns NaN where the quantity is not defined; the caller turns that into
 * "undetermined" with a reason.
 */
#ifndef TRUTHTABLE_CONDITION_STATS_H
#define TRUTHTABLE_CONDITION_STATS_H

#include <stddef.h>

/* (score - floor) / sqrt(score (1 - score) / n); NaN unless 0 < score < 1 and n > 0. */
double stat_gate_margin(double score, double n, double floor);
/* (floor - chance) / sqrt(chance (1 - chance) / n); NaN unless 0 < chance < 1 and n > 0. */
double stat_floor_above_chance(double floor, double chance, double n);
/* The smallest difference that n items show with power .8 at alpha .05, two-sided:
 * (z_{a/2} + z_b) sqrt((omega2 + var_a / k_a + var_b / k_b) / n), Miller (2024), eq. 9 solved for
 * delta. */
double stat_detectable_difference(double n, double omega2, double var_a_per_k, double var_b_per_k);
/* ln BF10 of the normal-normal Bayes factor for an estimate d with standard error se and an effect
 * of sd tau under H1: in logarithms, so that no evidence is too strong to be written down. NaN
 * unless d is finite and se and tau are positive and finite, and where the logarithm itself is
 * beyond double. */
double stat_ln_bf10(double d, double se, double tau);

double stat_mean(const double *v, size_t n); /* n > 0 */
/* Sample sd about the mean, ddof 1; NaN for n < 2. */
double stat_sd(const double *v, size_t n);

/* P(T <= t) of Student's t on df >= 1 degrees: Abramowitz & Stegun 26.7.3 and 26.7.4, finite sums.
 */
double stat_t_cdf(double t, unsigned df);
/* The upper quantile t with P(T <= t) = p, 0.5 < p < 1. */
double stat_t_quantile(double p, unsigned df);

#endif
