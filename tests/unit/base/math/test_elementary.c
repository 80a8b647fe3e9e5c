/*
 * What needs no reference: special arguments, exact results, and one digest of many results, which
 * must be the same for every compiler, optimisation, sanitizer and processor, with flush-to-zero
 * and without.
 */
#include <math.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include "base/banned.h"
#include "base/math/elementary.h"
#include "base/rng.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"

#define INF  ((double)INFINITY)
#define NONE ((double)NAN)

struct value {
    const char *name;
    double (*f)(double);
    double x, y;
};

static const struct value values[] = {
    {"exp", elementary_exp, 0, 1},
    {"exp", elementary_exp, -0.0, 1},
    {"exp", elementary_exp, 0x1p-1074, 1},
    {"exp", elementary_exp, 1, 0x1.5bf0a8b145769p1},
    {"exp", elementary_exp, -708.396418532264, 0x1.000000000027cp-1022},
    {"exp", elementary_exp, -708.4, 0},
    {"exp", elementary_exp, -750.1, 0},
    {"exp", elementary_exp, 709.782712893384, 0x1.fffffffffff2ap1023},
    {"exp", elementary_exp, 709.782712893385, INF},
    {"exp", elementary_exp, 751, INF},
    {"exp", elementary_exp, INF, INF},
    {"exp", elementary_exp, -INF, 0},
    {"exp", elementary_exp, NONE, NONE},
    {"expm1", elementary_expm1, -0.0, -0.0},
    {"expm1", elementary_expm1, 0x1p-1074, 0x1p-1074},
    {"expm1", elementary_expm1, -41, -1},
    {"expm1", elementary_expm1, -INF, -1},
    {"expm1", elementary_expm1, 1e3, INF},
    {"expm1", elementary_expm1, NONE, NONE},
    {"log", elementary_log, 0, -INF},
    {"log", elementary_log, -0.0, -INF},
    {"log", elementary_log, 0x1p-1023, -INF},
    {"log", elementary_log, -0x1p-1023, -INF},
    {"log", elementary_log, 0x1p-1022, -0x1.6232bdd7abcd2p9},
    {"log", elementary_log, 1, 0},
    {"log", elementary_log, -1, NONE},
    {"log", elementary_log, -INF, NONE},
    {"log", elementary_log, INF, INF},
    {"log", elementary_log, NONE, NONE},
    {"log1p", elementary_log1p, -1, -INF},
    {"log1p", elementary_log1p, -1.5, NONE},
    {"log1p", elementary_log1p, -0.0, -0.0},
    {"log1p", elementary_log1p, 0x1p-1074, 0x1p-1074},
    {"log1p", elementary_log1p, INF, INF},
    {"log1p", elementary_log1p, NONE, NONE},
    {"log2", elementary_log2, 0x1p-1022, -1022},
    {"log2", elementary_log2, 0x1p1023, 1023},
    {"log2", elementary_log2, 0, -INF},
    {"log10", elementary_log10, 1e22, 22},
    {"log10", elementary_log10, 1000, 3},
    {"log10", elementary_log10, 0, -INF},
    {"sin", elementary_sin, -0.0, -0.0},
    {"sin", elementary_sin, 0x1.921fb54442d18p0, 1},
    {"sin", elementary_sin, 0x1.921fb54442d18p1, 0x1.1a62633145c07p-53},
    {"sin", elementary_sin, 0x1p24, -0x1.8f22f8433d6eep-1},
    {"sin", elementary_sin, 0x1.0000001p24, NONE},
    {"sin", elementary_sin, INF, NONE},
    {"sin", elementary_sin, NONE, NONE},
    {"cos", elementary_cos, 0, 1},
    {"cos", elementary_cos, 0x1.921fb54442d18p1, -1},
    {"cos", elementary_cos, 0x1.921fb54442d18p0, 0x1.1a62633145c07p-54},
    {"cos", elementary_cos, -INF, NONE},
    {"atan", elementary_atan, INF, 0x1.921fb54442d18p0},
    {"atan", elementary_atan, -INF, -0x1.921fb54442d18p0},
    {"atan", elementary_atan, 1, 0x1.921fb54442d18p-1},
    {"atan", elementary_atan, -0.0, -0.0},
    {"atan", elementary_atan, NONE, NONE},
    {"erfc", elementary_erfc, 0, 1},
    {"erfc", elementary_erfc, INF, 0},
    {"erfc", elementary_erfc, -INF, 2},
    {"erfc", elementary_erfc, 26.6, 0},
    {"erfc", elementary_erfc, NONE, NONE},
};

/* Equal bits; any NaN for a NaN. */
static void same(double got, double expected)
{
    if (isnan(expected))
        assert_true(isnan(got));
    else
        assert_memory_equal(&got, &expected, sizeof(got));
}

static void check_values(void)
{
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        double y = values[i].f(values[i].x);
        CHECK_ROW("%s(%a): %a", values[i].name, values[i].x, y);
        same(y, values[i].y);
    }
}

static void check_powers(void)
{
    static const struct {
        double x, y, expected;
    } cases[] = {
        {0.9, 0, 1},
        {NONE, 0, 1},
        {1, NONE, 1},
        {2, 10, 1024},
        {0.5, 1022, 0x1p-1022},
        {0.5, 1023, 0},
        {2, 1023, 0x1p1023},
        {2, 1024, INF},
        {10, 22, 1e22},
        {10, -3, 1e-3},
        {0, 2, 0},
        {0, -2, INF},
        {INF, -1, 0},
        {INF, 2, INF},
        {-2, 2, NONE},
        {0.5, INF, 0},
        {2, INF, INF},
        {0.5, 0x1p53, 0},
        {9, 0.5, 3},
        {1e6, -1, 1e-6},
        {0.9, 1, 0.9},
        {0.999, 1, 0.999},
        {10000, -0.5, 0.01},
        {2, 1e-320, 1},
        {-1e-320, 2, 0},
        {-0x1p-1022, 2, NONE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double y = elementary_pow(cases[i].x, cases[i].y);
        CHECK_ROW("pow(%g, %g): %a", cases[i].x, cases[i].y, y);
        same(y, cases[i].expected);
    }
}

static void check_hypot(void)
{
    same(elementary_hypot(3, -4), 5);
    same(elementary_hypot(0x3p1000, 0x4p1000), 0x5p1000);
    same(elementary_hypot(0x3p-1010, 0x4p-1010), 0x5p-1010);
    same(elementary_hypot(1e308, 1e308), 0x1.92c80954c51f5p1023);
    same(elementary_hypot(1.7e308, 1.7e308), INF);
    same(elementary_hypot(0, -0.0), 0);
    same(elementary_hypot(-INF, NONE), INF);
    same(elementary_hypot(NONE, 1), NONE);
    same(elementary_hypot(1, 1e-300), 1);
    same(elementary_hypot(1e-310, 1e-310), 0);
}

static void test_values(void **state)
{
    (void)state;
    check_values();
    check_powers();
    check_hypot();
}

static uint64_t mix(uint64_t digest, double y)
{
    uint64_t bits;

    memcpy(&bits, &y, sizeof(bits));
    return (digest ^ bits) * 0x100000001B3U;
}

/* FNV-1a over words. Arguments come from products alone, which no machine rounds otherwise. */
static uint64_t digest(void)
{
    uint64_t d = 0xCBF29CE484222325U;
    struct rng rng;

    rng_seed(&rng, 13);
    for (int i = 0; i < 20000; i++) {
        double u = rng_unit(&rng), x = (u - 0.5) * 1400, small = (u - 0.5) * 8;
        double positive = (rng_unit(&rng) + 0x1p-54) * (i % 2 == 0 ? 4 : 0x1p900);
        d = mix(mix(d, elementary_exp(x)), elementary_exp(small));
        d = mix(mix(d, elementary_expm1(small)), elementary_log1p(u * small * u));
        d = mix(mix(d, elementary_log(positive)), elementary_log2(positive));
        d = mix(mix(d, elementary_log10(positive)), elementary_pow(positive, u));
        d = mix(mix(d, elementary_sin(x)), elementary_cos(x * 10000));
        d = mix(mix(d, elementary_atan(small)), elementary_hypot(small, u));
        d = mix(mix(d, elementary_erfc(small)), elementary_erfc(4 + small * 5));
    }
    return d;
}

#define DIGEST UINT64_C(0xb88a1374c6bea17c)

static void test_bits(void **state)
{
    (void)state;
    uint64_t d = digest();
    CHECK_ROW("0x%016llx", (unsigned long long)d);
    assert_true(d == DIGEST);
}

/* The workers' threads run with both bits set. */
static void test_flush_to_zero(void **state)
{
    (void)state;
#ifdef __SSE2__
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
    check_values();
    check_powers();
    check_hypot();
    uint64_t d = digest();
    _mm_setcsr(before);
    CHECK_ROW("0x%016llx", (unsigned long long)d);
    assert_true(d == DIGEST);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_flush_to_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
