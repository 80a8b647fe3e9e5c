/*
 * The complement of the error function, and the length of two sides. Below 2 the Taylor series of
 * erf is summed in pairs of doubles, which leaves a difference from 1 all its digits; above, a
 * continued fraction of fixed length is multiplied by e^(-x^2).
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/math/elementary.h"
#include "base/math/pair.h"

#define SERIES_TERMS    64
#define FRACTION_TERMS  80
#define ROOT_PI_INVERSE 0x1.20dd750429b6dp-1

static const struct pair two_per_root_pi = {0x1.20dd750429b6dp0, 0x1.1ae3a914fed8p-56};

/* erf x = 2 / root(pi) sum_k (-1)^k x^(2k+1) / (k! (2k + 1)), |x| < 2 */
static struct pair erf_series(double x)
{
    struct pair power = {x, 0}, sum = {x, 0};
    struct pair square = pair_product(x, x);

    for (int k = 1; k < SERIES_TERMS; k++) {
        power = pair_divide(pair_multiply(power, square), (struct pair){-k, 0});
        sum = pair_add(sum, pair_divide(power, (struct pair){2 * k + 1, 0}));
        if (fabs(power.hi) < fabs(x) * 0x1p-75)
            break;
    }
    return pair_multiply(sum, two_per_root_pi);
}

/* x >= 2: e^(-x^2) / root(pi) / (x + (1/2) / (x + (2/2) / (x + (3/2) / (x + ...)))) */
static double erfc_fraction(double x)
{
    struct pair square = pair_product(x, x);
    double t = x;
    int n;

    for (int k = FRACTION_TERMS; k > 1; k--)
        t = x + 0.5 * k / t;
    struct pair below = pair_quick_sum(x, 0.5 / t);
    struct pair s = pair_exp((struct pair){-square.hi, -square.lo}, &n);
    struct pair y = pair_quick_sum(1, s.hi);
    y.lo += s.lo;
    double q = pair_divide(y, below).hi * ROOT_PI_INVERSE;
    double result = ldexp(q, n);
    return result < DBL_MIN ? 0 : result;
}

double elementary_erfc(double x)
{
    if (isnan(x))
        return x;
    if (fabs(x) < 0x1p-54)
        return 1;
    if (fabs(x) < 2) {
        struct pair erf = erf_series(x);
        return pair_add((struct pair){1, 0}, (struct pair){-erf.hi, -erf.lo}).hi;
    }
    if (x < 0)
        return x < -6 ? 2 : 2 - erfc_fraction(-x);
    return x > 27 ? 0 : erfc_fraction(x);
}

/* Of a normal number. */
static int exponent(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return (int)(bits >> 52 & 2047) - 1023;
}

/* Both are scaled by the greater one's power of two; one Newton step on the root. */
double elementary_hypot(double a, double b)
{
    double big = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
    double small = fabs(a) > fabs(b) ? fabs(b) : fabs(a);

    if (isinf(a) || isinf(b))
        return (double)INFINITY;
    if (isnan(a) || isnan(b))
        return (double)NAN;
    if (big < DBL_MIN)
        return 0;
    if (small < DBL_MIN || small < big * 0x1p-54)
        return big;
    int e = exponent(big);
    big = ldexp(big, -e);
    small = ldexp(small, -e);
    struct pair sum = pair_add(pair_product(big, big), pair_product(small, small));
    double root = sqrt(sum.hi);
    struct pair square = pair_product(root, root);
    return ldexp(root + ((((sum.hi - square.hi) - square.lo) + sum.lo) / (2 * root)), e);
}
