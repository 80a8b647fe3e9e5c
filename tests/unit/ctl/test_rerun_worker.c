/* A worker run to its end: how it ended, what it is started with, which signals to us stop it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "ctl/rerun_worker.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

static int setup(void **state)
{
    *state = scratch_make();
    return 0;
}

static int teardown(void **state)
{
    scratch_remove(*state);
    return 0;
}

/* Runs a shell's script; `sent` is a signal to us that is there before it starts, or 0. */
static int run(const char *folder, const char *script, int sent, struct err *err)
{
    char sh[] = "sh";
    char c[] = "-c";
    char path[] = "PATH=/usr/bin:/bin";
    char *text = xstrdup(script);
    char *argv[] = {sh, c, text, NULL};
    char *env[] = {path, NULL};
    const struct rerun_worker w = {
        .name = "it", .exec = "/bin/sh", .argv = argv, .env = env, .folder = folder};
    struct rerun_guard guard;
    assert_int_equal(rerun_guard_open(&guard, err), 0);
    if (sent != 0) {
        assert_int_equal(raise(sent), 0);
    }
    int rc = rerun_worker_run(&guard, &w, err);
    rerun_guard_close(&guard);
    free(text);
    return rc;
}

static void test_ends(void **state)
{
    static const struct {
        const char *script;
        int rc;
        const char *message;
    } cases[] = {
        {"echo fine", 0, NULL},
        {"echo first >&2; echo no such device >&2; exit 3", ERR_OTHER,
         "it ended with code 3: no such device"},
        {"exit 1", ERR_OTHER, "it ended with code 1: it says nothing"},
        {"kill -9 $$", ERR_OTHER, "it was ended by signal 9"},
        {"kill -13 $$", ERR_OTHER, "it was ended by signal 13"},
        {"echo step 3 acc 0.77 >&2; kill -15 $$", ERR_OTHER, "it was ended by signal 15"},
        {"rm stderr.log; mkfifo stderr.log; exit 1", ERR_OTHER,
         "it ended with code 1: it says nothing"},
        {"echo secret >kept; ln -sf kept stderr.log; exit 1", ERR_OTHER,
         "it ended with code 1: it says nothing"},
    };
    /* What we ignore is none of the worker's. */
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].script);
        struct err err = {0};
        char *log = path_join(*state, "stderr.log");
        assert_int_equal(run(*state, cases[i].script, 0, &err), cases[i].rc);
        if (cases[i].rc != 0) {
            assert_string_equal(err.msg, cases[i].message);
        }
        (void)unlink(log);
        free(log);
    }
    (void)signal(SIGPIPE, before);
}

/* One that is ignored, as nohup has it, stops nothing. */
static void test_signals(void **state)
{
    static const struct {
        int sig;
        bool ignored;
    } cases[] = {
        {SIGTERM, false}, {SIGHUP, false}, {SIGHUP, true}, {SIGINT, true}, {SIGINT, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
        struct err err = {0};
        const char *script = cases[i].ignored ? "exit 0" : "sleep 60";
        void (*before)(int) = signal(cases[i].sig, cases[i].ignored ? SIG_IGN : SIG_DFL);
        int rc = run(*state, script, cases[i].sig, &err);
        (void)signal(cases[i].sig, before);
        assert_int_equal(rc, cases[i].ignored ? 0 : ERR_REFUSED);
        if (rc != 0) {
            assert_non_null(strstr(err.msg, "stopped by signal"));
        }
    }
}

/* Without its end being known it has not ended well. */
static void test_reaped_by_the_kernel(void **state)
{
    struct err err = {0};
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    int rc = run(*state, "exit 5", 0, &err);
    (void)signal(SIGCHLD, before);
    assert_true(rc < 0);
    assert_non_null(strstr(err.msg, "the end of it"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_reaped_by_the_kernel),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
