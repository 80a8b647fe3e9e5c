/*
 * What a comparison of two scores over the same n items can show (Miller 2024, eq. 9):
 *     n = (z_{alpha/2} + z_power)^2 (omega2 + var_a / k_a + var_b / k_b) / delta^2,
 * omega2 the variance of the true difference over items, var_x the variance of one answer of model
 * x, k_x answers averaged per item. Two-sided.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_POWER_H
#define TRUTHTABLE_INSTRUMENTS_POWER_H

struct power_design {
    double alpha; /* .05 */
    double power; /* .8 */
    double omega2;
    double var_a, k_a; /* k may be INFINITY: nothing is left of the sampling */
    double var_b, k_b;
};

/* Both NaN where the design or the number is out of range: 0 < alpha < 1, alpha/2 < power < 1,
 * variances >= 0, k >= 1. */
double power_items(const struct power_design *d, double delta);  /* delta > 0 -> n, not rounded */
double power_difference(const struct power_design *d, double n); /* n > 0 -> delta */

#endif
