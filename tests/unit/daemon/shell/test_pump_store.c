/* What the pump commits, and when, against a real store. */

#include "base/xalloc.h"
#include "daemon/shell/pump.h"
#include "tests/unit/check.h"
#include "tests/unit/state/support.h"

struct fixture {
    char *dir;
    struct plan_program *program;
    struct store *store;
    uint32_t no;
    uv_loop_t loop;
    struct core *core;
    struct pump *pump;
    int n_commits;
    int n_verified;
    bool refuses; /* the store cannot be written */
};

static int committing(void *ctx, const struct state_row *rows, size_t n, struct err *err)
{
    struct fixture *f = ctx;
    (void)rows;
    (void)n;
    if (f->refuses) {
        return err_set(err, ERR_NO_SPACE, "the disk is full");
    }
    f->n_commits++;
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
    struct fixture *f = ctx;
    f->n_verified += a->kind == ACT_VERIFY;
}

static void must(int rc, const struct err *err)
{
    if (rc != 0) {
        fail_msg("%s", err->msg);
    }
}

/* One cell; its first attempt has begun and nobody has seen it run. */
static void begin(struct fixture *f)
{
    static const uint32_t first = 0;
    struct core_plan_stage stages[] = {{.threads = 1, .crashes = 3, .attempts = 50},
                                       {.threads = 1, .crashes = 3, .attempts = 50}};
    struct core_event added = {.kind = CORE_PROGRAM_ADDED, .program = f->no};
    struct core_event all = {.kind = CORE_ALL_ADDED};
    struct err err = {0};
    stages[1].after = &first;
    stages[1].n_after = 1;
    added.added.plan = (struct core_plan){.n_cells = 1, .n_stages = 2, .stages = stages};
    must(pump_request(f->pump, &added, &err), &err);
    must(pump_request(f->pump, &all, &err), &err);
    assert_int_equal(f->n_commits, 1);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    struct core_config config;
    struct pump_listener listener = {
        .ctx = f, .committing = committing, .committed = committed, .act = act};
    struct store_submission submission = {SCRATCH_ID, root_make("root"), {1763694202000}, {0}};
    struct err err = {0};
    f->dir = state_folder_make();
    f->program = program_make(1);
    must(store_open(f->dir, STORE_OWNER, &f->store, &err), &err);
    must(store_program_create(f->store, f->program, &submission, &f->no, &err), &err);
    core_config_default(&config);
    config.cores = 1;
    assert_int_equal(uv_loop_init(&f->loop), 0);
    f->core = core_create(&config);
    f->pump = pump_create(&f->loop, f->core, f->store, &listener);
    begin(f);
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
    store_close(f->store);
    program_drop(f->program);
    scratch_remove(f->dir);
    free(f);
    return 0;
}

static void say(struct fixture *f)
{
    struct core_event said = {.kind = CORE_WORKER_SAID, .program = f->no, .attempt_no = 1};
    said.said.to = 10;
    said.said.section = SECTION_NR;
    said.said.checkpoint = said.said.resumed_from = -1;
    pump_post(f->pump, &said);
}

static int take_offset(void *ctx, uint32_t task, const struct attempt_row *a, struct err *err)
{
    int64_t *offset = ctx;
    (void)task;
    (void)err;
    *offset = a->offset;
    return 0;
}

static int64_t stored_offset(struct fixture *f)
{
    int64_t offset = -1;
    struct err err = {0};
    must(store_live_attempts(f->store, f->no, take_offset, &offset, &err), &err);
    return offset;
}

/* What it said waits, its end is looked at: no commit for either. */
static void test_verify_waits_for_no_lazy_row(void **state)
{
    struct fixture *f = *state;
    struct core_event ended = {.kind = CORE_ATTEMPT_ENDED, .program = f->no, .attempt_no = 1};
    ended.ended.reason = END_EXITED;
    say(f);
    pump_post(f->pump, &ended);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(f->n_verified, 1);
    assert_int_equal(f->n_commits, 1);
}

/* A row that is more than lazy in the same turn holds the verifying back until both are stored. */
static void test_verify_waits_for_other_rows(void **state)
{
    struct fixture *f = *state;
    struct core_event pause = {.kind = CORE_PAUSE, .program = f->no};
    struct core_event ended = {.kind = CORE_ATTEMPT_ENDED, .program = f->no, .attempt_no = 1};
    struct err err = {0};
    ended.ended.reason = END_EXITED;
    pump_post(f->pump, &pause);
    pump_post(f->pump, &ended);
    f->refuses = true;
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_false(pump_is_well(f->pump, &err));
    assert_int_equal(f->n_verified, 0);
    f->refuses = false;
    pump_close(f->pump);
    assert_int_equal(f->n_verified, 1);
}

/* Stopping loses nothing that waited. */
static void test_close_commits_lazy_rows(void **state)
{
    struct fixture *f = *state;
    say(f);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(f->n_commits, 1);
    assert_int_equal(stored_offset(f), 0);
    pump_close(f->pump);
    assert_int_equal(f->n_commits, 2);
    assert_int_equal(stored_offset(f), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_verify_waits_for_no_lazy_row, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_verify_waits_for_other_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_close_commits_lazy_rows, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
