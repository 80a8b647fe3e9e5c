/* Whole reads, atomic writes, folders, paths and locks. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

static size_t entries(void)
{
    struct name_list names;
    struct err err = {0};
    assert_int_equal(dir_list(scratch_folder, &names, &err), 0);
    size_t n = names.n;
    name_list_release(&names);
    return n;
}

static void test_read(void **state)
{
    (void)state;
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    char *path = path_join(scratch_folder, "f");
    assert_int_equal(file_read(path, 10, &text, &err), ERR_NOT_FOUND);
    assert_int_equal(file_write_atomic(path, "a\0b", 3, 0600, &err), 0);
    assert_int_equal(file_read(path, 3, &text, &err), 0);
    assert_int_equal(text.len, 3);
    assert_memory_equal(text.buf, "a\0b", 4);
    strbuf_clear(&text);
    assert_int_equal(file_read(path, 2, &text, &err), ERR_RANGE);
    assert_int_equal(file_read(scratch_folder, 10, &text, &err), ERR_INVALID);
    assert_non_null(strstr(err.msg, "is a folder"));
    char *fifo = path_join(scratch_folder, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(file_read(fifo, 10, &text, &err),
                     ERR_INVALID); /* and does not wait for a writer */
    assert_int_equal(file_kind_at(fifo), FILE_OTHER);
    strbuf_release(&text);
    free(fifo);
    free(path);
}

static void test_atomic_write(void **state)
{
    (void)state;
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    struct stat st;
    char *path = path_join(scratch_folder, "f");
    assert_int_equal(file_write_atomic(path, "old", 3, 0600, &err), 0);
    assert_int_equal(file_write_atomic(path, "newer", 5, 0640, &err), 0);
    assert_int_equal(file_read(path, 10, &text, &err), 0);
    assert_string_equal(text.buf, "newer");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(entries(), 1); /* no temporary file is left */
    assert_int_equal(file_write_atomic("/no/such/folder/f", "x", 1, 0600, &err), ERR_NOT_FOUND);
    /* over a folder it fails and cleans up */
    char *sub = path_join(scratch_folder, "sub");
    assert_int_equal(mkdir(sub, 0700), 0);
    assert_true(file_write_atomic(sub, "x", 1, 0600, &err) < 0);
    assert_int_equal(entries(), 2);
    /* a full device is told apart */
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(full >= 0);
    assert_int_equal(file_write_all(full, "x", 1, &err), ERR_NO_SPACE);
    assert_int_equal(close(full), 0);
    char *copy = path_join(scratch_folder, "copy");
    assert_int_equal(file_copy(path, copy, 0755, &err), 0);
    strbuf_clear(&text);
    assert_int_equal(file_read(copy, 10, &text, &err), 0);
    assert_string_equal(text.buf, "newer");
    assert_int_equal(access(copy, X_OK), 0);
    free(copy);
    free(sub);
    strbuf_release(&text);
    free(path);
}

/* Nothing at path before it is published, nothing left behind when it never is. */
static void test_writer(void **state)
{
    (void)state;
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    struct file_writer w;
    char *path = path_join(scratch_folder, "f");
    assert_int_equal(file_writer_open(&w, path, 0600, &err), 0);
    for (int i = 0; i < 300000; i++) {
        strbuf_addf(&w.pending, "%06d\n", i);
        assert_int_equal(file_writer_add(&w, NULL, 0, &err), 0);
        assert_true(w.pending.len < (size_t)2 << 20);
    }
    assert_int_equal(file_writer_add(&w, "end", 3, &err), 0);
    assert_int_equal(file_kind_at(path), FILE_ABSENT);
    assert_int_equal(file_writer_publish(&w, &err), 0);
    file_writer_release(&w);
    assert_int_equal(file_read(path, (size_t)4 << 20, &text, &err), 0);
    assert_int_equal(text.len, 300000 * 7 + 3);
    assert_memory_equal(text.buf + 299999 * 7, "299999\nend", 10);
    assert_int_equal(entries(), 1);
    assert_int_equal(file_writer_open(&w, path, 0600, &err), 0);
    assert_int_equal(file_writer_add(&w, "new", 3, &err), 0);
    assert_int_equal(entries(), 2);
    file_writer_release(&w);
    assert_int_equal(entries(), 1);
    char *nowhere = path_join(scratch_folder, "none/f");
    assert_int_equal(file_writer_open(&w, nowhere, 0600, &err), ERR_NOT_FOUND);
    file_writer_release(&w);
    free(nowhere);
    strbuf_release(&text);
    free(path);
}

static void test_folders(void **state)
{
    (void)state;
    struct err err = {0};
    char *deep = path_join(scratch_folder, "a/b/c");
    char *file = path_join(scratch_folder, "a/b/file");
    char *below = path_join(file, "x");
    assert_int_equal(dir_make(deep, 0700, &err), 0);
    assert_int_equal(dir_make(deep, 0700, &err), 0);
    assert_int_equal(file_write_atomic(file, "", 0, 0600, &err), 0);
    assert_int_equal(dir_make(file, 0700, &err), ERR_EXISTS);
    assert_true(dir_make(below, 0700, &err) < 0);
    assert_int_equal(dir_make("", 0700, &err), ERR_NOT_FOUND);
    /* links are removed, not followed */
    char *outside = xstrdup("/tmp/base-test-XXXXXX");
    assert_non_null(mkdtemp(outside));
    char *link_path = path_join(deep, "link");
    assert_int_equal(symlink(outside, link_path), 0);
    char *top = path_join(scratch_folder, "a");
    assert_int_equal(dir_remove(top, &err), 0);
    assert_int_equal(file_kind_at(top), FILE_ABSENT);
    assert_int_equal(file_kind_at(outside), FILE_FOLDER);
    assert_int_equal(dir_remove(top, &err), 0);
    assert_int_equal(rmdir(outside), 0);
    free(top);
    free(link_path);
    free(outside);
    free(below);
    free(file);
    free(deep);
}

static void test_paths(void **state)
{
    (void)state;
    static const char *const cases[][4] = {
        /* path, folder, name, absolute from /base */
        {"a/b", "a", "b", "/base/a/b"},
        {"a", ".", "a", "/base/a"},
        {"/a", "/", "a", "/a"},
        {"/a/b.c", "/a", "b.c", "/a/b.c"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        char *parent = path_folder(cases[i][0]);
        char *absolute = path_absolute("/base", cases[i][0]);
        assert_string_equal(parent, cases[i][1]);
        assert_string_equal(path_name(cases[i][0]), cases[i][2]);
        assert_string_equal(absolute, cases[i][3]);
        free(absolute);
        free(parent);
    }
    char *joined = path_join("/", "a");
    assert_string_equal(joined, "/a");
    free(joined);
    struct strbuf self = STRBUF_INIT;
    struct err err = {0};
    assert_int_equal(path_of_self(&self, &err), 0);
    assert_true(self.buf[0] == '/');
    strbuf_release(&self);
    assert_true(disk_free_bytes(scratch_folder) > 0);
    assert_int_equal(disk_free_bytes("/no/such"), -1);
}

static void write_text(const char *in, const char *name, const char *text)
{
    struct err err = {0};
    char *path = path_join(in, name);
    assert_int_equal(dir_make(in, 0700, &err), 0);
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, &err), 0);
    free(path);
}

/* Never over anything unless asked to, and then a folder for a folder. */
static void test_publish(void **state)
{
    (void)state;
    struct err err = {0};
    char *made = path_join(scratch_folder, "made");
    char *place = path_join(scratch_folder, "place");
    char *kept = path_join(place, "one");
    char *next = path_join(place, "two");
    write_text(made, "one", "1");
    assert_int_equal(dir_publish(made, place, false, &err), 0);
    assert_int_equal(file_kind_at(made), FILE_ABSENT);
    write_text(made, "two", "2");
    assert_int_equal(dir_publish(made, place, false, &err), ERR_EXISTS);
    assert_int_equal(file_kind_at(kept), FILE_REGULAR);
    assert_int_equal(dir_publish(made, place, true, &err), 0);
    assert_int_equal(file_kind_at(kept), FILE_ABSENT);
    assert_int_equal(file_kind_at(next), FILE_REGULAR);
    assert_int_equal(file_kind_at(made), FILE_ABSENT);
    write_text(made, "three", "3");
    assert_int_equal(dir_publish(made, next, true, &err), ERR_EXISTS);
    assert_int_equal(file_kind_at(next), FILE_REGULAR);
    free(next);
    free(kept);
    free(place);
    free(made);
}

/* Takes the lock in another process, which says so and waits to be killed. */
static pid_t hold(const char *path)
{
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int fd;
        struct err err;
        if (lock_try(path, false, &fd, &err) != 0 || fd < 0 || write(ready[1], "1", 1) != 1) {
            _exit(1);
        }
        for (;;) {
            (void)pause();
        }
    }
    char c = 0;
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    (void)close(ready[0]);
    return pid;
}

static void test_locks(void **state)
{
    (void)state;
    struct err err = {0};
    char *path = path_join(scratch_folder, "lock");
    bool held = true;
    int fd = -1;
    assert_int_equal(lock_is_held(path, &held, &err), 0);
    assert_false(held); /* nobody holds what is not there */
    pid_t pid = hold(path);
    assert_int_equal(lock_is_held(path, &held, &err), 0);
    assert_true(held);
    assert_int_equal(lock_try(path, false, &fd, &err), 0);
    assert_int_equal(fd, -1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(lock_is_held(path, &held, &err), 0);
    assert_false(held);
    assert_int_equal(lock_try(path, false, &fd, &err), 0);
    assert_true(fd >= 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(lock_try(path, true, &fd, &err), 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0);
    assert_int_equal(close(fd), 0);
    char *link_path = path_join(scratch_folder, "link");
    assert_int_equal(symlink(path, link_path), 0);
    assert_true(lock_try(link_path, false, &fd, &err) < 0);
    free(link_path);
    free(path);
}

static void test_stays_inside(void **state)
{
    static const struct {
        const char *path;
        bool inside;
    } rows[] = {{"a", true},       {"a/b.c", true}, {"a/..b", true},  {"...", true},
                {"", false},       {"/a", false},   {"..", false},    {"../a", false},
                {"a/../b", false}, {"a/..", false}, {"a//..", false}, {"a/b/../c", false}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (path_stays_inside(rows[i].path) != rows[i].inside) {
            fail_msg("\"%s\"", rows[i].path);
        }
    }
}

/* A process that is killed while it tries leaves nothing: no name is ever made. */
static void test_try_makes_no_name(void **state)
{
    (void)state;
    struct err err;
    char events[4096];
    int probe = open(scratch_folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (probe < 0) {
        skip(); /* this file system has no files without a name */
    }
    (void)close(probe);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(watch >= 0);
    assert_true(inotify_add_watch(watch, scratch_folder, IN_CREATE | IN_MOVED_TO) >= 0);
    assert_int_equal(disk_try(scratch_folder, 1 << 20, &err), 0);
    assert_int_equal(read(watch, events, sizeof(events)), -1);
    assert_int_equal(errno, EAGAIN);
    (void)close(watch);
}

/* A base that was moved away is not made again, however deep the path below it is. */
static void test_folders_below(void **state)
{
    (void)state;
    struct err err = {0};
    char *base = path_join(scratch_folder, "state"), *deep = path_join(base, "a/b");
    char *slash = path_join(base, "");
    assert_int_equal(dir_make_below(base, deep, true, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "state/a: No such file"));
    assert_int_equal(file_kind_at(base), FILE_ABSENT);
    assert_int_equal(dir_make(base, 0700, &err), 0);
    assert_int_equal(dir_make_below(slash, deep, true, &err), 0);
    assert_int_equal(dir_make_below(base, deep, false, &err), 0);
    assert_int_equal(file_kind_at(deep), FILE_FOLDER);
    free(slash);
    free(deep);
    free(base);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, scratch_enter, scratch_leave)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_read),
        IN_FOLDER(test_atomic_write),
        IN_FOLDER(test_writer),
        IN_FOLDER(test_folders),
        IN_FOLDER(test_folders_below),
        IN_FOLDER(test_paths),
        IN_FOLDER(test_locks),
        IN_FOLDER(test_publish),
        IN_FOLDER(test_try_makes_no_name),
        cmocka_unit_test(test_stays_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
