/* A last stage gives its slot back when its worker has ended: the next task starts while its result
 * is being verified. */
#include <stdlib.h>

#include "tests/unit/check.h"
#include "tests/unit/daemon/core/driver.h"

static const uint32_t AFTER_FIRST[] = {0};
static const struct core_plan_stage LAST = {
    .counted = true, .threads = 1, .crashes = 2, .attempts = 5};
static const struct core_plan_stage CHAIN[] = {
    {.counted = true, .threads = 1, .crashes = 2, .attempts = 5},
    {.after = AFTER_FIRST,
     .n_after = 1,
     .counted = true,
     .threads = 1,
     .crashes = 2,
     .attempts = 5},
};

static void run_one(struct driver *d, uint32_t task)
{
    assert_true(driver_did(d, ACT_START));
    driver_at(d, CORE_ATTEMPT_UP, task, 1);
    driver_exit(d, task, 1, 0);
    assert_true(driver_did(d, ACT_VERIFY));
}

/* Whether the row that tells an attempt's end may wait for another. */
static bool end_may_wait(const struct driver *d)
{
    for (size_t i = 0; i < d->out.n_rows; i++) {
        if (d->out.rows[i].kind == ROW_ATTEMPT_ENDED) {
            return d->out.rows[i].lazy;
        }
    }
    fail_msg("no attempt has ended");
    return false;
}

/* The end's row waits for the next start's, a commit less for every task; that of the last task
 * that has one to come waits for nothing. */
static void test_next_starts_before_the_verdict_on_it(void **state)
{
    const struct core_plan plan = {.n_cells = 3, .n_stages = 1, .stages = &LAST};
    struct driver d;
    (void)state;
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    run_one(&d, 0);
    assert_int_equal(driver_row(&d, 1).state, TASK_STARTING);
    assert_int_equal(driver_row(&d, 0).state, TASK_RUNNING);
    driver_checked(&d, 0, 1, RESULT_VALID);
    assert_int_equal(driver_row(&d, 0).state, TASK_DONE);
    assert_true(end_may_wait(&d));
    driver_at(&d, CORE_ATTEMPT_UP, 1, 1);
    driver_exit(&d, 1, 1, 0);
    assert_int_equal(driver_row(&d, 2).state, TASK_STARTING);
    driver_checked(&d, 1, 1, RESULT_VALID);
    assert_false(end_may_wait(&d));
    driver_release(&d);
}

/* As many as there are cores: with one core the third waits for the first to be verified. */
static void test_not_more_than_cores(void **state)
{
    const struct core_plan plan = {.n_cells = 4, .n_stages = 1, .stages = &LAST};
    struct driver d;
    (void)state;
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    run_one(&d, 0);
    run_one(&d, 1);
    assert_false(driver_did(&d, ACT_START));
    assert_int_equal(driver_row(&d, 2).state, TASK_READY);
    driver_checked(&d, 0, 1, RESULT_VALID);
    assert_false(driver_did(&d, ACT_START)); /* the second keeps its slot */
    driver_checked(&d, 1, 1, RESULT_BAD);
    assert_true(driver_did(&d, ACT_START));
    driver_release(&d);
}

/* A stage that another one comes after keeps its slot for it. */
static void test_chain_keeps_its_slot(void **state)
{
    const struct core_plan plan = {.n_cells = 2, .n_stages = 2, .stages = CHAIN};
    struct driver d;
    (void)state;
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    run_one(&d, 0);
    assert_false(driver_did(&d, ACT_START));
    driver_checked(&d, 0, 1, RESULT_VALID);
    assert_int_equal(driver_row(&d, 1).state, TASK_STARTING);
    assert_false(end_may_wait(&d));
    driver_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next_starts_before_the_verdict_on_it),
        cmocka_unit_test(test_not_more_than_cores),
        cmocka_unit_test(test_chain_keeps_its_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
