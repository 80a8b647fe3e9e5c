/* The pool: what its parts cover, the mode and the stack of its threads, and work that shares out
 * work. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/nn/threads.h"

#define ITEMS_MAX   1000
#define STACK_USED  ((size_t)1 << 20)
#define SECONDS_MAX 10 /* of a child that should end at once */

struct visits {
    int times[ITEMS_MAX];
    bool threads[8];
};

static void visit(void *ctx, size_t from, size_t to, int thread)
{
    struct visits *v = ctx;

    for (size_t i = from; i < to; i++)
        v->times[i]++;
    v->threads[thread] = true;
}

/* Every item once, whatever the counts; every thread takes part where there is enough. */
static void test_parts_cover_all_items(void **state)
{
    static const size_t ITEMS[] = {0, 1, 2, 6, 7, 8, 999};
    struct err err = {0};

    (void)state;
    assert_int_equal(nn_threads_start(7, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(ITEMS); i++) {
        struct visits v = {0};
        CHECK_ROW("%zu items", ITEMS[i]);
        nn_parallel(ITEMS[i], visit, &v);
        for (size_t j = 0; j < ITEMS_MAX; j++)
            assert_int_equal(v.times[j], j < ITEMS[i]);
        for (int t = 0; ITEMS[i] > 1 && t < 7; t++)
            assert_true(v.threads[t]);
    }
    nn_threads_stop();
}

/* Many short pieces, with pauses after which the threads are asleep; and the pool once more. */
static void test_pieces_follow_one_another(void **state)
{
    struct err err = {0};
    struct visits v = {0};

    (void)state;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(nn_threads_start(3, &err), 0);
        for (int i = 0; i < 2000; i++) {
            if (i % 500 == 0)
                (void)usleep(2000);
            nn_parallel(5, visit, &v);
        }
        nn_threads_stop();
        assert_int_equal(nn_threads(), 1);
    }
    for (size_t j = 0; j < 5; j++)
        assert_int_equal(v.times[j], 4000);
}

static void multiply_tiny(void *ctx, size_t from, size_t to, int thread)
{
    volatile float least = 0x1p-126F;
    float *products = ctx;

    (void)thread;
    for (size_t i = from; i < to; i++) {
        volatile float result = least * 0.5F, operand = 0x1p-127F;
        products[i] = result + operand * 0x1p126F;
    }
}

/* Results and operands, in every thread. */
static void test_tiny_numbers_are_zero(void **state)
{
    struct err err = {0};
    float products[4] = {1, 1, 1, 1};

    (void)state;
    assert_int_equal(nn_threads_start(4, &err), 0);
    nn_parallel(4, multiply_tiny, products);
    nn_threads_stop();
    for (size_t i = 0; i < ARRAY_LEN(products); i++)
        assert_true(products[i] >= 0 && products[i] <= 0);
}

static void use_stack(void *ctx, size_t from, size_t to, int thread)
{
    volatile char used[STACK_USED];
    int *done = ctx;

    for (size_t i = 0; i < STACK_USED; i += 1024)
        used[i] = 1;
    (void)thread;
    for (size_t i = from; i < to; i++)
        done[i] += used[i * 1024];
}

/* As where `ulimit -s` is small or unlimited: the stack does not depend on the system's default. */
static void test_stack_is_the_pools_own(void **state)
{
    pthread_attr_t usual, small;
    struct err err = {0};
    int done[3] = {0};

    (void)state;
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, (size_t)1 << 16), 0);
    assert_int_equal(pthread_setattr_default_np(&small), 0);
    int rc = nn_threads_start(3, &err);
    assert_int_equal(pthread_setattr_default_np(&usual), 0);
    pthread_attr_destroy(&small);
    pthread_attr_destroy(&usual);
    if (rc != 0)
        fail_msg("%s", err.msg);
    nn_parallel(3, use_stack, done);
    nn_threads_stop();
    assert_true(done[0] == 1 && done[1] == 1 && done[2] == 1);
}

static void share_out_again(void *ctx, size_t from, size_t to, int thread)
{
    (void)from;
    (void)to;
    if (thread == 1)
        nn_parallel(ITEMS_MAX, visit, ctx);
}

/* It would overwrite the piece that is being computed: an assertion, at once. */
static void test_work_that_shares_out_work(void **state)
{
    int status = 0;

    (void)state;
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct visits v = {0};
        struct err err = {0};
        (void)alarm(SECONDS_MAX);
        (void)!freopen("/dev/null", "w", stderr);
        (void)signal(SIGABRT, SIG_DFL);
        if (nn_threads_start(2, &err) == 0)
            nn_parallel(2, share_out_again, &v);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_cover_all_items),
        cmocka_unit_test(test_pieces_follow_one_another),
        cmocka_unit_test(test_tiny_numbers_are_zero),
        cmocka_unit_test(test_stack_is_the_pools_own),
        cmocka_unit_test(test_work_that_shares_out_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
