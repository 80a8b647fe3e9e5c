/*
 * The software's fused multiply-add against the instruction: random bits, operands near one another
 * that cancel, ties, results about the subnormal range and about overflow; with flush-to-zero and
 * without. PREREGD_LONG takes 100 times as many.
 */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/nn/fused.h"

#ifdef __x86_64__

#include <xmmintrin.h>

#define DRAWS 400000

__attribute__((target("fma"))) static float float_instruction(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

__attribute__((target("fma"))) static double double_instruction(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}

static uint64_t draws(void)
{
    return (uint64_t)DRAWS * (getenv("PREREGD_LONG") != NULL ? 100 : 1);
}

/* The ways of drawing an operand: its exponent, in a range about the middle, and its digits. */
struct shape {
    const char *name;
    int low, high; /* of the exponents of a, b and c, beside the middle */
    int product;   /* added to the exponents of a and b */
    bool few;      /* few digits that are 1: ties, and sums that cancel */
};

static const struct shape float_shapes[] = {
    {"all", -126, 127, 0, false},           {"near", -3, 3, 0, false},
    {"few digits", -15, 15, 0, true},       {"subnormal", -20, 20, -67, false},
    {"subnormal ties", -14, 14, -70, true}, {"overflow", -3, 3, 62, false},
};

static const struct shape double_shapes[] = {
    {"all", -1022, 1023, 0, false},          {"near", -3, 3, 0, false},
    {"few digits", -40, 40, 0, true},        {"subnormal", -40, 40, -520, false},
    {"subnormal ties", -40, 40, -525, true}, {"overflow", -3, 3, 510, false},
};

/* `digits` bits, or some of them at both ends only. */
static uint64_t draw_mantissa(struct rng *rng, int digits, bool few)
{
    uint64_t bits = rng_next(rng) >> (64 - digits);

    if (!few)
        return bits;
    uint64_t low = rng_next(rng) % 4, high = rng_next(rng) % 4 << (digits - 2);
    uint64_t one = (uint64_t)1 << rng_below(rng, (uint64_t)digits);
    return rng_next(rng) % 3 == 0 ? high | one : low | high;
}

static float draw_float(struct rng *rng, const struct shape *s, int more)
{
    int e = s->low + (int)rng_below(rng, (uint64_t)((int64_t)s->high - s->low + 1)) + more + 127;
    uint32_t bits = (uint32_t)draw_mantissa(rng, 23, s->few), field;
    float x;

    field = (uint32_t)(e < 0 ? 0 : e > 254 ? 254 : e);
    bits |= field << 23 | (uint32_t)(rng_next(rng) >> 63) << 31;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static double draw_double(struct rng *rng, const struct shape *s, int more)
{
    int e = s->low + (int)rng_below(rng, (uint64_t)((int64_t)s->high - s->low + 1)) + more + 1023;
    uint64_t bits = draw_mantissa(rng, 52, s->few), field;
    double x;

    field = (uint64_t)(e < 0 ? 0 : e > 2046 ? 2046 : e);
    bits |= field << 52 | rng_next(rng) >> 63 << 63;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint32_t float_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static uint64_t double_bits(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static void same_float(float a, float b, float c)
{
    float want = float_instruction(a, b, c), got = fused_float(a, b, c);

    if (isnan(want) ? !isnan(got) : float_bits(want) != float_bits(got))
        fail_msg("fmaf(%a, %a, %a): %a, expected %a", (double)a, (double)b, (double)c, (double)got,
                 (double)want);
}

static void same_double(double a, double b, double c)
{
    double want = double_instruction(a, b, c), got = fused_double(a, b, c);

    if (isnan(want) ? !isnan(got) : double_bits(want) != double_bits(got))
        fail_msg("fma(%a, %a, %a): %a, expected %a", a, b, c, got, want);
}

/* c is drawn for itself, or so that it cancels the product but for its rounding. */
static void compare(const struct shape *f, const struct shape *d, uint64_t n)
{
    struct rng rng;

    rng_seed(&rng, n);
    for (uint64_t i = 0; i < n; i++) {
        float a = draw_float(&rng, f, f->product), b = draw_float(&rng, f, f->product);
        float c = draw_float(&rng, f, 2 * f->product);
        same_float(a, b, c);
        same_float(a, b, -(a * b));
        double x = draw_double(&rng, d, d->product), y = draw_double(&rng, d, d->product);
        double z = draw_double(&rng, d, 2 * d->product);
        same_double(x, y, z);
        same_double(x, y, -(x * y));
        same_double(x, y, nextafter(-(x * y), z));
    }
}

/* An odd number of so many digits. */
static double draw_odd(struct rng *rng, int digits)
{
    return (double)((rng_next(rng) >> (64 - digits)) | 1 | (uint64_t)1 << (digits - 1));
}

/* A product halfway between two numbers, and a c that is lost in the next greater type's digits but
 * decides which of them is nearest. */
static void compare_ties(uint64_t n)
{
    struct rng rng;

    rng_seed(&rng, 3);
    for (uint64_t i = 0; i < n; i++) {
        double sign = rng_next(&rng) % 2 == 0 ? 1 : -1;
        double nudge = ldexp(sign, -(int)rng_below(&rng, 100));
        same_float((float)draw_odd(&rng, 12), (float)draw_odd(&rng, 13), (float)nudge);
        same_double(draw_odd(&rng, 27), draw_odd(&rng, 27), nudge);
    }
}

static void compare_all(void)
{
    static const double ends[] = {0,
                                  -0.0,
                                  1,
                                  -1,
                                  0x1p-1022,
                                  0x1p-1074,
                                  0x1p-149,
                                  0x1p-126,
                                  0x1.fffffep127,
                                  0x1.fffffffffffffp1023,
                                  (double)INFINITY,
                                  -(double)INFINITY,
                                  (double)NAN,
                                  0x1.fffffffffffffp-1023};
    const size_t n = ARRAY_LEN(ends);

    for (size_t i = 0; i < n * n * n; i++) {
        double a = ends[i % n], b = ends[i / n % n], c = ends[i / n / n];
        same_double(a, b, c);
        same_float((float)a, (float)b, (float)c);
    }
    compare_ties(draws() / 10);
    for (size_t i = 0; i < ARRAY_LEN(float_shapes); i++) {
        CHECK_ROW("%s", float_shapes[i].name);
        compare(&float_shapes[i], &double_shapes[i], draws() / ARRAY_LEN(float_shapes));
    }
}

static void test_instruction(void **state)
{
    (void)state;
    compare_all();
}

static void test_flush_to_zero(void **state)
{
    (void)state;
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
    compare_all();
    _mm_setcsr(before);
}

/* What kernels compiled for the baseline call. */
static void test_names(void **state)
{
    (void)state;
    volatile float a = 0x1.000002p0F, b = 0x1.fffffep-1F;
    volatile double x = 0x1.0000000000001p0, y = 0x1.fffffffffffffp-1;

    assert_true(__builtin_fmaf(a, b, -1) == 0x1.fffffcp-25F);
    assert_true(__builtin_fma(x, y, -1) == 0x1.ffffffffffffep-54);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instruction),
        cmocka_unit_test(test_flush_to_zero),
        cmocka_unit_test(test_names),
    };
    if (!__builtin_cpu_supports("fma")) {
        printf("skipped: this processor has no fused multiply-add\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    printf("skipped: the instruction is part of this processor's baseline\n");
    return 77;
}

#endif
