/*
 * Exponential, logarithms and powers. Each takes its argument apart into a power of two and a
 * number near 1 and sums a Taylor series there; the leading terms are kept as pairs of doubles
 * (base/math/pair.h), so that the only error of any size is the last rounding. The coefficients are
 * the fractions themselves, divided by the compiler.
 */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/math/elementary.h"
#include "base/math/pair.h"

#define MAGIC    0x1.8p52 /* adding it rounds to a whole number */
#define LN2_A    0x1.62e42feep-1
#define LN2_B    0x1.a39ef356p-33
#define LN2_C    0x1.93c7673007e5fp-65
#define LN2_REST 0x1.a39ef35793c76p-33 /* without A */
#define ROOT_2   0x1.6a09e667f3bcdp0
#define NOTHING  0x1p-54 /* 1 + x = 1 below it */

static const struct pair per_ln2 = {0x1.71547652b82fep0, 0x1.777d0ffda0d24p-56};
static const struct pair per_ln10 = {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};
static const struct pair third = {0x1.5555555555555p-2, 0x1.5555555555555p-56};

/* 2^n, -1022 <= n <= 1023 */
static double power_of_two(int n)
{
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* y 2^n for y in 1/2 .. 2; 0 instead of a subnormal number */
static double scaled(double y, int n)
{
    if (n > 1023)
        return n > 1024 ? (double)INFINITY : y * 0x1p1023 * 2;
    return n < -1022 || (n == -1022 && y < 1) ? 0 : y * power_of_two(n);
}

/* n is the nearest whole number to x / ln 2 and r the rest; r + r^2 / 2 as a pair, then the terms
 * from r^3 / 3! to r^14 / 14!. */
struct pair pair_exp(struct pair x, int *n)
{
    double t = x.hi * per_ln2.hi + MAGIC;
    double k = t - MAGIC;
    struct pair r = pair_sum(x.hi - k * LN2_A, -(k * LN2_B));

    r = pair_quick_sum(r.hi, r.lo + (x.lo - k * LN2_C));
    struct pair q = pair_product(r.hi, r.hi);
    double p = 1. / 87178291200;
    p = p * r.hi + 1. / 6227020800;
    p = p * r.hi + 1. / 479001600;
    p = p * r.hi + 1. / 39916800;
    p = p * r.hi + 1. / 3628800;
    p = p * r.hi + 1. / 362880;
    p = p * r.hi + 1. / 40320;
    p = p * r.hi + 1. / 5040;
    p = p * r.hi + 1. / 720;
    p = p * r.hi + 1. / 120;
    p = p * r.hi + 1. / 24;
    p = p * r.hi + 1. / 6;
    struct pair s = pair_quick_sum(r.hi, q.hi / 2);
    *n = (int)k;
    return (struct pair){s.hi, s.lo + ((r.lo + (q.lo / 2 + r.hi * r.lo)) + r.hi * q.hi * p)};
}

static double exp_pair(struct pair x)
{
    int n;
    struct pair s = pair_exp(x, &n);
    struct pair y = pair_quick_sum(1, s.hi);

    return scaled(y.hi + (y.lo + s.lo), n);
}

double elementary_exp(double x)
{
    if (!(fabs(x) >= NOTHING))
        return 1 + x;
    if (fabs(x) > 750)
        return x > 0 ? (double)INFINITY : 0;
    return exp_pair((struct pair){x, 0});
}

/* 2^n - 1 and 2^n s are added as pairs. */
double elementary_expm1(double x)
{
    int n;

    if (!(fabs(x) >= NOTHING))
        return x;
    if (x < -40)
        return -1;
    if (x > 40)
        return elementary_exp(x);
    struct pair s = pair_exp((struct pair){x, 0}, &n);
    if (n == 0)
        return s.hi + s.lo;
    double power = power_of_two(n);
    struct pair less = pair_sum(power, -1);
    struct pair sum = pair_sum(less.hi, power * s.hi);
    return sum.hi + (sum.lo + (less.lo + power * s.lo));
}

/* x = 2^*e m, m in root(1/2) .. root(2); returns m. x is positive and normal. */
static double mantissa(double x, int *e)
{
    uint64_t bits;
    double m;

    memcpy(&bits, &x, sizeof(bits));
    *e = (int)(bits >> 52) - 1023;
    bits = (bits & (UINT64_MAX >> 12)) | (uint64_t)1023 << 52;
    memcpy(&m, &bits, sizeof(m));
    if (m > ROOT_2) {
        m /= 2;
        *e += 1;
    }
    return m;
}

/* ln m of m in root(1/2) .. root(2): twice the inverse hyperbolic tangent of s = (m - 1) / (m + 1),
 * by its series as far as s^23 / 23; here that from s^5 / 5 on, over s^5, for z = s^2. */
static double log_series(double z)
{
    double q = 1. / 23;

    q = q * z + 1. / 21;
    q = q * z + 1. / 19;
    q = q * z + 1. / 17;
    q = q * z + 1. / 15;
    q = q * z + 1. / 13;
    q = q * z + 1. / 11;
    q = q * z + 1. / 9;
    q = q * z + 1. / 7;
    return q * z + 1. / 5;
}

/* All terms in pairs of doubles, for powers and other bases. */
static struct pair log_mantissa(double m)
{
    struct pair s = pair_divide((struct pair){m - 1, 0}, pair_quick_sum(1, m));
    struct pair z = pair_multiply(s, s);
    struct pair w = pair_quick_sum(third.hi, z.hi * log_series(z.hi));
    w.lo += third.lo;
    struct pair twice = {2 * s.hi, 2 * s.lo};
    struct pair more = pair_multiply(twice, pair_multiply(z, w));
    struct pair sum = pair_quick_sum(twice.hi, more.hi);
    return pair_quick_sum(sum.hi, sum.lo + (twice.lo + more.lo));
}

/* ln x of a positive normal number. */
static struct pair log_pair(double x)
{
    int e;
    struct pair m = log_mantissa(mantissa(x, &e));
    struct pair power = pair_sum(e * LN2_A, e * LN2_B);

    power.lo += e * LN2_C;
    return pair_add(power, m);
}

static bool is_normal(double x)
{
    return x >= DBL_MIN && x <= DBL_MAX;
}

/* The logarithm, to any base, of what is not a positive normal number. */
static double log_special(double x)
{
    if (x > DBL_MAX)
        return x;
    return fabs(x) < DBL_MIN ? (double)-INFINITY : (double)NAN;
}

/* Only s is a pair, by one division: the initial weights of a model want many logarithms. */
double elementary_log(double x)
{
    int e;

    if (!is_normal(x))
        return log_special(x);
    double m = mantissa(x, &e);
    double f = m - 1;
    struct pair d = pair_quick_sum(1, m);
    double r = 1 / d.hi, s = f * r;
    struct pair p = pair_product(s, d.hi);
    double rest = (((f - p.hi) - p.lo) - s * d.lo) * r;
    double z = s * s;
    double more = 2 * s * (z * (third.hi + z * log_series(z)));
    struct pair sum = pair_quick_sum(e * LN2_A, 2 * s);
    return sum.hi + (sum.lo + ((2 * rest + more) + e * LN2_REST));
}

/* u + v = 1 + x exactly; with q = v / u, ln u + q - q^2 / 2. */
double elementary_log1p(double x)
{
    if (!(fabs(x) >= NOTHING))
        return x;
    struct pair u = pair_sum(1, x);
    if (!is_normal(u.hi))
        return log_special(u.hi);
    struct pair log = log_pair(u.hi);
    double q = u.lo / u.hi;
    struct pair sum = pair_sum(log.hi, q);
    return sum.hi + (sum.lo + (log.lo - q * q / 2));
}

double elementary_log2(double x)
{
    int e;

    if (!is_normal(x))
        return log_special(x);
    struct pair m = pair_multiply(log_mantissa(mantissa(x, &e)), per_ln2);
    struct pair sum = pair_sum(e, m.hi);
    return sum.hi + (sum.lo + m.lo);
}

double elementary_log10(double x)
{
    return is_normal(x) ? pair_multiply(log_pair(x), per_ln10).hi : log_special(x);
}

/* x = 0 or infinity and a y that is not 0. */
static double pow_of_end(double x, double y)
{
    return (x > 1) == (y > 0) ? (double)INFINITY : 0;
}

double elementary_pow(double x, double y)
{
    if (fabs(y) < DBL_MIN || (x >= 1 && x <= 1))
        return 1;
    if (!(x > -DBL_MIN) || isnan(y))
        return (double)NAN;
    if (x < DBL_MIN || x > DBL_MAX)
        return pow_of_end(x, y);
    struct pair log = log_pair(x);
    double size = y * log.hi;
    if (fabs(size) > 750)
        return size > 0 ? (double)INFINITY : 0;
    if (fabs(size) < NOTHING)
        return 1;
    return exp_pair(pair_multiply(log, (struct pair){y, 0}));
}
