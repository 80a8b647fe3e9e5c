/* Means, perplexities and their standard errors, against numbers that CPython and
 * lm-evaluation-harness gave. */
#include <math.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/eval/score/bootstrap.h"
#include "worker/eval/score/marks.h"

static void fill(struct marks *m, const double *xs, size_t n, double w)
{
    for (size_t i = 0; i < n; i++)
        marks_add(m, xs[i], w);
}

static void assert_near(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-13 * fabs(expected)))
        fail_msg("%.17g, not %.17g", found, expected);
}

static void test_means(void **state)
{
    (void)state;
    static const double three_of_ten[] = {1, 0, 0, 1, 0, 0, 0, 0, 1, 0};
    static const double all[] = {1, 1, 1};
    struct marks m = {0};
    assert_true(isnan(marks_mean(&m)) && isnan(marks_mean_se(&m)));
    fill(&m, all, 1, 1.0);
    assert_true(marks_mean(&m) == 1.0 && isnan(marks_mean_se(&m)));
    marks_release(&m);
    fill(&m, all, ARRAY_LEN(all), 1.0);
    assert_true(marks_mean_se(&m) == 0.0);
    marks_release(&m);
    fill(&m, three_of_ten, ARRAY_LEN(three_of_ten), 1.0);
    assert_true(marks_mean(&m) == 0.3);
    assert_near(marks_mean_se(&m), 0.15275252316519466);
    marks_release(&m);
}

/* Two texts of 3 and 5 words with ln p of -6 and -10: 2 nats a word. */
static void test_perplexities(void **state)
{
    (void)state;
    static const double xs[] = {-1, -2, -0.5, -3, -0.25};
    struct marks m = {0};
    assert_true(isnan(marks_perplexity(&m)) && isnan(marks_bits(&m)));
    fill(&m, xs, ARRAY_LEN(xs), 1.0);
    assert_near(marks_perplexity(&m), 3.8574255306969745);
    marks_release(&m);
    marks_add(&m, -6.0, 3.0);
    marks_add(&m, -10.0, 5.0);
    assert_near(marks_weighted_perplexity(&m), exp(2.0));
    assert_near(marks_bits(&m), 2.0 / log(2.0));
    marks_release(&m);
}

static bool always(void)
{
    return true;
}

static void test_bootstrap(void **state)
{
    (void)state;
    static const double xs[] = {-1, -2, -0.5, -3, -0.25};
    struct err err = {0};
    double se = 0.0;
    assert_int_equal(bootstrap_perplexity_se(xs, 5, 2000, NULL, &se, &err), 0);
    assert_near(se, 2.152081614284708);
    /* the two first replicates alone: 3.4903429574618414 and 3.6692966676192444 */
    assert_int_equal(bootstrap_perplexity_se(xs, 5, 2, NULL, &se, &err), 0);
    assert_near(se, (3.6692966676192444 - 3.4903429574618414) / sqrt(2.0));
    /* whole chunks only, as there */
    double same = 0.0;
    assert_int_equal(bootstrap_perplexity_se(xs, 5, 2999, NULL, &same, &err), 0);
    assert_near(same, 2.152081614284708);
    assert_int_equal(bootstrap_perplexity_se(xs, 5, 0, NULL, &se, &err), 0);
    assert_true(isnan(se));
    assert_int_equal(bootstrap_perplexity_se(xs, 0, 2000, NULL, &se, &err), 0);
    assert_true(isnan(se));
    assert_int_equal(bootstrap_perplexity_se(xs, 5, 2000, always, &se, &err), ERR_BUSY);
}

static void test_pool(void **state)
{
    (void)state;
    static const struct metric_score two[] = {
        {10, 0.3, 0.1}, {0, (double)NAN, (double)NAN}, {40, 0.5, 0.05}};
    struct metric_score s = marks_pool(two, 3);
    assert_int_equal(s.n, 50);
    assert_near(s.value, 0.46);
    assert_near(s.se, 0.0447213595499958);
    s = marks_pool(two, 2);
    assert_int_equal(s.n, 10);
    assert_true(s.value == 0.3 && s.se == 0.1);
    s = marks_pool(two + 1, 1);
    assert_int_equal(s.n, 0);
    assert_true(isnan(s.value) && isnan(s.se));
    /* one item has no spread */
    static const struct metric_score ones[] = {
        {1, 1.0, (double)NAN}, {1, 0.0, (double)NAN}, {2, 0.5, 0.5}};
    assert_near(marks_pool(ones, 3).se, sqrt(0.5 / 1 / 4));
    assert_true(isnan(marks_pool(ones, 2).se));
    assert_true(isnan(marks_pool(ones, 1).se));
    /* groups of groups differ from their leaves taken at once */
    static const struct metric_score leaves[] = {
        {10, 0.3, 0.15}, {20, 0.4, 0.11}, {30, 0.5, 0.09}, {40, 0.6, 0.08}};
    const struct metric_score halves[] = {marks_pool(leaves, 2), marks_pool(leaves + 2, 2)};
    const struct metric_score nested = marks_pool(halves, 2);
    const struct metric_score flat = marks_pool(leaves, 4);
    assert_near(nested.value, flat.value);
    assert_true(fabs(nested.se - flat.se) > 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_means),
        cmocka_unit_test(test_perplexities),
        cmocka_unit_test(test_bootstrap),
        cmocka_unit_test(test_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
