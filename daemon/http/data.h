/*
 * What the page shows besides the RPC's answers. Small things are answered on the loop (data.c),
 * and what reads files is a job (jobs.c), of which there are at most HTTP_JOBS_MAX.
 */
#ifndef DAEMON_HTTP_DATA_H
#define DAEMON_HTTP_DATA_H

#include "daemon/http/internal.h"

/* Makes r->reply, or starts a job that will. */
void data_serve(struct page_request *r, const struct guard_target *t);

/* machine.c: {"host","cores","slots",...} of docs/page.md. */
cJSON *machine_json(const struct shell *sh);

/* plan.c: the plan's texts, as `preregctl check` prints them. */
cJSON *plan_json(const struct hosted *h);

/* ---- jobs.c ---- */

/* Work off the loop for one request. `read` fills `reply` or `err`, and touches nothing else. */
struct page_job {
    struct job job;
    struct http *http;
    uint64_t id; /* of the request, which may be gone when it is done */
    int (*read)(struct page_job *j, struct err *err);
    char *folder; /* what it reads from */
    char *name;
    char *path;
    int64_t bytes;
    bool sealed;    /* of events and names of files: what may be a score is left out */
    void *question; /* what else `read` is about */
    void (*free_question)(void *question); /* NULL: there is none */
    void (*keep)(struct page_job *j);      /* on the loop, of one that succeeded; NULL: nothing */
    struct reply reply;
    int rc;
    struct err err;
};

/* From `read`: the page is being closed, so the answer is not awaited and may end early. */
bool page_job_is_stopped(const struct page_job *j);
/* Takes the job over and starts it, or refuses when there are too many. */
void page_job_start(struct page_request *r, struct page_job *j);
struct page_job *page_job_new(int (*read)(struct page_job *j, struct err *err))
    __attribute__((returns_nonnull));

/* read functions. tail: `path`, `bytes`; files: `folder`; report: `folder`, `name`. */
int tail_read(struct page_job *j, struct err *err) MUST_CHECK;
int files_read(struct page_job *j, struct err *err) MUST_CHECK;
int report_read(struct page_job *j, struct err *err) MUST_CHECK;

#endif
