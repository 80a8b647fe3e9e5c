/* Rules 10 and 13: a burst of half a minute's worth, then one call after the other. */
#include "daemon/executor/slurm/calls.h"

#include "tests/unit/check.h"

static void test_bucket(void **state)
{
    struct calls c;
    unsigned n = 0;
    (void)state;
    calls_init(&c, 120, 1000);
    while (calls_take(&c, 1000)) {
        n++;
    }
    assert_int_equal(n, 60);
    assert_int_equal(calls_next_ms(&c), 1500);
    assert_false(calls_take(&c, 1499));
    assert_true(calls_take(&c, 1500));
    /* A clock that stands still or goes back brings nothing. */
    assert_false(calls_take(&c, 1500));
    assert_false(calls_take(&c, 1000));
    /* Over a long time no more than the burst is saved. */
    n = 0;
    while (calls_take(&c, INT64_MAX / 4)) {
        n++;
    }
    assert_int_equal(n, 60);
}

static void test_rounds(void **state)
{
    static const struct {
        size_t n;
        int64_t ms;
    } rows[] = {{0, 5000}, {1, 5005}, {100, 5550}, {5000, 32500}, {10000, 60000}, {1000000, 60000}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW("%zu", rows[i].n);
        assert_int_equal(calls_round_ms(5000, 60000, rows[i].n), rows[i].ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bucket),
        cmocka_unit_test(test_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
