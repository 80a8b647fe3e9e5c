#include "daemon/job.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
#define THREADS_MAX     1024 /* libuv takes no more */

void job_size_pool(void)
{
    char text[24];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long n = THREADS_BESIDES + THREADS_A_CORE * (cores > 0 ? cores : 1);
    (void)snprintf(text, sizeof(text), "%ld", n < THREADS_MAX ? n : THREADS_MAX);
    (void)setenv("UV_THREADPOOL_SIZE", text, 0);
}

void job_start(uv_loop_t *loop, struct job *job)
{
    job->request.data = job;
    int rc = uv_queue_work(loop, &job->request, on_job_work, on_job_done);
    assert(rc == 0); /* fails only without a work callback */
    (void)rc;
}
