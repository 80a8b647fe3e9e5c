#include "daemon/job.h"

#include <assert.h>
#include <stdlib.h>

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

void job_start(uv_loop_t *loop, struct job *job)
{
    job->request.data = job;
    int rc = uv_queue_work(loop, &job->request, on_job_work, on_job_done);
    assert(rc == 0); /* fails only without a work callback */
    (void)rc;
}
