/*
 * What the elementwise kernels share: lanes, dot products, exp, log.
 *
 * Sums go to NN_LANES running sums that are added in a fixed tree at the end, so a result depends
 * on the length alone, not on the instruction set (worker/nn/kernel.h).
 */
#ifndef WORKER_NN_VEC_H
#define WORKER_NN_VEC_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/math/elementary.h"
#include "worker/nn/kernel.h"
#include "worker/nn/real.h"

#define NN_LANES 16

#ifdef NN_F64
#define NN_EXP_MIN -708.0
NN_BODY real nn_exp(real x)
{
    return elementary_exp(x);
}
NN_BODY real nn_exp_low(real x)
{
    return elementary_exp(x);
}
NN_BODY real nn_log(real x)
{
    return elementary_log(x);
}
#else
#define NN_EXP_MIN -87.0F
/*
 * e^x, x <= 88 or NaN, by 2^n e^r, |r| <= ln 2 / 2: a chain of fma with a polynomial of degree 6
 * whose coefficients from r^2 on have the smallest greatest error
 * (tests/tools/elementary_constants). Under 0.9 units in the last place, a relative error
 * under 7.8e-8, for x in -87 .. 88; below that e^-87, above that e^88. NaN gives NaN.
 */
NN_BODY real nn_exp_low(real x)
{
    const float magic = 12582912.0F; /* 1.5 * 2^23: adding it rounds to a whole number */
    float y = -87.0F > x ? -87.0F : x;
    float t = NN_FMA(y, 0x1.715476p0F, magic);
    float n = t - magic;
    float r = NN_FMA(n, -0x1.62e43p-1F, y);
    r = NN_FMA(n, 0x1.05c61p-29F, r);
    float p = 0x1.6a23eap-10F;
    p = NN_FMA(p, r, 0x1.123a0ap-7F);
    p = NN_FMA(p, r, 0x1.5558f2p-5F);
    p = NN_FMA(p, r, 0x1.555492p-3F);
    p = NN_FMA(p, r, 0x1.fffffcp-2F);
    p = NN_FMA(p, r, 1.0F);
    p = NN_FMA(p, r, 1.0F);
    int32_t bits;
    float scale;
    memcpy(&bits, &t, sizeof(bits));
    bits = (int32_t)((uint32_t)(bits - 0x4B400000 + 127) << 23);
    memcpy(&scale, &bits, sizeof(scale));
    return p * scale;
}

/* The same for all x. */
NN_BODY real nn_exp(real x)
{
    return nn_exp_low(x > 88.0F ? 88.0F : x);
}

/*
 * ln x of a normal x > 0 by n ln 2 + ln m, m from the root of 1/2 to the root of 2, and the series
 * of atanh(s), s = (m - 1) / (m + 1), up to s^9. Under 0.9 units in the last place. Infinity and
 * NaN are returned as they are.
 */
NN_BODY real nn_log(real x)
{
    const uint32_t root = 0x3F3504F3u; /* the root of 1/2 */
    uint32_t bits;
    float m;
    memcpy(&bits, &x, sizeof(bits));
    bits += 0x3F800000u - root;
    float n = (float)((int32_t)(bits >> 23) - 127);
    bits = (bits & 0x7FFFFFu) + root;
    memcpy(&m, &bits, sizeof(m));
    float f = m - 1;
    float s = f / (2 + f);
    float z = s * s;
    float p = NN_FMA(0x1.c71c72p-3F, z, 0x1.24924ap-2F);
    p = NN_FMA(p, z, 0x1.99999ap-2F);
    p = NN_FMA(p, z, 0x1.555556p-1F);
    float h = 0.5F * f * f;
    float t = NN_FMA(s, NN_FMA(z, p, h), n * -0x1.05c61p-29F);
    t = f - (h - t);
    t = NN_FMA(n, 0x1.62e43p-1F, t);
    return x < INFINITY ? t : x;
}
#endif

/* Adds up the lanes pairwise. */
NN_BODY real nn_lanes_sum(const real acc[NN_LANES])
{
    real s[NN_LANES];

    memcpy(s, acc, sizeof(s));
    for (size_t half = NN_LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            s[i] += s[i + half];
    return s[0];
}

/* The same in double. */
NN_BODY double nn_lanes_sum_wide(const double acc[NN_LANES])
{
    double s[NN_LANES];

    memcpy(s, acc, sizeof(s));
    for (size_t half = NN_LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            s[i] += s[i + half];
    return s[0];
}

#ifdef NN_F64
/* The largest of n >= 1 numbers. */
NN_BODY real nn_max(const real *x, size_t n)
{
    real m = x[0];

    for (size_t i = 1; i < n; i++)
        m = m > x[i] ? m : x[i];
    return m;
}
#else
/* A number's place in the order of floats: its bits, which grow with magnitude, turned round for
 * negative numbers. Applied to a place it gives back the bits. */
NN_BODY int32_t nn_order(int32_t bits)
{
    return bits ^ ((bits >> 31) & 0x7FFFFFFF);
}

/* The largest of n >= 1 numbers: compilers turn a search for the largest integer into vector code,
 * but not one for the largest float. Of two zeros +0 counts as the larger; a NaN with its sign bit
 * set can lose, and then makes the sum of exponentials a NaN. */
NN_BODY real nn_max(const real *x, size_t n)
{
    int32_t m = INT32_MIN;
    real out;

    for (size_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        bits = nn_order(bits);
        m = m > bits ? m : bits;
    }
    m = nn_order(m);
    memcpy(&out, &m, sizeof(out));
    return out;
}
#endif

/* sum_i a_i b_i */
real vec_dot(const real *restrict a, const real *restrict b, size_t n);
/* y += a x */
void vec_axpy(real *restrict y, real a, const real *restrict x, size_t n);
/* y += x */
void vec_add(real *restrict y, const real *restrict x, size_t n);
/* sum_i x_i^2 in double */
double vec_sum_squares(const real *x, size_t n);
/* The same in parts of 65,536 elements, whose sums are added in order: by all threads. */
double vec_sum_squares_long(const real *x, size_t n);

#endif
