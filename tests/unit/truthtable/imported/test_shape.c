/* Logs of Inspect and files of Every Eval Ever: what they become, what is computed again, what is
 * refused and how it is said. */
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "truthtable/imported/results.h"

static int parse(struct imported_results *r, const char *text, struct err *err)
{
    *err = (struct err){0};
    return results_parse(r, text, strlen(text), "r.json", err);
}

#define LOG(status, config, results, samples)                                                      \
    "{\"version\":2,\"status\":\"" status "\",\"eval\":{\"task\":\"t/arc\",\"task_version\":3,"    \
    "\"model\":\"m/one\",\"created\":\"2026-01-02\",\"config\":{" config                           \
    "}},\"results\":{" results "}" samples "}"
#define FOUR "\"total_samples\":4,\"completed_samples\":4,"
#define SCORE(accuracy, stderr)                                                                    \
    "\"scores\":[{\"name\":\"choice\",\"scorer\":\"choice\",\"metrics\":{\"accuracy\":{"           \
    "\"name\":\"accuracy\",\"value\":" accuracy                                                    \
    "},\"stderr\":{\"name\":\"stderr\",\"value\":" stderr "}}}]"
#define SAMPLE(value) "{\"id\":1,\"epoch\":1,\"scores\":{\"choice\":{\"value\":" value "}}}"
#define SAMPLES                                                                                    \
    ",\"samples\":[" SAMPLE("\"C\"") "," SAMPLE("\"I\"") "," SAMPLE("1") "," SAMPLE("\"yes\"") "]"

static void test_inspect(void **state)
{
    (void)state;
    struct imported_results r;
    struct err err;
    assert_int_equal(
        parse(&r, LOG("success", "\"epochs\":1", FOUR SCORE("0.75", "0.25"), SAMPLES), &err), 0);
    const struct results_entry *e = results_find(&r, "t/arc");
    assert_non_null(e);
    const struct results_metric *m = results_metric(e, "accuracy", "none");
    assert_true(m != NULL && m->has_value && m->value == 0.75 && m->has_se && m->se == 0.25);
    assert_true(e->has_n && e->n == 4 && !r.has_limit && r.shape.recomputed);
    assert_string_equal(r.shape.checked.buf, "choice: 2 figures from 4 samples");
    results_release(&r);
    /* two scores: each is a filter; without samples nothing is computed again */
    assert_int_equal(
        parse(&r,
              LOG("success", "\"limit\":[2,6]",
                  FOUR "\"scores\":[{\"name\":\"a\",\"metrics\":{\"mean\":{\"value\":1}}},"
                       "{\"name\":\"b\",\"metrics\":{\"mean\":{\"value\":2},\"x_stderr\":{"
                       "\"value\":3}}}]",
                  ""),
              &err),
        0);
    assert_true(results_metric(results_find(&r, "t/arc"), "mean", "b")->value == 2);
    assert_int_equal(results_find(&r, "t/arc")->n_metrics, 2);
    assert_true(r.has_limit && r.limit == 4 && !r.shape.recomputed);
    results_release(&r);
}

#define EVERY(version, results)                                                                    \
    "{\"schema_version\":\"" version "\",\"model_info\":{\"id\":\"m\"},\"source_metadata\":{"      \
    "\"source_type\":\"documentation\"},\"evaluation_results\":[" results "]}"
#define RESULT(id, score, n)                                                                       \
    "{\"evaluation_name\":\"arc\",\"metric_config\":{\"metric_id\":\"" id "\"},\"score_details\":" \
    "{\"score\":" score ",\"uncertainty\":{\"standard_error\":{\"value\":0.5},\"num_samples\":" n  \
    "}}}"

static void test_every_eval(void **state)
{
    (void)state;
    struct imported_results r;
    struct err err;
    assert_int_equal(
        parse(&r, EVERY("0.3.0", RESULT("acc", "0.5", "7") "," RESULT("f1", "2", "7")), &err), 0);
    const struct results_entry *e = results_find(&r, "arc");
    const struct results_metric *m = results_metric(e, "acc", "none");
    assert_true(m->value == 0.5 && m->has_se && m->se == 0.5 && e->n == 7 && e->n_metrics == 2);
    assert_non_null(strstr(r.shape.checked.buf, "reported, not run"));
    results_release(&r);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        const char *said;
    } cases[] = {
        {LOG("error", "", FOUR SCORE("1", "0"), ""), ERR_REFUSED, "status \"error\""},
        {LOG("success", "", FOUR SCORE("0.5", "0.25"), SAMPLES), ERR_CORRUPT,
         "score choice: accuracy is 0.5, its samples give 0.75"},
        {LOG("success", "", FOUR SCORE("0.75", "0.3"), SAMPLES), ERR_CORRUPT, "stderr is"},
        {LOG("success", "", "\"total_samples\":4,\"completed_samples\":-1," SCORE("1", "0"), ""),
         ERR_RANGE, "completed_samples"},
        {LOG("success", "\"epochs\":3", FOUR SCORE("1", "0"), ""), ERR_REFUSED, "whole epochs"},
        {LOG("success", "", FOUR "\"scores\":[]", ""), ERR_RANGE, "0 scores"},
        {LOG("success", "",
             FOUR "\"scores\":[{\"name\":\"a\",\"metrics\":{\"x,y\":{\"value\":1}}}]", ""),
         ERR_SYNTAX, "\"x,y\" cannot be"},
        {"{\"version\":1,\"status\":\"success\",\"eval\":{}}", ERR_REFUSED, "version is 1"},
        {EVERY("0.2.1", ""), ERR_REFUSED, "schema_version is \"0.2.1\""},
        {EVERY("0.3.0", RESULT("acc", "1", "7") "," RESULT("f1", "2", "8")), ERR_CORRUPT,
         "num_samples is 8, and 7"},
        {EVERY("0.3.0", RESULT("acc", "1", "7") "," RESULT("acc", "2", "7")), ERR_CORRUPT,
         "are one metric"},
        {EVERY("0.3.0", RESULT("acc", "\"1\"", "7")), ERR_SYNTAX, "evaluation_results[0]"},
        {EVERY("0.3.0", RESULT("acc", "1", "5e9")), ERR_RANGE, "num_samples"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct imported_results r;
        struct err err;
        int rc = parse(&r, cases[i].text, &err);
        if (rc != cases[i].code || strstr(err.msg, cases[i].said) == NULL) {
            fail_msg("case %zu: code %d, \"%s\"", i, rc, err.msg);
        }
        results_release(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inspect),
        cmocka_unit_test(test_every_eval),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
