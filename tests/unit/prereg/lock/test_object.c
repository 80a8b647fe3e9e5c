/* Workers run from copies, and digests remembered by stat. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/xalloc.h"
#include "prereg/lock/object.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

struct world {
    char *folder;
    char *state;
    struct plan_program *p;
    struct lock *lock;
};

static struct world world_of(const char *text)
{
    struct world w = {.folder = scratch_make()};
    struct err err = {0};
    free(scratch_write(w.folder, "corpus.txt", "x", 0600));
    free(scratch_write(w.folder, "worker.sh", "#!/bin/sh\nexit 0\n", 0700));
    free(scratch_write(w.folder, "script.py", "pass\n", 0600));
    w.state = path_join(w.folder, "state");
    assert_int_equal(dir_make(w.state, 0700, &err), 0);
    w.p = program_of(text, w.folder);
    if (lock_build(w.p, NULL, NULL, &w.lock, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return w;
}

static void world_release(struct world *w)
{
    lock_free(w->lock);
    program_free(w->p);
    free(w->state);
    scratch_remove(w->folder);
}

static char *text_with_script(void)
{
    return text_replace(SMALL_PROGRAM, "\"--quick\"]", "\"--quick\", \"script.py\", \"\"]");
}

static void test_argv_names_copies(void **state)
{
    (void)state;
    char *text = text_with_script();
    struct world w = world_of(text);
    struct err err = {0};
    char **argv = NULL;
    const struct object_home home = {.state = w.state, .program = w.p, .lock = w.lock};
    assert_int_equal(object_store_all(w.p, w.lock, w.state, NULL, &err), 0);
    assert_int_equal(object_argv(&home, 0, &argv, &err), 0);
    char *worker = object_path(w.state, lock_file_digest(w.lock, "./worker.sh"));
    char *script = object_path(w.state, lock_file_digest(w.lock, "script.py"));
    assert_string_equal(argv[0], worker);
    assert_string_equal(argv[1], "--quick");
    assert_string_equal(argv[2], script);
    assert_string_equal(argv[3], "");
    assert_null(argv[4]);
    assert_int_equal(access(worker, X_OK), 0);
    xfree_list(argv);
    free(script);
    free(worker);
    world_release(&w);
    free(text);
}

/* A new build of the worker changes nothing for a program that was submitted. */
static void test_source_may_change_after_storing(void **state)
{
    (void)state;
    struct world w = world_of(SMALL_PROGRAM);
    struct err err = {0};
    char **argv = NULL;
    const struct object_home home = {.state = w.state, .program = w.p, .lock = w.lock};
    assert_int_equal(object_store_all(w.p, w.lock, w.state, NULL, &err), 0);
    free(scratch_write(w.folder, "worker.sh", "#!/bin/sh\nexit 9\n", 0700));
    assert_int_equal(object_argv(&home, 0, &argv, &err), 0);
    char *content = scratch_read(argv[0]);
    assert_string_equal(content, "#!/bin/sh\nexit 0\n");
    free(content);
    xfree_list(argv);
    assert_int_equal(object_store_all(w.p, w.lock, w.state, NULL, &err), ERR_LOCK);
    assert_non_null(strstr(err.msg, "files../worker.sh: locked "));
    world_release(&w);
}

static void test_torn_copies_are_seen_and_mended(void **state)
{
    (void)state;
    struct world w = world_of(SMALL_PROGRAM);
    struct err err = {0};
    char **argv = NULL;
    const struct object_home home = {.state = w.state, .program = w.p, .lock = w.lock};
    assert_int_equal(object_store_all(w.p, w.lock, w.state, NULL, &err), 0);
    char *copy = object_path(w.state, lock_file_digest(w.lock, "./worker.sh"));
    for (int gone = 0; gone < 2; gone++) { /* the source is what was locked: it is copied again */
        assert_int_equal(gone ? unlink(copy) : truncate(copy, 3), 0);
        assert_int_equal(object_argv(&home, 0, &argv, &err), 0);
        assert_string_equal(argv[0], copy);
        char *content = scratch_read(copy);
        assert_string_equal(content, "#!/bin/sh\nexit 0\n");
        free(content);
        xfree_list(argv);
    }
    free(scratch_write(w.folder, "worker.sh", "#!/bin/sh\nexit 9\n", 0700));
    assert_int_equal(object_argv(&home, 0, &argv, &err), 0); /* the copy is whole */
    xfree_list(argv);
    assert_int_equal(truncate(copy, 3), 0);
    assert_int_equal(object_argv(&home, 0, &argv, &err), ERR_LOCK);
    assert_null(argv);
    assert_non_null(strstr(err.msg, "is not what was locked"));
    free(copy);
    world_release(&w);
}

/* A link to the right bytes is no copy: they could change after the check. */
static void test_links_are_no_copies(void **state)
{
    (void)state;
    struct world w = world_of(SMALL_PROGRAM);
    struct err err = {0};
    struct stat st;
    assert_int_equal(object_store_all(w.p, w.lock, w.state, NULL, &err), 0);
    char *copy = object_path(w.state, lock_file_digest(w.lock, "./worker.sh"));
    char *source = path_join(w.folder, "worker.sh");
    assert_int_equal(unlink(copy), 0);
    assert_int_equal(symlink(source, copy), 0);
    assert_int_equal(object_store_all(w.p, w.lock, w.state, NULL, &err), 0);
    assert_int_equal(lstat(copy, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    free(source);
    free(copy);
    world_release(&w);
}

/* Nor is it one before a spawn, with and without [pin] workers = "record", wherever it leads: it is
 * replaced from the source, and refused where that has changed. */
static void expect_links_replaced(const char *text, bool dangles)
{
    struct world w = world_of(text);
    struct err err = {0};
    struct stat st;
    struct strbuf notes = STRBUF_INIT;
    char **argv = NULL;
    struct object_home home = {.state = w.state, .program = w.p, .lock = w.lock};
    home.cache = pin_cache_create();
    assert_int_equal(object_store_all(w.p, w.lock, w.state, NULL, &err), 0);
    char *copy = object_path(w.state, lock_file_digest(w.lock, "./worker.sh"));
    char *same = scratch_write(w.folder, "same.sh", "#!/bin/sh\nexit 0\n", 0700);
    assert_int_equal(dangles ? unlink(same) : 0, 0);
    for (int checked = 0; checked < 2; checked++) {
        assert_int_equal(unlink(copy), 0);
        assert_int_equal(symlink(same, copy), 0);
        assert_int_equal(checked ? object_check_all(&home, &notes, &err) : 0, 0);
        assert_int_equal(checked, strstr(notes.buf, "copied again from its source") != NULL);
        assert_int_equal(object_argv(&home, 0, &argv, &err), 0);
        assert_string_equal(argv[0], copy);
        xfree_list(argv);
        assert_int_equal(lstat(copy, &st), 0);
        assert_true(S_ISREG(st.st_mode));
    }
    free(scratch_write(w.folder, "worker.sh", "#!/bin/sh\nexit 9\n", 0700));
    assert_int_equal(unlink(copy), 0);
    assert_int_equal(symlink(same, copy), 0);
    assert_int_equal(object_argv(&home, 0, &argv, &err), ERR_LOCK);
    assert_non_null(strstr(err.msg, "is not what was locked"));
    pin_cache_free(home.cache);
    strbuf_release(&notes);
    free(same);
    free(copy);
    world_release(&w);
}

static void test_links_are_not_run(void **state)
{
    (void)state;
    char *text = text_replace(SMALL_PROGRAM, "[run]\n", "[pin]\nworkers = \"record\"\n[run]\n");
    for (int dangles = 0; dangles < 2; dangles++) {
        expect_links_replaced(SMALL_PROGRAM, dangles);
        expect_links_replaced(text, dangles);
    }
    free(text);
}

static void test_recorded_drift_runs_what_is_there(void **state)
{
    (void)state;
    char *text = text_replace(SMALL_PROGRAM, "[run]\n", "[pin]\nworkers = \"record\"\n[run]\n");
    struct world w = world_of(text);
    struct err err = {0};
    struct strbuf notes = STRBUF_INIT;
    char **argv = NULL;
    const struct object_home home = {.state = w.state, .program = w.p, .lock = w.lock};
    free(scratch_write(w.folder, "worker.sh", "#!/bin/sh\nexit 9\n", 0700));
    assert_int_equal(object_store_all(w.p, w.lock, w.state, &notes, &err), 0);
    assert_non_null(strstr(notes.buf, "files../worker.sh: locked "));
    assert_int_equal(object_argv(&home, 0, &argv, &err), 0);
    char *content = scratch_read(argv[0]);
    assert_string_equal(content, "#!/bin/sh\nexit 9\n");
    free(content);
    xfree_list(argv);
    strbuf_release(&notes);
    world_release(&w);
    free(text);
}

/* As with locked workers: a damaged copy is made again from its source, and where that has changed,
 * it is not run in its place. */
static void test_recorded_copy_that_is_damaged(void **state)
{
    (void)state;
    char *text = text_replace(SMALL_PROGRAM, "[run]\n", "[pin]\nworkers = \"record\"\n[run]\n");
    struct world w = world_of(text);
    struct err err = {0};
    struct strbuf notes = STRBUF_INIT;
    char **argv = NULL;
    const struct object_home home = {.state = w.state, .program = w.p, .lock = w.lock};
    assert_int_equal(object_store_all(w.p, w.lock, w.state, NULL, &err), 0);
    char *copy = object_path(w.state, lock_file_digest(w.lock, "./worker.sh"));
    assert_int_equal(truncate(copy, 3), 0);
    assert_int_equal(object_check_all(&home, &notes, &err), 0);
    assert_non_null(strstr(notes.buf, "copied again from its source"));
    assert_int_equal(object_argv(&home, 0, &argv, &err), 0);
    assert_string_equal(argv[0], copy);
    xfree_list(argv);
    free(scratch_write(w.folder, "worker.sh", "#!/bin/sh\nexit 9\n", 0700));
    assert_int_equal(truncate(copy, 3), 0);
    assert_int_equal(object_argv(&home, 0, &argv, &err), ERR_LOCK);
    assert_non_null(strstr(err.msg, "is not what was locked"));
    /* Without the copy it is the worker as it is now, and nothing was copied again. */
    strbuf_clear(&notes);
    assert_int_equal(unlink(copy), 0);
    assert_int_equal(object_check_all(&home, &notes, &err), 0);
    assert_string_equal(notes.buf, "");
    strbuf_release(&notes);
    free(copy);
    world_release(&w);
    free(text);
}

static void test_where_workers_are_found(void **state)
{
    (void)state;
    struct world w = world_of(SMALL_PROGRAM);
    struct err err = {0};
    char *path = NULL;
    char *old = xstrdup(getenv("PATH"));
    free(scratch_write(w.folder, "bin/prereg-test-worker", "#!/bin/sh\n", 0700));
    free(scratch_write(w.folder, "flat/prereg-test-worker", "#!/bin/sh\n", 0600));
    char *list = xasprintf(".::%s/flat:%s/bin", w.folder, w.folder);
    assert_int_equal(setenv("PATH", list, 1), 0);
    assert_int_equal(object_resolve_worker(w.p, "prereg-test-worker", &path, &err), 0);
    char *expected = path_join(w.folder, "bin/prereg-test-worker");
    assert_string_equal(path, expected); /* not the one that cannot be executed */
    free(path);
    assert_int_equal(object_resolve_worker(w.p, "no-such-worker", &path, &err), ERR_NOT_FOUND);
    assert_int_equal(object_resolve_worker(w.p, "./bin", &path, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "is not an executable file"));
    /* beside this executable comes first */
    assert_int_equal(object_resolve_worker(w.p, "test_prereg_object", &path, &err), 0);
    free(path);
    assert_int_equal(setenv("PATH", old, 1), 0);
    free(expected);
    free(list);
    free(old);
    world_release(&w);
}

static void set_times(const char *path, time_t at)
{
    const struct timespec times[2] = {{.tv_sec = at}, {.tv_sec = at}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* The first byte, in place: same inode, same size. */
static void overwrite(const char *path, const char *byte)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, byte, 1, 0), 1);
    assert_int_equal(close(fd), 0);
}

/* Fresh files are read each time; a cache may never hide a change. */
static void test_cache_sees_changes(void **state)
{
    (void)state;
    char *folder = scratch_make();
    struct pin_cache *cache = pin_cache_create();
    struct digest a;
    struct digest b;
    struct err err = {0};
    free(scratch_write(folder, "data/one", "1", 0600));
    char *data = path_join(folder, "data");
    assert_int_equal(pin_digest(cache, data, &a, &err), 0);
    char *one = path_join(data, "one");
    set_times(one, 1000000000);
    set_times(data, 1000000000);
    assert_int_equal(pin_digest(cache, data, &b, &err), 0);
    assert_true(digest_equal(&a, &b));
    free(scratch_write(folder, "data/one", "2", 0600));
    set_times(one, 1000000000); /* same size, same time: inode and ctime tell */
    set_times(data, 1000000000);
    assert_int_equal(pin_digest(cache, data, &b, &err), 0);
    assert_false(digest_equal(&a, &b));
    free(scratch_write(folder, "data/two", "", 0600));
    assert_int_equal(pin_digest(cache, data, &a, &err), 0);
    assert_false(digest_equal(&a, &b));
    char *link_path = path_join(data, "link");
    assert_int_equal(symlink("one", link_path), 0);
    free(link_path);
    assert_int_equal(pin_digest(cache, data, &a, &err), ERR_INVALID);
    assert_int_equal(pin_digest(cache, "/no/such/place", &a, &err), ERR_NOT_FOUND);
    pin_cache_free(cache);
    free(one);
    free(data);
    scratch_remove(folder);
}

typedef int digest_fn(struct pin_cache *, const char *, struct digest *, struct err *);

static int64_t own_time_ns(void)
{
    struct timespec t;
    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* In time of our own: what else the machine does is left out. */
static int64_t look_up_ns(digest_fn *look_up, struct pin_cache *cache, const char *path,
                          struct digest *out)
{
    struct err err = {0};
    int64_t start = own_time_ns();
    assert_int_equal(look_up(cache, path, out, &err), 0);
    return own_time_ns() - start;
}

/* One at rest is not read again: a hundred look-ups cost less than reading it once. */
static void remembers(digest_fn *look_up, int64_t rest_ms)
{
    char *folder = scratch_make();
    struct pin_cache *cache = pin_cache_create();
    struct digest a;
    struct digest b;
    char *file = scratch_write(folder, "file", "content", 0600);
    assert_int_equal(truncate(file, (off_t)32 << 20), 0);
    int64_t reading = look_up_ns(look_up, NULL, file, &a);
    clock_sleep_ms(rest_ms);
    (void)look_up_ns(look_up, cache, file, &b);
    assert_true(digest_equal(&a, &b));
    int64_t remembering = 0;
    for (int i = 0; i < 100; i++) {
        remembering += look_up_ns(look_up, cache, file, &b);
    }
    assert_true(remembering < reading);
    assert_true(digest_equal(&a, &b));
    overwrite(file, "C");
    (void)look_up_ns(look_up, cache, file, &b);
    assert_false(digest_equal(&a, &b));
    pin_cache_free(cache);
    free(file);
    scratch_remove(folder);
}

/* A fresh one is read each time. On a machine so loaded that it has come to rest meanwhile, nothing
 * can be said. */
static void test_cache_reads_what_is_fresh(void **state)
{
    (void)state;
    char *folder = scratch_make();
    struct pin_cache *cache = pin_cache_create();
    struct digest d;
    char *file = scratch_write(folder, "file", "content", 0600);
    assert_int_equal(truncate(file, (off_t)32 << 20), 0);
    int64_t written_ms = clock_mono().ms;
    int64_t first = look_up_ns(pin_digest, cache, file, &d);
    int64_t second = look_up_ns(pin_digest, cache, file, &d);
    if (clock_mono().ms - written_ms < 1500) {
        assert_true(second > first / 10);
    }
    pin_cache_free(cache);
    free(file);
    scratch_remove(folder);
}

static void test_cache_remembers(void **state)
{
    (void)state;
    remembers(pin_digest, 2100);
    remembers(pin_digest_own, 150);
}

/* Two changes within one tick of the file system's clock leave the same times. */
static void is_not_fooled(digest_fn *look_up)
{
    char *folder = scratch_make();
    struct pin_cache *cache = pin_cache_create();
    struct err err = {0};
    char *file = scratch_write(folder, "file", "a", 0600);
    for (int i = 0; i < 200; i++) {
        const char *text = i % 2 == 0 ? "x" : "y";
        struct digest expected = digest_bytes(text, 1);
        struct digest found;
        overwrite(file, text);
        assert_int_equal(look_up(cache, file, &found, &err), 0);
        assert_true(digest_equal(&found, &expected));
    }
    pin_cache_free(cache);
    free(file);
    scratch_remove(folder);
}

static void test_cache_is_not_fooled_by_coarse_clocks(void **state)
{
    (void)state;
    is_not_fooled(pin_digest);
    is_not_fooled(pin_digest_own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_argv_names_copies),
        cmocka_unit_test(test_source_may_change_after_storing),
        cmocka_unit_test(test_torn_copies_are_seen_and_mended),
        cmocka_unit_test(test_links_are_no_copies),
        cmocka_unit_test(test_links_are_not_run),
        cmocka_unit_test(test_recorded_drift_runs_what_is_there),
        cmocka_unit_test(test_recorded_copy_that_is_damaged),
        cmocka_unit_test(test_where_workers_are_found),
        cmocka_unit_test(test_cache_sees_changes),
        cmocka_unit_test(test_cache_remembers),
        cmocka_unit_test(test_cache_reads_what_is_fresh),
        cmocka_unit_test(test_cache_is_not_fooled_by_coarse_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
