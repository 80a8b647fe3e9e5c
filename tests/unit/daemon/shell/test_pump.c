/* The core's timer: whatever clock woke the loop, what is due comes to the core in the end. */

#include "base/xalloc.h"
#include "daemon/core/explain.h"
#include "daemon/shell/pump.h"
#include "tests/unit/check.h"

#define DELAY_MS 200
#define LIMIT_MS 20000

struct fixture {
    uv_loop_t loop;
    struct core *core;
    struct pump *pump;
    int64_t begun_ms;
};

static int committing(void *ctx, const struct state_row *rows, size_t n, struct err *err)
{
    (void)ctx;
    (void)rows;
    (void)n;
    (void)err;
    fail_msg("nothing is to be committed");
    return 0;
}

static void committed(void *ctx, const struct state_row *rows, size_t n)
{
    (void)ctx;
    (void)rows;
    (void)n;
}

static void act(void *ctx, const struct core_act *a)
{
    (void)ctx;
    (void)a;
}

/* A paused program whose one task waits for its backoff: its timer changes nothing that is stored.
 */
static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    struct core_config config;
    struct pump_listener listener = {.committing = committing, .committed = committed, .act = act};
    struct core_plan_stage stage = {.threads = 1, .crashes = 3, .attempts = 50};
    struct program_row status = {.paused = PAUSE_PERSON};
    struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = 1};
    struct task_row task;
    struct err err;
    core_config_default(&config);
    task_row_init(&task, TASK_READY);
    task.n_attempts = 1;
    f->begun_ms = clock_mono().ms;
    task.not_before.ms = clock_wall().ms + DELAY_MS;
    ev.added.plan = (struct core_plan){.n_cells = 1, .n_stages = 1, .stages = &stage};
    ev.added.tasks = &task;
    ev.added.status = &status;
    assert_int_equal(uv_loop_init(&f->loop), 0);
    f->core = core_create(&config);
    f->pump = pump_create(&f->loop, f->core, NULL, &listener);
    assert_int_equal(pump_request(f->pump, &ev, &err), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    pump_close(f->pump);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    pump_free(f->pump);
    core_free(f->core);
    free(f);
    return 0;
}

static void run_until_it_came(struct fixture *f)
{
    int64_t until = clock_mono().ms + LIMIT_MS;
    while (core_next_timer_ms(f->core) != INT64_MAX && clock_mono().ms < until) {
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        clock_sleep_ms(5);
    }
    assert_true(core_next_timer_ms(f->core) == INT64_MAX);
}

static void test_in_time(void **state)
{
    struct fixture *f = *state;
    run_until_it_came(f);
    assert_true(clock_mono().ms - f->begun_ms >= DELAY_MS - 10);
}

static void go_off_early(uv_handle_t *handle, void *ctx)
{
    int *n = ctx;
    if (handle->type == UV_TIMER && uv_is_active(handle) != 0) {
        uv_timer_t *timer = (uv_timer_t *)handle;
        uv_timer_cb cb = timer->timer_cb;
        (void)uv_timer_stop(timer);
        cb(timer);
        (*n)++;
    }
}

/* The loop's clock may be coarser than ours and run a little ahead of it. */
static void test_too_early(void **state)
{
    struct fixture *f = *state;
    int n = 0;
    uv_walk(&f->loop, go_off_early, &n);
    assert_int_equal(n, 1);
    run_until_it_came(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_in_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_too_early, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
