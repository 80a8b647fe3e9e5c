/* Children that end, do not end, shout, close their pipes and sleep, or leave others behind. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"

static int run(const char *script, int64_t timeout_ms, struct proc_result *r, struct err *err)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const struct proc_spec spec = {
        .argv = argv, .timeout_ms = timeout_ms, .max_out_bytes = (size_t)1 << 20};
    return proc_run(&spec, r, err);
}

static void test_an_end(void **state)
{
    (void)state;
    struct proc_result r;
    struct err err = {0};
    assert_int_equal(run("echo out; echo oops >&2; exit 7", 0, &r, &err), 0);
    assert_int_equal(r.code, 7);
    assert_int_equal(r.signal, 0);
    assert_string_equal(r.out.buf, "out\n");
    assert_string_equal(r.err.buf, "oops\n");
    proc_result_release(&r);
    assert_int_equal(run("kill -TERM $$", 0, &r, &err), 0);
    assert_int_equal(r.code, -1);
    assert_int_equal(r.signal, SIGTERM);
    proc_result_release(&r);
}

static void test_surroundings(void **state)
{
    (void)state;
    static const char *const argv[] = {"/bin/sh", "-c", "pwd; env | grep -c .; cat", NULL};
    static const char *const env[] = {"ONLY=1", "PWD=/", NULL};
    const struct proc_spec spec = {.argv = argv, .env = env, .cwd = "/", .max_out_bytes = 100};
    struct proc_result r;
    struct err err = {0};
    assert_int_equal(proc_run(&spec, &r, &err), 0);
    assert_memory_equal(r.out.buf, "/\n", 2);
    assert_int_equal(r.code, 0); /* cat met the end of an empty standard input */
    proc_result_release(&r);
}

/* Bytes for a child that takes files only, and what it can ask on. */
static void test_given_files(void **state)
{
    (void)state;
    static const char *const argv[] = {"sh", "-c",
                                       "cat; cat /dev/fd/3 /dev/fd/3; : 2>/dev/null "
                                       "</dev/tty && echo asked",
                                       NULL};
    struct proc_result r;
    struct err err = {0};
    int in_fd = -1;
    int fd3 = -1;
    assert_int_equal(file_in_memory("preregd", "in ", 3, &in_fd, &err), 0);
    assert_int_equal(file_in_memory("preregd", "three ", 6, &fd3, &err), 0);
    const struct proc_spec spec = {
        .argv = argv, .max_out_bytes = 100, .place = PROC_NO_TERMINAL, .in_fd = in_fd, .fd3 = fd3};
    assert_int_equal(proc_run(&spec, &r, &err), 0);
    assert_string_equal(r.out.buf, "in three three ");
    proc_result_release(&r);
    (void)close(in_fd);
    (void)close(fd3);
}

static void test_no_such_program(void **state)
{
    (void)state;
    static const char *const argv[] = {"/no/such/program", NULL};
    const struct proc_spec spec = {.argv = argv};
    struct proc_result r;
    struct err err = {0};
    assert_int_equal(proc_run(&spec, &r, &err), ERR_NOT_FOUND);
    proc_result_release(&r);
}

/* Whole seconds are printed as such. */
static void test_time_limit_in_words(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *words;
    } rows[] = {{100, "sh did not end within 100 ms"}, {1000, "sh did not end within 1 s"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct proc_result r;
        struct err err = {0};
        assert_int_equal(run("sleep 60", rows[i].ms, &r, &err), ERR_TIMEOUT);
        assert_non_null(strstr(err.msg, rows[i].words));
        proc_result_release(&r);
    }
}

static void assert_times_out(const char *script)
{
    struct proc_result r;
    struct err err = {0};
    struct mono_time start = clock_mono();
    assert_int_equal(run(script, 300, &r, &err), ERR_TIMEOUT);
    int64_t took_ms = clock_mono().ms - start.ms;
    assert_true(took_ms >= 300 && took_ms < 5000);
    assert_int_equal(r.signal, SIGKILL);
    proc_result_release(&r);
}

static void test_time_limit(void **state)
{
    (void)state;
    assert_times_out("sleep 60");
    assert_times_out("exec sleep 60 >/dev/null 2>&1"); /* no pipe is left open, the process is */
    assert_times_out("while :; do echo x >&2; done");
}

/* A grandchild that keeps the pipe open does not keep us, and does not stay. */
static void test_left_behind(void **state)
{
    (void)state;
    struct proc_result r;
    struct err err = {0};
    struct mono_time start = clock_mono();
    assert_int_equal(run("sleep 60 & echo $!", 0, &r, &err), 0);
    assert_true(clock_mono().ms - start.ms < 5000);
    pid_t left = (pid_t)strtol(r.out.buf, NULL, 10);
    assert_true(left > 1);
    proc_result_release(&r);
    for (int i = 0; i < 100 && kill(left, 0) == 0; i++) {
        clock_sleep_ms(20);
        char path[64];
        (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)left);
        FILE *f = fopen(path, "re");
        char line[256] = "";
        if (f == NULL || fgets(line, sizeof(line), f) == NULL || strstr(line, ") Z ") != NULL) {
            i = 100; /* gone, or waiting for whoever inherits it */
        }
        if (f != NULL) {
            (void)fclose(f);
        }
        assert_true(i != 99);
    }
}

static void test_output_limits(void **state)
{
    (void)state;
    struct proc_result r;
    struct err err = {0};
    assert_int_equal(
        run("while :; do echo 0123456789012345678901234567890123456789; done", 20000, &r, &err),
        ERR_RANGE);
    assert_int_equal(r.signal, SIGKILL);
    proc_result_release(&r);
    /* everything written before the end arrives, however much the pipe held */
    assert_int_equal(run("head -c 60000 /dev/zero | tr '\\0' x", 0, &r, &err), 0);
    assert_int_equal(r.out.len, 60000);
    proc_result_release(&r);
    assert_int_equal(run("head -c 300000 /dev/zero | tr '\\0' y >&2; echo end >&2", 0, &r, &err),
                     0);
    assert_true(r.err.len <= 8192 && r.err.len >= 4096);
    assert_memory_equal(r.err.buf + r.err.len - 4, "end\n", 4);
    proc_result_release(&r);
}

/* A child of ours does what the row's name says and answers 0. */
static void in_a_child(int (*what)(void))
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(what());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The kernel has taken the exit code away: that is an error, never 0. */
static int run_with_ignored_ends(void)
{
    struct proc_result r;
    struct err err = {0};
    (void)signal(SIGCHLD, SIG_IGN);
    if (run("exit 7", 5000, &r, &err) == 0) {
        return 1;
    }
    proc_result_release(&r);
    proc_mend_inherited();
    if (run("exit 7", 5000, &r, &err) != 0 || r.code != 7) {
        return 2;
    }
    proc_result_release(&r);
    return 0;
}

/* Bytes for a child lie above its standard streams, whatever is closed here. */
static int run_with_closed_streams(void)
{
    struct proc_result r;
    struct err err = {0};
    int in_fd = -1;
    (void)close(STDIN_FILENO);
    (void)close(STDOUT_FILENO);
    if (file_in_memory("preregd", "bytes", 5, &in_fd, &err) != 0 || in_fd <= 2) {
        return 1;
    }
    proc_mend_inherited();
    static const char *const argv[] = {"cat", NULL};
    const struct proc_spec spec = {.argv = argv, .max_out_bytes = 100, .in_fd = in_fd};
    if (proc_run(&spec, &r, &err) != 0 || strcmp(r.out.buf, "bytes") != 0) {
        return 2;
    }
    proc_result_release(&r);
    /* reads end, and what is written is not lost without a word */
    char c;
    return read(STDIN_FILENO, &c, 1) == 0 && write(STDOUT_FILENO, "x", 1) < 0 ? 0 : 3;
}

static int run_with_default_signals(void)
{
    struct proc_result r;
    struct err err = {0};
    (void)signal(SIGPIPE, SIG_IGN);
    if (run("kill -PIPE $$; exit 3", 5000, &r, &err) != 0 || r.signal != SIGPIPE) {
        return 1;
    }
    proc_result_release(&r);
    return 0;
}

static void test_inherited(void **state)
{
    (void)state;
    in_a_child(run_with_ignored_ends);
    in_a_child(run_with_closed_streams);
    in_a_child(run_with_default_signals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_limit_in_words), cmocka_unit_test(test_an_end),
        cmocka_unit_test(test_surroundings),        cmocka_unit_test(test_given_files),
        cmocka_unit_test(test_no_such_program),     cmocka_unit_test(test_time_limit),
        cmocka_unit_test(test_left_behind),         cmocka_unit_test(test_output_limits),
        cmocka_unit_test(test_inherited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
