/* What an attempt's folder, or its absence, is taken for. */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/executor/post_mortem.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

#define ID "5f0e7c1a-0d5a-4a0e-9a39-3b8f6f3f4b10"

/* cells/ may lie on a file system of its own, or be the mount point of one: not there, or with
 * nothing in it, means not known, never dead. */
static void test_absent_folder(void **state)
{
    (void)state;
    char *folder = scratch_make();
    struct examination x;
    struct err err;
    char *cells = path_join(folder, "cells");
    char *attempt = path_join(cells, "arm=a/train/attempt-0001-" ID);
    examine_attempt(&(struct fence){.folder = attempt, .attempt = ID}, false, true, &x);
    assert_int_equal(x.finding, FOUND_UNCLEAR);
    assert_int_equal(dir_make(cells, 0700, &err), 0);
    examine_attempt(&(struct fence){.folder = attempt, .attempt = ID}, false, false, &x);
    assert_int_equal(x.finding, FOUND_ENDED); /* the first of all: its folder was not made yet */
    assert_int_equal(x.end.reason, END_NEVER_LAUNCHED);
    char *own = path_join(cells, "lost+found"); /* where a disk goes, or another, empty one */
    assert_int_equal(dir_make(own, 0700, &err), 0);
    examine_attempt(&(struct fence){.folder = attempt, .attempt = ID}, false, true, &x);
    assert_int_equal(x.finding, FOUND_UNCLEAR);
    char *cell = path_join(cells, "arm=b");
    assert_int_equal(dir_make(cell, 0700, &err), 0);
    examine_attempt(&(struct fence){.folder = attempt, .attempt = ID}, false, true, &x);
    assert_int_equal(x.finding, FOUND_ENDED);
    assert_int_equal(x.end.reason, END_NEVER_LAUNCHED);
    free(cell);
    free(own);
    scratch_remove(folder);
    free(attempt);
    free(cells);
}

static void write_bytes(const char *folder, const char *name, const void *bytes, size_t n)
{
    struct err err;
    char *path = path_join(folder, name);
    assert_int_equal(file_write_atomic(path, bytes, n, 0600, &err), 0);
    free(path);
}

/* exit.json is not synced, so a loss of power can leave its name with other bytes: no end. */
static void test_torn_exit(void **state)
{
    (void)state;
    static const char zeros[250];
    static const char half[] = "{\"protocol\":1,\"attempt\":\"" ID "\",\"code\":0,\"sig";
    static const struct {
        const char *bytes;
        size_t n;
    } CASES[] = {{zeros, 0}, {zeros, sizeof(zeros)}, {half, sizeof(half) - 1}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].bytes);
        char *folder = scratch_make();
        struct examination x;
        struct attempt_end end;
        struct err err;
        char *attempt = path_join(folder, "cells/arm=a/train/attempt-0001-" ID);
        assert_int_equal(dir_make(attempt, 0700, &err), 0);
        write_bytes(attempt, LAYOUT_EXIT, CASES[i].bytes, CASES[i].n);
        assert_false(examine_exit(attempt, ID, &end));
        examine_attempt(&(struct fence){.folder = attempt, .attempt = ID}, false, true, &x);
        assert_int_equal(x.finding, FOUND_ENDED);
        assert_int_equal(x.end.reason, END_HOST_LOST); /* it was started: start.json became it */
        scratch_remove(folder);
        free(attempt);
    }
}

/* start.json is written in one go: torn, the machine took it. Empty, it is only the lock of a shim
 * that never came to start anything. */
static void test_torn_start(void **state)
{
    (void)state;
    static const char half[] = "{\"protocol\":1,\"attempt\":\"" ID "\",\"shim_pid\":7,\"sh";
    char *folder = scratch_make();
    struct examination x;
    struct err err;
    char *attempt = path_join(folder, "cells/arm=a/train/attempt-0001-" ID);
    assert_int_equal(dir_make(attempt, 0700, &err), 0);
    write_bytes(attempt, LAYOUT_START, half, sizeof(half) - 1);
    examine_attempt(&(struct fence){.folder = attempt, .attempt = ID}, false, true, &x);
    assert_int_equal(x.finding, FOUND_ENDED);
    assert_int_equal(x.end.reason, END_HOST_LOST);
    write_bytes(attempt, LAYOUT_START, "", 0);
    examine_attempt(&(struct fence){.folder = attempt, .attempt = ID}, false, true, &x);
    assert_int_equal(x.finding, FOUND_ENDED);
    assert_int_equal(x.end.reason, END_NEVER_LAUNCHED);
    char *start = path_join(attempt, LAYOUT_START);
    assert_int_equal(file_kind_at(start), FILE_ABSENT); /* so that nothing looks started */
    free(start);
    scratch_remove(folder);
    free(attempt);
}

static void write_start(const char *attempt, const char *host, const char *boot)
{
    char *text =
        xasprintf("{\"protocol\":1,\"attempt\":\"" ID "\",\"shim_pid\":7,\"shim_start\":1,"
                  "\"worker_pid\":8,\"worker_start\":1,\"boot_id\":\"%s\",\"host\":\"%s\"}\n",
                  boot, host);
    write_bytes(attempt, LAYOUT_START, text, strlen(text));
    free(text);
}

/* Of a shared state folder: a free lock and another boot prove nothing about another host. */
static void test_a_shim_on_another_host(void **state)
{
    char own[256] = "";
    assert_int_equal(gethostname(own, sizeof(own) - 1), 0);
    const struct {
        const char *what;
        const char *host; /* of start.json; NULL: none */
        bool shared;
        bool moved;
        bool give_up;
        enum examine_finding found;
        enum end_reason reason;
    } rows[] = {
        {"another host", "elsewhere", true, true, false, FOUND_ELSEWHERE, END_EXITED},
        {"another host, not moved", "elsewhere", true, false, false, FOUND_ELSEWHERE, END_EXITED},
        {"another host, given up", "elsewhere", true, true, true, FOUND_ENDED, END_HOST_LOST},
        {"a host that was renamed", "elsewhere", false, false, false, FOUND_ENDED, END_HOST_LOST},
        {"ours, booted again", own, true, true, false, FOUND_ENDED, END_HOST_LOST},
        {"nothing seen", NULL, true, true, false, FOUND_ELSEWHERE, END_EXITED},
        {"nothing seen, given up", NULL, true, true, true, FOUND_ENDED, END_NEVER_LAUNCHED},
        {"nothing seen, not moved", NULL, true, false, false, FOUND_ENDED, END_NEVER_LAUNCHED},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].what);
        char *folder = scratch_make();
        struct examination x;
        struct err err;
        char *attempt = path_join(folder, "cells/arm=a/train/attempt-0001-" ID);
        assert_int_equal(dir_make(attempt, 0700, &err), 0);
        scratch_put(attempt, LAYOUT_HEARTBEAT, "4 boot elsewhere -\n");
        if (rows[i].host != NULL) {
            write_start(attempt, rows[i].host, "another-boot");
        }
        const struct fence f = {.folder = attempt,
                                .attempt = ID,
                                .shared = rows[i].shared,
                                .moved = rows[i].moved,
                                .give_up = rows[i].give_up};
        examine_attempt(&f, false, true, &x);
        assert_int_equal(x.finding, rows[i].found);
        if (x.finding == FOUND_ELSEWHERE) {
            assert_true(x.has_beat && x.beat.sequence == 4);
            assert_false(fence_is_set(attempt));
        } else {
            assert_int_equal(x.end.reason, rows[i].reason);
            assert_true(fence_is_set(attempt)); /* so that it publishes nothing if it goes on */
        }
        scratch_remove(folder);
        free(attempt);
    }
}

/* The worker wrote over its start.json: what still works for it ends before the attempt does, which
 * was not lost with the machine. */
static void test_torn_start_of_a_living_tree(void **state)
{
    (void)state;
    char *folder = scratch_make();
    struct examination x;
    struct err err;
    int status = 0;
    char *attempt = path_join(folder, "cells/arm=a/train/attempt-0001-" ID);
    char *task = xasprintf("PREREG_TASK=%s/task.json", attempt);
    char *argv[] = {(char[]){"sleep"}, (char[]){"600"}, NULL};
    char *env[] = {task, NULL};
    pid_t pid = -1;
    assert_int_equal(dir_make(attempt, 0700, &err), 0);
    assert_int_equal(posix_spawn(&pid, "/bin/sleep", NULL, NULL, argv, env), 0);
    write_bytes(attempt, LAYOUT_START, "{", 1);
    examine_attempt(&(struct fence){.folder = attempt, .attempt = ID}, false, true, &x);
    int waited = waitpid(pid, &status, WNOHANG);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    assert_int_equal(waited, pid);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(x.finding, FOUND_ENDED);
    assert_int_equal(x.end.reason, END_LOST);
    scratch_remove(folder);
    free(task);
    free(attempt);
}

/* A shim of an older version may still run when the daemon is replaced. */
static void test_older_shim(void **state)
{
    (void)state;
    char *folder = scratch_make();
    struct examination x;
    struct err err;
    int fd = -1;
    char *attempt = path_join(folder, "cells/arm=a/train/attempt-0001-" ID);
    char *lock = path_join(attempt, "shim.lock");
    assert_int_equal(dir_make(attempt, 0700, &err), 0);
    static const char start[] = "{\"protocol\":1,\"attempt\":\"" ID "\",\"shim_pid\":7,"
                                "\"shim_start\":1,\"worker_pid\":8,\"worker_start\":1,"
                                "\"boot_id\":\"b\",\"host\":\"h\",\"time\":\"t\"}";
    static const char exit[] = "{\"protocol\":1,\"attempt\":\"" ID "\",\"code\":3,"
                               "\"signal\":null,\"reason\":\"exited\",\"rusage\":{\"user_ms\":1,"
                               "\"system_ms\":1,\"max_rss_bytes\":1},\"time\":\"u\"}";
    write_bytes(attempt, LAYOUT_START, start, sizeof(start) - 1);
    assert_int_equal(lock_try(lock, false, &fd, &err), 0);
    examine_attempt(&(struct fence){.folder = attempt, .attempt = ID}, false, true, &x);
    assert_int_equal(x.finding, FOUND_ALIVE);
    assert_true(x.has_start);
    write_bytes(attempt, LAYOUT_EXIT, exit, sizeof(exit) - 1);
    assert_int_equal(close(fd), 0);
    examine_attempt(&(struct fence){.folder = attempt, .attempt = ID}, false, true, &x);
    assert_int_equal(x.finding, FOUND_ENDED);
    assert_int_equal(x.end.code, 3);
    assert_int_equal(shim_start_read(attempt, ID, &x.start, &err), 0);
    assert_int_equal(x.start.worker_pid, 8);
    assert_string_equal(x.start.time, "t");
    char *exit_file = path_join(attempt, LAYOUT_EXIT); /* what its death leaves is fenced by that
                                                             lock, which stays to tell so */
    assert_int_equal(remove(exit_file), 0);
    examine_attempt(&(struct fence){.folder = attempt, .attempt = ID}, false, true, &x);
    assert_int_equal(x.finding, FOUND_ENDED);
    assert_int_equal(file_kind_at(lock), FILE_REGULAR);
    free(exit_file);
    scratch_remove(folder);
    free(lock);
    free(attempt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_absent_folder),
                                       cmocka_unit_test(test_torn_exit),
                                       cmocka_unit_test(test_a_shim_on_another_host),
                                       cmocka_unit_test(test_torn_start),
                                       cmocka_unit_test(test_torn_start_of_a_living_tree),
                                       cmocka_unit_test(test_older_shim)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
