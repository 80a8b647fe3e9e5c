/* calibration: which rows stand in the sums, and in which bin a statement does. */
#include <string.h>

#include <math.h>

#include "base/json/json.h"
#include "ctl/calibration.h"
#include "tests/unit/check.h"

#define ROOT "0123456789abcdef"

static cJSON *sum_of(const char *rows)
{
    struct err err = {0};
    cJSON *list = NULL;
    assert_int_equal(json_parse(rows, strlen(rows), &list, &err), 0);
    return calibration_sum(list);
}

static double number_at(const cJSON *answer, const char *part, const char *key)
{
    return json_member(json_member(answer, part), key)->valuedouble;
}

/* What another row's `supersedes` makes of a row that has this status. */
static void test_superseded(void **state)
{
    static const struct {
        const char *old; /* said by the successor */
        const char *status;
        const char *wanted;
    } cases[] = {
        {ROOT, "no verdict", "superseded"},
        {"first", "no verdict", "no verdict"}, /* a name is no root */
        {"01234567", "no verdict", "no verdict"},
        {ROOT "0", "no verdict", "no verdict"},
        {"", "no verdict", "no verdict"},
        {"fedcba9876543210", "no verdict", "no verdict"}, /* itself */
        {ROOT, "scored", "scored"},                       /* a successor takes back no outcome */
        {ROOT, "void", "void"},
        {ROOT, "indeterminate", "indeterminate"},
        {ROOT, "unverified", "unverified"}, /* what is wrong stays said */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char rows[1024];
        (void)snprintf(
            rows, sizeof(rows),
            "[{\"program\":\"first\",\"root\":\"" ROOT "\",\"status\":\"%s\",\"bits\":1,"
            "\"brier\":0.5,\"stated\":[{\"prior\":0.5,\"held\":true}]},"
            "{\"program\":\"second\",\"root\":\"fedcba9876543210\",\"supersedes\":\"%s\","
            "\"status\":\"scored\",\"bits\":3,\"brier\":1.5,\"stated\":[]}]",
            cases[i].status, cases[i].old);
        cJSON *answer = sum_of(rows);
        const cJSON *list = json_member(answer, "programs");
        const bool both = strcmp(cases[i].wanted, "scored") == 0;
        assert_string_equal(json_member(list->child, "status")->valuestring, cases[i].wanted);
        assert_string_equal(json_member(list->child->next, "status")->valuestring, "scored");
        assert_true(number_at(answer, "priors", "scored") == (both ? 2 : 1));
        assert_true(number_at(answer, "priors", "bits") == (both ? 4 : 3));
        assert_true(number_at(answer, "priors", "mean_brier") == (both ? 1.0 : 1.5));
        cJSON_Delete(answer);
    }
}

/* A root is scored once, and of several rows the first that is scored. */
static void test_repeated(void **state)
{
    static const struct {
        const char *first, *second, *root, *wanted;
    } cases[] = {
        {"scored", "scored", ROOT, "repeated"},       {"unverified", "scored", ROOT, "scored"},
        {"scored", "unverified", ROOT, "unverified"}, {"scored", "scored", "fedc", "scored"},
        {"scored", "no verdict", ROOT, "no verdict"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char rows[512];
        (void)snprintf(rows, sizeof(rows),
                       "[{\"program\":\"a\",\"root\":\"" ROOT "\",\"status\":\"%s\",\"bits\":1,"
                       "\"brier\":1,\"stated\":[]},{\"program\":\"a\",\"root\":\"%s\",\"status\":"
                       "\"%s\",\"bits\":1,\"brier\":1,\"stated\":[]}]",
                       cases[i].first, cases[i].root, cases[i].second);
        cJSON *answer = sum_of(rows);
        const cJSON *second = json_member(answer, "programs")->child->next;
        assert_string_equal(json_member(second, "status")->valuestring, cases[i].wanted);
        cJSON_Delete(answer);
    }
}

/* Nothing of a row that is not scored counts, forecasts included. */
static void test_not_scored(void **state)
{
    static const char *const statuses[] = {"void", "no verdict", "unverified", "superseded",
                                           "repeated"};
    (void)state;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        char rows[1024];
        (void)snprintf(rows, sizeof(rows),
                       "[{\"program\":\"p\",\"root\":\"" ROOT "\",\"status\":\"%s\",\"bits\":1,"
                       "\"brier\":1,\"stated\":[{\"prior\":0.5,\"held\":true}],\"forecasts\":[{"
                       "\"name\":\"f\",\"confidence\":0.5,\"outcome\":true}]}]",
                       statuses[i]);
        cJSON *answer = sum_of(rows);
        assert_true(number_at(answer, "priors", "scored") == 0);
        assert_true(number_at(answer, "priors", "bits") == 0);
        assert_true(cJSON_IsNull(json_member(json_member(answer, "priors"), "mean_bits")));
        assert_true(number_at(answer, "forecasts", "stated") == 0);
        assert_true(number_at(answer, "forecasts", "scored") == 0);
        const cJSON *bin = NULL;
        cJSON_ArrayForEach(bin, json_member(json_member(answer, "priors"), "bins"))
        {
            assert_true(json_member(bin, "n")->valuedouble == 0);
            assert_true(cJSON_IsNull(json_member(bin, "share")));
        }
        cJSON_Delete(answer);
    }
}

/* No outcome came, but a forecast can have come true: it is scored, once. */
static void test_indeterminate(void **state)
{
    static const char row[] =
        "{\"program\":\"p\",\"root\":\"" ROOT "\",\"status\":\"indeterminate\","
        "\"forecasts\":[{\"name\":\"f\",\"confidence\":0.9,\"outcome\":true},"
        "{\"name\":\"g\",\"confidence\":0.9,\"outcome\":null}]}";
    char rows[1024];
    (void)state;
    (void)snprintf(rows, sizeof(rows), "[%s,%s]", row, row);
    cJSON *answer = sum_of(rows);
    assert_true(number_at(answer, "priors", "scored") == 0);
    assert_true(number_at(answer, "forecasts", "stated") == 2);
    assert_true(number_at(answer, "forecasts", "scored") == 1);
    assert_string_equal(
        json_member(json_member(answer, "programs")->child->next, "status")->valuestring,
        "repeated");
    cJSON_Delete(answer);
}

/* The bin a confidence lies in; one whose truth or confidence is no such thing is not scored. */
static void test_forecasts(void **state)
{
    static const struct {
        const char *confidence, *outcome;
        int bin; /* -1: none */
        double brier;
    } cases[] = {
        {"0.1", "false", 0, 0.01},  {"0.2", "true", 1, 0.64},   {"0.7", "true", 3, 0.09},
        {"0.9", "false", 4, 0.81},  {"0.9", "null", -1, 0},     {"0", "true", -1, 0},
        {"1", "true", -1, 0},       {"-0.5", "true", -1, 0},    {"null", "true", -1, 0},
        {"\"0.5\"", "true", -1, 0}, {"0.5", "\"true\"", -1, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char rows[512];
        int at = 0;
        (void)snprintf(rows, sizeof(rows),
                       "[{\"program\":\"p\",\"root\":\"" ROOT "\",\"status\":\"scored\",\"bits\":1,"
                       "\"brier\":1,\"stated\":[],\"forecasts\":[{\"name\":\"f\",\"confidence\":%s,"
                       "\"outcome\":%s}]}]",
                       cases[i].confidence, cases[i].outcome);
        cJSON *answer = sum_of(rows);
        const cJSON *bin = NULL;
        assert_true(number_at(answer, "forecasts", "stated") == 1);
        assert_true(number_at(answer, "forecasts", "scored") == (cases[i].bin >= 0 ? 1 : 0));
        if (cases[i].bin >= 0) {
            assert_true(fabs(number_at(answer, "forecasts", "mean_brier") - cases[i].brier) <
                        1e-12);
        }
        cJSON_ArrayForEach(bin, json_member(json_member(answer, "forecasts"), "bins"))
        {
            const int wanted = at == cases[i].bin ? 1 : 0;
            const bool held = wanted == 1 && strcmp(cases[i].outcome, "true") == 0;
            assert_int_equal((int)json_member(bin, "n")->valuedouble, wanted);
            assert_int_equal((int)json_member(bin, "held")->valuedouble, held);
            at++;
        }
        assert_int_equal(at, CALIBRATION_BINS);
        cJSON_Delete(answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_superseded), cmocka_unit_test(test_repeated),
        cmocka_unit_test(test_not_scored), cmocka_unit_test(test_indeterminate),
        cmocka_unit_test(test_forecasts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
