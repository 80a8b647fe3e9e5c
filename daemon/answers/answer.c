/*
 * The answers to RPC requests: status, verdict, report and the requests of a person. Single tasks
 * are in answer_task.c, submit, amend and lost in files of their own; answer_find.c finds what a
 * request names.
 *
 * Requests of a person go through pump_request(), which commits before it returns: an answer says
 * what is journalled. What cannot be undone demands a program by name as soon as there are several.
 */
#include "daemon/answers/answer.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/core/explain.h"
#include "daemon/program/amended.h"
#include "daemon/shell/attempts.h"
#include "daemon/shell/verdict_job.h"
#include "prereg/program/cell_name.h"
#include "prereg/program/verdict_kind.h"
#include "prereg/program/verdict_tables.h"
#include "state/store/run_history.h"

/* A larger verdict.json is not in the answer, which has other members, too. */
#define ANSWERED_VERDICT_MAX (RPC_RESPONSE_MAX / 2)

/* ---- ping, status ---- */

/* The daemon itself; part of `ping` and of `status`. */
static cJSON *ping_json(const struct shell *sh)
{
    cJSON *o = json_object();
    cJSON *slots = json_object();
    json_put_int(o, "pid", getpid());
    json_put_string(o, "version", PREREGD_VERSION);
    json_put_string(o, "state", sh->state);
    summary_put_time(o, "started", sh->started);
    json_put_int(o, "programs", answer_n_programs(sh));
    json_put_int(slots, "total", sh->config.slots > 0 ? sh->config.slots : sh->config.cores);
    json_put_int(slots, "used", core_n_slots_used(sh->core));
    json_put(o, "slots", slots);
    json_put_int(o, "queued", core_n_queued(sh->core));
    if (sh->tenure != NULL) {
        json_put_string(o, "database", sh->local);
        json_put_string(o, "taken_over", sh->taken_over);
    }
    return o;
}

static int answer_ping(struct answer_context *ctx, const cJSON *params, cJSON **result,
                       struct err *err)
{
    (void)params;
    (void)err;
    *result = ping_json(ctx->shell);
    return 0;
}

/* Programs in the store that are not served, with the reason. */
static cJSON *unloaded_json(const struct shell *sh)
{
    cJSON *list = json_array();
    for (size_t i = 0; i < sh->n_unloaded; i++) {
        cJSON *o = json_object();
        json_put_string(o, "id", sh->unloaded[i].id);
        json_put_string(o, "why", sh->unloaded[i].why.msg);
        json_push(list, o);
    }
    return list;
}

/* Newest program first. */
static int answer_status(struct answer_context *ctx, const cJSON *params, cJSON **result,
                         struct err *err)
{
    struct hosted *only = NULL;
    cJSON *list = json_array();
    if (json_member(params, "program") != NULL) {
        int rc = answer_find_program(ctx->shell, params, &only, err);
        if (rc != 0) {
            cJSON_Delete(list);
            return rc;
        }
    }
    for (size_t i = ctx->shell->cap_programs; i-- > 0;) {
        const struct hosted *h = shell_served(ctx->shell, i);
        if (h == NULL || (only != NULL && only != h)) {
            continue;
        }
        cJSON *o = summary_json(ctx->shell, h);
        if (ctx->call->reader && h->status.unblinded && !h->status.unsealed) {
            /* it may quote a worker of a sealed stage, for the owner, who has opened the scores */
            (void)cJSON_ReplaceItemInObjectCaseSensitive(o, "paused_why", cJSON_CreateNull());
        }
        json_push(list, o);
    }
    *result = json_object();
    json_put(*result, "daemon", ping_json(ctx->shell));
    json_put(*result, "programs", list);
    json_put(*result, "unloaded", unloaded_json(ctx->shell));
    return 0;
}

/* The event that subscribers get: {"type":"progress","summary":SUMMARY}. */
static cJSON *progress_json(const struct shell *sh, const struct hosted *h)
{
    cJSON *o = json_object();
    json_put_string(o, "type", "progress");
    json_put(o, "summary", summary_json(sh, h));
    return o;
}

/* ---- verdict, report ---- */

/* Read once and kept: rows after the verdict do not change it, and a long journal takes time to
 * read. */
static cJSON *runs_of(const struct shell *sh, struct hosted *h)
{
    struct err err;
    if (h->runs == NULL) {
        if (run_record_read_list(sh->store, h->no, &h->runs, &err) != 0) {
            log_warn("%s: %s", h->id, err.msg);
        }
        h->runs = h->runs == NULL ? cJSON_CreateNull() : h->runs;
    }
    return json_copy(h->runs);
}

/* The verdict as it was written to the report; "pending" until the report's files are there. */
static cJSON *verdict_json_of(const struct shell *sh, struct hosted *h)
{
    cJSON *o = json_object();
    json_put_string(o, "program", h->id);
    json_put_string(o, "history", hosted_history(h));
    json_put_string(o, "history_why", h->history_why);
    json_put_string(o, "state", h->status.reported ? "computed" : "pending");
    if (!h->status.reported) {
        return o;
    }
    struct err err;
    cJSON *verdict = NULL;
    char *path = path_join(h->folder, LAYOUT_IN_REPORT(LAYOUT_VERDICT));
    verdict_kind_put(o, h->status.outcome);
    json_put_string(o, "path", path);
    json_put(o, "environments", lock_environments(h->bundle->lock));
    json_put(o, "runs", runs_of(sh, h));
    if (json_read_file(path, ANSWERED_VERDICT_MAX, &verdict, &err) != 0) {
        log_warn("%s", err.msg);
        json_put_null(o, "verdict");
    } else {
        json_put(o, "verdict", verdict);
        verdict_tables_put(o);
    }
    free(path);
    return o;
}

static int answer_verdict(struct answer_context *ctx, const cJSON *params, cJSON **result,
                          struct err *err)
{
    struct hosted *h = NULL;
    int rc = answer_find_program(ctx->shell, params, &h, err);
    if (rc == 0) {
        *result = verdict_json_of(ctx->shell, h);
    }
    return rc;
}

static int answer_report(struct answer_context *ctx, const cJSON *params, cJSON **result,
                         struct err *err)
{
    struct hosted *h = NULL;
    int rc = answer_find_program(ctx->shell, params, &h, err);
    if (rc != 0) {
        return rc;
    }
    char *folder = path_join(h->folder, LAYOUT_REPORT);
    *result = json_object();
    json_put_string(*result, "program", h->id);
    json_put_string(*result, "folder", folder);
    json_put_string(*result, "program_folder", h->folder);
    json_put_bool(*result, "ready", h->report_ready);
    free(folder);
    return 0;
}

/* The server answers this one: it sends events until the program ends. */
static int answer_subscribe(struct answer_context *ctx, const cJSON *params, cJSON **result,
                            struct err *err)
{
    struct hosted *h = NULL;
    (void)result;
    int rc = answer_find_program(ctx->shell, params, &h, err);
    if (rc == 0) {
        ctx->call->subscribed = h->no;
    }
    return rc;
}

/* ---- requests of a person ---- */

#define REASON_BYTES_MAX ((size_t)500) /* it may go into the row of every task */

/* NULL where none is given. */
static int find_reason(const cJSON *params, const char **reason, struct err *err)
{
    *reason = NULL;
    int rc = json_opt_string(params, "reason", reason, err);
    if (rc == 0 && *reason != NULL && strlen(*reason) > REASON_BYTES_MAX) {
        rc = err_set(err, ERR_USAGE, "the reason has %zu bytes; at most %zu", strlen(*reason),
                     REASON_BYTES_MAX);
    }
    if (rc == 0 && *reason != NULL && (*reason)[strspn(*reason, " \t\n")] == '\0') {
        *reason = NULL;
    }
    return rc;
}

/* Steps and commits one event of a person; the core's refusal is ERR_REFUSED. */
static int request(struct answer_context *ctx, enum core_event_kind kind, const struct hosted *h,
                   uint32_t task, const char *text, struct err *err)
{
    struct core_event ev = {.kind = kind, .program = h->no, .task = task, .text = text};
    return pump_request(ctx->shell->pump, &ev, err);
}

/* The answer of requests about tasks: how many they changed. */
static int put_count(cJSON **result, const struct hosted *h, int64_t n)
{
    *result = json_object();
    json_put_string(*result, "program", h->id);
    json_put_int(*result, "tasks", n);
    return 0;
}

/* The task that params name; UINT32_MAX when they name none. */
static int find_task(const struct hosted *h, const cJSON *params, uint32_t *task, struct err *err)
{
    const char *name = NULL;
    *task = UINT32_MAX;
    int rc = json_opt_string(params, "task", &name, err);
    if (rc != 0 || name == NULL) {
        return rc;
    }
    *task = hosted_find_task(h, name);
    return *task != UINT32_MAX ? 0 : answer_no_task(h, name, err);
}

struct task_range {
    uint32_t first;
    uint32_t end;
    const char *reason; /* or NULL */
};

/* Cancels every task of the range that has not ended. A refused task is skipped; the
 * refusal is the answer only when none was cancelled. */
static int cancel_each(struct answer_context *ctx, const struct hosted *h, struct task_range range,
                       cJSON **result, struct err *err)
{
    int64_t n = 0;
    bool refused = false;
    for (uint32_t t = range.first; t < range.end; t++) {
        if (task_state_is_terminal(h->tasks[t].state)) {
            continue;
        }
        int rc = request(ctx, CORE_CANCEL, h, t, range.reason, err);
        if (rc != 0 && rc != ERR_REFUSED) {
            return rc;
        }
        refused |= rc != 0;
        n += rc == 0;
    }
    return refused && n == 0 ? err->code : put_count(result, h, n);
}

/* Without a task: every blocked task that may be retried. The number is counted before, since the
 * core works in slices. */
static int answer_retry(struct answer_context *ctx, const cJSON *params, cJSON **result,
                        struct err *err)
{
    struct hosted *h = NULL;
    const char *reason = NULL;
    uint32_t task = 0;
    int rc = answer_find_named(ctx->shell, params, &h, err);
    if (rc != 0 || (rc = find_task(h, params, &task, err)) != 0 ||
        (rc = find_reason(params, &reason, err)) != 0) {
        return rc;
    }
    if (task == UINT32_MAX) {
        const char *refusal = NULL;
        int64_t n = core_n_retriable(ctx->shell->core, h->no, &refusal);
        rc = request(ctx, CORE_RETRY_ALL, h, 0, reason, err);
        return rc != 0 ? rc : put_count(result, h, n);
    }
    rc = request(ctx, CORE_RETRY, h, task, reason, err);
    return rc != 0 ? rc : put_count(result, h, 1);
}

static int64_t n_open(const struct hosted *h)
{
    return (int64_t)h->n_tasks - h->by_state[TASK_DONE] - h->by_state[TASK_BLOCKED] -
           h->by_state[TASK_NEVER_RUN];
}

static int cancel_cell(struct answer_context *ctx, const struct hosted *h, const cJSON *params,
                       cJSON **result, struct err *err)
{
    const struct plan_program *p = h->bundle->program;
    const char *name = json_member(params, "cell")->valuestring;
    size_t cell = program_match_cell(p, name);
    if (cell == INDEX_NONE) {
        return err_set(err, ERR_NOT_FOUND, "%s has no cell \"%.80s\"; `preregctl cells` lists them",
                       h->id, name);
    }
    struct task_range range = {.first = (uint32_t)(cell * p->n_stages),
                               .end = (uint32_t)((cell + 1) * p->n_stages)};
    int rc = find_reason(params, &range.reason, err);
    return rc != 0 ? rc : cancel_each(ctx, h, range, result, err);
}

/* By task, by cell, or everything. Without either, the number is what was open before, for the same
 * reason. */
static int answer_cancel(struct answer_context *ctx, const cJSON *params, cJSON **result,
                         struct err *err)
{
    struct hosted *h = NULL;
    const char *cell = NULL;
    const char *reason = NULL;
    uint32_t task = 0;
    int rc = answer_find_named(ctx->shell, params, &h, err);
    if (rc != 0 || (rc = find_task(h, params, &task, err)) != 0 ||
        (rc = json_opt_string(params, "cell", &cell, err)) != 0 ||
        (rc = find_reason(params, &reason, err)) != 0) {
        return rc;
    }
    if (cell != NULL) {
        return cancel_cell(ctx, h, params, result, err);
    }
    if (task != UINT32_MAX) {
        rc = request(ctx, CORE_CANCEL, h, task, reason, err);
        return rc != 0 ? rc : put_count(result, h, 1);
    }
    int64_t before = n_open(h);
    rc = request(ctx, CORE_STOP, h, 0, reason, err);
    return rc != 0 ? rc : put_count(result, h, before);
}

/* Pausing or resuming a program with a verdict has no effect, so it is refused. */
static int refuse_ended(const struct hosted *h, const char *act, struct err *err)
{
    return !h->status.verdict
               ? 0
               : err_set(err, ERR_REFUSED,
                         "%s has ended and has its verdict: there is nothing to %s", h->id, act);
}

static void put_state(cJSON **result, const struct hosted *h)
{
    *result = json_object();
    json_put_string(*result, "program", h->id);
    json_put_string(*result, "state", h->status.paused != 0 ? "paused" : "running");
}

static int answer_pause(struct answer_context *ctx, const cJSON *params, cJSON **result,
                        struct err *err)
{
    struct hosted *h = NULL;
    const char *reason = NULL;
    int rc = answer_find_program(ctx->shell, params, &h, err);
    if (rc != 0 || (rc = find_reason(params, &reason, err)) != 0 ||
        (rc = refuse_ended(h, "pause", err)) != 0 ||
        (rc = request(ctx, CORE_PAUSE, h, 0, reason, err)) != 0) {
        return rc;
    }
    put_state(result, h);
    return 0;
}

/* grid.toml is brought up to date first: while it is older than the last amendment the lock refuses
 * every start. */
static int answer_resume(struct answer_context *ctx, const cJSON *params, cJSON **result,
                         struct err *err)
{
    struct hosted *h = NULL;
    struct core_event ev = {.kind = CORE_RESUME};
    int rc = answer_find_program(ctx->shell, params, &h, err);
    if (rc != 0 || (rc = json_opt_bool(params, "accept_failures", &ev.accept_failures, err)) != 0 ||
        (rc = find_reason(params, &ev.text, err)) != 0 ||
        (rc = refuse_ended(h, "resume", err)) != 0 || (rc = amended_catch_up(h, err)) != 0) {
        return rc;
    }
    ev.program = h->no;
    rc = pump_request(ctx->shell->pump, &ev, err);
    if (rc != 0 && rc != ERR_REFUSED) { /* refused: it is running already, as was asked */
        return rc;
    }
    put_state(result, h);
    return 0;
}

/* A reason is required, since it is journalled. Scores that are open already are not an error. */
static int answer_unblind(struct answer_context *ctx, const cJSON *params, cJSON **result,
                          struct err *err)
{
    struct hosted *h = NULL;
    const char *reason = NULL;
    if (answer_find_named(ctx->shell, params, &h, err) != 0 ||
        json_get_string(params, "reason", &reason, err) != 0) {
        return err->code;
    }
    if (reason[strspn(reason, " \t\n")] == '\0') {
        return err_set(err, ERR_USAGE,
                       "an unblinding needs a reason: it is journalled and printed");
    }
    const bool already = h->status.unblinded || h->status.unsealed;
    if (!already && request(ctx, CORE_UNBLIND, h, 0, reason, err) != 0) {
        return err->code;
    }
    *result = json_object();
    json_put_string(*result, "program", h->id);
    json_put_bool(*result, "unblinded", true);
    json_put_bool(*result, "already", already);
    return 0;
}

/* With "kill" every attempt gets SIGTERM first; without it the workers go on and the next daemon
 * adopts them. */
static int answer_stop(struct answer_context *ctx, const cJSON *params, cJSON **result,
                       struct err *err)
{
    bool end_all = false;
    int rc = json_opt_bool(params, "kill", &end_all, err);
    if (rc != 0) {
        return rc;
    }
    struct shell *sh = ctx->shell;
    for (const struct shell_attempt *a = sh->attempts; end_all && a != NULL; a = a->next) {
        struct executor *x = shell_executor_of(sh, a);
        x->ops->terminate(x, &a->key);
    }
    *result = json_object();
    json_put_bool(*result, "stopping", true);
    json_put_int(*result, "attempts", (int64_t)sh->n_attempts);
    ctx->call->stop = true;
    return 0;
}

/* ---- the table ---- */

/* One function for each method; the table must have all of them. */
answer_fn *answer_to(enum rpc_method method)
{
    static answer_fn *const methods[RPC_METHOD_NR] = {
        [RPC_PING] = answer_ping,       [RPC_SUBMIT] = answer_submit,
        [RPC_STATUS] = answer_status,   [RPC_CELLS] = answer_cells,
        [RPC_EXPLAIN] = answer_explain, [RPC_LOGS] = answer_logs,
        [RPC_RETRY] = answer_retry,     [RPC_CANCEL] = answer_cancel,
        [RPC_PAUSE] = answer_pause,     [RPC_RESUME] = answer_resume,
        [RPC_UNBLIND] = answer_unblind, [RPC_VERDICT] = answer_verdict,
        [RPC_REPORT] = answer_report,   [RPC_SUBSCRIBE] = answer_subscribe,
        [RPC_STOP] = answer_stop,       [RPC_AMEND] = answer_amend,
        [RPC_LOST] = answer_lost,       [RPC_PROGRAMS] = answer_programs,
        [RPC_DISK] = answer_disk,       [RPC_REMOVE] = answer_remove,
        [RPC_PAGE] = answer_page,
    };
    assert(method < RPC_METHOD_NR);
    return methods[method];
}

static int on_request(void *ctx, struct server_call *call, const struct rpc_request *request_,
                      cJSON **result, struct err *err)
{
    struct answer_context answering = {.shell = ctx, .call = call};
    *result = NULL;
    if (call->reader && !rpc_method_is_for_readers(request_->method)) {
        return err_set(err, ERR_REFUSED,
                       "%s is not for readers, who may ask for status, cells, explain, programs, "
                       "report and verdict",
                       rpc_method_name(request_->method));
    }
    if (answering.shell->stop_until_ms != 0 && request_->method != RPC_STOP &&
        !rpc_method_is_for_readers(request_->method)) {
        return err_set(err, ERR_NO_DAEMON,
                       "preregd is stopping, and waits for what is being cancelled: try again when "
                       "it has ended, or `preregctl stop` it at once");
    }
    return answer_to(request_->method)(&answering, request_->params, result, err);
}

/* A subscriber's program: nothing while it has not changed; with the verdict, also the response
 * that ends the subscription. */
static void on_news(void *ctx, uint32_t program, uint64_t *seen, struct server_news *out)
{
    const struct shell *sh = ctx;
    struct hosted *h = shell_program(sh, program);
    const struct err *damage = pump_damage(sh->pump, program);
    if (*seen == h->version) {
        return;
    }
    *seen = h->version;
    if (damage != NULL) {
        out->failed = true;
        out->why = *damage;
        return;
    }
    out->event = progress_json(sh, h);
    out->result = h->status.reported ? verdict_json_of(sh, h) : NULL;
}

struct server_handler answer_handler(struct shell *sh)
{
    return (struct server_handler){.ctx = sh, .request = on_request, .news = on_news};
}
