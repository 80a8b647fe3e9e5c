/* Results files: every shape of the versions, what is refused and how it is said, groups. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "truthtable/imported/results.h"

static int parse(struct imported_results *r, const char *text, struct err *err)
{
    *err = (struct err){0};
    return results_parse(r, text, strlen(text), "r.json", err);
}

static void test_shapes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *name;
        const char *filter;
        bool has_value;
        double value;
        bool has_se;
        double se;
        int64_t n; /* -1: unknown */
    } cases[] = {
        /* 0.4.3: metrics, then alias */
        {"{\"results\":{\"t\":{\"acc,none\":0.25,\"acc_stderr,none\":0.01,\"alias\":\" - t\"}},"
         "\"n-samples\":{\"t\":{\"original\":9,\"effective\":8}}}",
         "acc", "none", true, 0.25, true, 0.01, 8},
        /* 0.4.4: alias first; a standard error before its score */
        {"{\"results\":{\"t\":{\"alias\":\"t\",\"acc_stderr,none\":0.01,\"acc,none\":0.25}}}",
         "acc", "none", true, 0.25, true, 0.01, -1},
        {"{\"results\":{\"t\":{\" \":\" \",\"alias\":\"t\",\"f1,none\":1}}}", "f1", "none", true, 1,
         false, 0, -1},
        /* 0.4.12 */
        {"{\"results\":{\"t\":{\"name\":\"t\",\"alias\":\"t\",\"sample_len\":7,\"acc,none\":0,"
         "\"sample_count\":{\"acc,none\":7}}}}",
         "acc", "none", true, 0, false, 0, 7},
        /* 0.4.0 */
        {"{\"results\":{\"t\":{\"acc,none\":0.5,\"samples\":4}}}", "acc", "none", true, 0.5, false,
         0, 4},
        /* 0.3 */
        {"{\"results\":{\"t\":{\"acc\":0.5,\"acc_stderr\":0.1,\"acc_norm\":0.75}}}", "acc_norm",
         "none", true, 0.75, false, 0, -1},
        {"{\"results\":{\"t\":{\"exact_match,strict-match\":0.5,"
         "\"exact_match_stderr,strict-match\":\"N/A\"}}}",
         "exact_match", "strict-match", true, 0.5, false, 0, -1},
        {"{\"results\":{\"t\":{\"acc,none\":0.5,\"acc_stderr,none\":null}}}", "acc", "none", true,
         0.5, false, 0, -1},
        /* 0.0 is a known fault inside (0, 1), and right at its ends */
        {"{\"results\":{\"t\":{\"acc,none\":0.5,\"acc_stderr,none\":0.0}}}", "acc", "none", true,
         0.5, false, 0, -1},
        {"{\"results\":{\"t\":{\"acc,none\":1.0,\"acc_stderr,none\":0.0}}}", "acc", "none", true, 1,
         true, 0, -1},
        {"{\"results\":{\"t\":{\"acc,none\":NaN,\"acc_stderr,none\":NaN}}}", "acc", "none", false,
         0, false, 0, -1},
        {"{\"results\":{\"t\":{\"ppl,none\":Infinity}}}", "ppl", "none", false, 0, false, 0, -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct imported_results r;
        struct err err;
        if (parse(&r, cases[i].text, &err) != 0) {
            fail_msg("case %zu: %s", i, err.msg);
        }
        const struct results_entry *e = results_find(&r, "t");
        assert_non_null(e);
        const struct results_metric *m = results_metric(e, cases[i].name, cases[i].filter);
        assert_non_null(m);
        assert_int_equal(m->has_value, cases[i].has_value);
        assert_int_equal(m->has_se, cases[i].has_se);
        assert_true(!m->has_value || m->value == cases[i].value);
        assert_true(!m->has_se || m->se == cases[i].se);
        assert_int_equal(e->has_n ? e->n : -1, cases[i].n);
        results_release(&r);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        const char *said;
    } cases[] = {
        {"[]", ERR_SYNTAX, "results"},
        {"{\"results\":[]}", ERR_SYNTAX, "results"},
        {"{\"results\":{\"t\":3}}", ERR_SYNTAX, "results.t: is not an object"},
        {"{\"results\":{\"t\":{\"acc,none\":\"0.5\"}}}", ERR_SYNTAX,
         "\"acc,none\" is not a number"},
        {"{\"results\":{\"t\":{\"acc,none\":1,\"acc_stderr,none\":\"?\"}}}", ERR_SYNTAX,
         "\"acc_stderr,none\" is not a standard error"},
        {"{\"results\":{\"t\":{\"acc,none\":1,\"acc_stderr,none\":-1}}}", ERR_SYNTAX, "acc_stderr"},
        {"{\"results\":{\"t\":{\"acc_stderr,none\":1}}}", ERR_SYNTAX, "no score beside it"},
        {"{\"results\":{\"t\":{\"sample_len\":-1}}}", ERR_RANGE, "sample_len"},
        {"{\"results\":{\"t\":{\"sample_len\":7}},\"n-samples\":{\"t\":{\"effective\":8}}}",
         ERR_CORRUPT, "\"sample_len\" is 7"},
        {"{\"results\":{\"g\":{}},\"group_subtasks\":{\"g\":[3]}}", ERR_SYNTAX, "names no task"},
        {"{\"results\":{\"g\":{\"samples\":5},\"t\":{\"samples\":4}},\"group_subtasks\":{\"g\":"
         "[\"t\"]}}",
         ERR_CORRUPT, "g: 5 items, its tasks have 4"},
        {"{\"results\":{\"t\":{\"acc\":1,\"acc,none\":0.5}}}", ERR_CORRUPT,
         "\"acc\" and \"acc,none\" are one metric"},
        {"{\"results\":{\"g\":{\"acc,none\":0.5}},\"groups\":{\"g\":{\"acc,none\":0.75}}}",
         ERR_CORRUPT, "groups.g: \"acc,none\" is 0.75"},
        {"{\"results\":{\"t\":{}},\"config\":{\"limit\":\"x\"}}", ERR_SYNTAX, "config.limit"},
        {"{\"results\":{\"t\":{\"acc,none\":1,\"acc,none\":1}}}", ERR_SYNTAX, "is duplicated"},
        {"{\"results\":{\"t\":{\"acc,none\":1", ERR_SYNTAX, "line 1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct imported_results r;
        struct err err;
        int rc = parse(&r, cases[i].text, &err);
        results_release(&r);
        if (rc != cases[i].code || strstr(err.msg, cases[i].said) == NULL ||
            strncmp(err.msg, "r.json: ", 8) != 0) {
            fail_msg("case %zu: code %d, \"%s\"", i, rc, err.msg);
        }
    }
}

#define LEAVES                                                                                     \
    "\"a\":{\"acc,none\":0.5,\"acc_stderr,none\":0.1,\"sample_len\":10},"                          \
    "\"b\":{\"acc,none\":0.6,\"acc_stderr,none\":0.05,\"sample_len\":40},"                         \
    "\"c\":{\"acc,none\":0.3,\"acc_stderr,none\":0.07,\"sample_len\":20}"

/* Three leaves under two groups under one; the standard errors from upstream's formulas, run in
 * Python. */
static void test_groups(void **state)
{
    (void)state;
    static const struct {
        const char *acc;
        const char *se;
        int code;
        const char *said; /* how, or the message */
    } cases[] = {
        {"0.5", "0.03769069162663532", 0, "weighted by size"}, /* 0.4.2, 0.4.3 */
        {"0.5", "0.03768911093612651", 0, "weighted by size"}, /* 0.4.4 */
        {"0.5", "0.11133111414705987", 0, "weighted by size"}, /* 0.4.0 */
        {"0.46666666666666673", "\"N/A\"", 0, "a plain mean over tasks"},
        {"0.5", "\"N/A\"", 0, "weighted by size"},
        {"0.5000001", "\"N/A\"", ERR_CORRUPT, "its 3 tasks give 0.5 weighted"},
        {"0.5", "0.0376900", ERR_CORRUPT, "no formula of 0.4.x gives it"},
        {"NaN", "\"N/A\"", 0, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].acc);
        struct imported_results r;
        struct err err;
        const char *how = NULL;
        char *text =
            xasprintf("{\"results\":{\"all\":{\"acc,none\":%s,\"acc_stderr,none\":%s},"
                      "\"ab\":{\"acc,none\":0.58,\"acc_stderr,none\":0.0447213595499958},"
                      "\"just_c\":{\"acc,none\":0.3,\"acc_stderr,none\":0.07}," LEAVES "},"
                      "\"group_subtasks\":{\"all\":[\"ab\",\"just_c\"],\"ab\":[\"a\",\"b\"],"
                      "\"just_c\":[\"c\"],\"a\":[]}}",
                      cases[i].acc, cases[i].se);
        if (parse(&r, text, &err) != 0) {
            fail_msg("case %zu: %s", i, err.msg);
        }
        const struct results_entry *all = results_find(&r, "all");
        assert_int_equal(all->n, 70);
        int rc = results_check_group(&r, all, &how, &err);
        if (rc != cases[i].code || strstr(rc == 0 ? how : err.msg, cases[i].said) == NULL) {
            fail_msg("case %zu: code %d, how \"%s\", \"%s\"", i, rc, how, err.msg);
        }
        assert_int_equal(results_check_group(&r, results_find(&r, "ab"), &how, &err), 0);
        results_release(&r);
        free(text);
    }
}

/* A leaf without a size, or without the metric, leaves a group as it is; a leaf under two groups
 * counts once. */
static void test_open_groups(void **state)
{
    (void)state;
    struct imported_results r;
    struct err err;
    const char *how = NULL;
    assert_int_equal(parse(&r,
                           "{\"results\":{\"g\":{\"acc,none\":0.9},\"a\":{\"acc,none\":0.5}},"
                           "\"group_subtasks\":{\"g\":[\"a\"]}}",
                           &err),
                     0);
    assert_int_equal(results_check_group(&r, results_find(&r, "g"), &how, &err), 0);
    assert_string_equal(how, "");
    results_release(&r);
    assert_int_equal(parse(&r,
                           "{\"results\":{\"g\":{},\"h\":{},\"a\":{\"sample_len\":3}},"
                           "\"group_subtasks\":{\"g\":[\"h\",\"a\",\"a\"],\"h\":[\"a\"]}}",
                           &err),
                     0);
    assert_int_equal(results_find(&r, "g")->n, 3);
    results_release(&r);
}

/* Counts that come later: a group has them once every task has, and must not have said another. */
static void test_set_count(void **state)
{
    (void)state;
    struct imported_results r;
    struct err err;
    assert_int_equal(parse(&r,
                           "{\"results\":{\"g\":{},\"h\":{\"samples\":9},\"a\":{},\"b\":{}},"
                           "\"groups\":{\"g\":{\"alias\":\"x\"}},"
                           "\"group_subtasks\":{\"g\":[\"a\",\"b\"],\"h\":[\"b\"]}}",
                           &err),
                     0);
    assert_int_equal(results_set_count(&r, results_find(&r, "a"), 3, &err), 0);
    assert_false(results_find(&r, "g")->has_n);
    assert_int_equal(results_set_count(&r, results_find(&r, "b"), 4, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.msg, "h: 9 items, its tasks have 4"));
    assert_int_equal(results_find(&r, "g")->n, 7);
    results_release(&r);
}

/* A group that is not whole is nobody's trouble until it is asked for. */
static void test_broken_groups(void **state)
{
    (void)state;
    static const struct {
        const char *members;
        const char *said;
    } cases[] = {
        {"[\"x\"]", "names x, which has no entry"},
        {"[\"g\",\"g\"]", "contains itself"},
        {"[\"h\"]", "contains itself"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].members);
        struct imported_results r;
        struct err err;
        const struct results_entry **leaves = NULL;
        size_t n = 0;
        char *text =
            xasprintf("{\"results\":{\"g\":{\"acc,none\":1},\"h\":{},\"t\":{\"acc,none\":1}},"
                      "\"group_subtasks\":{\"g\":%s,\"h\":[\"g\"]}}",
                      cases[i].members);
        assert_int_equal(parse(&r, text, &err), 0);
        assert_false(results_find(&r, "g")->has_n);
        int rc = results_leaves(&r, results_find(&r, "g"), &leaves, &n, &err);
        if (rc != ERR_REFUSED || strstr(err.msg, cases[i].said) == NULL) {
            fail_msg("case %zu: code %d, \"%s\"", i, rc, err.msg);
        }
        results_release(&r);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_groups),        cmocka_unit_test(test_open_groups),
        cmocka_unit_test(test_broken_groups), cmocka_unit_test(test_set_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
