/* Each function is the passage of docs/arithmetic.md that it is named for. */
#include "tests/unit/worker/train/second_numbers.h"

#include <math.h>
#include <string.h>

#include "base/banned.h"
#include "base/math/elementary.h"

#define PIECE 256
#define LANES 16

#ifdef __x86_64__
#define FUSED __attribute__((target("fma")))
#else
#define FUSED
#endif

FUSED float second_fma(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

/* To bfloat16: to nearest, ties to even. Of finite numbers. */
static float rounded(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    uint32_t rest = bits & 0xFFFF, whole = bits - rest;
    if (rest > 0x8000 || (rest == 0x8000 && (whole & 0x10000) != 0))
        whole += 0x10000;
    memcpy(&x, &whole, sizeof(x));
    return x;
}

static float term(struct second_matrix m, size_t i, size_t j, bool bfloat16)
{
    float x = m.at[i * m.row + j * m.col];

    return bfloat16 ? rounded(x) : x;
}

/* One chain over positions from .. to - 1. */
FUSED static float chain(struct second_matrix a, struct second_matrix b, const size_t at[2],
                         const size_t range[2], bool bfloat16)
{
    float s = 0;

    if (!bfloat16) {
        for (size_t p = range[0]; p < range[1]; p++)
            s = __builtin_fmaf(term(a, at[0], p, false), term(b, p, at[1], false), s);
        return s;
    }
    for (size_t p = range[0]; p < range[1]; p += 2) {
        if (p + 1 < range[1])
            s = __builtin_fmaf(term(a, at[0], p + 1, true), term(b, p + 1, at[1], true), s);
        s = __builtin_fmaf(term(a, at[0], p, true), term(b, p, at[1], true), s);
    }
    return s;
}

void second_product(float *c, bool add, struct second_matrix a, struct second_matrix b,
                    const size_t n[3], bool bfloat16)
{
    for (size_t i = 0; i < n[0]; i++)
        for (size_t j = 0; j < n[1]; j++) {
            float *sum = &c[i * n[1] + j];
            for (size_t from = 0; from < n[2]; from += PIECE) {
                size_t to = n[2] - from < PIECE ? n[2] : from + PIECE;
                float s = chain(a, b, (size_t[]){i, j}, (size_t[]){from, to}, bfloat16);
                *sum = from > 0 || add ? *sum + s : s;
            }
        }
}

FUSED float second_exp(float x)
{
    static const float c[] = {0x1.123a0ap-7F, 0x1.5558f2p-5F, 0x1.555492p-3F, 0x1.fffffcp-2F, 1, 1};
    float y = x < -87 ? -87 : x > 88 ? 88 : x, p = 0x1.6a23eap-10F;
    float n = __builtin_fmaf(y, 0x1.715476p0F, 12582912) - 12582912;
    float r = __builtin_fmaf(n, 0x1.05c61p-29F, __builtin_fmaf(n, -0x1.62e43p-1F, y));

    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
        p = __builtin_fmaf(p, r, c[i]);
    return p * ldexpf(1, (int)n);
}

FUSED float second_log(float x)
{
    int e;
    float m = frexpf(x, &e), p = 0x1.c71c72p-3F;

    if (m < 0x1.6a09e6p-1F) {
        m *= 2;
        e--;
    }
    float n = (float)e, f = m - 1, s = f / (2 + f), z = s * s, h = f / 2 * f;
    p = __builtin_fmaf(p, z, 0x1.24924ap-2F);
    p = __builtin_fmaf(p, z, 0x1.99999ap-2F);
    p = __builtin_fmaf(p, z, 0x1.555556p-1F);
    float t = __builtin_fmaf(s, __builtin_fmaf(z, p, h), n * -0x1.05c61p-29F);
    t = f - (h - t);
    return __builtin_fmaf(n, 0x1.62e43p-1F, t);
}

float second_sum(const float *terms, size_t n)
{
    float lane[LANES] = {0};

    for (size_t i = 0; i < n; i++)
        lane[i % LANES] += terms[i];
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

float second_dot(const float *a, const float *b, size_t n)
{
    float lane[LANES] = {0};

    for (size_t i = 0; i < n; i++)
        lane[i % LANES] += a[i] * b[i];
    return second_sum(lane, LANES);
}

double second_sum_squares(const float *x, size_t n)
{
    double lane[LANES] = {0};

    for (size_t i = 0; i < n; i++)
        lane[i % LANES] += (double)x[i] * (double)x[i];
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

void second_norm(float *y, float *s, const float *x, const float *w, double eps, const size_t n[2])
{
    size_t c = n[1];

    for (size_t r = 0; r < n[0]; r++) {
        double mean = second_sum_squares(x + r * c, c) / (double)c;
        s[r] = (float)(1 / sqrt(mean + (double)(float)eps));
        for (size_t i = 0; i < c; i++)
            y[r * c + i] = (x[r * c + i] * s[r]) * w[i];
    }
}

/* (dy w) x in lanes; dw in blocks of 64 rows. */
void second_norm_back(float *dx, float *dw, const float *dy, const float *x, const float *w,
                      const float *s, const size_t n[2])
{
    size_t c = n[1];

    for (size_t r = 0; r < n[0]; r++) {
        float lane[LANES] = {0};
        for (size_t i = 0; i < c; i++)
            lane[i % LANES] += (dy[r * c + i] * w[i]) * x[r * c + i];
        float k = (((second_sum(lane, LANES) / (float)c) * s[r]) * s[r]) * s[r];
        for (size_t i = 0; i < c; i++)
            dx[r * c + i] += (s[r] * dy[r * c + i]) * w[i] - x[r * c + i] * k;
    }
    for (size_t first = 0; first < n[0]; first += 64)
        for (size_t i = 0; i < c; i++) {
            float sum = 0;
            for (size_t r = first; r < n[0] && r < first + 64; r++)
                sum += (dy[r * c + i] * x[r * c + i]) * s[r];
            dw[i] += sum;
        }
}

void second_swiglu(float *h, const float *gu, size_t n, size_t f)
{
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < f; i++) {
            float g = gu[r * 2 * f + i], u = gu[r * 2 * f + f + i];
            h[r * f + i] = (g / (1 + second_exp(-g))) * u;
        }
}

void second_swiglu_back(float *dgu, const float *dh, const float *gu, size_t n, size_t f)
{
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < f; i++) {
            float g = gu[r * 2 * f + i], u = gu[r * 2 * f + f + i], d = dh[r * f + i];
            float s = 1 / (1 + second_exp(-g));
            dgu[r * 2 * f + i] = ((d * u) * s) * (1 + g * (1 - s));
            dgu[r * 2 * f + f + i] = (d * g) * s;
        }
}

void second_rope(float *x, double theta, int sign, const size_t n[2], size_t heads, size_t d,
                 size_t ld)
{
    for (size_t r = 0; r < n[0]; r++)
        for (size_t i = 0; i < d / 2; i++) {
            double angle = (double)(r % n[1]) * elementary_pow(theta, (-2 * (double)i) / (double)d);
            float c = (float)elementary_cos(angle), s = (float)sign * (float)elementary_sin(angle);
            for (size_t h = 0; h < heads; h++) {
                float *a = x + r * ld + h * d + i, *b = a + d / 2, was = *a;
                *a = was * c - *b * s;
                *b = *b * c + was * s;
            }
        }
}

static void philox(uint32_t word[4], uint32_t k0, uint32_t k1)
{
    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)0xD2511F53 * word[0], q = (uint64_t)0xCD9E8D57 * word[2];
        uint32_t next[4] = {(uint32_t)(q >> 32) ^ word[1] ^ k0, (uint32_t)q,
                            (uint32_t)(p >> 32) ^ word[3] ^ k1, (uint32_t)p};
        memcpy(word, next, sizeof(next));
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
}

static double unit(uint32_t high, uint32_t low)
{
    return ((double)(((uint64_t)high << 32 | low) >> 11) + 0.5) * 0x1p-53;
}

double second_normal(uint64_t seed, uint32_t stream, uint32_t a, uint64_t i)
{
    uint32_t w[4] = {(uint32_t)(i / 2), (uint32_t)(i / 2 >> 32), a, stream};

    philox(w, (uint32_t)seed, (uint32_t)(seed >> 32));
    double r = sqrt(-2 * elementary_log(unit(w[0], w[1])));
    double angle = 6.283185307179586 * unit(w[2], w[3]);
    return r * (i % 2 == 0 ? elementary_cos(angle) : elementary_sin(angle));
}
