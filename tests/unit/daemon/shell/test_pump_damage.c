/* One program's rows are rejected by the store, or wait because its folder is gone: the others go
 * on. The database itself is damaged: no program is blamed, and nothing is written. */
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "daemon/core/explain.h"
#include "daemon/shell/pump.h"
#include "tests/unit/check.h"
#include "tests/unit/state/support.h"

enum { BAD = 1, GOOD = 2, N_PROGRAMS = 2, PAGE_BYTES = 4096 };

static const char *const IDS[N_PROGRAMS] = {SCRATCH_ID, "other-00000000"};

struct fixture {
    char *dir;
    struct plan_program *program;
    struct store *store;
    uv_loop_t loop;
    struct core *core;
    struct pump *pump;
    unsigned n_rows[N_PROGRAMS + 1]; /* committed */
    unsigned n_acts[N_PROGRAMS + 1][CORE_ACT_NR];
    unsigned n_damaged[N_PROGRAMS + 1];
    unsigned n_withheld[N_PROGRAMS + 1];
    unsigned n_let_go[N_PROGRAMS + 1];
    bool disk_full;
};

static int committing(void *ctx, const struct state_row *rows, size_t n, struct err *err)
{
    const struct fixture *f = ctx;
    (void)rows;
    (void)n;
    return f->disk_full ? err_set(err, ERR_NO_SPACE, "the disk is full") : 0;
}

static void committed(void *ctx, const struct state_row *rows, size_t n)
{
    struct fixture *f = ctx;
    for (size_t i = 0; i < n; i++) {
        f->n_rows[rows[i].program]++;
    }
}

static void act(void *ctx, const struct core_act *a)
{
    struct fixture *f = ctx;
    f->n_acts[a->program][a->kind]++;
}

static void damaged(void *ctx, uint32_t program, struct err *why)
{
    struct fixture *f = ctx;
    f->n_damaged[program]++;
    (void)err_wrap(why, "program %u", program);
}

static void withheld(void *ctx, uint32_t program, struct err *why)
{
    struct fixture *f = ctx;
    f->n_withheld[program] += why != NULL;
    f->n_let_go[program] += why == NULL;
}

static void must(int rc, const struct err *err)
{
    if (rc != 0) {
        fail_msg("%s", err->msg);
    }
}

static int request(struct fixture *f, enum core_event_kind kind, uint32_t program, struct err *err)
{
    struct core_event ev = {.kind = kind, .program = program};
    return pump_request(f->pump, &ev, err);
}

static void add(struct fixture *f, uint32_t program)
{
    static const uint32_t first = 0;
    struct core_plan_stage stages[] = {{.threads = 1, .crashes = 3, .attempts = 50},
                                       {.threads = 1, .crashes = 3, .attempts = 50}};
    struct core_event added = {.kind = CORE_PROGRAM_ADDED, .program = program};
    struct store_submission submission = {
        IDS[program - 1], root_make(IDS[program - 1]), {1763694202000}, {0}};
    struct err err = {0};
    uint32_t no = 0;
    char *folder = xasprintf("%s/programs/%s", f->dir, IDS[program - 1]);
    must(dir_make_durable(folder, 0700, &err), &err);
    free(folder);
    must(store_program_create(f->store, f->program, &submission, &no, &err), &err);
    assert_int_equal(no, program);
    stages[1].after = &first;
    stages[1].n_after = 1;
    added.added.plan = (struct core_plan){.n_cells = 2, .n_stages = 2, .stages = stages};
    must(pump_request(f->pump, &added, &err), &err);
}

/* Two cores: each program has an attempt, which is up; the pump has just committed that. */
static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    struct core_config config;
    struct pump_listener listener = {.ctx = f,
                                     .committing = committing,
                                     .committed = committed,
                                     .act = act,
                                     .damaged = damaged,
                                     .withheld = withheld};
    struct err err = {0};
    f->dir = state_folder_make();
    f->program = program_make(2);
    must(store_open(f->dir, STORE_OWNER, &f->store, &err), &err);
    core_config_default(&config);
    config.cores = 2;
    assert_int_equal(uv_loop_init(&f->loop), 0);
    f->core = core_create(&config);
    f->pump = pump_create(&f->loop, f->core, f->store, &listener);
    add(f, BAD);
    add(f, GOOD);
    must(request(f, CORE_ALL_ADDED, 0, &err), &err);
    for (uint32_t no = BAD; no <= GOOD; no++) {
        struct core_event up = {.kind = CORE_ATTEMPT_UP, .program = no, .attempt_no = 1};
        must(pump_request(f->pump, &up, &err), &err);
        assert_int_equal(f->n_acts[no][ACT_START], 1);
        assert_int_equal(f->n_rows[no], 2);
    }
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

/* By another connection, as a slip of a person's would. */
static void edit(const struct fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    char *path = path_join(f->dir, "preregd.db");
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    free(path);
}

/* The program's next journal row has no place. */
static void break_journal(const struct fixture *f)
{
    edit(f, "INSERT INTO journal SELECT program, max(seq) + 1, '', '' FROM journal WHERE program=1 "
            "GROUP BY program");
}

static void post_end(struct fixture *f, uint32_t program)
{
    struct core_event ended = {.kind = CORE_ATTEMPT_ENDED, .program = program, .attempt_no = 1};
    ended.ended.reason = END_EXITED;
    ended.ended.code = 1;
    pump_post(f->pump, &ended);
}

static int take_state(void *ctx, const struct store_task *t, struct err *err)
{
    enum task_state *first = ctx;
    (void)err;
    if (t->task == 0) {
        *first = t->row.state;
    }
    return 0;
}

static enum task_state first_task(struct fixture *f, uint32_t program)
{
    enum task_state first = TASK_STATE_NR;
    struct err err = {0};
    must(store_tasks(f->store, program, take_state, &first, &err), &err);
    return first;
}

static void expect_bad_alone_is_damaged(struct fixture *f, const char *why)
{
    struct err err = {0};
    assert_int_equal(f->n_damaged[BAD], 1);
    assert_int_equal(f->n_damaged[GOOD], 0);
    assert_true(pump_is_well(f->pump, &err));
    assert_non_null(pump_damage(f->pump, BAD));
    assert_null(pump_damage(f->pump, GOOD));
    assert_int_equal(request(f, CORE_PAUSE, BAD, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.msg, "program 1: "));
    if (strstr(err.msg, why) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", why, err.msg);
    }
}

/* Its row and the other's are in one batch. */
static void test_rejected_row(void **state)
{
    struct fixture *f = *state;
    unsigned before = f->n_rows[BAD];
    edit(f, "UPDATE tasks SET state='done' WHERE program=1 AND task=0");
    post_end(f, BAD);
    post_end(f, GOOD);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    expect_bad_alone_is_damaged(f, "is not running");
    assert_int_equal(first_task(f, GOOD), TASK_READY);
    assert_true(f->n_rows[GOOD] > 2);
    assert_int_equal(f->n_rows[BAD], before);
    assert_int_equal(f->n_acts[BAD][ACT_START], 1);
}

/* What it holds of the machine is free once its attempt has ended, and not before. */
static void test_slot_is_held_until_the_end(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    break_journal(f);
    assert_int_equal(request(f, CORE_PAUSE, BAD, &err), ERR_CORRUPT);
    expect_bad_alone_is_damaged(f, "journal");
    assert_int_equal(f->n_acts[GOOD][ACT_START], 1);
    assert_int_equal(core_n_live(f->core), 2);
    assert_int_equal(f->n_acts[BAD][ACT_TERMINATE] + f->n_acts[BAD][ACT_KILL], 0);
    post_end(f, BAD);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(f->n_acts[GOOD][ACT_START], 2);
    assert_int_equal(f->n_acts[BAD][ACT_START], 1);
    assert_int_equal(f->n_rows[BAD], 2);
    assert_int_equal(core_n_live(f->core), 2);
}

/* What is verified has ended: nothing of it is waited for. */
static void test_slot_of_what_is_verified(void **state)
{
    struct fixture *f = *state;
    struct core_event ended = {.kind = CORE_ATTEMPT_ENDED, .program = BAD, .attempt_no = 1};
    struct core_event checked = {.kind = CORE_RESULT_CHECKED, .program = BAD, .attempt_no = 1};
    struct err err = {0};
    ended.ended.reason = END_EXITED;
    pump_post(f->pump, &ended);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(f->n_acts[BAD][ACT_VERIFY], 1);
    break_journal(f);
    assert_int_equal(request(f, CORE_PAUSE, BAD, &err), ERR_CORRUPT);
    assert_int_equal(f->n_acts[GOOD][ACT_START], 2);
    pump_post(f->pump, &checked);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(f->n_rows[BAD], 2);
    assert_int_equal(f->n_acts[BAD][ACT_LINK], 0);
}

static void test_start_that_was_dropped(void **state)
{
    struct fixture *f = *state;
    edit(f,
         "INSERT INTO attempts(program, task, no, id, state, cause, reason, code, signal, "
         "started_ms, ended_ms, section, done, total, checkpoint, resumed_from, malformed, "
         "\"offset\", user_ms, system_ms, max_rss_bytes) SELECT program, 2, no, 'x', 'starting', "
         "cause, reason, code, signal, started_ms, ended_ms, section, done, total, checkpoint, "
         "resumed_from, malformed, \"offset\", user_ms, system_ms, max_rss_bytes FROM attempts "
         "WHERE program=1 AND task=0");
    post_end(f, BAD); /* backoff; its second cell is started in the same step */
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    expect_bad_alone_is_damaged(f, "UNIQUE");
    assert_int_equal(f->n_acts[BAD][ACT_START], 1);
    assert_int_equal(f->n_acts[BAD][ACT_PROBE], 1);
    assert_int_equal(first_task(f, BAD), TASK_RUNNING); /* its end was in the same batch */
}

static void test_journal_file(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char *path = scratch_path(f->dir, "journal.jsonl");
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    assert_true(fputs("{}\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    free(path);
    assert_int_equal(request(f, CORE_PAUSE, BAD, &err), ERR_CORRUPT);
    expect_bad_alone_is_damaged(f, "something else writes to it");
    assert_int_equal(request(f, CORE_PAUSE, GOOD, &err), 0);
}

/* A full disk is nobody's fault. */
static void test_full_disk(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    f->disk_full = true;
    assert_int_equal(request(f, CORE_PAUSE, BAD, &err), ERR_NO_SPACE);
    assert_int_equal(f->n_damaged[BAD], 0);
    f->disk_full = false;
    assert_int_equal(request(f, CORE_PAUSE, GOOD, &err), 0);
    assert_int_equal(f->n_damaged[BAD], 0);
    assert_int_equal(f->n_rows[BAD], 3);
}

static void move_folder(const struct fixture *f, bool away)
{
    char *at = xasprintf("%s/programs/%s", f->dir, IDS[BAD - 1]);
    char *aside = xasprintf("%s/aside", f->dir);
    assert_int_equal(away ? rename(at, aside) : rename(aside, at), 0);
    free(aside);
    free(at);
}

/* Until its folder is back nothing more of it is started, its rows and acts wait in order, and what
 * its attempt held goes to the other program. */
static void test_folder_is_gone(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    move_folder(f, true);
    post_end(f, BAD);
    post_end(f, GOOD);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_true(pump_is_well(f->pump, &err));
    assert_int_equal(f->n_withheld[BAD], 1);
    assert_int_equal(f->n_withheld[GOOD] + f->n_damaged[BAD] + f->n_damaged[GOOD], 0);
    assert_int_equal(f->n_rows[BAD], 2);
    assert_int_equal(first_task(f, BAD), TASK_RUNNING);
    assert_int_equal(first_task(f, GOOD), TASK_READY);
    assert_int_equal(f->n_acts[GOOD][ACT_START], 2);
    assert_int_equal(request(f, CORE_PAUSE, BAD, &err), ERR_NOT_FOUND);
    assert_int_equal(request(f, CORE_RESUME, BAD, &err), ERR_NOT_FOUND);
    assert_int_equal(request(f, CORE_PAUSE, GOOD, &err), 0);
    assert_int_equal(f->n_withheld[BAD], 1);
    move_folder(f, false);
    assert_int_equal(request(f, CORE_RESUME, BAD, &err), 0);
    assert_int_equal(f->n_let_go[BAD], 1);
    assert_int_equal(first_task(f, BAD), TASK_READY);
    assert_true(f->n_rows[BAD] > 2);
    assert_int_equal(request(f, CORE_RESUME, BAD, &err), ERR_REFUSED);
    assert_int_equal(f->n_damaged[BAD], 0);
}

/* It is tried again without being asked for. The timer that stops the loop is the last resort. */
static void stop_loop(uv_timer_t *t)
{
    uv_stop(t->loop);
}

static void test_folder_comes_back(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    uv_timer_t limit;
    move_folder(f, true);
    assert_int_equal(request(f, CORE_PAUSE, BAD, &err), ERR_NOT_FOUND);
    assert_int_equal(f->n_withheld[BAD], 1);
    move_folder(f, false);
    assert_int_equal(uv_timer_init(&f->loop, &limit), 0);
    assert_int_equal(uv_timer_start(&limit, stop_loop, 20000, 0), 0);
    while (f->n_let_go[BAD] == 0 && uv_timer_get_due_in(&limit) > 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&limit, NULL);
    assert_int_equal(f->n_let_go[BAD], 1);
    assert_int_equal(f->n_rows[BAD], 3);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(request(f, CORE_PAUSE, BAD, &err), 0); /* it is paused already */
}

/* An attempt that goes on meanwhile: of its progress the last row is kept. */
static void test_progress_while_the_folder_is_gone(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    move_folder(f, true);
    assert_int_equal(request(f, CORE_PAUSE, BAD, &err), ERR_NOT_FOUND);
    for (int64_t i = 0; i < 100; i++) {
        struct core_event said = {.kind = CORE_WORKER_SAID, .program = BAD, .attempt_no = 1};
        said.said.from = i;
        said.said.to = i + 1;
        said.said.section = SECTION_STEP;
        said.said.progressed = true;
        said.said.done = i;
        said.said.total = said.said.checkpoint = said.said.resumed_from = -1;
        pump_post(f->pump, &said);
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    move_folder(f, false);
    assert_int_equal(request(f, CORE_RESUME, BAD, &err), 0);
    assert_int_equal(f->n_rows[BAD], 2 + 2 + 1); /* paused, the progress, resumed */
}

/* Back, and not as it was: its rows are rejected. */
static void test_folder_comes_back_changed(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    move_folder(f, true);
    assert_int_equal(request(f, CORE_PAUSE, BAD, &err), ERR_NOT_FOUND);
    char *at = xasprintf("%s/programs/%s", f->dir, IDS[BAD - 1]);
    must(dir_make_durable(at, 0700, &err), &err);
    free(at);
    assert_int_equal(request(f, CORE_RESUME, BAD, &err), ERR_CORRUPT);
    assert_int_equal(f->n_let_go[BAD], 1);
    expect_bad_alone_is_damaged(f, "something else writes to it");
}

/* All pages but the first. The edit before it makes the daemon's connection read them again. */
static void ruin(const struct fixture *f)
{
    char page[PAGE_BYTES];
    char *path = path_join(f->dir, "preregd.db");
    edit(f, "UPDATE programs SET name='x' WHERE no=2; PRAGMA wal_checkpoint(TRUNCATE)");
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseeko(file, 0, SEEK_END), 0);
    off_t end = ftello(file);
    memset(page, 0x5a, sizeof(page));
    for (off_t at = PAGE_BYTES; at < end; at += PAGE_BYTES) {
        assert_int_equal(fseeko(file, at, SEEK_SET), 0);
        assert_int_equal(fwrite(page, 1, sizeof(page), file), sizeof(page));
    }
    assert_int_equal(fclose(file), 0);
    free(path);
}

static void test_database(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    ruin(f);
    assert_int_equal(request(f, CORE_PAUSE, GOOD, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.msg, "preregctl rebuild"));
    assert_false(pump_is_well(f->pump, &err));
    assert_true(store_is_damaged(f->store));
    assert_int_equal(request(f, CORE_PAUSE, BAD, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.msg, "the database is damaged: stop preregd"));
    assert_int_equal(f->n_damaged[BAD] + f->n_damaged[GOOD], 0);
    assert_int_equal(f->n_rows[GOOD], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rejected_row, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_slot_is_held_until_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_slot_of_what_is_verified, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_start_that_was_dropped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_journal_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_folder_is_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_folder_comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_progress_while_the_folder_is_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_folder_comes_back_changed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_database, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
