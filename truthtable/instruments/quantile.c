/*
 * Quantiles of the normal and of Student's t without a library: base/math has erfc but no inverse.
 * The normal quantile starts from a rational approximation and is polished by Halley's method in
 * the lower tail, where erfc is accurate; the upper tail follows by symmetry. t uses exact sums up
 * to SUM_DF degrees and an expansion in 1/df above.
 */
#include "truthtable/instruments/quantile.h"

#include <math.h>

#include "base/math/elementary.h"
#include "truthtable/condition/stats.h"

#define SQRT_2    1.4142135623730951
#define SQRT_2_PI 2.5066282746310002
#define SUM_DF    2000 /* up to here the finite sums; above, the series' error is below 1e-16 */

/* By erfc, which keeps relative accuracy in the lower tail. */
double normal_cdf(double z)
{
    return 0.5 * elementary_erfc(-z / SQRT_2);
}

/* A start for Newton's method in the lower half: Abramowitz & Stegun 26.2.23, error below 4.5e-4.
 */
static double lower_start(double p)
{
    double t = sqrt(-2 * elementary_log(p));
    double top = 2.515517 + t * (0.802853 + t * 0.010328);
    double bottom = 1 + t * (1.432788 + t * (0.189269 + t * 0.001308));
    return top / bottom - t;
}

/* z <= 0 with Phi(z) = p, p <= 1/2. Halley's steps on the relative error, which the far tail keeps
 * meaningful: Phi'/Phi does not underflow where Phi has not. */
static double lower_quantile(double p)
{
    double z = lower_start(p);
    for (int i = 0; i < 4; i++) {
        double f = normal_cdf(z);
        double density = elementary_exp(-0.5 * z * z) / SQRT_2_PI;
        if (!(density > 0)) {
            break;
        }
        double step = (f - p) / density;
        z -= step / (1 + 0.5 * z * step);
    }
    return z;
}

/* By symmetry from the lower half, where relative accuracy is possible. */
double normal_quantile(double p)
{
    if (!(p > 0 && p < 1)) {
        return (double)NAN;
    }
    return p <= 0.5 ? lower_quantile(p) : -lower_quantile(1 - p);
}

/* Abramowitz & Stegun 26.7.5: the first terms of an expansion in 1 / df about the normal quantile.
 */
static double expanded(double z, double df)
{
    double z2 = z * z;
    double g1 = (z2 + 1) * z / 4;
    double g2 = ((5 * z2 + 16) * z2 + 3) * z / 96;
    double g3 = (((3 * z2 + 19) * z2 + 17) * z2 - 15) * z / 384;
    double g4 = ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) * z / 92160;
    return z + (g1 + (g2 + (g3 + g4 / df) / df) / df) / df;
}

/* Above SUM_DF the error of the expansion is below rounding. */
double student_quantile(double p, size_t df)
{
    if (!(p > 0.5 && p < 1) || df == 0) {
        return (double)NAN;
    }
    return df <= SUM_DF ? stat_t_quantile(p, (unsigned)df)
                        : expanded(normal_quantile(p), (double)df);
}
