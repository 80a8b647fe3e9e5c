/*
 * The page's own data. Whatever needs a program asks answer_find_program(), as the RPC does; the
 * paths of a task's attempts come from the RPC's `logs`, so that no second place builds them.
 */
#include "daemon/http/data.h"

#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/answers/answer.h"
#include "daemon/http/curves.h"

static void fail(struct page_request *r, const struct err *why)
{
    reply_error(&r->reply, why);
    r->ready = true;
}

static void succeed(struct page_request *r, cJSON *value)
{
    reply_json(&r->reply, value);
    r->ready = true;
    cJSON_Delete(value);
}

/* ---- an attempt's files ---- */

/* The attempt of `logs` with this number, or its newest for 0; NULL: there is none. *logs owns
 * it. */
static const cJSON *find_attempt(struct page_request *r, const cJSON *params, int64_t no,
                                 cJSON **logs, struct err *err)
{
    struct http *h = r->http;
    struct server_call call = {.connection = r->id};
    struct rpc_request request = {.method = RPC_LOGS, .params = params};
    *logs = NULL;
    if (h->handler.request(h->handler.ctx, &call, &request, logs, err) != 0) {
        return NULL;
    }
    const cJSON *a = NULL;
    cJSON_ArrayForEach(a, json_member(*logs, "attempts"))
    {
        const cJSON *its = json_member(a, "no");
        if (cJSON_IsNumber(its) && (no == 0 || (int64_t)its->valuedouble == no)) {
            return a;
        }
    }
    (void)err_set(err, ERR_NOT_FOUND,
                  no == 0 ? "the task has had no attempt yet"
                          : "the task has no attempt of that number");
    return NULL;
}

/* Whether what a task measures is still sealed. */
static bool is_sealed(const struct hosted *h, uint32_t task)
{
    return !hosted_is_check(h, task) && curves_are_sealed(h, hosted_stage(h, task));
}

static int find_task(const struct page_request *r, const cJSON *params, struct hosted **h,
                     uint32_t *task, struct err *err)
{
    const char *name = NULL;
    if (answer_find_program(r->http->shell, params, h, err) != 0 ||
        json_get_string(params, "task", &name, err) != 0) {
        return err->code == ERR_NOT_FOUND ? err->code
                                          : err_set(err, ERR_USAGE, "task=CELL/STAGE is missing");
    }
    *task = hosted_find_task(*h, name);
    return *task != UINT32_MAX ? 0 : answer_no_task(*h, name, err);
}

#define TAIL_BYTES ((int64_t)64 * 1024)

static void serve_tail(struct page_request *r, const cJSON *params)
{
    struct hosted *h = NULL;
    struct err err;
    uint32_t task = 0;
    int64_t no = 0;
    int64_t bytes = TAIL_BYTES;
    const char *file = "stdout";
    cJSON *logs = NULL;
    if (find_task(r, params, &h, &task, &err) != 0 ||
        json_opt_string(params, "file", &file, &err) != 0 ||
        json_opt_int(params, "attempt", 0, UINT32_MAX, &no, &err) != 0 ||
        json_opt_int(params, "bytes", 1, JSON_INT_MAX, &bytes, &err) != 0) {
        fail(r, &err);
        return;
    }
    if (strcmp(file, "stdout") != 0 && strcmp(file, "stderr") != 0 && strcmp(file, "events") != 0) {
        (void)err_set(&err, ERR_USAGE, "\"file\": expected stdout, stderr or events");
        fail(r, &err);
        return;
    }
    const cJSON *a = find_attempt(r, params, no, &logs, &err);
    if (a == NULL) {
        fail(r, &err);
    } else {
        struct page_job *j = page_job_new(tail_read);
        j->path = xstrdup(json_member(a, file)->valuestring);
        j->bytes = bytes;
        j->sealed = strcmp(file, "events") == 0 && is_sealed(h, task);
        page_job_start(r, j);
    }
    cJSON_Delete(logs);
}

static void serve_files(struct page_request *r, const cJSON *params)
{
    struct hosted *h = NULL;
    struct err err;
    uint32_t task = 0;
    cJSON *logs = NULL;
    const cJSON *a = NULL;
    if (find_task(r, params, &h, &task, &err) != 0 ||
        (a = find_attempt(r, params, 0, &logs, &err)) == NULL) {
        fail(r, &err);
    } else {
        struct page_job *j = page_job_new(files_read);
        j->folder = xstrdup(json_member(a, "folder")->valuestring);
        j->sealed = is_sealed(h, task);
        page_job_start(r, j);
    }
    cJSON_Delete(logs);
}

/* ---- report ---- */

/* rest: ID/PATH; without a path its HTML. */
static void serve_report(struct page_request *r, const char *rest)
{
    struct err err;
    struct hosted *h = NULL;
    const size_t n = strcspn(rest, "/");
    char *id = xstrndup(rest, n);
    const char *path = rest[n] == '\0' ? "" : rest + n + 1;
    cJSON *params = json_object();
    json_put_string(params, "program", id);
    int rc = answer_find_program(r->http->shell, params, &h, &err);
    if (rc == 0 && (!h->status.reported || !h->report_ready)) {
        rc = err_set(&err, ERR_REFUSED, "%.80s has no report yet", h->id);
    }
    if (rc == 0 && path[0] != '\0' && !path_stays_inside(path)) {
        rc = err_set(&err, ERR_NOT_FOUND, "the report has no such file");
    }
    if (rc != 0) {
        fail(r, &err);
    } else {
        struct page_job *j = page_job_new(report_read);
        j->folder = path_join(h->folder, LAYOUT_REPORT);
        j->name = xstrdup(path[0] == '\0' ? LAYOUT_REPORT_HTML : path);
        page_job_start(r, j);
    }
    cJSON_Delete(params);
    free(id);
}

static void serve_plan(struct page_request *r, const cJSON *params)
{
    struct hosted *h = NULL;
    struct err err;
    if (answer_find_program(r->http->shell, params, &h, &err) != 0) {
        fail(r, &err);
    } else {
        succeed(r, plan_json(h));
    }
}

void data_serve(struct page_request *r, const struct guard_target *t)
{
    switch ((int)t->route) {
    case ROUTE_TAIL: serve_tail(r, t->params); break;
    case ROUTE_FILES: serve_files(r, t->params); break;
    case ROUTE_REPORT: serve_report(r, t->rest); break;
    case ROUTE_PLAN: serve_plan(r, t->params); break;
    case ROUTE_CURVES: curves_serve(r, t->params); break;
    case ROUTE_MACHINE: succeed(r, machine_json(r->http->shell)); break;
    default: reply_refuse(&r->reply, MHD_HTTP_NOT_FOUND, "not_found", "there is no such page");
    }
    r->ready = r->ready || !r->waiting;
}
