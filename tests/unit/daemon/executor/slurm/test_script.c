/* The script is run by a real bash: it must find the folder, keep every odd byte of a path, run the
 * setup and become the shim. */
#include "daemon/executor/slurm/script.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

/* Runs the script in `at`; returns its exit code. */
static int run(const char *at, const struct slurm_script *s, const char *index)
{
    struct strbuf text = STRBUF_INIT;
    slurm_script_write(&text, s);
    char *path = scratch_write(at, "job.sh", text.buf, 0700);
    strbuf_release(&text);
    if (index != NULL) {
        assert_int_equal(setenv("SLURM_ARRAY_TASK_ID", index, 1), 0);
    }
    /* A login shell reads the profile of its home: not that of who runs the test. */
    assert_int_equal(setenv("HOME", at, 1), 0);
    pid_t child = fork();
    if (child == 0) {
        execl(path, path, (char *)NULL);
        _exit(99);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    free(path);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct place {
    char folder[400]; /* with a quote, a blank, a dollar and a star */
    char shim[400];
    char list[400];
    char log[500];
};

static void make_place(struct place *p, const char *at)
{
    char list[1200];
    (void)snprintf(p->folder, sizeof(p->folder), "%s/it's $HOME * \\x", at);
    (void)snprintf(p->shim, sizeof(p->shim), "%s/a shim", at);
    (void)snprintf(p->list, sizeof(p->list), "%s/the list", at);
    (void)snprintf(p->log, sizeof(p->log), "%s/" SLURM_SCRIPT_LOG, p->folder);
    assert_int_equal(mkdir(p->folder, 0700), 0);
    (void)snprintf(list, sizeof(list), "%s/none\n%s\n", at, p->folder);
    scratch_put(at, "the list", list);
    free(scratch_write(at, "a shim", "#!/bin/bash\necho \"$# $1 $2 $X\"\nexit 7\n", 0700));
}

static bool log_has(const struct place *p, const char *words)
{
    char *text = scratch_read(p->log);
    bool found = strstr(text, words) != NULL;
    free(text);
    return found;
}

static void test_single_and_array(void **state)
{
    char *at = scratch_make();
    struct place p;
    char want[600];
    (void)state;
    make_place(&p, at);
    const char *const setup[] = {"export X=set", "echo hello # not the end"};
    const struct slurm_script single = {
        .shim = p.shim, .folder = p.folder, .setup = setup, .n_setup = 2};
    const struct slurm_script array = {.shim = p.shim, .list = p.list};
    assert_int_equal(run(at, &single, NULL), 7);
    (void)snprintf(want, sizeof(want), "2 --slurm %s set\n", p.folder);
    assert_true(log_has(&p, want));
    assert_true(log_has(&p, "hello\n"));
    assert_int_equal(run(at, &array, "1"), 7);
    (void)snprintf(want, sizeof(want), "2 --slurm %s \n", p.folder);
    assert_true(log_has(&p, want));
    assert_int_equal(run(at, &array, "2"), SLURM_SCRIPT_NO_FOLDER);
    assert_int_equal(run(at, &array, ""), SLURM_SCRIPT_NO_FOLDER);
    scratch_remove(at);
}

static void test_setup_that_fails(void **state)
{
    char *at = scratch_make();
    struct place p;
    const char *const setup[] = {"true", "echo \"it's 50%\" >&2 &&\nfalse"};
    (void)state;
    make_place(&p, at);
    const struct slurm_script s = {
        .shim = p.shim, .folder = p.folder, .setup = setup, .n_setup = 2};
    assert_int_equal(run(at, &s, NULL), SLURM_SCRIPT_NO_SETUP);
    assert_true(log_has(&p, "it's 50%\npreregd: line 2 of [run.slurm] setup failed: echo \"it's "
                            "50%\" >&2 && false\n"));
    scratch_remove(at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_and_array),
        cmocka_unit_test(test_setup_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
