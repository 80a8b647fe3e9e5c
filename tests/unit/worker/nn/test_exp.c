/*
 * nn_exp(): the error bound that worker/nn/vec.h states, and the same bits from every instruction
 * set and from the software's fused multiply-add. Of the 2^32 arguments every 1009th, and all of
 * them with PREREGD_LONG.
 */
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
#define REFERENCE_ERR 1e-8 /* of elementary_exp() in units of a float, with a margin */

NN_BODY void exps_body(float *restrict y, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = nn_exp(x[i]);
}

/* All three, whatever nn_cpu() says. */
static void exps(float *restrict y, const float *restrict x, size_t n);
NN_KERNEL(exps, (float *restrict y, const float *restrict x, size_t n), (y, x, n))

/* nn_exp() over again, by fused_float(). */
static float by_software(float x)
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

struct worst {
    double units, relative;
    float at;
};

static void meet(struct worst *w, float x, float y)
{
    double exact = elementary_exp((double)x);
    int e;

    (void)frexp(exact, &e);
    double apart = fabs((double)y - exact);
    if (ldexp(apart, 24 - e) + REFERENCE_ERR > w->units) {
        w->units = ldexp(apart, 24 - e) + REFERENCE_ERR;
        w->at = x;
    }
    w->relative = fmax(w->relative, apart / exact);
}

static void same_bits(const float *a, const float *b, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof(*a)) != 0 && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("%s: %a and %a", what, (double)a[i], (double)b[i]);
}

/* One block of arguments through all instruction sets; `spell` also by the software. */
static void check_block(struct worst *w, const float *x, size_t n, bool spell)
{
    float y[BLOCK], other[BLOCK];

    exps(y, x, n);
#ifdef __x86_64__
    if (nn_cpu() >= NN_CPU_AVX2) {
        exps_avx2(other, x, n);
        same_bits(y, other, n, "avx2");
    }
    if (spell) {
        exps_baseline(other, x, n);
        same_bits(y, other, n, "baseline");
    }
#endif
    for (size_t i = 0; i < n && spell; i++)
        other[i] = by_software(x[i]);
    if (spell)
        same_bits(y, other, n, "by software");
    for (size_t i = 0; i < n; i++) {
        if (x[i] >= -87 && x[i] <= 88)
            meet(w, x[i], y[i]);
        else if (isnan(x[i]))
            assert_true(isnan(y[i]));
    }
}

static void test_all_arguments(void **state)
{
    (void)state;
    bool is_long = getenv("PREREGD_LONG") != NULL;
    uint64_t stride = is_long ? 1 : 1009, at = 0;
    struct worst w = {0};

    for (uint64_t block = 0; at <= UINT32_MAX; block++) {
        float x[BLOCK];
        size_t n = 0;
        for (; n < BLOCK && at <= UINT32_MAX; at += stride) {
            uint32_t bits = (uint32_t)at;
            memcpy(&x[n++], &bits, sizeof(bits));
        }
        check_block(&w, x, n, !is_long || block % 64 == 0);
    }
    print_message("worst: %.4f units, relative %.3e, at %a\n", w.units, w.relative, (double)w.at);
    assert_true(w.units < UNITS_BOUND);
    assert_true(w.relative < RELATIVE);
}

static void test_ends(void **state)
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
        cmocka_unit_test(test_all_arguments),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
