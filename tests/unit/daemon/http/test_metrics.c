/* The text of /metrics. */
#include <math.h>

#include "daemon/http/metrics_text.h"
#include "tests/unit/check.h"

static void expect_text(struct strbuf *got, const char *wanted)
{
    assert_string_equal(got->buf, wanted);
    strbuf_clear(got);
}

/* Labels may hold any text; what is not finite has Prometheus' own words. */
static void test_values(void **state)
{
    (void)state;
    struct strbuf out = STRBUF_INIT;
    metrics_single(&out, "a_b", "gauge", "Help.", 3);
    expect_text(&out, "# HELP a_b Help.\n# TYPE a_b gauge\na_b 3\n");
    metrics_value(&out, "x", (struct metrics_label[]){{"p", "a\"b\\c\nd"}, {"q", ""}, {NULL, NULL}},
                  0.5);
    expect_text(&out, "x{p=\"a\\\"b\\\\c\\nd\",q=\"\"} 0.5\n");
    metrics_value(&out, "x", NULL, (double)INFINITY);
    metrics_value(&out, "x", (struct metrics_label[]){{NULL, NULL}}, -(double)INFINITY);
    metrics_value(&out, "x", NULL, (double)NAN);
    expect_text(&out, "x +Inf\nx -Inf\nx NaN\n");
    strbuf_release(&out);
}

/* Buckets rise, and the last one is the count. */
static void test_histogram(void **state)
{
    (void)state;
    struct strbuf out = STRBUF_INIT;
    const struct pump_commits c = {.n = 6, .sum_ns = 2500000000, .buckets = {1, 0, 3}};
    metrics_histogram(&out, "t", "Help.", &c);
    assert_non_null(strstr(out.buf, "# TYPE t histogram\n"
                                    "t_bucket{le=\"0.001\"} 1\nt_bucket{le=\"0.002\"} 1\n"
                                    "t_bucket{le=\"0.004\"} 4\nt_bucket{le=\"0.008\"} 4\n"));
    assert_non_null(strstr(out.buf, "t_bucket{le=\"+Inf\"} 6\nt_sum 2.5\nt_count 6\n"));
    strbuf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_histogram)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
