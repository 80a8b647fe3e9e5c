/* Jobs that take long leave room for others, on any machine: in libuv's pool, on the threads that
 * hash, and in the lane of another program. The long ones end when the test lets them. */
#include <stdlib.h>

#include <pthread.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "daemon/executor/job.h"
#include "tests/unit/check.h"

#define N_LONG  12 /* libuv itself has four threads */
#define STUCK_S 60 /* how long the test waits before it lets go and fails */

struct job_of_test {
    struct job job;
    bool worked;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool open;         /* the long ones may end */
    size_t n_begun;    /* of them */
    size_t n_awaited;  /* short ones that are to be done before the long ones end */
    size_t n_done;     /* of all */
    size_t n_together; /* long ones in the one lane now */
    const struct job *order[N_LONG];
    size_t n_order;
} now = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static uv_loop_t loop;
static uv_timer_t stuck;
static bool was_stuck;

static void open_gate(void)
{
    (void)pthread_mutex_lock(&now.mutex);
    now.open = true;
    (void)pthread_cond_broadcast(&now.changed);
    (void)pthread_mutex_unlock(&now.mutex);
    if (!uv_is_closing((uv_handle_t *)&stuck)) {
        uv_close((uv_handle_t *)&stuck, NULL);
    }
}

static void on_stuck(uv_timer_t *timer)
{
    (void)timer;
    was_stuck = true;
    open_gate();
}

static int set_up(void **state)
{
    (void)state;
    now.open = was_stuck = false;
    now.n_begun = now.n_awaited = now.n_done = now.n_together = now.n_order = 0;
    (void)unsetenv("UV_THREADPOOL_SIZE");
    job_size_pool();
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_timer_init(&loop, &stuck), 0);
    assert_int_equal(uv_timer_start(&stuck, on_stuck, STUCK_S * UINT64_C(1000), 0), 0);
    return 0;
}

static void run_all(size_t n_jobs)
{
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_false(was_stuck);
    assert_int_equal(now.n_done, n_jobs);
    job_join_hashing();
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void wait_for_gate(void)
{
    now.n_begun++;
    (void)pthread_cond_broadcast(&now.changed);
    while (!now.open) {
        (void)pthread_cond_wait(&now.changed, &now.mutex);
    }
}

static void work_long(struct job *job)
{
    (void)pthread_mutex_lock(&now.mutex);
    ((struct job_of_test *)job)->worked = true;
    wait_for_gate();
    (void)pthread_mutex_unlock(&now.mutex);
}

static void work_short(struct job *job)
{
    ((struct job_of_test *)job)->worked = true;
}

static void done_long(struct job *job)
{
    (void)job;
    now.n_done++;
}

static void done_short(struct job *job)
{
    (void)job;
    now.n_done++;
    assert_true(now.n_awaited > 0);
    if (--now.n_awaited == 0) {
        open_gate();
    }
}

static struct job_of_test long_job(void)
{
    return (struct job_of_test){.job = {.work = work_long, .done = done_long}};
}

static struct job_of_test short_job(void)
{
    now.n_awaited++;
    return (struct job_of_test){.job = {.work = work_short, .done = done_short}};
}

static size_t more_than_threads(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return 32 + 8 * (size_t)(cores > 0 ? cores : 1);
}

static void test_long_jobs_leave_room(void **state)
{
    struct job_of_test jobs[N_LONG];
    struct job_of_test last = short_job();
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        jobs[i] = long_job();
        job_start(&loop, &jobs[i].job);
    }
    job_start(&loop, &last.job);
    run_all(N_LONG + 1);
}

/* One program has more jobs for its pins than there are threads, and the first of them hashes. */
static void test_one_program_stalls_no_other(void **state)
{
    size_t n = more_than_threads();
    struct job_of_test *jobs = xcalloc(n, sizeof(*jobs));
    struct job_of_test pins = short_job();
    struct job_of_test artifact = short_job();
    struct job_of_test ordinary = short_job();
    struct job_lane one = {0};
    struct job_lane other = {0};
    (void)state;
    for (size_t i = 0; i < n; i++) {
        jobs[i] = long_job();
        job_start_hashing(&loop, &jobs[i].job, &one);
    }
    job_start_hashing(&loop, &pins.job, &other);
    job_start_hashing(&loop, &artifact.job, NULL);
    job_start(&loop, &ordinary.job);
    run_all(n + 3);
    assert_null(one.holder);
    free(jobs);
}

/* Whatever fills the threads that hash, reading and reporting goes on. */
static void test_hashing_leaves_the_pool_alone(void **state)
{
    size_t n = more_than_threads();
    struct job_of_test *jobs = xcalloc(n, sizeof(*jobs));
    struct job_of_test ordinary = short_job();
    (void)state;
    for (size_t i = 0; i < n; i++) {
        jobs[i] = long_job();
        job_start_hashing(&loop, &jobs[i].job, NULL);
    }
    job_start(&loop, &ordinary.job);
    run_all(n + 1);
    free(jobs);
}

/* Alone in the lane until it leaves it; the last lets all others end. */
static void work_in_turn(struct job *job)
{
    (void)pthread_mutex_lock(&now.mutex);
    now.order[now.n_order++] = job;
    now.n_together++;
    (void)pthread_mutex_unlock(&now.mutex);
    (void)pthread_mutex_lock(&now.mutex);
    bool alone = now.n_together == 1;
    now.n_together--;
    bool last = now.n_order == N_LONG;
    (void)pthread_mutex_unlock(&now.mutex);
    ((struct job_of_test *)job)->worked = alone;
    job_leave_lane(job);
    job_leave_lane(job); /* is nothing more */
    (void)pthread_mutex_lock(&now.mutex);
    now.open = now.open || last;
    wait_for_gate();
    (void)pthread_mutex_unlock(&now.mutex);
}

static void done_in_turn(struct job *job)
{
    (void)job;
    if (++now.n_done == N_LONG) {
        open_gate(); /* and with it the timer */
    }
}

static void test_lane_is_left_before_the_end(void **state)
{
    struct job_of_test jobs[N_LONG];
    struct job_lane lane = {0};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        jobs[i] = (struct job_of_test){.job = {.work = work_in_turn, .done = done_in_turn}};
        job_start_hashing(&loop, &jobs[i].job, &lane);
    }
    run_all(N_LONG);
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        CHECK_ROW("jobs[%zu]", i);
        assert_ptr_equal(now.order[i], &jobs[i].job);
        assert_true(jobs[i].worked);
    }
}

/* The daemon stops: what has begun ends, what has not is done without its work. */
static void test_stop_cancels_what_waits(void **state)
{
    struct job_of_test jobs[N_LONG];
    struct job_of_test after = short_job();
    struct job_lane lane = {0};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        jobs[i] = long_job();
        job_start_hashing(&loop, &jobs[i].job, &lane);
    }
    (void)pthread_mutex_lock(&now.mutex);
    while (now.n_begun == 0) {
        (void)pthread_cond_wait(&now.changed, &now.mutex);
    }
    (void)pthread_mutex_unlock(&now.mutex);
    job_cancel_hashing();
    job_start_hashing(&loop, &after.job, NULL); /* lets the first end */
    run_all(N_LONG + 1);
    assert_true(jobs[0].worked);
    for (size_t i = 1; i < ARRAY_LEN(jobs); i++) {
        assert_false(jobs[i].worked);
    }
    assert_false(after.worked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_long_jobs_leave_room, set_up),
        cmocka_unit_test_setup(test_one_program_stalls_no_other, set_up),
        cmocka_unit_test_setup(test_hashing_leaves_the_pool_alone, set_up),
        cmocka_unit_test_setup(test_lane_is_left_before_the_end, set_up),
        cmocka_unit_test_setup(test_stop_cancels_what_waits, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
