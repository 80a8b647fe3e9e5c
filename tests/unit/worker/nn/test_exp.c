/*
 * nn_exp() and nn_log(): the error bounds that worker/nn/vec.h states, and the same bits from every
 * instruction set and from the software's fused multiply-add. Of the 2^32 arguments every 1009th,
 * and all of them with PREREGD_LONG.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/math/elementary.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/nn/fused.h"
#include "worker/nn/vec.h"

#define BLOCK         4096
#define UNITS_BOUND   0.9
#define RELATIVE      7.8e-8
#define REFERENCE_ERR 1e-8 /* of the functions in double in units of a float, with a margin */

NN_BODY void exps_body(float *restrict y, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = nn_exp(x[i]);
}

/* All three, whatever nn_cpu() says. */
static void exps(float *restrict y, const float *restrict x, size_t n);
NN_KERNEL(exps, (float *restrict y, const float *restrict x, size_t n), (y, x, n))

NN_BODY void logs_body(float *restrict y, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = nn_log(x[i]);
}

static void logs(float *restrict y, const float *restrict x, size_t n);
NN_KERNEL(logs, (float *restrict y, const float *restrict x, size_t n), (y, x, n))

/* nn_exp() over again, by fused_float(). */
static float exp_by_software(float x)
{
    float y = x < -87.0F ? -87.0F : x > 88.0F ? 88.0F : x;
    float t = fused_float(y, 0x1.715476p0F, 12582912.0F), n = t - 12582912.0F;
    float r = fused_float(n, 0x1.05c61p-29F, fused_float(n, -0x1.62e43p-1F, y));
    static const float c[] = {0x1.123a0ap-7F, 0x1.5558f2p-5F, 0x1.555492p-3F, 0x1.fffffcp-2F, 1, 1};
    float p = 0x1.6a23eap-10F;

    for (size_t i = 0; i < ARRAY_LEN(c); i++)
        p = fused_float(p, r, c[i]);
    return isnan(x) ? x : p * (float)ldexp(1, (int)n);
}

/* nn_log() over again, by other ways to n and m. */
static float log_by_software(float x)
{
    int n;
    float m = frexpf(x, &n);

    if (m < 0x1.6a09e6p-1F) {
        m *= 2;
        n--;
    }
    float f = m - 1, s = f / (2 + f), z = s * s, h = 0.5F * f * f, p = 0x1.c71c72p-3F;
    p = fused_float(p, z, 0x1.24924ap-2F);
    p = fused_float(p, z, 0x1.99999ap-2F);
    p = fused_float(p, z, 0x1.555556p-1F);
    float t = fused_float(s, fused_float(z, p, h), (float)n * -0x1.05c61p-29F);
    return isinf(x) ? x : fused_float((float)n, 0x1.62e43p-1F, f - (h - t));
}

typedef void fill(float *restrict y, const float *restrict x, size_t n);

static const struct function {
    const char *name;
    fill *here;
#ifdef __x86_64__
    fill *avx2, *baseline;
#endif
    float (*software)(float x);
    double (*exact)(double x);
    float low, high; /* where the bound holds */
    bool total;      /* defined for every argument */
    double relative;
} FUNCTIONS[] = {
    {.name = "exp",
     .here = exps,
#ifdef __x86_64__
     .avx2 = exps_avx2,
     .baseline = exps_baseline,
#endif
     .software = exp_by_software,
     .exact = elementary_exp,
     .low = -87,
     .high = 88,
     .total = true,
     .relative = RELATIVE},
    {.name = "log",
     .here = logs,
#ifdef __x86_64__
     .avx2 = logs_avx2,
     .baseline = logs_baseline,
#endif
     .software = log_by_software,
     .exact = elementary_log,
     .low = FLT_MIN,
     .high = FLT_MAX,
     .relative = (double)INFINITY},
};

struct worst {
    double units, relative;
    float at;
};

static void meet(const struct function *f, struct worst *w, float x, float y)
{
    double exact = f->exact((double)x);
    int e;

    (void)frexp(exact, &e);
    double apart = fabs((double)y - exact);
    if (ldexp(apart, 24 - e) + REFERENCE_ERR > w->units) {
        w->units = ldexp(apart, 24 - e) + REFERENCE_ERR;
        w->at = x;
    }
    if (apart > 0)
        w->relative = fmax(w->relative, apart / fabs(exact));
}

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static void same_bits(const float *a, const float *b, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (bits_of(a[i]) != bits_of(b[i]) && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("%s: %a and %a", what, (double)a[i], (double)b[i]);
}

/* One block of arguments through all instruction sets; `spell` also by the software. */
static void check_block(const struct function *f, struct worst *w, const float *x, size_t n,
                        bool spell)
{
    float y[BLOCK], other[BLOCK];

    f->here(y, x, n);
#ifdef __x86_64__
    if (nn_cpu() >= NN_CPU_AVX2) {
        f->avx2(other, x, n);
        same_bits(y, other, n, "avx2");
    }
    if (spell) {
        f->baseline(other, x, n);
        same_bits(y, other, n, "baseline");
    }
#endif
    for (size_t i = 0; i < n && spell; i++)
        other[i] = f->software(x[i]);
    if (spell)
        same_bits(y, other, n, "by software");
    for (size_t i = 0; i < n; i++) {
        if (x[i] >= f->low && x[i] <= f->high)
            meet(f, w, x[i], y[i]);
        else if (isnan(x[i]))
            assert_true(isnan(y[i]));
    }
}

static void check_function(const struct function *f)
{
    bool is_long = getenv("PREREGD_LONG") != NULL;
    uint64_t stride = is_long ? 1 : 1009, at = 0;
    struct worst w = {0};

    for (uint64_t block = 0; at <= UINT32_MAX; block++) {
        float x[BLOCK];
        size_t n = 0;
        for (; n < BLOCK && at <= UINT32_MAX; at += stride) {
            uint32_t bits = (uint32_t)at;
            memcpy(&x[n], &bits, sizeof(bits));
            n += f->total || isnan(x[n]) || x[n] >= f->low;
        }
        check_block(f, &w, x, n, !is_long || block % 64 == 0);
    }
    print_message("%s: worst: %.4f units, relative %.3e, at %a\n", f->name, w.units, w.relative,
                  (double)w.at);
    assert_true(w.units < UNITS_BOUND);
    assert_true(w.relative < f->relative);
}

static void test_exp(void **state)
{
    (void)state;
    check_function(&FUNCTIONS[0]);
}

static void test_log(void **state)
{
    (void)state;
    check_function(&FUNCTIONS[1]);
}

/* A sum of exponentials is 1 or more; that of one key is 1. */
static void test_log_ends(void **state)
{
    (void)state;
    const float x[] = {1, 0x1.000002p0F, INFINITY, NAN, 0x1p-126F};
    float y[ARRAY_LEN(x)];

    logs(y, x, ARRAY_LEN(x));
    assert_true(y[0] == 0 && y[1] == 0x1.fffffep-24F);
    assert_true(isinf(y[2]) && isnan(y[3]) && y[4] < -87.3F && y[4] > -87.4F);
}

static void test_exp_ends(void **state)
{
    (void)state;
    const float x[] = {0, -0.0F, -1e4F, -INFINITY, 1e4F, INFINITY, 1e-45F};
    float y[ARRAY_LEN(x)];

    exps(y, x, ARRAY_LEN(x));
    assert_true(y[0] == 1 && y[1] == 1 && y[6] == 1);
    assert_true(y[2] == y[3] && y[4] == y[5]);
    assert_true(y[2] > 1.6e-38F && y[2] < 1.7e-38F && y[4] > 1.6e38F && y[4] < 1.7e38F);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_exp_ends),
        cmocka_unit_test(test_log_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
