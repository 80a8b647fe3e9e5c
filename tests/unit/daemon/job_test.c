/* Jobs that take long leave room for others, on any machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/xalloc.h"
#include "daemon/job.h"

#define N_LONG 12 /* libuv itself has four threads */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static unsigned n_done;

static void work_long(struct job *job)
{
    (void)job;
    (void)pthread_mutex_lock(&gate);
    (void)pthread_mutex_unlock(&gate);
}

static void work_short(struct job *job)
{
    (void)job;
}

static void done_long(struct job *job)
{
    (void)job;
    n_done++;
}

static void done_short(struct job *job)
{
    (void)job;
    assert_int_equal(n_done, 0); /* they are all at it yet */
    (void)pthread_mutex_unlock(&gate);
}

static void test_long_jobs_leave_room(void **state)
{
    struct job jobs[N_LONG];
    struct job last = {.work = work_short, .done = done_short};
    uv_loop_t loop;
    (void)state;
    (void)unsetenv("UV_THREADPOOL_SIZE");
    job_size_pool();
    assert_int_equal(uv_loop_init(&loop), 0);
    (void)pthread_mutex_lock(&gate);
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        jobs[i] = (struct job){.work = work_long, .done = done_long};
        job_start(&loop, &jobs[i]);
    }
    job_start(&loop, &last);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(n_done, N_LONG);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_long_jobs_leave_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
