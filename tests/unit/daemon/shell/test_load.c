/* A journal that is checked beside the running daemon: nothing says "verified" before that is over.
 * Linked with store_check_journal() wrapped, so that the check ends when the test says so; there
 * are two threads for jobs, one of which the check holds, so that jobs end in their order. */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "daemon/program/mirror.h"
#include "daemon/shell/load.h"
#include "daemon/shell/shell.h"
#include "tests/unit/check.h"
#include "tests/unit/state/support.h"

int __wrap_store_check_journal(const char *state_dir, uint32_t program, int64_t n_rows,
                               struct err *err);
int __real_store_check_journal(const char *state_dir, uint32_t program, int64_t n_rows,
                               struct err *err);

static sem_t may_check;

int __wrap_store_check_journal(const char *state_dir, uint32_t program, int64_t n_rows,
                               struct err *err)
{
    while (sem_wait(&may_check) != 0) {
    }
    return __real_store_check_journal(state_dir, program, n_rows, err);
}

int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t ms, uint64_t repeat);
int __real_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t ms, uint64_t repeat);

/* So many timers fire at once; how long they, and the one after them, should wait is kept. */
static size_t n_skipped;
static uint64_t waits_ms[16];
static size_t n_waits;

int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t ms, uint64_t repeat)
{
    if (n_waits > n_skipped) {
        return __real_uv_timer_start(timer, cb, ms, repeat);
    }
    assert_true(n_waits < ARRAY_LEN(waits_ms));
    waits_ms[n_waits] = ms;
    return __real_uv_timer_start(timer, cb, n_waits++ < n_skipped ? 0 : ms, repeat);
}

struct fixture {
    struct shell shell;
    struct plan_program *program;
    struct lock lock;
    struct bundle bundle;
    struct hosted *hosted;
};

static void must(int rc, const struct err *err)
{
    if (rc != 0) {
        fail_msg("%s", err->msg);
    }
}

static int committing(void *ctx, const struct state_row *rows, size_t n, struct err *err)
{
    (void)ctx;
    (void)rows;
    (void)n;
    (void)err;
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

/* Of one cell, whose verdict the lock refuses: it has no time. */
static struct hosted *hosted_make(struct fixture *f, uint32_t no)
{
    struct hosted *h = hosted_new(no, f->shell.state, SCRATCH_ID);
    struct task_row *rows = xcalloc(2, sizeof(*rows));
    task_row_init(&rows[0], TASK_READY);
    task_row_init(&rows[1], TASK_WAITING);
    f->bundle = (struct bundle){.refs = 1, .program = f->program, .lock = &f->lock};
    h->bundle = &f->bundle;
    h->plan = bundle_ref(&f->bundle);
    hosted_set_tasks(h, rows, 2);
    return h;
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    struct shell *sh = &f->shell;
    struct pump_listener listener = {.committing = committing, .committed = committed, .act = act};
    struct store_submission submission = {SCRATCH_ID, root_make("root"), {1763694202000}, {0}};
    struct err err = {0};
    uint32_t no = 0;
    sh->state = state_folder_make();
    f->program = program_make(1);
    must(store_open(sh->state, STORE_OWNER, &sh->store, &err), &err);
    must(store_program_create(sh->store, f->program, &submission, &no, &err), &err);
    core_config_default(&sh->config);
    assert_int_equal(uv_loop_init(&sh->loop), 0);
    sh->core = core_create(&sh->config);
    sh->pump = pump_create(&sh->loop, sh->core, sh->store, &listener);
    f->hosted = hosted_make(f, no);
    sh->cap_programs = no + 1;
    sh->programs = xcalloc(sh->cap_programs, sizeof(struct hosted *));
    sh->programs[no] = f->hosted;
    assert_int_equal(sem_init(&may_check, 0, 0), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    struct shell *sh = &f->shell;
    assert_int_equal(sem_post(&may_check), 0); /* of a test that failed the check still waits */
    shell_close_report(f->hosted);
    pump_close(sh->pump);
    (void)uv_run(&sh->loop, UV_RUN_DEFAULT);
    job_join_hashing();
    assert_int_equal(uv_loop_close(&sh->loop), 0);
    pump_free(sh->pump);
    core_free(sh->core);
    store_close(sh->store);
    f->hosted->bundle = f->hosted->plan = NULL;
    hosted_free(f->hosted);
    free(sh->programs);
    program_drop(f->program);
    scratch_remove(sh->state);
    assert_int_equal(sem_destroy(&may_check), 0);
    free(f);
    return 0;
}

struct marker {
    struct job job;
    bool done;
};

static void no_work(struct job *job)
{
    (void)job;
}

static void on_marked(struct job *job)
{
    ((struct marker *)job)->done = true;
}

/* Until every job that was started before, but the check, has ended: those of libuv's pool, and
 * those in the program's lane. */
static void let_jobs_end(struct fixture *f)
{
    struct marker plain = {.job = {.work = no_work, .done = on_marked}};
    struct marker hashing = {.job = {.work = no_work, .done = on_marked}};
    job_start(&f->shell.loop, &plain.job);
    job_start_hashing(&f->shell.loop, &hashing.job, &f->hosted->hash_lane);
    while (!plain.done || !hashing.done) {
        (void)uv_run(&f->shell.loop, UV_RUN_ONCE);
    }
}

static void damage_journal(const struct fixture *f)
{
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    char *path = scratch_path(f->shell.state, "journal.jsonl");
    must(file_read(path, 65536, &text, &err), &err);
    text.buf[2] ^= 1;
    must(file_write_atomic(path, text.buf, text.len, 0600, &err), &err);
    strbuf_release(&text);
    free(path);
}

static void expect_history(const struct fixture *f, const char *wanted)
{
    struct err err = {0};
    cJSON *o = NULL;
    const char *said = NULL;
    char *path = path_join(f->hosted->folder, "report/provenance.json");
    if (wanted == NULL) {
        assert_int_equal(file_kind_at(path), FILE_ABSENT);
    } else {
        must(json_read_file(path, 65536, &o, &err), &err);
        must(json_get_string(o, "history", &said, &err), &err);
        assert_string_equal(said, wanted);
    }
    cJSON_Delete(o);
    free(path);
}

static void begin_check(struct fixture *f)
{
    struct err err = {0};
    must(history_check_start(&f->shell, f->hosted, &err), &err);
    assert_string_equal(hosted_history(f->hosted), "checking");
}

static void test_report_waits(void **state)
{
    struct fixture *f = *state;
    struct hosted *h = f->hosted;
    for (int damaged = 0; damaged < 2; damaged++) {
        if (damaged) {
            damage_journal(f);
        }
        begin_check(f);
        h->verdict_text = h->verdict_text == NULL ? xstrdup("{}\n") : h->verdict_text;
        h->report_running = false;
        h->report_failures = 0;
        shell_write_report(&f->shell, h->no);
        let_jobs_end(f);
        expect_history(f, damaged ? "verified" : NULL); /* the first round's still */
        assert_int_equal(sem_post(&may_check), 0);
        while (h->report_failures == 0) { /* of prereg-report, for `{}` is no verdict */
            (void)uv_run(&f->shell.loop, UV_RUN_ONCE);
        }
        expect_history(f, damaged ? "unverified" : "verified");
        assert_string_equal(hosted_history(h), damaged ? "unverified" : "verified");
        shell_close_report(h);
    }
}

static void test_verdict_waits(void **state)
{
    struct fixture *f = *state;
    begin_check(f);
    shell_compute_verdict(&f->shell, f->hosted->no);
    let_jobs_end(f);
    assert_false(f->hosted->verdict_waits); /* for the lock, once it was tried */
    assert_int_equal(sem_post(&may_check), 0);
    while (!f->hosted->verdict_waits) {
        (void)uv_run(&f->shell.loop, UV_RUN_ONCE);
    }
    assert_string_equal(hosted_history(f->hosted), "verified");
}

static void wait_for_why(struct fixture *f)
{
    while (f->hosted->checking && f->hosted->history_why == NULL) {
        (void)uv_run(&f->shell.loop, UV_RUN_ONCE);
    }
}

/* A journal that cannot be read is neither verified nor unverified: status says so, and what waits
 * goes on waiting until it can be read. */
static void test_unreadable(void **state)
{
    struct fixture *f = *state;
    struct hosted *h = f->hosted;
    char *path = scratch_path(f->shell.state, "journal.jsonl");
    char *aside = scratch_path(f->shell.state, "aside");
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(mkdir(path, 0700), 0); /* opens, and every read fails */
    begin_check(f);
    shell_compute_verdict(&f->shell, h->no);
    assert_int_equal(sem_post(&may_check), 0);
    wait_for_why(f);
    assert_string_equal(hosted_history(h), "checking");
    assert_non_null(strstr(h->history_why, "Is a directory"));
    assert_false(h->verdict_waits);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rename(aside, path), 0);
    assert_int_equal(sem_post(&may_check), 0);
    while (!h->verdict_waits) {
        (void)uv_run(&f->shell.loop, UV_RUN_ONCE);
    }
    assert_string_equal(hosted_history(h), "verified");
    assert_null(h->history_why);
    free(aside);
    free(path);
}

/* Each check reads all rows: the waits between them grow, and stopping does not wait for them. */
static void test_unreadable_for_long(void **state)
{
    static const uint64_t WAITS_MS[] = {2000,  4000,   8000,   16000,  32000,
                                        64000, 128000, 256000, 300000, 300000};
    struct fixture *f = *state;
    char *path = scratch_path(f->shell.state, "journal.jsonl");
    char *aside = scratch_path(f->shell.state, "aside");
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    n_waits = 0;
    n_skipped = ARRAY_LEN(WAITS_MS) - 1;
    begin_check(f);
    for (size_t i = 0; i < ARRAY_LEN(WAITS_MS); i++) {
        CHECK_ROW("WAITS_MS[%zu]", i);
        assert_int_equal(sem_post(&may_check), 0);
        while (n_waits == i) {
            (void)uv_run(&f->shell.loop, UV_RUN_ONCE);
        }
        assert_int_equal(waits_ms[i], WAITS_MS[i]);
    }
    history_check_close(&f->shell); /* or the loop would run on for minutes */
    assert_null(f->shell.waiting_checks);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rename(aside, path), 0);
    free(aside);
    free(path);
}

/* A program that could not be loaded at the start and is submitted again is checked, too. */
static void test_added_later(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct arena texts;
    struct store_program row;
    const struct digest root = root_make("root");
    arena_init(&texts);
    must(store_program_by_root(f->shell.store, &root, &texts, &row, &err), &err);
    free(f->hosted->tasks);
    f->hosted->tasks = NULL;
    must(shell_add_program(&f->shell, f->hosted, &row, &err), &err);
    assert_string_equal(hosted_history(f->hosted), "checking");
    assert_int_equal(sem_post(&may_check), 0);
    while (f->hosted->checking) {
        (void)uv_run(&f->shell.loop, UV_RUN_ONCE);
    }
    arena_release(&texts);
}

/* A short journal was checked whole when the store was opened. */
static void test_short_journal(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    f->shell.checked_rows = STORE_CHECKED_ROWS;
    must(history_check_start(&f->shell, f->hosted, &err), &err);
    assert_string_equal(hosted_history(f->hosted), "verified");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_report_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_verdict_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unreadable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unreadable_for_long, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_added_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_short_journal, set_up, tear_down),
    };
    assert_int_equal(setenv("UV_THREADPOOL_SIZE", "2", 1), 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
