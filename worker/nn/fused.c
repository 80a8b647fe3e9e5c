/*
 * In float, the product is exact in double, and the sum is rounded there to odd: a number that is
 * not representable takes the neighbor whose last bit is 1. Rounding that to float is rounding the
 * exact sum once, because double has more than two digits to spare (Boldo and Melquiond 2008). In
 * double, product and sum are whole numbers of 128 bits.
 */
#include "worker/nn/fused.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

#define SIGN    (UINT64_C(1) << 63)
#define EXP_MIN (-1074) /* of the last place of a subnormal number */

static uint64_t bits_of(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static double from_bits(uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

float fused_float(float a, float b, float c)
{
    double p = (double)a * (double)b, z = (double)c;
    double s = p + z;
    double t = s - p;
    double e = (p - (s - t)) + (z - t);
    uint64_t bits = bits_of(s);

    /* An infinite or NaN s has a NaN e. */
    if ((e > 0 || e < 0) && (bits & 1) == 0)
        s = from_bits((e > 0) == (s > 0) ? bits + 1 : bits - 1);
    return (float)s;
}

/* mantissa 2^exponent; the mantissa of a finite number has 53 digits at most. */
struct fused_number {
    wide mantissa;
    int exponent;
    bool negative;
};

static struct fused_number take(double x)
{
    uint64_t bits = bits_of(x), mantissa = bits & (UINT64_MAX >> 12);
    int field = (int)(bits >> 52 & 2047);

    return (struct fused_number){
        .mantissa = field == 0 ? mantissa : mantissa | UINT64_C(1) << 52,
        .exponent = field == 0 ? EXP_MIN : field - 1075,
        .negative = (bits & SIGN) != 0,
    };
}

static int length(wide x)
{
    uint64_t high = (uint64_t)(x >> 64);

    if (high != 0)
        return 128 - __builtin_clzll(high);
    return (uint64_t)x == 0 ? 0 : 64 - __builtin_clzll((uint64_t)x);
}

/* Makes the mantissa as long as `digits`. */
static void lengthen(struct fused_number *x, int digits)
{
    int by = digits - length(x->mantissa);

    x->mantissa <<= by;
    x->exponent -= by;
}

/* Shifts right; the last bit is 1 when a bit that is 1 is lost. */
static void shorten(struct fused_number *x, int by)
{
    wide rest = by < 128 ? x->mantissa & (((wide)1 << by) - 1) : x->mantissa;

    x->mantissa = (by < 128 ? x->mantissa >> by : 0) | (rest != 0);
    x->exponent += by;
}

/* p + c, of which no more is lost than what rounding does not need. */
static struct fused_number add(struct fused_number p, struct fused_number c)
{
    lengthen(&p, 126);
    lengthen(&c, 126);
    struct fused_number big = p, small = c;
    if (c.exponent > p.exponent || (c.exponent == p.exponent && c.mantissa > p.mantissa)) {
        big = c;
        small = p;
    }
    shorten(&small, big.exponent - small.exponent);
    if (big.negative == small.negative)
        big.mantissa += small.mantissa;
    else
        big.mantissa -= small.mantissa;
    return big;
}

/* The whole number nearest to the mantissa over 2^by, ties to even. */
static uint64_t rounded(const struct fused_number *x, int by)
{
    if (by <= 0)
        return (uint64_t)(x->mantissa << -by);
    if (by > 127)
        return 0;
    wide half = (wide)1 << (by - 1);
    wide rest = x->mantissa & (2 * half - 1);
    uint64_t whole = (uint64_t)(x->mantissa >> by);
    return whole + (rest > half || (rest == half && (whole & 1) == 1) ? 1 : 0);
}

static bool flushes(void)
{
    volatile double least = DBL_MIN;

    return !(least * 0.5 > 0);
}

/* As a double. A result that is below 2^-1022 even after rounding to 53 digits is flushed. */
static double give(const struct fused_number *x)
{
    uint64_t sign = x->negative ? SIGN : 0;
    int by = length(x->mantissa) - 53;
    uint64_t m = rounded(x, by);
    int e = x->exponent + by;

    if (m == UINT64_C(1) << 53) {
        m >>= 1;
        e++;
    }
    if (e > 971)
        return from_bits(sign | UINT64_C(2047) << 52);
    if (e >= EXP_MIN)
        return from_bits(sign | ((uint64_t)(e - EXP_MIN + 1) << 52) | (m & (UINT64_MAX >> 12)));
    return from_bits(flushes() ? sign : sign | rounded(x, EXP_MIN - x->exponent));
}

double fused_double(double a, double b, double c)
{
    bool none = !(a < 0 || a > 0) || !(b < 0 || b > 0);

    if (none || !isfinite(a) || !isfinite(b))
        return a * b + c;
    if (!isfinite(c)) /* whatever a b overflows to */
        return c;
    if (!(c < 0 || c > 0))
        return a * b;
    struct fused_number x = take(a), y = take(b);
    struct fused_number p = {x.mantissa * y.mantissa, x.exponent + y.exponent,
                             x.negative != y.negative};
    struct fused_number sum = add(p, take(c));
    return sum.mantissa == 0 ? 0 : give(&sum);
}

#if defined(__x86_64__) && !defined(__FMA__)
float fmaf(float a, float b, float c)
{
    return fused_float(a, b, c);
}

double fma(double a, double b, double c)
{
    return fused_double(a, b, c);
}
#endif
