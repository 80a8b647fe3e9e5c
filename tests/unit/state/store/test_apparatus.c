/* Tasks beyond the grid: what an older database becomes, how a journal brings them back, and the
 * one move that only they have. */
#include <stdlib.h>
#include <unistd.h>

#include "base/files/file.h"
#include "state/store/apparatus.h"
#include "state/store/internal.h"
#include "tests/unit/check.h"
#include "tests/unit/state/fixture.h"

#define N_GRID 6u

static struct plan_apparatus checks[2]; /* that the program of the fixture declares */

static void declare(struct fixture *f, const char *first, const char *second)
{
    checks[0] = (struct plan_apparatus){.name = first, .stage = 1};
    checks[1] = (struct plan_apparatus){.name = second, .stage = 1};
    f->program->apparatus = checks;
    f->program->n_apparatus = second == NULL ? 1 : 2;
}

static void sync_checks(struct fixture *f)
{
    struct err err = {0};
    assert_int_equal(store_begin(f->store, &err), 0);
    assert_int_equal(store_apparatus_sync(f->store, f->no, f->program, &err), 0);
    assert_int_equal(store_commit(f->store, &err), 0);
}

static int list_one(void *ctx, const struct store_apparatus *a, struct err *err)
{
    (void)err;
    strbuf_addf(ctx, "%u:%s:%s%s ", a->task, a->name, a->stage, a->declared ? "" : "-");
    return 0;
}

static void assert_checks(struct fixture *f, const char *expected)
{
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    assert_int_equal(store_apparatus(f->store, f->no, list_one, &out, &err), 0);
    assert_string_equal(out.buf, expected);
    strbuf_release(&out);
}

static size_t n_rows(struct fixture *f)
{
    struct task_row *rows = NULL;
    size_t n = 0;
    struct err err = {0};
    assert_int_equal(store_task_rows(f->store, f->no, &rows, &n, &err), 0);
    free(rows);
    return n;
}

static int setup(void **state)
{
    struct fixture *f = NULL;
    int rc = fixture_setup(state);
    f = *state;
    walker_init(&f->w, f->store, f->no, 10);
    f->w.tasks[7].state = TASK_READY;
    return rc;
}

/* Through a real attempt to `done`. */
static int make_done(struct fixture *f, uint32_t task)
{
    struct err err = {0};
    struct state_row rows[3];
    rows[0] = walker_start(&f->w, task);
    rows[1] = walker_run(&f->w, task);
    rows[2] = walker_done(&f->w, task, "{}");
    int rc = commit_rows(f->store, rows, 3, &err);
    if (rc != 0) {
        print_message("%s\n", err.msg);
    }
    return rc;
}

/* Columns of all tables and texts of all triggers and indices: what a database can hold. */
static char *schema_of(struct store *store)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    sqlite3_stmt *stmt = NULL;
    bool row = true;
    assert_int_equal(
        sql_prepare(store->db,
                    "SELECT m.name || ' ' || p.name || ' ' || p.type || ' ' || p.\"notnull\" || ' '"
                    " || coalesce(p.dflt_value, '-') || ' ' || p.pk FROM sqlite_master m,"
                    " pragma_table_info(m.name) p WHERE m.type='table'"
                    " UNION ALL SELECT name || ' ' || coalesce(sql, '') FROM sqlite_master"
                    " WHERE type<>'table' ORDER BY 1",
                    &stmt, &err),
        0);
    while (row) {
        assert_int_equal(sql_step(stmt, &row, &err), 0);
        if (row) {
            strbuf_addf(&text, "%s\n", sql_col_text(stmt, 0));
        }
    }
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    return strbuf_detach(&text);
}

static void test_from_version_1(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct strbuf sql = STRBUF_INIT;
    sqlite3 *db = NULL;
    int64_t version = 0;
    char *path = path_join(f->dir, "preregd.db");
    char *fresh = schema_of(f->store);
    store_close(f->store);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(
        file_read(TEST_SOURCE_DIR "/tests/unit/state/version1.sql", 1 << 20, &sql, &err), 0);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sql_exec(db, sql.buf, &err), 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    fixture_open(f);
    assert_int_equal(sql_int(f->store->db, "PRAGMA user_version", &version, &err), 0);
    assert_int_equal(version, STORE_SCHEMA_VERSION);
    char *migrated = schema_of(f->store);
    assert_string_equal(migrated, fresh);
    free(migrated);
    free(fresh);
    char *all = dump(f->store, 1);
    assert_non_null(
        strstr(all, "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c"));
    assert_int_equal(n_rows(f), N_GRID);
    declare(f, "reference", NULL);
    sync_checks(f);
    assert_checks(f, "6:reference:eval ");
    assert_int_equal(n_rows(f), N_GRID + 1);
    char *after = dump(f->store, 1);
    assert_string_equal(all, after); /* what is told of the grid is told of the grid alone */
    free(after);
    free(all);
    free(path);
    strbuf_release(&sql);
}

static void test_names_keep_their_task(void **state)
{
    struct fixture *f = *state;
    declare(f, "one", "two");
    sync_checks(f);
    sync_checks(f);
    assert_checks(f, "6:one:eval 7:two:eval ");
    declare(f, "two", "three");
    sync_checks(f);
    assert_checks(f, "6:one:eval- 7:two:eval 8:three:eval ");
    declare(f, "one", NULL);
    sync_checks(f);
    assert_checks(f, "6:one:eval 7:two:eval- 8:three:eval- ");
}

static int n_results(void *ctx, uint32_t task, uint32_t attempt_no, const struct digest *digest,
                     struct err *err)
{
    int *n = ctx;
    (void)task, (void)attempt_no, (void)digest, (void)err;
    ++*n;
    return 0;
}

static void test_result_is_no_record(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct digest d;
    bool found = false;
    int n = 0;
    declare(f, "one", NULL);
    sync_checks(f);
    assert_int_equal(make_done(f, 6), 0);
    assert_int_equal(store_results(f->store, f->no, n_results, &n, &err), 0);
    assert_int_equal(n, 0);
    assert_int_equal(store_result_digest(f->store, f->no, 6, &d, &found, &err), 0);
    assert_true(found);
    char *all = dump(f->store, f->no);
    assert_non_null(strstr(all, "\"apparatus\":\"one\""));
    free(all);
}

static struct state_row again(struct fixture *f, uint32_t task)
{
    struct state_row row = {.kind = ROW_APPARATUS_AGAIN,
                            .program = f->no,
                            .task = task,
                            .from = f->w.tasks[task].state};
    f->w.tasks[task].state = TASK_READY;
    row.after = f->w.tasks[task];
    attempt_row_init(&row.attempt);
    return row;
}

static void test_again(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct digest d;
    bool found = true;
    declare(f, "one", NULL);
    sync_checks(f);
    assert_int_equal(make_done(f, 6), 0);
    struct state_row row = again(f, 6);
    assert_int_equal(commit_rows(f->store, &row, 1, &err), 0);
    assert_int_equal(store_result_digest(f->store, f->no, 6, &d, &found, &err), 0);
    assert_false(found);
    assert_int_equal(make_done(f, 6), 0); /* a second result takes the place of the first */
    assert_int_equal(make_done(f, 0), 0);
    row = again(f, 0); /* nothing of the grid leaves `done` (S2) */
    assert_int_equal(commit_rows(f->store, &row, 1, &err), ERR_CORRUPT);
}

/* The table was lost with its last transactions, the journal was not; the check that lies between
 * was brought by an amendment and has no line of its own. */
static void test_lines_bring_them_back(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char *path = path_join(f->dir, "preregd.db");
    char *copy = path_join(f->dir, "before.db");
    assert_int_equal(sql_exec(f->store->db, "PRAGMA wal_checkpoint(TRUNCATE)", &err), 0);
    assert_int_equal(file_copy(path, copy, 0600, &err), 0);
    declare(f, "one", "two");
    sync_checks(f);
    assert_int_equal(make_done(f, 7), 0);
    char *before = dump(f->store, f->no);
    store_close(f->store);
    assert_int_equal(file_copy(copy, path, 0600, &err), 0);
    fixture_open(f);
    assert_checks(f, "6::- 7:two:eval- ");
    sync_checks(f);
    assert_checks(f, "6:one:eval 7:two:eval ");
    char *after = dump(f->store, f->no);
    assert_string_equal(before, after);
    free(before);
    free(after);
    free(path);
    free(copy);
}

static void test_line_of_the_grid_is_no_check(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct state_row row = walker_start(&f->w, 0);
    const uint32_t bad[] = {0, N_GRID - 1, N_GRID + STORE_APPARATUS_MAX, UINT32_MAX - 1};
    row.apparatus = "one";
    row.stage = "eval";
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("bad[%zu]", i);
        row.task = bad[i];
        assert_int_equal(apparatus_take_line(f->store, &row, &err), ERR_CORRUPT);
    }
    assert_int_equal(n_rows(f), N_GRID);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_from_version_1),        TEST(test_names_keep_their_task),
        TEST(test_result_is_no_record),   TEST(test_again),
        TEST(test_lines_bring_them_back), TEST(test_line_of_the_grid_is_no_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
