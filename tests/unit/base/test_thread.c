/* What a thread has that thread_start() starts: no signals, and room on its stack. */
#include <signal.h>

#include "base/banned.h"
#include "base/thread.h"
#include "tests/unit/check.h"

#define STACK_USED ((size_t)4 << 20)

struct seen {
    sigset_t blocked;
    long sum;
};

static void *look(void *arg)
{
    struct seen *seen = arg;

    (void)pthread_sigmask(SIG_BLOCK, NULL, &seen->blocked);
    return NULL;
}

static void test_signals(void **state)
{
    static const int SIGNALS[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGUSR1};
    struct seen seen = {.sum = 0};
    sigset_t before, after;
    pthread_t thread;

    (void)state;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &before);
    assert_int_equal(thread_start(&thread, look, &seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(SIGNALS[0]); i++) {
        assert_true(sigismember(&seen.blocked, SIGNALS[i]) == 1);
        assert_int_equal(sigismember(&after, SIGNALS[i]), sigismember(&before, SIGNALS[i]));
    }
}

static void *use_stack(void *arg)
{
    volatile char used[STACK_USED];
    struct seen *seen = arg;

    for (size_t i = 0; i < STACK_USED; i += 1024)
        used[i] = 1;
    for (size_t i = 0; i < STACK_USED; i += 1024)
        seen->sum += used[i];
    return NULL;
}

/* As under `ulimit -s 64`, or where thread-local variables take most of a default stack. */
static void test_stack(void **state)
{
    pthread_attr_t usual, small;
    struct seen seen = {.sum = 0};
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, (size_t)1 << 16), 0);
    assert_int_equal(pthread_setattr_default_np(&small), 0);
    int rc = thread_start(&thread, use_stack, &seen);
    assert_int_equal(pthread_setattr_default_np(&usual), 0);
    (void)pthread_attr_destroy(&small);
    (void)pthread_attr_destroy(&usual);
    assert_int_equal(rc, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(seen.sum, STACK_USED / 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
