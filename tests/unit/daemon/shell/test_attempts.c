/* What a worker says while the state cannot be written: it is taken in later, and none of it twice.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/shell/attempts.h"
#include "daemon/shim/files.h"
#include "tests/unit/check.h"
#include "tests/unit/state/support.h"

#define BUFFER_BYTES ((size_t)1024 * 1024)
#define LIMIT_MS     60000

struct fixture {
    char *dir;
    struct plan_program *program;
    struct bundle bundle;
    struct hosted *hosted;
    struct hosted *programs[2];
    struct shell shell;
    char *events; /* the attempt's file */
    bool refuses; /* the state cannot be written */
    int n_ended;
};

static int committing(void *ctx, const struct state_row *rows, size_t n, struct err *err)
{
    const struct fixture *f = ctx;
    (void)rows;
    (void)n;
    return f->refuses ? err_set(err, ERR_NO_SPACE, "the disk is full") : 0;
}

static void committed(void *ctx, const struct state_row *rows, size_t n)
{
    struct fixture *f = ctx;
    for (size_t i = 0; i < n; i++) {
        const struct state_row *r = &rows[i];
        struct attempt_key key = {.program = r->program, .task = r->task, .no = r->attempt.no};
        if (r->kind == ROW_ATTEMPT_STARTED) {
            (void)attempt_add(&f->shell, &key, &r->attempt);
        } else if (r->attempt.no != 0) {
            attempt_mirror(attempt_find(&f->shell, &key), &r->attempt);
        }
        f->n_ended += r->kind == ROW_ATTEMPT_ENDED;
    }
}

static void act(void *ctx, const struct core_act *a)
{
    (void)ctx;
    (void)a;
}

static void must(int rc, const struct err *err)
{
    if (rc != 0) {
        fail_msg("%s", err->msg);
    }
}

static void add_program(struct fixture *f)
{
    static const uint32_t first = 0;
    struct core_plan_stage stages[] = {{.threads = 1, .crashes = 3, .attempts = 50},
                                       {.threads = 1, .crashes = 3, .attempts = 50}};
    struct core_event added = {.kind = CORE_PROGRAM_ADDED, .program = 1};
    struct core_event all = {.kind = CORE_ALL_ADDED};
    struct err err = {0};
    stages[1].after = &first;
    stages[1].n_after = 1;
    added.added.plan = (struct core_plan){.n_cells = 1, .n_stages = 2, .stages = stages};
    must(pump_request(f->shell.pump, &added, &err), &err);
    must(pump_request(f->shell.pump, &all, &err), &err);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    struct core_config config;
    struct pump_listener listener = {
        .ctx = f, .committing = committing, .committed = committed, .act = act};
    struct store_submission submission = {SCRATCH_ID, root_make("root"), {1763694202000}, {0}};
    struct err err = {0};
    uint32_t no = 0;
    struct shell *sh = &f->shell;
    f->dir = state_folder_make();
    f->program = program_make(1);
    f->bundle = (struct bundle){.refs = 2, .program = f->program};
    must(store_open(f->dir, STORE_OWNER, &sh->store, &err), &err);
    must(store_program_create(sh->store, f->program, &submission, &no, &err), &err);
    assert_int_equal(no, 1);
    core_config_default(&config);
    assert_int_equal(uv_loop_init(&sh->loop), 0);
    assert_int_equal(uv_timer_init(&sh->loop, &sh->tick), 0);
    sh->tick.data = sh;
    sh->read_buffer = xmalloc(BUFFER_BYTES);
    f->hosted = hosted_new(1, f->dir, SCRATCH_ID);
    f->hosted->plan = f->hosted->bundle = &f->bundle;
    f->hosted->n_tasks = 2;
    f->programs[1] = f->hosted;
    sh->programs = f->programs;
    sh->cap_programs = 2;
    sh->core = core_create(&config);
    sh->pump = pump_create(&sh->loop, sh->core, sh->store, &listener);
    add_program(f);
    assert_non_null(sh->attempts);
    must(dir_make(sh->attempts->folder, 0700, &err), &err);
    f->events = path_join(sh->attempts->folder, "events.jsonl");
    attempts_on_began(sh, &sh->attempts->key);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    struct shell *sh = &f->shell;
    pump_close(sh->pump);
    attempts_close(sh);
    uv_close((uv_handle_t *)&sh->tick, NULL);
    (void)uv_run(&sh->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&sh->loop), 0);
    pump_free(sh->pump);
    core_free(sh->core);
    store_close(sh->store);
    f->hosted->plan = f->hosted->bundle = NULL;
    hosted_free(f->hosted);
    key_map_release(&sh->attempt_map);
    free(sh->read_buffer);
    free(f->events);
    program_drop(f->program);
    scratch_remove(f->dir);
    free(f);
    return 0;
}

static void say(struct fixture *f, int64_t from, int64_t to)
{
    FILE *file = fopen(f->events, "ae");
    assert_non_null(file);
    for (int64_t i = from; i < to; i++) {
        (void)fprintf(file, "{\"type\":\"progress\",\"done\":%lld,\"total\":1000}\n", (long long)i);
    }
    assert_int_equal(fclose(file), 0);
}

static int64_t size_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static void run_ticks(struct fixture *f, int64_t ms)
{
    int64_t until = clock_mono().ms + ms;
    while (clock_mono().ms < until) {
        (void)uv_run(&f->shell.loop, UV_RUN_ONCE);
    }
}

/* Item 24: events queued without a limit while commits failed. */
static void test_back_pressure(void **state)
{
    struct fixture *f = *state;
    struct shell *sh = &f->shell;
    struct shell_attempt *a = sh->attempts;
    const struct attempt_key key = a->key;
    struct attempt_end end = {.reason = END_EXITED, .code = 1};
    struct err err = {0};
    f->refuses = true;
    struct core_event pause = {.kind = CORE_PAUSE, .program = 1};
    pump_post(sh->pump, &pause);
    run_ticks(f, 50);
    assert_false(pump_is_well(sh->pump, &err));
    while (pump_has_room(sh->pump)) { /* what nobody can hold back */
        struct core_event up = {
            .kind = CORE_ATTEMPT_UP, .program = 1, .task = key.task, .attempt_no = key.no};
        pump_post(sh->pump, &up);
    }
    for (int64_t i = 0; i < 5; i++) {
        say(f, i * 100, (i + 1) * 100);
        run_ticks(f, 250); /* two ticks at least */
    }
    attempts_on_ended(sh, &key, &end);
    run_ticks(f, 250);
    assert_int_equal(pump_n_queued(sh->pump), PUMP_QUEUE_MAX);
    assert_int_equal(a->offset, 0);
    f->refuses = false;
    for (int64_t until = clock_mono().ms + LIMIT_MS; f->n_ended == 0;) {
        assert_true(clock_mono().ms < until);
        (void)uv_run(&sh->loop, UV_RUN_ONCE);
    }
    assert_int_equal(a->row.done, 499); /* all of it, and before the end that it is judged by */
    assert_int_equal(a->row.malformed, 0);
    assert_int_equal(a->row.offset, size_of(f->events));
}

static void write_exit(const struct shell_attempt *a, const struct shim_start *start)
{
    struct shim_exit x = {.reason = SHIM_SPAWN_FAILED};
    struct err err = {0};
    char *path = path_join(a->folder, LAYOUT_START);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    memcpy(x.attempt, a->row.id, sizeof(x.attempt));
    must(shim_exit_write(a->folder, fd, start, &x, &err), &err);
    (void)close(fd);
    free(path);
}

/* A worker that could not be forked was never up, though its shim left an exit.json: else the count
 * of such starts in a row begins anew with each of them. */
static void test_failed_fork_is_no_start(void **state)
{
    struct fixture *f = *state;
    struct shell_attempt *a = f->shell.attempts;
    write_exit(a, &(struct shim_start){0});
    run_ticks(f, 250); /* two ticks at least */
    assert_false(a->up);
    write_exit(a, &(struct shim_start){.shim_pid = 7, .worker_pid = 8});
    for (int64_t until = clock_mono().ms + LIMIT_MS; !a->up;) {
        assert_true(clock_mono().ms < until);
        (void)uv_run(&f->shell.loop, UV_RUN_ONCE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_back_pressure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failed_fork_is_no_start, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
