/* Attempts of several executors: each has its own limits, a queued attempt has no deadline and may
 * be ended at once, and the row of a start says where it runs. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/daemon/core/driver.h"

static const uint32_t AFTER_FIRST[] = {0};
/* Trains under Slurm with more cores than this machine has, and evaluates here. */
static const struct core_plan_stage MIXED[] = {
    {.counted = true,
     .executor = EXECUTOR_SLURM,
     .threads = 8,
     .memory_bytes = INT64_C(64) << 30,
     .gpu_thousandths = 2000,
     .crashes = 2,
     .attempts = 5},
    {.after = AFTER_FIRST,
     .n_after = 1,
     .counted = true,
     .threads = 1,
     .crashes = 2,
     .attempts = 5},
};

static const struct placement *placement_of_start(const struct driver *d)
{
    for (size_t i = 0; i < d->out.n_rows; i++) {
        if (d->out.rows[i].kind == ROW_ATTEMPT_STARTED) {
            return &d->out.rows[i].attempt.placement;
        }
    }
    fail_msg("nothing was started");
    return NULL;
}

static size_t n_starts(const struct driver *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->out.n_acts; i++) {
        n += d->out.acts[i].kind == ACT_START;
    }
    return n;
}

static void set_full(struct driver *d, bool full)
{
    struct core_event ev = {.kind = CORE_QUEUE};
    ev.queue.executor = EXECUTOR_SLURM;
    ev.queue.full = full;
    driver_step(d, ev);
}

/* Slurm's attempts are limited by max_queued alone, this machine's by its core alone. */
static void test_limits(void **state)
{
    const struct core_plan plan = {
        .n_cells = 5, .n_stages = 2, .slots = 1, .max_queued = 3, .stages = MIXED};
    struct driver d;
    struct core_explanation why;
    (void)state;
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    assert_int_equal(n_starts(&d), 3);
    const struct placement *at = placement_of_start(&d);
    assert_int_equal(at->executor, EXECUTOR_SLURM);
    assert_int_equal(at->threads, 8);
    assert_int_equal(at->memory_bytes, INT64_C(64) << 30);
    assert_int_equal(at->gpu_thousandths, 2000);
    assert_true(core_explain(d.core, 1, 6, &why));
    assert_int_equal(why.why, WHY_SLOTS);
    assert_int_equal(why.n_queued, 3);
    for (uint32_t cell = 0; cell < 2; cell++) {
        driver_at(&d, CORE_ATTEMPT_UP, 2 * cell, 1);
        driver_exit(&d, 2 * cell, 1, 0);
        assert_int_equal(n_starts(&d), 1); /* its place is free before it is verified */
        driver_checked(&d, 2 * cell, 1, RESULT_VALID);
    }
    assert_int_equal(driver_row(&d, 1).state, TASK_STARTING); /* here, beside three jobs */
    assert_int_equal(driver_row(&d, 3).state, TASK_READY);    /* one core */
    assert_int_equal(driver_row(&d, 8).state, TASK_STARTING);
    assert_int_equal(core_n_slots_used(d.core), 1);
    assert_int_equal(core_n_queued(d.core), 3); /* jobs take no slot of this machine */
    driver_release(&d);
}

static bool has_row(const struct driver *d, enum row_kind kind)
{
    for (size_t i = 0; i < d->out.n_rows; i++) {
        if (d->out.rows[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/* A job that is preempted in the queue, or whose files find no room, has never run; one that
 * reports how long it ran has. */
static void test_ended_in_the_queue(void **state)
{
    static const enum end_reason reasons[] = {END_PREEMPTED, END_DISK};
    const struct core_plan plan = {
        .n_cells = 2, .n_stages = 2, .slots = 1, .max_queued = 3, .stages = MIXED};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        for (int64_t ran_ms = -1; ran_ms <= 0; ran_ms++) {
            struct driver d;
            struct core_event ev = {
                .kind = CORE_ATTEMPT_ENDED, .program = 1, .task = 0, .attempt_no = 1};
            driver_init(&d, 1);
            driver_add(&d, 1, &plan);
            ev.ended.reason = reasons[i];
            ev.ended.ran_ms = ran_ms;
            driver_step(&d, ev);
            assert_int_equal(has_row(&d, ROW_ATTEMPT_RUNNING), ran_ms >= 0);
            assert_true(has_row(&d, ROW_ATTEMPT_ENDED));
            driver_release(&d);
        }
    }
}

/* What waits for this machine does not hold up what runs elsewhere. */
static void test_queues_are_apart(void **state)
{
    static const struct core_plan_stage two[] = {
        {.counted = true, .threads = 1, .crashes = 2, .attempts = 5},
        {.counted = true, .executor = EXECUTOR_SLURM, .threads = 1, .crashes = 2, .attempts = 5}};
    const struct core_plan plan = {.n_cells = 3, .n_stages = 2, .max_queued = 9, .stages = two};
    struct driver d;
    (void)state;
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    assert_int_equal(n_starts(&d), 4);
    for (uint32_t cell = 0; cell < 3; cell++) {
        assert_int_equal(driver_row(&d, 2 * cell + 1).state, TASK_STARTING);
    }
    driver_release(&d);
}

static void test_full(void **state)
{
    const struct core_plan plan = {.n_cells = 2, .n_stages = 2, .stages = MIXED};
    struct driver d;
    struct core_explanation why;
    (void)state;
    driver_init(&d, 1);
    set_full(&d, true);
    driver_add(&d, 1, &plan);
    assert_int_equal(n_starts(&d), 0);
    assert_true(core_explain(d.core, 1, 0, &why));
    assert_true(why.queue_full);
    set_full(&d, false);
    assert_int_equal(n_starts(&d), 2);
    driver_release(&d);
}

/* A job may wait for days; a person may end it without proof of life, for it has no worker. */
static void test_queued(void **state)
{
    const struct core_plan plan = {.n_cells = 1, .n_stages = 2, .stages = MIXED};
    struct driver d;
    struct core_explanation why;
    (void)state;
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    for (int day = 0; day < 3; day++) {
        d.now_ms = core_next_timer_ms(d.core);
        driver_at(&d, CORE_TIMER, 0, 0);
        assert_true(driver_did(&d, ACT_PROBE));
        driver_probed(&d, 0, 1, HEALTH_QUEUED);
        assert_false(driver_did(&d, ACT_TERMINATE));
        d.now_ms += INT64_C(24) * 60 * 60 * 1000;
    }
    assert_int_equal(driver_row(&d, 0).state, TASK_STARTING);
    assert_true(core_explain(d.core, 1, 0, &why));
    assert_int_equal(why.why, WHY_QUEUED);
    driver_at(&d, CORE_CANCEL, 0, 0);
    assert_true(driver_did(&d, ACT_TERMINATE));
    driver_probed(&d, 0, 1, HEALTH_QUEUED); /* the request was lost: it is repeated */
    assert_true(driver_did(&d, ACT_TERMINATE));
    driver_end(&d, 0, 1, END_NEVER_LAUNCHED);
    assert_int_equal(driver_row(&d, 0).state, TASK_BLOCKED);
    assert_int_equal(driver_row(&d, 0).cause, CAUSE_CANCELLED);
    driver_release(&d);
}

/* Slurm shows the jobs running, and their nodes do not begin them: nothing of a task is spent, and
 * after six in a row the program pauses with the reason. One that begins sets the count back. */
static void test_unfit_nodes(void **state)
{
    static const struct core_plan_stage far = {
        .executor = EXECUTOR_SLURM, .threads = 1, .crashes = 1, .attempts = 3};
    const struct core_plan plan = {.n_cells = 2, .n_stages = 1, .stages = &far};
    struct driver d;
    struct program_row status = {0};
    unsigned n = 0;
    (void)state;
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    while (status.paused == 0 && n < 100) {
        const uint32_t task = driver_row(&d, 0).state == TASK_STARTING ? 0 : 1;
        const uint32_t no = driver_row(&d, task).n_attempts;
        if (driver_row(&d, task).state == TASK_STARTING) {
            struct core_event ev = {
                .kind = CORE_ATTEMPT_ENDED, .program = 1, .task = task, .attempt_no = no};
            ev.ended.reason = END_NEVER_LAUNCHED;
            ev.ended.unfit = true;
            ev.text = "n1 has NVIDIA T4";
            driver_probed(&d, task, no, HEALTH_ALIVE);
            assert_int_equal(driver_row(&d, task).state, TASK_RUNNING);
            if (n++ == 1) {
                driver_at(&d, CORE_ATTEMPT_UP, task, no); /* its start.json: another node */
                driver_end(&d, task, no, END_PREEMPTED);
            } else {
                driver_step(&d, ev);
                assert_int_equal(driver_row(&d, task).state, TASK_READY);
                assert_int_equal(d.out.rows[0].attempt.reason, END_NEVER_LAUNCHED);
            }
        }
        assert_true(core_program_status(d.core, 1, &status));
        d.now_ms += 20000;
        driver_step(&d, (struct core_event){.kind = CORE_TIMER});
    }
    assert_int_equal(status.paused, PAUSE_HOST);
    assert_int_equal(n, 2 + 6);
    assert_int_equal(driver_row(&d, 0).spent + driver_row(&d, 1).spent, 1); /* the preempted one */
    assert_int_equal(driver_row(&d, 0).crashes + driver_row(&d, 1).crashes, 0);
    driver_release(&d);
}

/* A node that refuses is avoided from then on: any number of refusals costs neither the task nor
 * the program anything, and the next attempt is made at once. */
static void test_avoided_nodes(void **state)
{
    static const struct core_plan_stage far = {
        .executor = EXECUTOR_SLURM, .threads = 1, .crashes = 1, .attempts = 3};
    const struct core_plan plan = {.n_cells = 1, .n_stages = 1, .stages = &far};
    struct driver d;
    struct program_row status = {0};
    (void)state;
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    for (uint32_t no = 1; no <= 20; no++) {
        struct core_event ev = {
            .kind = CORE_ATTEMPT_ENDED, .program = 1, .task = 0, .attempt_no = no};
        ev.ended.reason = END_NEVER_LAUNCHED;
        ev.ended.unfit = ev.ended.excused = true;
        driver_step(&d, ev);
        assert_int_equal(n_starts(&d), 1);
    }
    assert_true(core_program_status(d.core, 1, &status));
    assert_int_equal(status.paused, 0);
    assert_int_equal(driver_row(&d, 0).spent + driver_row(&d, 0).crashes, 0);
    driver_release(&d);
}

/* Where a fresh job is, only its executor knows: it is asked at once, not when its start is
 * overdue. On this machine the shim's start is a moment away. */
static void test_cancel_a_fresh_job(void **state)
{
    const struct core_plan plan = {.n_cells = 1, .n_stages = 2, .stages = MIXED};
    struct core_plan_stage here = {.threads = 1, .crashes = 1, .attempts = 3};
    const struct core_plan local = {.n_cells = 1, .n_stages = 1, .stages = &here};
    struct driver d;
    (void)state;
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    driver_at(&d, CORE_CANCEL, 0, 0);
    assert_true(driver_did(&d, ACT_PROBE));
    assert_false(driver_did(&d, ACT_TERMINATE));
    driver_probed(&d, 0, 1, HEALTH_QUEUED);
    assert_true(driver_did(&d, ACT_TERMINATE));
    driver_release(&d);
    driver_init(&d, 1);
    driver_add(&d, 1, &local);
    driver_at(&d, CORE_CANCEL, 0, 0);
    assert_false(driver_did(&d, ACT_PROBE));
    driver_release(&d);
}

/* A daemon that is about to stop starts nothing more, whatever becomes free. */
static void test_stopping(void **state)
{
    const struct core_plan plan = {
        .n_cells = 3, .n_stages = 2, .slots = 1, .max_queued = 1, .stages = MIXED};
    struct driver d;
    (void)state;
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    assert_int_equal(n_starts(&d), 1);
    driver_step(&d, (struct core_event){.kind = CORE_STOPPING});
    driver_at(&d, CORE_ATTEMPT_UP, 0, 1);
    driver_exit(&d, 0, 1, 0);
    driver_checked(&d, 0, 1, RESULT_VALID);
    assert_int_equal(driver_row(&d, 0).state, TASK_DONE);
    assert_int_equal(n_starts(&d), 0);
    assert_int_equal(driver_row(&d, 1).state, TASK_READY);
    assert_int_equal(driver_row(&d, 2).state, TASK_READY);
    driver_release(&d);
}

/* Another [run] moves what has not started; what runs keeps its place, and gives back that one. */
static void test_moved(void **state)
{
    struct core_plan_stage stages[2];
    struct core_plan plan = {.n_cells = 3, .n_stages = 2, .max_queued = 1, .stages = stages};
    struct core_event ev = {.kind = CORE_PROGRAM_SETTINGS, .program = 1, .text = "{}"};
    struct driver d;
    (void)state;
    memcpy(stages, MIXED, sizeof(stages));
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    assert_int_equal(n_starts(&d), 1);
    stages[0].executor = EXECUTOR_LOCAL;
    stages[0].gpu_thousandths = 0;
    ev.added.plan = plan;
    driver_step(&d, ev);
    assert_int_equal(n_starts(&d), 1);
    assert_int_equal(placement_of_start(&d)->executor, EXECUTOR_LOCAL);
    assert_int_equal(placement_of_start(&d)->threads, 1); /* all that this machine has */
    driver_at(&d, CORE_ATTEMPT_UP, 0, 1);
    driver_exit(&d, 0, 1, 0);
    driver_checked(&d, 0, 1, RESULT_VALID);
    driver_at(&d, CORE_ATTEMPT_UP, 2, 1);
    driver_exit(&d, 2, 1, 0);
    driver_checked(&d, 2, 1, RESULT_VALID);
    assert_true(driver_did(&d, ACT_START));
    driver_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_queues_are_apart),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_queued),
        cmocka_unit_test(test_unfit_nodes),
        cmocka_unit_test(test_avoided_nodes),
        cmocka_unit_test(test_cancel_a_fresh_job),
        cmocka_unit_test(test_stopping),
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_ended_in_the_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
