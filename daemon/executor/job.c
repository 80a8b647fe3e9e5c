/* Jobs off the loop's thread: libuv's pool for most, and threads of the daemon's own, with lanes,
 * for those that hash. The loop starts a job and gets it back when it is done. One mutex guards the
 * ready list, all lanes and their lists; it is never held while a job works. */
#include "daemon/executor/job.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

/* ---- libuv's pool ---- */

static void on_job_work(uv_work_t *request)
{
    struct job *job = request->data;
    job->work(job);
}

static void on_job_done(uv_work_t *request, int status)
{
    struct job *job = request->data;
    assert(status == 0); /* jobs are never cancelled */
    (void)status;
    job->done(job);
}

#define THREADS_BESIDES 16
#define THREADS_A_CORE  4
#define THREADS_MAX     1024 /* libuv's own limit */

/* The same for both pools; job.h explains the figure. */
static size_t threads_wanted(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = THREADS_BESIDES + THREADS_A_CORE * (cores > 0 ? (size_t)cores : 1);
    return n < THREADS_MAX ? n : THREADS_MAX;
}

void job_size_pool(void)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%zu", threads_wanted());
    (void)setenv("UV_THREADPOOL_SIZE", text, 0);
}

void job_start(uv_loop_t *loop, struct job *job)
{
    job->uv.request.data = job;
    int rc = uv_queue_work(loop, &job->uv.request, on_job_work, on_job_done);
    assert(rc == 0); /* fails only without a work callback */
    (void)rc;
}

/* ---- the threads that hash ---- */

static struct {
    pthread_mutex_t mutex; /* of everything here, of all lanes and of their jobs' lists */
    pthread_cond_t wake;   /* a job is ready, or the threads are to end */
    struct job_list ready; /* jobs that hold their lane, or need none */
    size_t n_ready;
    size_t n_idle; /* threads that wait for one */
    size_t n_threads;
    bool cancelled;
    bool ending;
    pthread_t threads[THREADS_MAX];
} hashing = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void append(struct job_list *list, struct job *job)
{
    job->next = NULL;
    if (list->last == NULL) {
        list->first = job;
    } else {
        list->last->next = job;
    }
    list->last = job;
}

static struct job *take_first(struct job_list *list)
{
    struct job *job = list->first;
    if (job != NULL) {
        list->first = job->next;
        list->last = list->first == NULL ? NULL : list->last;
        job->next = NULL;
    }
    return job;
}

static void *run_hashing(void *argument);

/* Under the mutex. Starts another thread when too few are idle. If that fails the job waits for
 * another one to end; without any thread it would wait for ever. */
static void make_ready(struct job *job)
{
    append(&hashing.ready, job);
    hashing.n_ready++;
    if (hashing.n_ready > hashing.n_idle && hashing.n_threads < threads_wanted()) {
        int rc = pthread_create(&hashing.threads[hashing.n_threads], NULL, run_hashing, NULL);
        if (rc == 0) {
            hashing.n_threads++;
        } else if (hashing.n_threads == 0) {
            log_error("no thread for hashing can be made: %s", strerror(rc));
            abort(); /* as libuv does for its pool */
        }
    }
    (void)pthread_cond_signal(&hashing.wake);
}

/* Under the mutex. Gives the lane to the job that has waited longest. */
static void leave_lane(struct job *job)
{
    struct job_lane *lane = job->lane;
    job->lane = NULL;
    if (lane != NULL) {
        assert(lane->holder == job);
        lane->holder = take_first(&lane->waiting);
        if (lane->holder != NULL) {
            make_ready(lane->holder);
        }
    }
}

/* A thread's loop: takes a ready job, works without the mutex, then passes the job's lane on and
 * wakes the loop. */
static void *run_hashing(void *argument)
{
    (void)argument;
    (void)pthread_mutex_lock(&hashing.mutex);
    for (;;) {
        struct job *job = take_first(&hashing.ready);
        if (job == NULL && hashing.ending) {
            break;
        }
        if (job == NULL) {
            hashing.n_idle++;
            (void)pthread_cond_wait(&hashing.wake, &hashing.mutex);
            hashing.n_idle--;
            continue;
        }
        bool skip = hashing.cancelled;
        hashing.n_ready--;
        (void)pthread_mutex_unlock(&hashing.mutex);
        if (!skip) {
            job->work(job);
        }
        (void)pthread_mutex_lock(&hashing.mutex);
        leave_lane(job);
        job->ended = true;
        (void)pthread_mutex_unlock(&hashing.mutex);
        (void)uv_async_send(&job->uv.finished); /* from here on the job is the loop's */
        (void)pthread_mutex_lock(&hashing.mutex);
    }
    (void)pthread_mutex_unlock(&hashing.mutex);
    return NULL;
}

/* `done` frees the job, so its async handle must be closed before. */
static void on_hashing_closed(uv_handle_t *handle)
{
    struct job *job = handle->data;
    job->done(job);
}

static void on_hashing_finished(uv_async_t *finished)
{
    struct job *job = finished->data;
    (void)pthread_mutex_lock(&hashing.mutex); /* orders what the thread wrote before this */
    bool ended = job->ended;
    (void)pthread_mutex_unlock(&hashing.mutex);
    assert(ended);
    (void)ended;
    uv_close((uv_handle_t *)finished, on_hashing_closed);
}

void job_start_hashing(uv_loop_t *loop, struct job *job, struct job_lane *lane)
{
    int rc = uv_async_init(loop, &job->uv.finished, on_hashing_finished);
    assert(rc == 0); /* a loop has what it needs for one from its start */
    (void)rc;
    job->uv.finished.data = job;
    job->lane = lane;
    job->ended = false;
    (void)pthread_mutex_lock(&hashing.mutex);
    if (lane != NULL && lane->holder != NULL) {
        append(&lane->waiting, job);
    } else {
        if (lane != NULL) {
            lane->holder = job;
        }
        make_ready(job);
    }
    (void)pthread_mutex_unlock(&hashing.mutex);
}

void job_leave_lane(struct job *job)
{
    if (job != NULL) {
        (void)pthread_mutex_lock(&hashing.mutex);
        leave_lane(job);
        (void)pthread_mutex_unlock(&hashing.mutex);
    }
}

void job_cancel_hashing(void)
{
    (void)pthread_mutex_lock(&hashing.mutex);
    hashing.cancelled = true;
    (void)pthread_mutex_unlock(&hashing.mutex);
}

void job_join_hashing(void)
{
    (void)pthread_mutex_lock(&hashing.mutex);
    assert(hashing.ready.first == NULL);
    hashing.ending = true;
    (void)pthread_cond_broadcast(&hashing.wake);
    (void)pthread_mutex_unlock(&hashing.mutex);
    for (size_t i = 0; i < hashing.n_threads; i++) {
        (void)pthread_join(hashing.threads[i], NULL);
    }
    (void)pthread_mutex_lock(&hashing.mutex);
    hashing.n_threads = 0;
    hashing.cancelled = false;
    hashing.ending = false;
    (void)pthread_mutex_unlock(&hashing.mutex);
}
