/* The second runs of apparatus checks, after the last task of the grid: scores and verdict wait for
 * them, another score is final, and a task of the grid that is tried again takes them back. */
#include <string.h>

#include "daemon/core/core.h"
#include "tests/unit/check.h"
#include "tests/unit/daemon/core/driver.h"

static const uint32_t AFTER[1] = {0};
static const struct core_plan_stage STAGES[2] = {
    {.threads = 1, .crashes = 1, .attempts = 9, .counted = true},
    {.after = AFTER,
     .n_after = 1,
     .threads = 1,
     .crashes = 1,
     .attempts = 9,
     .counted = true,
     .sealed = true}};
static const struct core_apparatus CHECKS[2] = {
    {.name = "a", .stage = 1, .declared = true},
    {.name = "a@end", .stage = 1, .declared = true, .again = true}};

enum { TRAIN, SCORE, FIRST, SECOND }; /* one cell, two stages, then the checks */

static void add(struct driver *d)
{
    const struct core_plan plan = {
        .n_cells = 1, .n_stages = 2, .stages = STAGES, .apparatus = CHECKS, .n_apparatus = 2};
    driver_init(d, 1);
    driver_add(d, 1, &plan);
}

static bool did(const struct driver *d, enum core_act_kind kind, uint32_t task)
{
    for (size_t i = 0; i < d->out.n_acts; i++) {
        if (d->out.acts[i].kind == kind && d->out.acts[i].task == task) {
            return true;
        }
    }
    return false;
}

static bool wrote(const struct driver *d, enum row_kind kind)
{
    for (size_t i = 0; i < d->out.n_rows; i++) {
        if (d->out.rows[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/* From its start to the end of its attempt `no`; the step that checks the result comes last. */
static void run(struct driver *d, uint32_t task, uint32_t no, enum core_result_check result)
{
    driver_at(d, CORE_ATTEMPT_UP, task, no);
    driver_probed(d, task, no, HEALTH_ALIVE);
    driver_exit(d, task, no, 0);
    driver_checked(d, task, no, result);
}

static void link_all(struct driver *d)
{
    for (uint32_t task = TRAIN; task <= SECOND; task++) {
        const struct task_row row = driver_row(d, task);
        if (row.state == TASK_DONE && !row.linked) {
            driver_at(d, CORE_LINKED, task, row.n_attempts);
        }
    }
}

/* Until the grid has ended; the second run is started by the last step. */
static void run_grid(struct driver *d)
{
    run(d, FIRST, 1, RESULT_VALID);
    run(d, TRAIN, 1, RESULT_VALID);
    assert_int_equal(driver_row(d, SECOND).n_attempts, 0);
    run(d, SCORE, 1, RESULT_VALID);
    assert_true(did(d, ACT_START, SECOND));
    assert_false(wrote(d, ROW_UNSEALED));
}

/* It waits for the grid and says so; then scores and verdict wait for it. */
static void test_runs_after_the_grid(void **state)
{
    (void)state;
    struct driver d;
    struct core_explanation e;
    add(&d);
    assert_true(core_explain(d.core, 1, SECOND, &e));
    assert_int_equal(e.why, WHY_GRID);
    run_grid(&d);
    run(&d, SECOND, 1, RESULT_VALID);
    assert_true(wrote(&d, ROW_UNSEALED));
    link_all(&d);
    assert_true(driver_did(&d, ACT_VERDICT));
    driver_release(&d);
}

/* Another score is the last word: no pause, no other attempt, and the verdict is asked for. */
static void test_another_score_is_final(void **state)
{
    (void)state;
    struct driver d;
    struct program_row status;
    add(&d);
    run_grid(&d);
    link_all(&d);
    run(&d, SECOND, 1, RESULT_UNEXPECTED);
    assert_true(core_program_status(d.core, 1, &status));
    assert_int_equal(status.paused, 0);
    assert_true(driver_did(&d, ACT_VERDICT));
    driver_at(&d, CORE_RETRY, SECOND, 0);
    assert_non_null(d.out.refusal);
    assert_non_null(strstr(d.out.refusal, "not that of the first time"));
    driver_release(&d);
}

/* One that cannot be made pauses the program; a resume repeats it, and ending all gives it up. */
static void test_cannot_be_made(void **state)
{
    (void)state;
    struct driver d;
    struct program_row status;
    add(&d);
    run_grid(&d);
    link_all(&d);
    driver_at(&d, CORE_ATTEMPT_UP, SECOND, 1);
    driver_probed(&d, SECOND, 1, HEALTH_ALIVE);
    driver_exit(&d, SECOND, 1, 64);
    assert_true(core_program_status(d.core, 1, &status));
    assert_int_equal(status.paused, PAUSE_APPARATUS);
    assert_false(wrote(&d, ROW_UNSEALED) || driver_did(&d, ACT_VERDICT));
    driver_at(&d, CORE_RESUME, 0, 0);
    assert_true(did(&d, ACT_START, SECOND));
    driver_at(&d, CORE_ATTEMPT_UP, SECOND, 2);
    driver_probed(&d, SECOND, 2, HEALTH_ALIVE);
    driver_exit(&d, SECOND, 2, 64);
    driver_at(&d, CORE_STOP, 0, 0);
    assert_int_equal(driver_row(&d, SECOND).cause, CAUSE_STOPPED);
    assert_true(wrote(&d, ROW_UNSEALED) && driver_did(&d, ACT_VERDICT));
    driver_release(&d);
}

/* Without a score it guards nothing. */
static void test_nothing_to_guard(void **state)
{
    (void)state;
    struct driver d;
    add(&d);
    driver_at(&d, CORE_CANCEL, SCORE, 0);
    run(&d, FIRST, 1, RESULT_VALID);
    run(&d, TRAIN, 1, RESULT_VALID);
    assert_int_equal(driver_row(&d, SECOND).state, TASK_NEVER_RUN);
    assert_int_equal(driver_row(&d, SECOND).cause, CAUSE_DEPENDENCY);
    driver_release(&d);
}

/* A blocked task of the grid is tried again while the second run is at work: what that finds is of
 * no use, and it runs once more when the grid has ended again. */
static void test_grid_goes_on(void **state)
{
    (void)state;
    static const struct core_plan plan = {
        .n_cells = 2, .n_stages = 2, .stages = STAGES, .apparatus = CHECKS, .n_apparatus = 2};
    enum { TRAIN_1, SCORE_1, TRAIN_2, SCORE_2, CHECK, AGAIN };
    struct driver d;
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    run(&d, CHECK, 1, RESULT_VALID);
    run(&d, TRAIN_1, 1, RESULT_VALID);
    run(&d, SCORE_1, 1, RESULT_VALID);
    driver_at(&d, CORE_ATTEMPT_UP, TRAIN_2, 1);
    driver_probed(&d, TRAIN_2, 1, HEALTH_ALIVE);
    driver_exit(&d, TRAIN_2, 1, 64);
    assert_true(did(&d, ACT_START, AGAIN));
    driver_at(&d, CORE_RETRY, TRAIN_2, 0);
    assert_null(d.out.refusal);
    run(&d, AGAIN, 1, RESULT_VALID);
    assert_int_equal(driver_row(&d, AGAIN).state, TASK_READY);
    run(&d, TRAIN_2, 2, RESULT_VALID);
    d.now_ms += 60000;
    driver_at(&d, CORE_TIMER, 0, 0);
    run(&d, SCORE_2, 1, RESULT_VALID);
    assert_true(did(&d, ACT_START, AGAIN));
    run(&d, AGAIN, 2, RESULT_VALID);
    assert_int_equal(driver_row(&d, AGAIN).state, TASK_DONE);
    driver_release(&d);
}

/* The same when the grid has ended again before the second run has. */
static void test_grid_went_on(void **state)
{
    (void)state;
    static const struct core_plan plan = {
        .n_cells = 2, .n_stages = 2, .stages = STAGES, .apparatus = CHECKS, .n_apparatus = 2};
    enum { TRAIN_1, SCORE_1, TRAIN_2, SCORE_2, CHECK, AGAIN };
    struct driver d;
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    driver_at(&d, CORE_CANCEL, TRAIN_2, 0);
    run(&d, CHECK, 1, RESULT_VALID);
    run(&d, TRAIN_1, 1, RESULT_VALID);
    run(&d, SCORE_1, 1, RESULT_VALID);
    driver_at(&d, CORE_RETRY, TRAIN_2, 0);
    assert_null(d.out.refusal);
    driver_at(&d, CORE_CANCEL, TRAIN_2, 0);
    run(&d, AGAIN, 1, RESULT_VALID);
    assert_int_equal(driver_row(&d, AGAIN).state, TASK_READY);
    d.now_ms += 60000;
    driver_at(&d, CORE_TIMER, 0, 0);
    assert_true(did(&d, ACT_START, AGAIN));
    run(&d, AGAIN, 2, RESULT_VALID);
    assert_int_equal(driver_row(&d, AGAIN).state, TASK_DONE);
    driver_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_after_the_grid), cmocka_unit_test(test_another_score_is_final),
        cmocka_unit_test(test_cannot_be_made),      cmocka_unit_test(test_nothing_to_guard),
        cmocka_unit_test(test_grid_goes_on),        cmocka_unit_test(test_grid_went_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
