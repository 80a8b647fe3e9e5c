/*
 * Every write, every sync and every truncation that a commit makes is made to fail in turn: the
 * Nth, for N = 1, 2, ... until none fails any more. After each failure, and again after opening the
 * folder anew, everything must be as before the commit or as after it, journal and table alike; and
 * the same rows, applied again, must lead to the same end.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files/file.h"
#include "state/store/internal.h"
#include "tests/unit/check.h"
#include "tests/unit/state/faulty_vfs.h"
#include "tests/unit/state/fixture.h"

#define FAILURES_MAX 500

static int faulty_append(int fd, const void *data, size_t len, struct err *err)
{
    if (faulty_vfs_count()) {
        int rc = file_write_all(fd, data, len / 2, err); /* a torn line */
        return rc != 0 ? rc : err_set_errno(err, faulty_vfs_errno(), "append");
    }
    return file_write_all(fd, data, len, err);
}

static int faulty_sync(int fd)
{
    if (faulty_vfs_count()) {
        errno = faulty_vfs_errno();
        return -1;
    }
    return fdatasync(fd);
}

static int faulty_truncate(int fd, off_t len)
{
    if (faulty_vfs_count()) {
        errno = faulty_vfs_errno();
        return -1;
    }
    return ftruncate(fd, len);
}

static void fail_on_demand(struct fixture *f)
{
    f->store->io = (struct journal_io){faulty_append, faulty_sync, faulty_truncate};
}

static void open_store(struct fixture *f)
{
    fixture_open(f);
    fail_on_demand(f);
}

static void begin(struct fixture *f)
{
    faulty_vfs_fail(0, false);
    fixture_begin(f);
    fail_on_demand(f);
}

static size_t make_rows(struct fixture *f, struct state_row rows[8])
{
    struct walker w;
    walker_init(&w, f->store, f->no, 6);
    rows[0] = walker_start(&w, 0);
    rows[1] = walker_run(&w, 0);
    rows[2] = walker_fail(&w, 0, TASK_READY, CAUSE_CRASH);
    rows[3] = walker_start(&w, 0);
    rows[4] = walker_run(&w, 0);
    rows[5] = walker_done(&w, 0, "weights");
    rows[6] = walker_ready(&w, 1);
    return 7;
}

/* What the store holds, and that the file says the same. */
static char *whole(struct fixture *f)
{
    char *tables = dump(f->store, f->no);
    char *lines = fixture_journal(f);
    for (char *at = lines, *nl; (nl = strchr(at, '\n')) != NULL; at = nl + 1) {
        *nl = '\0';
        assert_non_null(strstr(tables, at));
        *nl = '\n';
    }
    struct strbuf out = STRBUF_INIT;
    strbuf_adds(&out, tables);
    strbuf_adds(&out, lines);
    free(tables);
    free(lines);
    return strbuf_detach(&out);
}

/* How the world looks after the Nth failure; true while there was one. */
static bool fail_at(unsigned n, bool full, const char *before, const char *after)
{
    struct fixture f;
    struct err err = {0};
    struct state_row rows[8];
    begin(&f);
    size_t n_rows = make_rows(&f, rows);
    faulty_vfs_fail(n, full);
    int rc = commit_rows(f.store, rows, n_rows, &err);
    bool failed = faulty_vfs_has_failed();
    faulty_vfs_fail(0, false);
    if (failed && full && rc != 0) {
        assert_int_equal(rc, ERR_NO_SPACE);
    }
    assert_true(failed || rc == 0);
    bool broken = f.store->broken;
    if (!broken) {
        char *now = whole(&f);
        assert_string_equal(now, rc == 0 ? after : before);
        free(now);
    }
    store_close(f.store);
    open_store(&f);
    char *now = whole(&f);
    bool took_effect = strcmp(now, after) == 0;
    if (!took_effect) {
        assert_string_equal(now, before);
        assert_int_not_equal(rc, 0);
        assert_int_equal(commit_rows(f.store, rows, n_rows, &err), 0);
        free(now);
        now = whole(&f);
        assert_string_equal(now, after);
    } else if (rc != 0) {
        assert_true(broken); /* it could not be taken back, and said so */
    }
    free(now);
    fixture_end(&f);
    return failed;
}

static void run_all(bool full)
{
    struct fixture f;
    struct err err = {0};
    struct state_row rows[8];
    begin(&f);
    char *before = whole(&f);
    size_t n_rows = make_rows(&f, rows);
    assert_int_equal(commit_rows(f.store, rows, n_rows, &err), 0);
    char *after = whole(&f);
    fixture_end(&f);
    unsigned n = 1;
    while (fail_at(n, full, before, after)) {
        n++;
        assert_true(n < FAILURES_MAX);
    }
    assert_true(n > 3); /* there were some */
    print_message("%u points of failure\n", n - 1);
    free(before);
    free(after);
}

static void test_io_errors(void **state)
{
    (void)state;
    run_all(false);
}

static void test_full_disk(void **state)
{
    (void)state;
    run_all(true);
}

/* The same for two failures in a row: the commit's, and one of taking it back. */
static void test_failing_to_take_back(void **state)
{
    (void)state;
    struct fixture f;
    struct err err = {0};
    struct state_row rows[8];
    begin(&f);
    size_t n_rows = make_rows(&f, rows);
    assert_int_equal(store_begin(f.store, &err), 0);
    assert_int_equal(store_apply(f.store, rows, n_rows, &err), 0);
    assert_int_equal(journal_files_write(f.store, &err), 0);
    faulty_vfs_fail(1, false);
    store_rollback(f.store);
    faulty_vfs_fail(0, false);
    assert_true(f.store->broken);
    assert_int_equal(store_begin(f.store, &err), ERR_CORRUPT); /* refuses to go on */
    store_close(f.store);
    open_store(&f);
    char *now = whole(&f);
    assert_non_null(
        strstr(now, "0 seed=1/train done")); /* the lines were synced, so they took effect */
    free(now);
    fixture_end(&f);
}

int main(void)
{
    faulty_vfs_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_io_errors),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_failing_to_take_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
