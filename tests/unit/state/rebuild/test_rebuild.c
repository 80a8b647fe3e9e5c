#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "prereg/load/program_load.h"
#include "prereg/lock/lock.h"
#include "state/rebuild/rebuild.h"
#include "tests/unit/check.h"
#include "tests/unit/state/faulty_vfs.h"
#include "tests/unit/state/support.h"

static const char PROGRAM[] =
    "[program]\n"
    "name = \"small\"\n"
    "schema = 1\n"
    "question = \"Which?\"\n"
    "[[factor]]\n"
    "name = \"arch\"\n"
    "levels = [\"dense\", \"moe\"]\n"
    "[[factor]]\n"
    "name = \"seed\"\n"
    "levels = [1, 2]\n"
    "replicate = true\n"
    "[data]\n"
    "corpus = \"corpus.txt\"\n"
    "[stage.train]\n"
    "command = [\"./worker.sh\"]\n"
    "params = { data = \"corpus\", seed = \"$seed\" }\n"
    "[stage.train.when.arch]\n"
    "moe = { experts = 4 }\n"
    "[stage.score]\n"
    "after = [\"train\"]\n"
    "command = [\"./worker.sh\"]\n"
    "[measure]\n"
    "acc = { metric = \"score.acc\", items = 100, chance = 0.25, floor = 0.3 }\n"
    "[contrast]\n"
    "arch = { between = { arch = [\"moe\", \"dense\"] } }\n"
    "[counter]\n"
    "k = { contrast = \"arch\", clears = \"every_cell\", binds = true }\n"
    "[[input]]\n"
    "name = \"cleared\"\n"
    "levels = [[\"yes\", \"counter.k == 1\"], [\"no\", \"otherwise\"]]\n"
    "[table]\n"
    "inputs = [\"cleared\"]\n"
    "rows = [[\"yes\", \"O1\"], [\"no\", \"O2\"]]\n"
    "[outcome]\n"
    "O1 = { prior = 0.4, title = \"cleared\" }\n"
    "O2 = { prior = 0.5, title = \"not cleared\" }\n";

struct fixture {
    char *dir;
    char *id;
    char *folder; /* of the program */
    struct plan_program *program;
    struct store *store;
    uint32_t no;
    struct walker w;
    unsigned n_told;
    bool unverified;
    char note[256];
};

static void write_text(const char *folder, const char *name, const char *text, mode_t mode)
{
    struct err err = {0};
    char *path = path_join(folder, name);
    assert_int_equal(file_write_atomic(path, text, strlen(text), mode, &err), 0);
    free(path);
}

static void make_lock(struct fixture *f, struct digest *root)
{
    struct err err = {0};
    struct diag diag;
    struct lock *lock = NULL;
    char *path = path_join(f->dir, "grid.toml");
    diag_init(&diag, path);
    write_text(f->dir, "grid.toml", PROGRAM, 0600);
    write_text(f->dir, "corpus.txt", "Once upon a time.\n", 0600);
    write_text(f->dir, "worker.sh", "#!/bin/sh\n", 0700);
    if (program_load(path, &f->program, &diag, &err) != 0 ||
        lock_build(f->program, NULL, NULL, &lock, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    f->id = lock_program_id(lock);
    f->folder = xasprintf("%s/state/programs/%s", f->dir, f->id);
    assert_int_equal(dir_make(f->folder, 0700, &err), 0);
    char *lock_path = path_join(f->folder, "grid.toml.lock");
    char *origin = xasprintf("{\"schema\":1,\"path\":\"%s\"}", path);
    assert_int_equal(lock_write(lock, lock_path, false, &err), 0);
    write_text(f->folder, "grid.toml", PROGRAM, 0600);
    write_text(f->folder, "origin.json", origin, 0600);
    assert_int_equal(digest_from_hex(lock->root, root, &err), 0);
    free(origin);
    free(lock_path);
    free(path);
    lock_free(lock);
    diag_release(&diag);
}

static void open_store(struct fixture *f)
{
    struct err err = {0};
    char *state = path_join(f->dir, "state");
    if (store_open(state, STORE_OWNER, &f->store, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    free(state);
}

static void must_commit(struct fixture *f, const struct state_row *rows, size_t n)
{
    struct err err = {0};
    if (commit_rows(f->store, rows, n, &err) != 0) {
        fail_msg("%s", err.msg);
    }
}

static char *task_folder(const struct fixture *f, uint32_t task)
{
    return xasprintf("%s/cells/%s/%s", f->folder, f->program->cells[task / 2].folder,
                     task % 2 == 0 ? "train" : "score");
}

static char *attempt_folder(const struct fixture *f, uint32_t task, const struct attempt_row *a)
{
    char *folder = task_folder(f, task);
    char *out = xasprintf("%s/attempt-%04u-%s", folder, a->no, a->id);
    free(folder);
    return out;
}

#define STARTED "2025-11-21T03:03:22.100Z"

static void write_attempt(struct fixture *f, uint32_t task, const char *exit, const char *result)
{
    struct err err = {0};
    const struct attempt_row *a = &f->w.attempts[task];
    char *folder = attempt_folder(f, task, a);
    assert_int_equal(dir_make(folder, 0700, &err), 0);
    if (exit == NULL || strstr(exit, "\"started\"") == NULL) { /* it runs, or an older shim's */
        write_text(folder, "start.json", "{\"protocol\":1,\"time\":\"" STARTED "\"}", 0600);
    }
    if (exit != NULL) {
        write_text(folder, "exit.json", exit, 0600);
    }
    if (result != NULL) {
        char *parent = task_folder(f, task);
        char *link = path_join(parent, "result.json");
        char *target = xasprintf("%s/result.json", path_name(folder));
        write_text(folder, "result.json", result, 0600);
        assert_int_equal(symlink(target, link), 0);
        free(parent);
        free(link);
        free(target);
    }
    free(folder);
}

#define EXIT_CRASH                                                                                 \
    "{\"protocol\":1,\"code\":null,\"signal\":9,\"reason\":\"signalled\",\"rusage\":{},\"time\":"  \
    "\"2025-11-21T03:03:25.000Z\"}"
#define EXIT_DONE                                                                                  \
    "{\"protocol\":1,\"started\":\"" STARTED                                                       \
    "\",\"code\":0,\"signal\":null,\"reason\":\"exited\",\"rusage\":{},\"time\":"                  \
    "\"2025-11-21T03:03:25.000Z\"}"
#define RESULT                                                                                     \
    "{\"protocol\":1,\"metrics\":{\"acc\":{\"value\":0.5,\"n\":100}},\"facts\":{\"tokens\":12}}"

/* Task 0 crashes once and is done, 1 (sealed) is done, 2 is blocked and 3 therefore never run; 4
 * runs. */
static void live_a_little(struct fixture *f)
{
    struct walker *w = &f->w;
    struct state_row first[] = {walker_start(w, 0), walker_run(w, 0),
                                walker_fail(w, 0, TASK_READY, CAUSE_CRASH)};
    must_commit(f, first, 3);
    write_attempt(f, 0, EXIT_CRASH, NULL);
    struct state_row second[] = {walker_start(w, 0), walker_run(w, 0), walker_done(w, 0, RESULT),
                                 walker_ready(w, 1)};
    must_commit(f, second, 4);
    write_attempt(f, 0, EXIT_DONE, RESULT);
    struct state_row third[] = {walker_start(w, 1), walker_run(w, 1), walker_done(w, 1, RESULT)};
    must_commit(f, third, 3);
    write_attempt(f, 1, EXIT_DONE, RESULT);
    struct state_row fourth[] = {walker_start(w, 2),
                                 walker_run(w, 2),
                                 walker_fail(w, 2, TASK_BLOCKED, CAUSE_NOT_MEASURABLE),
                                 {0}};
    fourth[3] = (struct state_row){
        .kind = ROW_TASK_ENDED, .program = f->no, .task = 3, .from = TASK_WAITING};
    task_row_init(&fourth[3].after, TASK_NEVER_RUN);
    fourth[3].after.cause = CAUSE_DEPENDENCY;
    attempt_row_init(&fourth[3].attempt);
    must_commit(f, fourth, 4);
    write_attempt(f, 2, "{\"protocol\":1,\"code\":69,\"signal\":null,\"reason\":\"exited\"}", NULL);
    struct state_row fifth[] = {walker_start(w, 4)};
    must_commit(f, fifth, 1);
    write_attempt(f, 4, NULL, NULL);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    struct err err = {0};
    struct digest root;
    f->dir = state_folder_make();
    open_store(f); /* before there is the folder: it would be an unfinished submission */
    make_lock(f, &root);
    assert_int_equal(
        store_program_create(f->store, f->program,
                             &(struct store_submission){f->id, root, {1763694202000}, {0}}, &f->no,
                             &err),
        0);
    walker_init(&f->w, f->store, f->no, 8);
    live_a_little(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    program_free(f->program);
    scratch_remove(f->dir);
    free(f->folder);
    free(f->id);
    free(f);
    return 0;
}

static void note(void *ctx, const struct rebuilt_program *p)
{
    struct fixture *f = ctx;
    f->n_told++;
    f->unverified = p->unverified;
    (void)snprintf(f->note, sizeof(f->note), "%s", p->note == NULL ? "" : p->note);
}

static void rebuild(struct fixture *f)
{
    struct err err = {0};
    char *state = path_join(f->dir, "state");
    if (f->store != NULL) {
        store_close(f->store);
        f->store = NULL;
    }
    if (store_rebuild(state, note, f, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    open_store(f);
    free(state);
}

/* Without the journal's lines: they differ when history was taken from files. */
static char *dump_tasks(struct fixture *f)
{
    char *all = dump(f->store, f->no);
    char *attempts = strstr(all, "\n0.1 ");
    assert_non_null(attempts);
    attempts[1] = '\0';
    return all;
}

static struct store_program program_row(struct fixture *f)
{
    struct arena texts;
    struct store_program p;
    struct err err = {0};
    arena_init(&texts);
    assert_int_equal(store_program_find(f->store, "small", &texts, &p, &err), 0);
    arena_release(&texts);
    return p;
}

static void test_same_again(void **state)
{
    struct fixture *f = *state;
    char *before = dump(f->store, f->no);
    rebuild(f);
    assert_int_equal(f->n_told, 1);
    assert_string_equal(f->note, "");
    assert_false(f->unverified);
    assert_false(program_row(f).unverified_history);
    char *after = dump(f->store, f->no);
    assert_string_equal(before, after);
    rebuild(f); /* and of what was rebuilt */
    char *again = dump(f->store, f->no);
    assert_string_equal(before, again);
    free(before);
    free(after);
    free(again);
}

static void test_database_gone(void **state)
{
    struct fixture *f = *state;
    char *before = dump(f->store, f->no);
    char *path = path_join(f->dir, "state/preregd.db");
    store_close(f->store);
    f->store = NULL;
    char *folder = path_folder(path);
    write_text(folder, "preregd.db", "this is no database", 0600);
    rebuild(f);
    char *after = dump(f->store, f->no);
    assert_string_equal(before, after);
    free(before);
    free(after);
    free(folder);
    free(path);
}

static int check_started(void *ctx, uint32_t task, const struct attempt_row *a, struct err *err)
{
    struct wall_time started;
    (void)task;
    (void)err;
    assert_true(clock_wall_parse(STARTED, &started));
    assert_int_equal(a->started.ms, started.ms);
    ++*(int *)ctx;
    return 0;
}

/* Said by start.json while it runs, or by older shims; by exit.json of what has ended. */
static void check_times(struct fixture *f)
{
    struct err err = {0};
    int n = 0;
    for (uint32_t task = 0; task <= 4; task++) {
        assert_int_equal(store_attempts(f->store, f->no, task, check_started, &n, &err), 0);
    }
    assert_int_equal(n, 5);
}

static void test_journal_gone(void **state)
{
    struct fixture *f = *state;
    char *before = dump_tasks(f);
    char *path = path_join(f->folder, "journal.jsonl");
    assert_int_equal(unlink(path), 0);
    rebuild(f);
    assert_true(f->unverified);
    assert_non_null(strstr(f->note, "missing"));
    assert_true(program_row(f).unverified_history);
    char *after = dump_tasks(f);
    assert_string_equal(before, after);
    check_times(f);
    f->unverified = false;
    rebuild(f); /* its journal is whole now, and still says what it rests on */
    assert_true(f->unverified);
    free(before);
    free(after);
    free(path);
}

/* What cannot be looked at is not missing: here a link to itself stands for a failing disk. */
static void test_unreadable(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char *dir = path_join(f->dir, "state");
    char *paths[2] = {path_join(f->folder, "journal.jsonl"), path_join(dir, "journal.heads")};
    store_close(f->store);
    f->store = NULL;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        CHECK_ROW("paths[%zu]", i);
        char *aside = xasprintf("%s.aside", paths[i]);
        assert_int_equal(rename(paths[i], aside), 0);
        assert_int_equal(symlink(path_name(paths[i]), paths[i]), 0);
        assert_int_equal(store_rebuild(dir, note, f, &err), ERR_IO);
        assert_int_equal(rename(aside, paths[i]), 0);
        free(aside);
    }
    rebuild(f);
    assert_false(f->unverified);
    free(paths[1]);
    free(paths[0]);
    free(dir);
}

static void cut_lines(struct fixture *f, unsigned n)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    char *path = path_join(f->folder, "journal.jsonl");
    assert_int_equal(file_read(path, 1 << 20, &text, &err), 0);
    size_t len = text.len;
    for (unsigned i = 0; i < n; i++) {
        len--;
        while (len > 0 && text.buf[len - 1] != '\n') {
            len--;
        }
    }
    assert_int_equal(truncate(path, (off_t)len), 0);
    strbuf_release(&text);
    free(path);
}

static void test_journal_short(void **state)
{
    struct fixture *f = *state;
    char *before = dump_tasks(f);
    for (unsigned n = 1; n <= 9; n++) {
        store_close(f->store);
        f->store = NULL;
        cut_lines(f, n == 1 ? 1 : 4);
        f->unverified = false;
        f->note[0] = '\0';
        rebuild(f);
        assert_true(f->unverified);
        char *after = dump_tasks(f);
        assert_string_equal(before, after);
        free(after);
    }
    free(before);
}

static void test_journal_broken(void **state)
{
    struct fixture *f = *state;
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    char *before = dump_tasks(f);
    char *path = path_join(f->folder, "journal.jsonl");
    char *aside = path_join(f->folder, "journal.jsonl.broken");
    assert_int_equal(file_read(path, 1 << 20, &text, &err), 0);
    char *cause = strstr(text.buf, "not_measurable");
    assert_non_null(cause);
    memcpy(cause, "bad_input     ", strlen("not_measurable"));
    assert_int_equal(file_write_atomic(path, text.buf, text.len, 0600, &err), 0);
    rebuild(f);
    assert_true(f->unverified);
    assert_non_null(strstr(f->note, "chain"));
    assert_int_equal(file_kind_at(aside), FILE_REGULAR);
    char *after = dump_tasks(f);
    assert_string_equal(before, after);
    strbuf_release(&text);
    free(before);
    free(after);
    free(path);
    free(aside);
}

/* A sound chain of another program is no history of this one. */
static void test_journal_foreign(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct store *other = NULL;
    struct plan_program *p = program_make(4);
    char *dir = state_folder_make();
    char *theirs = scratch_path(dir, "journal.jsonl");
    char *ours = path_join(f->folder, "journal.jsonl");
    uint32_t no = 0;
    char *before = dump_tasks(f);
    assert_int_equal(store_open(dir, STORE_OWNER, &other, &err), 0);
    assert_int_equal(
        store_program_create(other, p,
                             &(struct store_submission){SCRATCH_ID, root_make("other"), {5}, {0}},
                             &no, &err),
        0);
    store_close(other);
    assert_int_equal(file_copy(theirs, ours, 0600, &err), 0);
    rebuild(f);
    assert_true(f->unverified);
    assert_non_null(strstr(f->note, "another program"));
    char *after = dump_tasks(f);
    assert_string_equal(before, after);
    free(before);
    free(after);
    free(theirs);
    free(ours);
    program_drop(p);
    scratch_remove(dir);
}

static void test_result_changed(void **state)
{
    struct fixture *f = *state;
    char *folder = attempt_folder(f, 0, &f->w.attempts[0]);
    write_text(folder, "result.json", "{\"metrics\":{\"acc\":{\"value\":0.9}}}", 0600);
    rebuild(f);
    assert_true(f->unverified);
    assert_non_null(strstr(f->note, "not the one that was verified"));
    char *after = dump(f->store, f->no);
    assert_null(strstr(after, "0.9"));
    free(after);
    free(folder);
}

static char *read_file(const char *folder, const char *name)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    char *path = path_join(folder, name);
    assert_int_equal(file_read(path, 1 << 20, &text, &err), 0);
    free(path);
    return strbuf_detach(&text);
}

/* Every write of the new database fails in turn, as a full disk and as an I/O error: the journal is
 * whole and stays what it is, and the try after that is verified. */
static void test_failing_disk(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char *dir = path_join(f->dir, "state");
    char *aside = path_join(f->folder, "journal.jsonl.broken");
    char *made = path_join(dir, "preregd.db.rebuild");
    char *before = dump(f->store, f->no);
    char *lines = read_file(f->folder, "journal.jsonl");
    unsigned n_failed = 0;
    store_close(f->store);
    f->store = NULL;
    for (unsigned full = 0; full < 2; full++) {
        bool failed = true;
        for (unsigned n = 1; failed; n++) {
            faulty_vfs_fail(n, full == 1);
            int rc = store_rebuild(dir, note, f, &err);
            failed = faulty_vfs_has_failed();
            faulty_vfs_fail(0, false);
            n_failed += rc != 0;
            char *now = read_file(f->folder, "journal.jsonl");
            assert_string_equal(now, lines);
            assert_int_equal(file_kind_at(aside), FILE_ABSENT);
            assert_int_equal(file_kind_at(made), FILE_ABSENT);
            free(now);
        }
    }
    assert_true(n_failed > 10);
    rebuild(f);
    assert_false(f->unverified);
    char *after = dump(f->store, f->no);
    assert_string_equal(before, after);
    free(after);
    free(lines);
    free(before);
    free(made);
    free(aside);
    free(dir);
}

/* Two broken journals, one after the other: both are kept. */
static void test_broken_twice(void **state)
{
    struct fixture *f = *state;
    char *old[2];
    for (size_t i = 0; i < 2; i++) {
        old[i] = read_file(f->folder, "journal.jsonl");
        char *digit = strstr(old[i], "\"hash\":\"");
        assert_non_null(digit);
        digit[8] = digit[8] == '0' ? '1' : '0';
        write_text(f->folder, "journal.jsonl", old[i], 0600);
        rebuild(f);
        assert_true(f->unverified);
    }
    char *first = read_file(f->folder, "journal.jsonl.broken");
    char *second = read_file(f->folder, "journal.jsonl.broken.2");
    assert_string_equal(first, old[0]);
    assert_string_equal(second, old[1]);
    free(first);
    free(second);
    free(old[0]);
    free(old[1]);
}

/* Rows that no file of a cell shows are cut off, and the database that had them is gone. */
static void test_cut_and_database_gone(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct program_row paused = {.paused = 1};
    struct state_row row = program_row_make(&f->w, ROW_PAUSED, paused);
    char *heads = path_join(f->dir, "state/journal.heads");
    char *database = path_join(f->dir, "state/preregd.db");
    char *report = path_join(f->folder, "report");
    must_commit(f, &row, 1);
    store_close(f->store);
    f->store = NULL;
    cut_lines(f, 1);
    assert_int_equal(unlink(database), 0);
    for (unsigned i = 0; i < 2; i++) { /* and the next rebuild does not forget it */
        rebuild(f);
        assert_true(f->unverified);
        assert_non_null(strstr(f->note, "journal.heads"));
        assert_true(program_row(f).unverified_history);
    }
    store_close(f->store);
    f->store = NULL;
    assert_int_equal(unlink(heads), 0);
    f->unverified = false;
    rebuild(f);
    assert_false(f->unverified); /* nothing is left that knows of it: docs/invariants.md, 1 */
    store_close(f->store);
    f->store = NULL;
    assert_int_equal(dir_make(report, 0700, &err), 0);
    write_text(report, "verdict.json", "{}", 0600);
    rebuild(f);
    assert_true(f->unverified);
    assert_non_null(strstr(f->note, "verdict.json"));
    free(report);
    free(database);
    free(heads);
}

static void test_while_serving(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char *path = path_join(f->dir, "state");
    assert_int_equal(store_rebuild(path, note, f, &err), ERR_BUSY);
    free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    faulty_vfs_install();
    const struct CMUnitTest tests[] = {
        TEST(test_same_again),     TEST(test_database_gone),         TEST(test_journal_gone),
        TEST(test_journal_short),  TEST(test_journal_broken),        TEST(test_journal_foreign),
        TEST(test_result_changed), TEST(test_while_serving),         TEST(test_failing_disk),
        TEST(test_broken_twice),   TEST(test_cut_and_database_gone), TEST(test_unreadable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
