/*
 * The formulas, in float64 and in a fixed order of operations: the same records must give the same
 * bytes of verdict.json. Conditions are written as !(x > 0), which also catches NaN. Each formula
 * is compared with scipy in tests/oracle.
 */
#include "truthtable/condition/stats.h"

#include <math.h>
#include <stdbool.h>

#include "base/math/elementary.h"

#define Z_TWO_SIDED_05 1.959963984540054  /* normal quantile of 0.975 */
#define Z_POWER_80     0.8416212335729143 /* normal quantile of 0.8 */
#define PI             3.141592653589793

double stat_gate_margin(double score, double n, double floor)
{
    if (!(score > 0) || !(score < 1) || !(n > 0)) {
        return (double)NAN;
    }
    return (score - floor) / sqrt(score * (1 - score) / n);
}

double stat_floor_above_chance(double floor, double chance, double n)
{
    if (!(chance > 0) || !(chance < 1) || !(n > 0)) {
        return (double)NAN;
    }
    return (floor - chance) / sqrt(chance * (1 - chance) / n);
}

/* 1.96 and 0.84 are the quantiles of a two-sided test at 5 % with 80 % power. */
double stat_detectable_difference(double n, double omega2, double var_a_per_k, double var_b_per_k)
{
    if (!(n > 0)) {
        return (double)NAN;
    }
    return (Z_TWO_SIDED_05 + Z_POWER_80) * sqrt((omega2 + var_a_per_k + var_b_per_k) / n);
}

/* The marginal likelihoods are N(0, se^2) under H0 and N(0, se^2 + tau^2) under H1. Their log ratio
 * is computed without squaring small numbers. */
double stat_ln_bf10(double d, double se, double tau)
{
    if (!isfinite(d) || !isfinite(se) || !isfinite(tau) || !(se > 0) || !(tau > 0)) {
        return (double)NAN;
    }
    /* with r = tau / se: -ln sqrt(1 + r^2) + (d / se * r / sqrt(1 + r^2))^2 / 2, which squares
     * neither se nor tau */
    double r = tau / se;
    double root = elementary_hypot(1, r);
    double pull = d / se * (isinf(r) ? 1 : r / root);
    double log_root = r < 1      ? 0.5 * elementary_log1p(r * r)
                      : isinf(r) ? elementary_log(tau) - elementary_log(se)
                                 : elementary_log(root);
    double ln = 0.5 * pull * pull - log_root;
    return isfinite(ln) ? ln : (double)NAN;
}

double stat_mean(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += v[i];
    }
    return sum / (double)n;
}

/* Two passes: the mean first, then the squares about it, which does not cancel as sum of squares
 * minus square of sum does. */
double stat_sd(const double *v, size_t n)
{
    if (n < 2) {
        return (double)NAN;
    }
    double mean = stat_mean(v, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (v[i] - mean) * (v[i] - mean);
    }
    return sqrt(sum / (double)(n - 1));
}

/* A(t|df) = P(|T| <= t) for t >= 0: a finite sum of powers of cos^2(theta), theta = atan(t /
 * sqrt(df)), different for odd and even df. */
static double t_central(double t, unsigned df)
{
    double theta = elementary_atan(t / sqrt((double)df));
    double cos2 = elementary_cos(theta) * elementary_cos(theta);
    if (df == 1) {
        return 2 * theta / PI;
    }
    bool odd = df % 2 == 1;
    double term = odd ? elementary_cos(theta) : 1;
    double sum = term;
    for (unsigned k = odd ? 2 : 1; k + 2 < df; k += 2) {
        term *= cos2 * (double)k / (double)(k + 1);
        sum += term;
    }
    return odd ? 2 * (theta + elementary_sin(theta) * sum) / PI : elementary_sin(theta) * sum;
}

double stat_t_cdf(double t, unsigned df)
{
    double a = 0.5 * t_central(fabs(t), df);
    return t < 0 ? 0.5 - a : 0.5 + a;
}

/* Bisection until two neighboring doubles remain: slow, exact to the last bit, and the same on
 * every machine. Called once per check and for figures with lost replicates. */
double stat_t_quantile(double p, unsigned df)
{
    double lo = 0;
    double hi = 1;
    while (stat_t_cdf(hi, df) < p && hi < 1e15) {
        hi *= 2;
    }
    for (;;) {
        double mid = lo + (hi - lo) / 2;
        if (mid <= lo || mid >= hi) {
            return hi;
        }
        if (stat_t_cdf(mid, df) < p) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
}
