/*
 * The incomplete gamma function, accurate in both tails. The smaller tail is computed directly and
 * the other from it by expm1 and log1p, so neither loses digits to 1 - x. The Poisson density in
 * front of both expansions is split into Stirling's error and a deviance (Loader 2000), which keeps
 * its relative accuracy for large a.
 */
#include "truthtable/instruments/gamma.h"

#include <float.h>
#include <math.h>

#include "base/math/elementary.h"

#define TWO_PI    6.283185307179586
#define MAX_TERMS 10000000

/* ln Gamma(a + 1) - (a + 1/2) ln a + a - ln sqrt(2 pi): its asymptotic series from 16 on. That of
 * a is that of a + 1 and (a + 1/2) ln (1 + 1/a) - 1. */
static double stirling_error(double a)
{
    double below = 0;
    for (; a < 16; a++) {
        below += (a + 0.5) * elementary_log1p(1 / a) - 1;
    }
    double a2 = a * a;
    return below + (1. / 12 -
                    (1. / 360 -
                     (1. / 1260 - (1. / 1680 - (1. / 1188 - 691. / 360360 / a2) / a2) / a2) / a2) /
                        a2) /
                       a;
}

/* Loader's deviance a D(x / a) = a ln(a / x) + x - a, by a series near x = a, where the plain form
 * cancels. */
static double deviance(double a, double x)
{
    double v = (a - x) / (a + x);
    if (fabs(v) >= 0.1) {
        return a * elementary_log(a / x) + x - a;
    }
    double sum = (a - x) * v;
    double term = 2 * a * v;
    for (int k = 3; k < 200; k += 2) {
        term *= v * v;
        double next = sum + term / k;
        if (next == sum) {
            break;
        }
        sum = next;
    }
    return sum;
}

/* ln of x^a e^-x / Gamma(a + 1). */
static double ln_density(double a, double x)
{
    return -stirling_error(a) - deviance(a, x) - 0.5 * elementary_log(TWO_PI * a);
}

/* P / density: 1 + x/(a+1) + x^2/((a+1)(a+2)) + ... */
static double series(double a, double x)
{
    double term = 1;
    double sum = 1;
    for (int k = 1; k < MAX_TERMS && term > sum * DBL_EPSILON / 4; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return sum;
}

/* Q / density = a / (x + 1 - a - 1(1 - a)/(x + 3 - a - 2(2 - a)/...)), by Lentz's method. */
static double fraction(double a, double x)
{
    double b = x + 1 - a;
    double c = 1 / DBL_MIN;
    double d = 1 / b;
    double h = d;
    for (int k = 1; k < MAX_TERMS; k++) {
        double an = -k * (k - a);
        b += 2;
        d = an * d + b;
        d = fabs(d) < DBL_MIN ? DBL_MIN : d;
        c = b + an / c;
        c = fabs(c) < DBL_MIN ? DBL_MIN : c;
        d = 1 / d;
        h *= d * c;
        if (fabs(d * c - 1) < DBL_EPSILON) {
            break;
        }
    }
    return a * h;
}

/* The series converges fast below a + 1, the fraction above it. fmin keeps a rounding above 1 out
 * of the logarithm. */
struct gamma_tails gamma_regularised(double a, double x)
{
    double nan = (double)NAN;
    double inf = (double)INFINITY;
    if (!(a >= 0.5) || !isfinite(a) || !(x >= 0)) {
        return (struct gamma_tails){nan, nan, nan, nan};
    }
    if (!(x > 0)) {
        return (struct gamma_tails){.p = 0, .q = 1, .ln_p = -inf, .ln_q = 0};
    }
    if (isinf(x)) {
        return (struct gamma_tails){.p = 1, .q = 0, .ln_p = 0, .ln_q = -inf};
    }
    double ln = ln_density(a, x);
    struct gamma_tails t;
    if (x < a + 1) {
        t.ln_p = fmin(0, ln + elementary_log(series(a, x)));
        t.p = elementary_exp(t.ln_p);
        t.q = -elementary_expm1(t.ln_p);
        t.ln_q = elementary_log1p(-t.p);
    } else {
        t.ln_q = fmin(0, ln + elementary_log(fraction(a, x)));
        t.q = elementary_exp(t.ln_q);
        t.p = -elementary_expm1(t.ln_q);
        t.ln_p = elementary_log1p(-t.q);
    }
    return t;
}

/* Half the degrees, half the value. */
struct gamma_tails chi_square_tails(double x, double df)
{
    return gamma_regularised(df / 2, x / 2);
}
