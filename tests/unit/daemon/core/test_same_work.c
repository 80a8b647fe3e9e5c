/* Tasks that are another name of a work: they wait for it, run on this machine in one thread, and
 * end with it. Tasks that reuse a result from an earlier receipt run there, too. */
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/daemon/core/driver.h"

#define N_CELLS  3
#define N_STAGES 2
#define TRAIN(c) ((uint32_t)(c)*N_STAGES)
#define SCORE(c) (TRAIN(c) + 1)

static const uint32_t AFTER_FIRST[] = {0};
static const struct core_plan_stage STAGES[N_STAGES] = {
    {.name = "train",
     .counted = true,
     .threads = 4,
     .memory_bytes = 100,
     .crashes = 1,
     .attempts = 5},
    {.name = "score",
     .after = AFTER_FIRST,
     .n_after = 1,
     .counted = true,
     .sealed = true,
     .threads = 4,
     .crashes = 1,
     .attempts = 5},
};
/* Cells 0 and 2 are one work in both stages. */
static const uint32_t WORKERS[N_CELLS * N_STAGES] = {0, 1, 2, 3, 0, 1};
static const struct core_plan PLAN = {
    .n_cells = N_CELLS, .n_stages = N_STAGES, .stages = STAGES, .workers = WORKERS};

static void setup(struct driver *d)
{
    driver_init(d, 16);
    driver_add(d, 1, &PLAN);
}

static void expect_state(const struct driver *d, uint32_t task, enum task_state state)
{
    assert_string_equal(task_state_name(driver_row(d, task).state), task_state_name(state));
}

/* From starting to done. */
static void finish(struct driver *d, uint32_t task)
{
    const uint32_t no = driver_row(d, task).n_attempts;
    expect_state(d, task, TASK_STARTING);
    driver_at(d, CORE_ATTEMPT_UP, task, no);
    driver_exit(d, task, no, 0);
    driver_checked(d, task, no, RESULT_VALID);
    expect_state(d, task, TASK_DONE);
}

static struct placement place_of(const struct driver *d, uint32_t task)
{
    struct placement at = {.threads = UINT32_MAX};
    for (size_t i = 0; i < d->out.n_rows; i++) {
        const struct state_row *row = &d->out.rows[i];
        if (row->kind == ROW_ATTEMPT_STARTED && row->task == task) {
            at = row->attempt.placement;
        }
    }
    return at;
}

static void test_a_name_waits_for_the_work(void **state)
{
    (void)state;
    struct driver d;
    setup(&d);
    expect_state(&d, TRAIN(0), TASK_STARTING);
    expect_state(&d, TRAIN(1), TASK_STARTING);
    expect_state(&d, TRAIN(2), TASK_WAITING);
    finish(&d, TRAIN(0));
    const struct placement at = place_of(&d, TRAIN(2));
    assert_int_equal(at.executor, EXECUTOR_LOCAL);
    assert_int_equal(at.threads, 1);
    assert_int_equal(at.memory_bytes, 0);
    expect_state(&d, SCORE(2), TASK_WAITING);
    finish(&d, TRAIN(2));
    expect_state(&d, SCORE(2), TASK_WAITING); /* its own training is done, the work is not */
    finish(&d, SCORE(0));
    finish(&d, SCORE(2));
    driver_release(&d);
}

/* The work is done before the name's own training is. */
static void test_a_name_waits_for_its_cell_too(void **state)
{
    (void)state;
    struct driver d;
    setup(&d);
    finish(&d, TRAIN(0));
    finish(&d, SCORE(0));
    expect_state(&d, SCORE(2), TASK_WAITING);
    finish(&d, TRAIN(2));
    expect_state(&d, SCORE(2), TASK_STARTING);
    driver_release(&d);
}

static void block(struct driver *d, uint32_t task)
{
    const uint32_t no = driver_row(d, task).n_attempts;
    driver_at(d, CORE_ATTEMPT_UP, task, no);
    driver_exit(d, task, no, 64);
    expect_state(d, task, TASK_BLOCKED);
}

static void test_what_is_blocked_is_blocked_under_all_names(void **state)
{
    (void)state;
    struct driver d;
    setup(&d);
    finish(&d, TRAIN(1)); /* so that the program does not pause for the stage */
    block(&d, TRAIN(0));
    for (uint32_t t = SCORE(0); t <= SCORE(2); t += t == SCORE(0) ? 3 : 1) {
        expect_state(&d, t, TASK_NEVER_RUN);
        assert_int_equal(driver_row(&d, t).cause, CAUSE_DEPENDENCY);
    }
    /* a name cannot be tried again before the work is */
    driver_step(&d, (struct core_event){.kind = CORE_RETRY, .program = 1, .task = TRAIN(2)});
    assert_non_null(d.out.refusal);
    driver_step(&d, (struct core_event){.kind = CORE_RETRY, .program = 1, .task = TRAIN(0)});
    assert_null(d.out.refusal);
    expect_state(&d, TRAIN(2), TASK_WAITING);
    expect_state(&d, SCORE(2), TASK_WAITING);
    finish(&d, TRAIN(0));
    finish(&d, TRAIN(2));
    driver_release(&d);
}

/* Its evaluation alone fails: that of the other name goes with it. */
static void test_a_later_stage_is_blocked_under_all_names(void **state)
{
    (void)state;
    struct driver d;
    setup(&d);
    finish(&d, TRAIN(1));
    finish(&d, SCORE(1));
    finish(&d, TRAIN(0));
    block(&d, SCORE(0));
    expect_state(&d, SCORE(2), TASK_NEVER_RUN);
    finish(&d, TRAIN(2));
    driver_release(&d);
}

/* All trainings are one work, and of the scores only those of cells 1 and 2: what ends score(1) is
 * the training of its own cell, and score(2) waits for score(1) alone. */
static void test_names_of_what_is_blocked_on_the_way(void **state)
{
    (void)state;
    static const uint32_t workers[N_CELLS * N_STAGES] = {0, 1, 0, 3, 0, 3};
    const struct core_plan plan = {
        .n_cells = N_CELLS, .n_stages = N_STAGES, .stages = STAGES, .workers = workers};
    struct driver d;
    driver_init(&d, 16);
    driver_add(&d, 1, &plan);
    finish(&d, TRAIN(0));
    finish(&d, TRAIN(2));
    block(&d, TRAIN(1));
    expect_state(&d, SCORE(1), TASK_NEVER_RUN);
    expect_state(&d, SCORE(2), TASK_NEVER_RUN);
    driver_step(&d, (struct core_event){.kind = CORE_RETRY, .program = 1, .task = TRAIN(1)});
    assert_null(d.out.refusal);
    expect_state(&d, SCORE(1), TASK_WAITING);
    expect_state(&d, SCORE(2), TASK_WAITING);
    driver_release(&d);
}

static void test_a_lost_work_ends_names_that_have_not_begun(void **state)
{
    (void)state;
    struct driver d;
    setup(&d);
    finish(&d, TRAIN(0));
    finish(&d, TRAIN(2));
    driver_step(&d, (struct core_event){.kind = CORE_PAUSE, .program = 1, .text = "x"});
    finish(&d, SCORE(0));
    expect_state(&d, SCORE(2), TASK_READY);
    driver_step(&d, (struct core_event){.kind = CORE_LOST, .program = 1, .task = SCORE(0)});
    assert_null(d.out.refusal);
    expect_state(&d, SCORE(2), TASK_NEVER_RUN);
    driver_release(&d);
}

static void test_a_work_that_is_being_accepted_is_not_lost(void **state)
{
    (void)state;
    struct driver d;
    setup(&d);
    finish(&d, TRAIN(0));
    finish(&d, TRAIN(2));
    finish(&d, SCORE(0)); /* SCORE(2) is at work on it */
    driver_step(&d, (struct core_event){.kind = CORE_LOST, .program = 1, .task = SCORE(0)});
    assert_non_null(d.out.refusal);
    expect_state(&d, SCORE(0), TASK_DONE);
    driver_release(&d);
}

/* Only the works of a stage can fail: with two of them and their two names, all that can have. */
static void test_every_work_fails_the_same_way(void **state)
{
    (void)state;
    static const uint32_t workers[4 * N_STAGES] = {0, 1, 2, 3, 0, 1, 2, 3};
    const struct core_plan plan = {
        .n_cells = 4, .n_stages = N_STAGES, .stages = STAGES, .workers = workers};
    struct driver d;
    struct program_row status = {0};
    driver_init(&d, 16);
    driver_add(&d, 1, &plan);
    block(&d, TRAIN(0));
    expect_state(&d, TRAIN(2), TASK_NEVER_RUN);
    const uint32_t no = driver_row(&d, TRAIN(1)).n_attempts;
    driver_at(&d, CORE_ATTEMPT_UP, TRAIN(1), no);
    driver_exit(&d, TRAIN(1), no, 64);
    assert_true(core_program_status(d.core, 1, &status));
    assert_int_equal(status.paused, PAUSE_FAILURES);
    expect_state(&d, TRAIN(0), TASK_READY);
    expect_state(&d, TRAIN(2), TASK_WAITING);
    driver_release(&d);
}

/* A result from an earlier receipt: no other task is waited for, and no worker is run. */
static void test_a_reused_task_runs_no_worker(void **state)
{
    (void)state;
    static const bool reused[N_CELLS * N_STAGES] = {[TRAIN(1)] = true, [SCORE(1)] = true};
    struct driver d;
    struct core_plan plan = PLAN;
    plan.workers = NULL;
    plan.reused = reused;
    driver_init(&d, 16);
    driver_add(&d, 1, &plan);
    assert_int_equal(place_of(&d, TRAIN(0)).threads, 4);
    assert_int_equal(place_of(&d, TRAIN(1)).threads, 1);
    assert_int_equal(place_of(&d, TRAIN(1)).executor, EXECUTOR_LOCAL);
    assert_int_equal(place_of(&d, TRAIN(1)).memory_bytes, 0);
    expect_state(&d, SCORE(1), TASK_WAITING);
    finish(&d, TRAIN(1));
    finish(&d, SCORE(1));
    expect_state(&d, SCORE(0), TASK_WAITING);
    driver_release(&d);
}

static void test_a_damaged_list_is_refused(void **state)
{
    (void)state;
    static const uint32_t bad[][N_CELLS * N_STAGES] = {
        {0, 1, 2, 3, 3, 1}, /* another stage */
        {4, 1, 2, 3, 4, 5}, /* a later task */
        {0, 1, 0, 3, 2, 5}, /* one that has a worker itself */
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("%zu", i);
        struct driver d;
        struct core_plan plan = PLAN;
        struct program_row status;
        plan.workers = bad[i];
        driver_init(&d, 1);
        struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = 1};
        ev.added.plan = plan;
        driver_step(&d, ev);
        assert_non_null(d.out.refusal);
        assert_false(core_program_status(d.core, 1, &status));
        driver_release(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_waits_for_the_work),
        cmocka_unit_test(test_a_name_waits_for_its_cell_too),
        cmocka_unit_test(test_what_is_blocked_is_blocked_under_all_names),
        cmocka_unit_test(test_a_later_stage_is_blocked_under_all_names),
        cmocka_unit_test(test_names_of_what_is_blocked_on_the_way),
        cmocka_unit_test(test_a_lost_work_ends_names_that_have_not_begun),
        cmocka_unit_test(test_a_work_that_is_being_accepted_is_not_lost),
        cmocka_unit_test(test_every_work_fails_the_same_way),
        cmocka_unit_test(test_a_reused_task_runs_no_worker),
        cmocka_unit_test(test_a_damaged_list_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
