/* Commands run from the loop: what they print, how they fail, and giving one up. */
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "daemon/executor/slurm/client.h"
#include "tests/unit/check.h"

struct seen {
    unsigned n;
    bool whole;
    bool missing;
    int code;
    char out[64];
    char err[64];
    size_t out_len;
};

static void on_reply(void *ctx, const struct slurm_reply *r)
{
    struct seen *s = ctx;
    s->n++;
    s->whole = r->whole;
    s->missing = r->missing;
    s->code = r->code;
    s->out_len = r->out->len;
    (void)snprintf(s->out, sizeof(s->out), "%s", r->out->buf);
    (void)snprintf(s->err, sizeof(s->err), "%s", r->err->buf);
}

static struct seen run_command(const char *file, const char *script, const char *input)
{
    char *const env[] = {(char[]){"GREETING=hello"}, NULL};
    char *args[] = {xstrdup(file), xstrdup("-c"), xstrdup(script), NULL};
    struct seen seen = {0};
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    const struct slurm_command command = {.argv = args, .environment = env, .input = input};
    (void)slurm_call_start(&loop, &command, on_reply, &seen);
    assert_int_equal(seen.n, 0); /* never from inside the call */
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    for (int i = 0; i < 3; i++) {
        free(args[i]);
    }
    assert_int_equal(seen.n, 1);
    return seen;
}

static void test_prints(void **state)
{
    (void)state;
    struct seen s =
        run_command("/bin/sh", "read x; echo $GREETING $x; echo no >&2; exit 3", "there\n");
    assert_true(s.whole);
    assert_int_equal(s.code, 3);
    assert_string_equal(s.out, "hello there\n");
    assert_string_equal(s.err, "no\n");
    s = run_command("/bin/sh", "cat", NULL);
    assert_true(s.whole && s.code == 0 && s.out_len == 0);
}

static void test_fails(void **state)
{
    (void)state;
    struct seen s = run_command("/bin/sh", "echo half; kill -9 $$", NULL);
    assert_int_equal(s.code, -1);
    assert_false(s.missing);
    s = run_command("/nowhere/sbatch", "", NULL);
    assert_false(s.whole);
    assert_true(s.missing);
    assert_int_equal(s.code, -1);
    assert_non_null(strstr(s.err, "/nowhere/sbatch"));
    s = run_command("/bin/sh/sbatch", "", NULL); /* ENOTDIR: for another reason */
    assert_false(s.whole || s.missing);
}

/* More than is kept is an answer that was cut, however it ends. */
static void test_prints_too_much(void **state)
{
    (void)state;
    struct seen s = run_command("/bin/sh", "exec head -c 70000000 /dev/zero", NULL);
    assert_false(s.whole);
}

static void test_given_up(void **state)
{
    char *args[] = {xstrdup("/bin/sleep"), xstrdup("1000"), NULL};
    char *const env[] = {NULL};
    struct seen seen = {0};
    uv_loop_t loop;
    (void)state;
    const int64_t begun_ms = clock_mono().ms;
    assert_int_equal(uv_loop_init(&loop), 0);
    const struct slurm_command command = {.argv = args, .environment = env};
    slurm_call_give_up(slurm_call_start(&loop, &command, on_reply, &seen));
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(seen.n, 0);
    assert_true(clock_mono().ms - begun_ms < 60000);
    free(args[0]);
    free(args[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prints),
        cmocka_unit_test(test_fails),
        cmocka_unit_test(test_prints_too_much),
        cmocka_unit_test(test_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
