/* What the environment can say about bfloat16 instructions, and the probe that asks the processor.
 * PREREG_CPU is tested with whole workers (eval/cli/test_commands.c): it is read once. */
#include <signal.h>
#include <stdlib.h>

#include "base/thread.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/nn/cpu.h"

static bool ran;

static void run_fine(void)
{
    ran = true;
}

/* What a processor does with an instruction that it does not have. */
static void run_illegal(void)
{
#ifdef __x86_64__
    __asm__ volatile("ud2");
#else
    (void)raise(SIGILL);
#endif
}

static int n_caught;

static void catch_sigill(int number)
{
    (void)number;
    n_caught++;
}

/* Twice, since the signal must not stay blocked; and the handler that was there is there again. */
static void test_probe(void **state)
{
    struct sigaction ours = {.sa_handler = catch_sigill}, theirs;

    (void)state;
    assert_int_equal(sigaction(SIGILL, &ours, &theirs), 0);
    for (int i = 0; i < 2; i++) {
        ran = false;
        assert_true(nn_cpu_executes(run_fine));
        assert_true(ran);
        assert_false(nn_cpu_executes(run_illegal));
    }
    assert_int_equal(raise(SIGILL), 0);
    assert_int_equal(n_caught, 1);
    assert_int_equal(sigaction(SIGILL, &theirs, NULL), 0);
}

static void *probe(void *arg)
{
    bool *results = arg;

    results[0] = nn_cpu_executes(run_fine);
    results[1] = nn_cpu_executes(run_illegal);
    return NULL;
}

/* The pool's threads block every signal. */
static void test_probe_in_a_thread(void **state)
{
    bool results[2] = {false, true};
    pthread_t thread;

    (void)state;
    assert_int_equal(thread_start(&thread, probe, results), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(results[0] && !results[1]);
}

static void test_wishes(void **state)
{
    static const struct {
        const char *text;
        enum nn_wish wish;
    } CASES[] = {{"", NN_WISH_NONE},
                 {"no", NN_WISH_NO},
                 {"yes", NN_WISH_YES},
                 {"1", NN_WISH_UNKNOWN},
                 {"YES", NN_WISH_UNKNOWN}};

    (void)state;
    assert_int_equal(unsetenv("PREREG_BFLOAT16"), 0);
    assert_int_equal(nn_cpu_bfloat16_wish(), NN_WISH_NONE);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct err err = {0};
        CHECK_ROW("\"%s\"", CASES[i].text);
        assert_int_equal(setenv("PREREG_BFLOAT16", CASES[i].text, 1), 0);
        assert_int_equal(nn_cpu_bfloat16_wish(), CASES[i].wish);
        int rc = nn_cpu_check(&err);
        if (CASES[i].wish == NN_WISH_YES && !nn_cpu_has_bfloat16()) {
            assert_int_equal(rc, ERR_USAGE);
            assert_non_null(strstr(err.msg, "PREREG_BFLOAT16=yes: "));
        } else if (CASES[i].wish == NN_WISH_UNKNOWN) {
            assert_int_equal(rc, ERR_USAGE);
            assert_non_null(strstr(err.msg, ": expected yes or no"));
        } else {
            assert_int_equal(rc, 0);
        }
        if (CASES[i].wish == NN_WISH_NO)
            assert_false(nn_cpu_has_bfloat16());
    }
    assert_int_equal(unsetenv("PREREG_BFLOAT16"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_probe_in_a_thread),
        cmocka_unit_test(test_wishes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
