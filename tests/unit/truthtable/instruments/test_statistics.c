/* What scipy, statsmodels and mpmath answered (tests/golden/statistics.json, written by
 * tests/oracle/test_statistics.py --golden), the shared vectors, and what cannot be computed. */

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "prereg/program/analysis.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/instruments/ask.h"
#include "truthtable/condition/stats.h"
#include "truthtable/evaluate/scoring.h"
#include "truthtable/instruments/bayes.h"
#include "truthtable/instruments/dispersion.h"
#include "truthtable/instruments/gamma.h"
#include "truthtable/instruments/items_error.h"
#include "truthtable/instruments/power.h"
#include "truthtable/instruments/quantile.h"

#define GOLDEN  TEST_SOURCE_DIR "/tests/golden/statistics.json"
#define NONE    ((double)NAN)
#define ENDLESS ((double)INFINITY)

static cJSON *document(const char *path)
{
    cJSON *doc = NULL;
    struct err err = {0};
    if (json_read_file(path, 16U << 20, &doc, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return doc;
}

static void near(const char *name, const char *what, double got, double want, double within)
{
    /* base/math has no subnormal numbers */
    if (!(fabs(got - want) <= within * fabs(want) + 0x1p-1022)) {
        fail_msg("%s: %s is %.17g, not %.17g", name, what, got, want);
    }
}

static void test_golden(void **state)
{
    cJSON *doc = document(GOLDEN);
    const cJSON *c;
    size_t n = 0;
    (void)state;
    cJSON_ArrayForEach(c, json_member(doc, "cases"))
    {
        cJSON *got = instruments_ask(json_member(c, "ask"));
        const cJSON *want;
        assert_non_null(got);
        cJSON_ArrayForEach(want, json_member(c, "want"))
        {
            const cJSON *v = json_member(got, want->string);
            assert_true(cJSON_IsNumber(v));
            near(json_member(c, "name")->valuestring, want->string, v->valuedouble,
                 want->valuedouble, json_member(c, "within")->valuedouble);
            n++;
        }
        cJSON_Delete(got);
    }
    assert_true(n > 500);
    cJSON_Delete(doc);
}

static void look_vector_bayes(const cJSON *doc)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, json_member(doc, "bayes_normal"))
    {
        double ln =
            stat_ln_bf10(json_member(c, "d")->valuedouble, json_member(c, "se")->valuedouble,
                         json_member(c, "tau")->valuedouble);
        near("vector", "bf10", exp(ln), json_member(c, "bf10")->valuedouble, 1e-12);
    }
}

static void look_vector_clusters(const cJSON *doc)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, json_member(doc, "clustered"))
    {
        struct item_error e;
        struct arena a;
        size_t n;
        size_t cluster[20];
        arena_init(&a);
        double *v = ask_numbers(json_member(c, "values"), &n, &a);
        assert_int_equal(n, 20);
        for (size_t i = 0; i < n; i++) {
            cluster[i] = i % 4;
        }
        items_clustered(v, cluster, n, 4, &e);
        near("vector", "clustered", e.se, json_member(c, "se")->valuedouble, 1e-12);
        /* what the vector calls unclustered is the same sum without C / (C - 1) */
        near("vector", "uncorrected", e.se * sqrt(3. / 4),
             json_member(c, "se_unclustered")->valuedouble, 1e-12);
        arena_release(&a);
    }
}

static void test_vectors(void **state)
{
    const char *shared = getenv("PREREGD_SHARED");
    char *path = shared == NULL ? xstrdup("") : path_join(shared, "vectors/statistics.json");
    (void)state;
    if (access(path, R_OK) != 0) {
        free(path);
        skip();
    }
    cJSON *doc = document(path);
    look_vector_bayes(doc);
    look_vector_clusters(doc);
    cJSON_Delete(doc);
    free(path);
}

/* The papers' figures: bits of O4, items for 3 points, the difference that 198 items show. */
static void test_published(void **state)
{
    const struct power_design d = {
        .alpha = 0.05, .power = 0.8, .omega2 = 1. / 9, .k_a = 1, .k_b = ENDLESS, .var_b = 0.25};
    (void)state;
    near("O4", "bits", scoring_bits(0.17), 2.5563933485243853, 1e-15);
    near("Miller", "items", power_items(&d, 0.03), 968.9975, 1e-7);
    near("Miller", "difference", power_difference(&d, 198), 0.0663667, 1e-6);
    near("Miller", "there and back", power_items(&d, power_difference(&d, 198)), 198, 1e-13);
    near("O4", "brier", scoring_prior_brier((double[]){0.31, 0.22, 0.18, 0.17}, 4, 3),
         0.31 * 0.31 + 0.22 * 0.22 + 0.18 * 0.18 + 0.83 * 0.83 + 0.12 * 0.12, 1e-14);
}

static void test_bayes_reading(void **state)
{
    static const struct {
        double ln;
        enum bayes_reading reading;
        const char *text;
    } cases[] = {
        {-1.2, BAYES_FOR_NULL, "for the null"},     {-1.0, BAYES_NEITHER, "neither"},
        {1.09, BAYES_NEITHER, "neither"},           {1.1, BAYES_AGAINST_NULL, "against the null"},
        {NONE, BAYES_UNDETERMINED, "undetermined"},
    };
    enum bayes_reading same[] = {BAYES_FOR_NULL, BAYES_FOR_NULL};
    enum bayes_reading mixed[] = {BAYES_FOR_NULL, BAYES_NEITHER};
    enum bayes_reading unknown[] = {BAYES_UNDETERMINED, BAYES_UNDETERMINED};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        enum bayes_reading r = bayes_read(cases[i].ln, 1. / 3, 3);
        assert_int_equal(r, cases[i].reading);
        assert_string_equal(bayes_reading_text(r), cases[i].text);
    }
    assert_true(bayes_robust(same, 2));
    assert_false(bayes_robust(mixed, 2));
    assert_false(bayes_robust(unknown, 2));
    assert_false(bayes_robust(same, 0));
    /* se^2, tau^2 and their ratio leave double's range, the logarithm does not */
    near("bayes", "tiny", stat_ln_bf10(0, 1e-200, 1e-190), log(1e-200) - log(1e-190), 1e-14);
    near("bayes", "far", stat_ln_bf10(0, 1e-300, 1e300), log(1e-300) - log(1e300), 1e-14);
    near("bayes", "strong", stat_ln_bf10(100, 0.1, 1), 0.5 * 1e6 / 1.01 - 0.5 * log(101), 1e-12);
}

/* What is not defined is NaN or a reason, and a small tail is not 0. */
static void test_undetermined(void **state)
{
    (void)state;
    assert_true(isnan(stat_ln_bf10(1, 0, 1)) && isnan(stat_ln_bf10(1, 1, 0)) &&
                isnan(stat_ln_bf10(NONE, 1, 1)) && isnan(stat_ln_bf10(1e300, 1e-300, 1)));
    assert_true(isnan(scoring_bits(0)) && isnan(scoring_bits(1.1)) && isnan(scoring_bits(NONE)));
    assert_true(isnan(scoring_prior_brier((double[]){0.8, 0.3}, 2, 0)));
    /* What a program may state has a score: priors that exceed a whole by a rounding, too. */
    near("", "a rounding too many",
         scoring_prior_brier((double[]){0.5, 0.5 + 0.9 * PRIORS_SUM_SLACK}, 2, 0), 0.5, 1e-8);
    assert_true(isnan(scoring_prior_brier((double[]){-0.1}, 1, 0)));
    assert_true(isnan(scoring_forecast_brier(1.5, true)));
    assert_true(isnan(normal_quantile(0)) && isnan(normal_quantile(1)) &&
                isnan(student_quantile(0.975, 0)) && isnan(student_quantile(1, 3)));
    assert_true(isnan(gamma_regularised(0.25, 1).p) && isnan(gamma_regularised(1, -1).p) &&
                isnan(gamma_regularised(1, NONE).q) && isnan(gamma_regularised(ENDLESS, 1).q));
    assert_true(isinf(gamma_regularised(1, 0).ln_p) && isinf(gamma_regularised(1, ENDLESS).ln_q));
    near("gamma", "far tail", gamma_regularised(50, 1e-8).ln_p, -1069.5118041591952, 1e-13);
    near("gamma", "exponential", gamma_regularised(1, 3).q, exp(-3), 1e-15);
    near("forecast", "bits", scoring_forecast_bits(0.75, false), 2, 1e-15);
    near("forecast", "brier", scoring_forecast_brier(0.9, false), 0.81, 1e-15);
}

static void test_power_range(void **state)
{
    const struct power_design fine = {0.05, 0.8, 0.1, 0.1, 1, 0.1, 1};
    struct power_design d = fine;
    (void)state;
    assert_true(isnan(power_items(&fine, 0)) && isnan(power_difference(&fine, 0)));
    d.alpha = 0;
    assert_true(isnan(power_items(&d, 0.1)));
    d = fine;
    d.power = 0.01;
    assert_true(isnan(power_items(&d, 0.1)));
    d = fine;
    d.k_b = 0;
    assert_true(isnan(power_difference(&d, 10)));
    d = fine;
    d.omega2 = -1;
    assert_true(isnan(power_difference(&d, 10)));
}

static void look_items(const double *diff, const size_t *cluster, size_t n, size_t n_clusters,
                       const char *why)
{
    struct item_error e;
    if (cluster == NULL) {
        items_paired(diff, n, &e);
    } else {
        items_clustered(diff, cluster, n, n_clusters, &e);
    }
    assert_non_null(e.why);
    assert_string_equal(e.why, why);
    assert_true(isfinite(e.mean));
}

static void test_items_why(void **state)
{
    const double v[3] = {1, 0, -1};
    const double bad[2] = {1, NONE};
    const double large[2] = {DBL_MAX, -DBL_MAX};
    struct item_error e;
    (void)state;
    look_items(v, NULL, 0, 0, "no items");
    look_items(v, NULL, 1, 0, "one item alone shows no error");
    look_items(bad, NULL, 2, 0, "an item's value is not a finite number");
    look_items(large, NULL, 2, 0, "the values are too large for their variance");
    look_items(v, (size_t[]){0, 0, 0}, 3, 1, "all items are in one cluster");
    look_items(v, (size_t[]){2, 2, 2}, 3, 5, "all items are in one cluster");
    look_items(v, (size_t[]){0, 1, 9}, 3, 2, "an item belongs to no known cluster");
    items_clustered(v, (size_t[]){4, 0, 0}, 3, 9, &e); /* clusters without an item do not count */
    assert_null(e.why);
    assert_int_equal(e.n_clusters, 2);
    near("items", "df", e.df, 1, 0);
}

static void test_dispersion_why(void **state)
{
    static const struct {
        double score[2], items[2];
        size_t n;
        const char *why;
    } cases[] = {
        {{0.5, 0.5}, {10, 10}, 1, "fewer than two cells have a score"},
        {{0.5, 1.5}, {10, 10}, 2, "a score lies outside 0..1"},
        {{0.5, NONE}, {10, 10}, 2, "a score lies outside 0..1"},
        {{0.5, 0.5}, {10, 0}, 2, "a score's number of items is not known"},
        {{1, 1}, {10, 10}, 2, "all scores are 0 or all are 1: the sampling variance is none"},
    };
    struct dispersion d;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].why);
        dispersion_of(cases[i].score, cases[i].items, cases[i].n, &d);
        assert_non_null(d.why);
        assert_string_equal(d.why, cases[i].why);
    }
    dispersion_of((double[]){0.25, 0.25}, (double[]){100, 100}, 2, &d);
    assert_null(d.why);
    assert_true(d.chi2 == 0 && d.p_lower == 0 && d.p_upper == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),       cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_published),    cmocka_unit_test(test_bayes_reading),
        cmocka_unit_test(test_undetermined), cmocka_unit_test(test_power_range),
        cmocka_unit_test(test_items_why),    cmocka_unit_test(test_dispersion_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
