/* Temporary folders: those of living processes stay, those of dead ones go with the next. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/temp_folder.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"

static char *base;

static int make_base(void **state)
{
    (void)state;
    base = xstrdup("/tmp/base-test-XXXXXX");
    return mkdtemp(base) == NULL ? -1 : setenv("TMPDIR", base, 1);
}

static int remove_base(void **state)
{
    (void)state;
    struct err err;
    int rc = dir_remove(base, &err);
    free(base);
    return rc;
}

static struct temp_folder make(const char *kind)
{
    struct temp_folder t;
    struct err err;
    if (temp_folder_make(kind, &t, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return t;
}

static void drop(struct temp_folder *t)
{
    struct err err;
    if (temp_folder_remove(t, &err) != 0) {
        fail_msg("%s", err.msg);
    }
}

static void write_in(const char *folder)
{
    struct err err;
    char *path = path_join(folder, "file");
    assert_int_equal(file_write_atomic(path, "x", 1, 0600, &err), 0);
    free(path);
}

/* A child makes a folder, says that it is there, and is killed. */
static char *left_by_killed(const char *kind)
{
    int ends[2];
    char path[512] = "";
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct temp_folder t;
        struct err err;
        size_t len = temp_folder_make(kind, &t, &err) == 0 ? strlen(t.path) : 0;
        (void)!write(ends[1], len > 0 ? t.path : "", len);
        (void)close(ends[1]);
        (void)pause();
        _exit(1);
    }
    (void)close(ends[1]);
    size_t len = 0;
    ssize_t n;
    while ((n = read(ends[0], path + len, sizeof(path) - 1 - len)) > 0) {
        len += (size_t)n;
    }
    (void)close(ends[0]);
    assert_true(len > 0);
    assert_int_equal(file_kind_at(path), FILE_FOLDER);
    write_in(path);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return xstrdup(path);
}

static void test_swept(void **state)
{
    (void)state;
    char *killed = left_by_killed("one");
    char *of_another_kind = left_by_killed("two");
    struct temp_folder alive = make("one"); /* sweeps */
    assert_int_equal(file_kind_at(killed), FILE_ABSENT);
    assert_int_equal(file_kind_at(of_another_kind), FILE_FOLDER);
    write_in(alive.path);
    struct temp_folder second = make("one");
    assert_int_equal(file_kind_at(alive.path), FILE_FOLDER);
    assert_string_not_equal(alive.path, second.path);
    drop(&second);
    drop(&alive);
    free(killed);
    free(of_another_kind);
}

/* Only what has exactly such a name is touched, and no link is followed. */
static void test_left_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"prereg-one-abcdef", "prereg-one.abcde",
                                        "prereg-one.abcdefg", "xprereg-one.abcdef", "elsewhere"};
    struct stat st;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CHECK_ROW("%s", names[i]);
        char *path = path_join(base, names[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        free(path);
    }
    char *link = path_join(base, "prereg-one.abcdef");
    char *target = path_join(base, "elsewhere");
    assert_int_equal(symlink(target, link), 0);
    write_in(target);
    struct temp_folder t = make("one");
    assert_int_equal(stat(t.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CHECK_ROW("%s", names[i]);
        char *path = path_join(base, names[i]);
        assert_int_equal(file_kind_at(path), FILE_FOLDER);
        free(path);
    }
    char *file = path_join(target, "file");
    assert_int_equal(file_kind_at(file), FILE_REGULAR);
    assert_int_equal(lstat(link, &st), 0);
    drop(&t);
    assert_int_equal(t.fd, -1);
    free(file);
    free(target);
    free(link);
}

static void test_nowhere(void **state)
{
    (void)state;
    struct temp_folder t;
    struct err err;
    char *away = path_join(base, "away");
    assert_int_equal(setenv("TMPDIR", away, 1), 0);
    assert_int_equal(temp_folder_make("one", &t, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "/away/prereg-one."));
    assert_null(t.path);
    assert_int_equal(setenv("TMPDIR", base, 1), 0);
    free(away);
}

/* Without a descriptor nothing can be locked. */
static void test_no_descriptor(void **state)
{
    (void)state;
    struct rlimit before;
    struct temp_folder t;
    struct err err;
    struct name_list names;
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(next >= 0);
    assert_int_equal(close(next), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {(rlim_t)next, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const int rc = temp_folder_make("one", &t, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_not_equal(rc, 0);
    assert_non_null(strstr(err.msg, strerror(EMFILE)));
    assert_null(t.path);
    assert_int_equal(dir_list(base, &names, &err), 0);
    assert_int_equal(names.n, 0);
    name_list_release(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_swept, make_base, remove_base),
        cmocka_unit_test_setup_teardown(test_left_alone, make_base, remove_base),
        cmocka_unit_test_setup_teardown(test_nowhere, make_base, remove_base),
        cmocka_unit_test_setup_teardown(test_no_descriptor, make_base, remove_base),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
