/*
 * Sine, cosine and arc tangent. An angle loses multiples of pi / 2, of which three parts of 28
 * binary digits and the rest are subtracted; what remains, at most pi / 4, goes through a Taylor
 * series. The arc tangent subtracts that of the nearest eighth first.
 */
#include <math.h>

#include "base/math/elementary.h"
#include "base/math/pair.h"

#define MAGIC     0x1.8p52 /* adding it rounds to a whole number */
#define ANGLE_MAX 0x1p24
#define SMALL     0x1p-27 /* x^2 / 2 is below half a unit in the last place of 1 */
#define HALF_PI_A 0x1.921fb54p0
#define HALF_PI_B 0x1.10b461p-30
#define HALF_PI_C 0x1.a62633p-58
#define HALF_PI_D 0x1.45c06e0e68948p-86
#define PER_PI_2  0x1.45f306dc9c883p-1 /* 2 / pi */

static const struct pair half_pi = {0x1.921fb54442d18p0, 0x1.1a62633145c07p-54};

/* x - k pi / 2 for the nearest k; returns k modulo 4. */
static unsigned reduce(double x, struct pair *r)
{
    double t = x * PER_PI_2 + MAGIC;
    double k = t - MAGIC;
    struct pair b = pair_sum(x - k * HALF_PI_A, -(k * HALF_PI_B));
    struct pair c = pair_sum(b.hi, -(k * HALF_PI_C));

    *r = pair_sum(c.hi, (b.lo + c.lo) - k * HALF_PI_D);
    return (unsigned)(int)k & 3;
}

/* r + r^3 (-1/3! + r^2 / 5! - ... + r^14 / 17!) */
static double sine(struct pair r)
{
    double z = r.hi * r.hi;
    double p = 1. / 355687428096000;

    p = p * z - 1. / 1307674368000;
    p = p * z + 1. / 6227020800;
    p = p * z - 1. / 39916800;
    p = p * z + 1. / 362880;
    p = p * z - 1. / 5040;
    p = p * z + 1. / 120;
    p = p * z - 1. / 6;
    return r.hi + (r.hi * z * p + r.lo * (1 - z / 2));
}

/* 1 - r^2 / 2 as a pair, then r^4 / 4! - ... + r^16 / 16! */
static double cosine(struct pair r)
{
    struct pair z = pair_product(r.hi, r.hi);
    struct pair h = pair_quick_sum(1, -z.hi / 2);
    double p = 1. / 20922789888000;

    p = p * z.hi - 1. / 87178291200;
    p = p * z.hi + 1. / 479001600;
    p = p * z.hi - 1. / 3628800;
    p = p * z.hi + 1. / 40320;
    p = p * z.hi - 1. / 720;
    p = p * z.hi + 1. / 24;
    return h.hi + (((h.lo - z.lo / 2) - r.hi * r.lo) + z.hi * z.hi * p);
}

double elementary_sin(double x)
{
    struct pair r;

    if (!(fabs(x) <= ANGLE_MAX))
        return (double)NAN;
    if (fabs(x) < SMALL)
        return x;
    unsigned turn = reduce(x, &r);
    double y = turn % 2 == 0 ? sine(r) : cosine(r);
    return turn < 2 ? y : -y;
}

double elementary_cos(double x)
{
    struct pair r;

    if (!(fabs(x) <= ANGLE_MAX))
        return (double)NAN;
    if (fabs(x) < SMALL)
        return 1;
    unsigned turn = reduce(x, &r);
    double y = turn % 2 == 0 ? cosine(r) : sine(r);
    return turn == 0 || turn == 3 ? y : -y;
}

/* Of k / 8. */
static const struct pair eighths[] = {
    {0, 0},
    {0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59},
    {0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57},
    {0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56},
    {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
    {0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58},
    {0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56},
    {0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56},
    {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55},
};

/* Of y in 0 .. 1: with c the nearest eighth, w = (y - c) / (1 + y c), atan c + w - w^3 / 3 + ... +
 * w^13 / 13. */
static struct pair atan_pair(struct pair y)
{
    int k = (int)(8 * y.hi + 0.5);
    double c = (double)k / 8;
    struct pair yc = pair_product(y.hi, c);
    struct pair one = pair_quick_sum(1, yc.hi);
    struct pair w = pair_divide(pair_quick_sum(y.hi - c, y.lo),
                                pair_quick_sum(one.hi, one.lo + (yc.lo + y.lo * c)));
    double z = w.hi * w.hi;
    double p = 1. / 13;

    p = p * z - 1. / 11;
    p = p * z + 1. / 9;
    p = p * z - 1. / 7;
    p = p * z + 1. / 5;
    p = p * z - 1. / 3;
    struct pair sum = pair_sum(eighths[k].hi, w.hi);
    return pair_quick_sum(sum.hi, sum.lo + ((eighths[k].lo + w.lo) + w.hi * z * p));
}

double elementary_atan(double x)
{
    double a = fabs(x);
    struct pair r;

    if (!(a >= SMALL))
        return x;
    if (a > 0x1p60) {
        r = half_pi;
    } else if (a <= 1) {
        r = atan_pair((struct pair){a, 0});
    } else {
        r = atan_pair(pair_divide((struct pair){1, 0}, (struct pair){a, 0}));
        r = pair_add(half_pi, (struct pair){-r.hi, -r.lo});
    }
    return x < 0 ? -r.hi : r.hi;
}
