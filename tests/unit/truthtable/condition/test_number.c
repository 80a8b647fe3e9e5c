/* Kleene's logic, ranges, exact thresholds and formulas. */
#include <math.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "truthtable/condition/exact.h"
#include "truthtable/condition/number.h"
#include "truthtable/condition/stats.h"

#define F TRUTH_FALSE
#define T TRUTH_TRUE
#define U TRUTH_UNKNOWN

static void test_kleene(void **state)
{
    static const enum truth values[3] = {F, U, T};
    (void)state;
    /* Kleene: F < U < T, and is min, or is max. */
    for (size_t a = 0; a < 3; a++) {
        for (size_t b = 0; b < 3; b++) {
            assert_int_equal(truth_and(values[a], values[b]), values[a < b ? a : b]);
            assert_int_equal(truth_or(values[a], values[b]), values[a > b ? a : b]);
        }
        assert_int_equal(truth_not(values[a]), values[2 - a]);
    }
}

static void test_compare(void **state)
{
    const struct number p2 = number_point(2);
    const struct number r13 = number_range(1, 3);
    const struct number above4 = number_bound(4, true);
    const struct number below4 = number_bound(4, false);
    const struct number none = number_unknown("gone");
    const struct {
        struct number a;
        enum relop op;
        struct number b;
        enum truth want;
    } cases[] = {
        {p2, REL_EQ, p2, T},
        {p2, REL_NE, p2, F},
        {p2, REL_LT, p2, F},
        {p2, REL_LE, p2, T},
        {r13, REL_EQ, p2, U},
        {r13, REL_GE, number_point(1), T},
        {r13, REL_GT, number_point(1), U},
        {r13, REL_GT, number_point(3), F},
        {r13, REL_LT, number_point(4), T},
        {r13, REL_EQ, number_point(4), F},
        {r13, REL_NE, number_point(4), T},
        {r13, REL_EQ, r13, U},
        {above4, REL_GT, number_point(4), T},
        {above4, REL_LE, number_point(4), F},
        {above4, REL_EQ, number_point(4), F},
        {above4, REL_GT, number_point(5), U},
        {above4, REL_GT, below4, T},
        {below4, REL_GE, number_point(4), F},
        {none, REL_EQ, none, U},
        {none, REL_NE, p2, U},
        {number_abs(none), REL_GE, number_point(0), U},
        /* a bound that overflowed is no value, though all of the range lies there */
        {number_mul(number_bound(1e308, true), number_point(10)), REL_GT, number_point(1), U},
        {number_mul(number_bound(-1e308, false), number_point(10)), REL_LT, number_point(1), U},
        /* the least decimal pitfall: 0.29 - 0.25 is below 0.04 */
        {number_sub(number_point(0.29), number_point(0.25)), REL_GE, number_point(0.04), F},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum truth got = number_compare(cases[i].a, cases[i].op, cases[i].b);
        if (got != cases[i].want) {
            fail_msg("case %zu: got %d, want %d", i, got, cases[i].want);
        }
    }
}

static void expect_range(struct number x, double lo, double hi)
{
    assert_true(x.known);
    assert_true(x.lo == lo && x.hi == hi);
}

static void test_arithmetic(void **state)
{
    const struct number r = number_range(-1, 3);
    const struct number above = number_bound(4864, true);
    (void)state;
    expect_range(number_add(r, number_point(2)), 1, 5);
    expect_range(number_sub(number_point(2), r), -1, 3);
    expect_range(number_mul(r, number_point(-2)), -6, 2);
    expect_range(number_div(number_point(6), number_range(2, 3)), 2, 3);
    expect_range(number_abs(r), 0, 3);
    expect_range(number_min(r, number_point(1)), -1, 1);
    expect_range(number_max(r, number_point(1)), 1, 3);
    assert_false(number_div(r, r).known);
    assert_false(number_div(number_point(1), number_point(0)).known);
    assert_false(number_point((double)NAN).known);
    assert_false(number_mul(number_point(1e300), number_point(1e300)).known);
    assert_false(number_add(r, number_unknown("gone")).known);
    assert_string_equal(number_add(number_unknown("gone"), r).why, "gone");
    /* A bound against its own value: strictly above, also after the subtraction. */
    struct number d = number_sub(above, number_point(4864));
    assert_int_equal(number_compare(d, REL_GT, number_point(0)), T);
    d = number_sub(number_point(4864), above);
    assert_int_equal(number_compare(d, REL_LT, number_point(0)), T);
    assert_int_equal(number_compare(number_neg(d), REL_GT, number_point(0)), T);
    /* Two bounds say nothing of their difference. */
    assert_int_equal(number_compare(number_sub(above, above), REL_GT, number_point(0)), U);
}

static void test_exact(void **state)
{
    static const struct {
        int64_t k;
        int64_t n;
        const char *floor;
        bool reaches;
    } cases[] = {
        {27, 100, "0.27", true},
        {2699999, 10000000, "0.27", false},
        {3791, 14042, "0.27", false},
        {3792, 14042, "0.27", true},
        {0, 7, "0", true},
        {1, 3, "0.33333333333333331", true},
        {1, 3, "0.33333333333333334", false},
        {5, 100, "5e-2", true},
        {4, 100, "5e-2", false},
        {7, 7, "1", true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].floor);
        struct decimal d;
        assert_true(decimal_parse(cases[i].floor, &d));
        assert_int_equal(count_reaches(cases[i].k, cases[i].n, &d), cases[i].reaches);
    }
    struct decimal d;
    static const char *const bad[] = {"", "-1", "x", "1x", "0.1234567890123456789", "1e40", "."};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("%s", bad[i]);
        assert_false(decimal_parse(bad[i], &d));
    }
    assert_true(decimal_parse("0.29", &d));
    assert_int_equal(decimal_floor_of(&d, 100), 29);
    int64_t k = 0;
    assert_true(score_count(3252.0 / 14042.0, 14042, &k));
    assert_int_equal(k, 3252);
    assert_false(score_count(0.2316, 14042, &k));
    assert_false(score_count(-0.5, 2, &k));
}

static void test_t(void **state)
{
    /* Quantiles of 0.975: Abramowitz & Stegun, table 26.10, more digits from scipy 1.11. */
    static const struct {
        unsigned df;
        double t;
    } cases[] = {{1, 12.706204736174694}, {2, 4.302652729749462},  {3, 3.1824463052837078},
                 {4, 2.7764451051977934}, {5, 2.5705818356363146}, {9, 2.2621571627982049},
                 {30, 2.0422724563012382}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
        double t = stat_t_quantile(0.975, cases[i].df);
        assert_true(fabs(t / cases[i].t - 1) < 1e-9);
        assert_true(fabs(stat_t_cdf(-t, cases[i].df) - 0.025) < 1e-12);
    }
    assert_true(isnan(stat_sd((const double[]){1}, 1)));
    assert_true(fabs(stat_sd((const double[]){1, 2, 3, 4}, 4) - 1.2909944487358056) < 1e-15);
}

static double member(const cJSON *o, const char *key)
{
    const cJSON *m = json_member(o, key);
    assert_true(cJSON_IsNumber(m));
    return m->valuedouble;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want))) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

static void test_vectors(void **state)
{
    const char *shared = getenv("PREREGD_SHARED");
    char *path = path_join(shared == NULL ? TEST_SOURCE_DIR "/../shared" : shared,
                           "vectors/statistics.json");
    cJSON *v = NULL;
    struct err err;
    (void)state;
    if (file_kind_at(path) != FILE_REGULAR) {
        print_message("no vectors at %s\n", path);
        free(path);
        skip();
    }
    assert_int_equal(json_read_file(path, (size_t)1 << 20, &v, &err), 0);
    const cJSON *c = NULL;
    cJSON_ArrayForEach(c, json_member(v, "bayes_normal"))
    {
        near(exp(stat_ln_bf10(member(c, "d"), member(c, "se"), member(c, "tau"))),
             member(c, "bf10"));
    }
    cJSON_ArrayForEach(c, json_member(v, "gate_margin"))
    {
        near(stat_gate_margin(member(c, "score"), member(c, "n"), member(c, "floor")),
             member(c, "z"));
    }
    cJSON_ArrayForEach(c, json_member(v, "floor_above_chance"))
    {
        near(stat_floor_above_chance(member(c, "floor"), member(c, "chance"), member(c, "n")),
             member(c, "z"));
    }
    cJSON_ArrayForEach(c, json_member(v, "prior_bits"))
    {
        near(-log2(member(c, "prior")), member(c, "bits"));
    }
    cJSON_Delete(v);
    free(path);
    /* docs/statistics.md: 198 items show 0.0663667 */
    assert_true(fabs(stat_detectable_difference(198, 1.0 / 9, 0, 0) - 0.0663667) < 5e-8);
    near(stat_detectable_difference(968.9974980677887, 1.0 / 9, 0, 0), 0.03);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kleene),     cmocka_unit_test(test_compare),
        cmocka_unit_test(test_arithmetic), cmocka_unit_test(test_exact),
        cmocka_unit_test(test_t),          cmocka_unit_test(test_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
