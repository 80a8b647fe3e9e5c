/* cells, explain, logs: the answers about single tasks. Everything shown is a state, a count, a
 * path or a reason. A result is read only to compare it with its accepted digest, so no score can
 * be shown (invariant 8). */
#include <math.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/answers/answer.h"
#include "daemon/answers/placement.h"
#include "daemon/core/core.h"
#include "daemon/core/explain.h"
#include "daemon/program/inputs.h"
#include "daemon/program/prepare.h"
#include "daemon/shell/attempts.h"
#include "daemon/shim/files.h"
#include "prereg/program/same_work.h"

/* The task's attempt in flight; NULL when none is. */
static const struct shell_attempt *live_of(const struct shell *sh, const struct hosted *h,
                                           uint32_t task)
{
    for (const struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        if (a->key.program == h->no && a->key.task == task && !a->closing) {
            return a;
        }
    }
    return NULL;
}

static void put_text(cJSON *o, const char *key, const char *text)
{
    json_put_string(o, key, text == NULL || text[0] == '\0' ? NULL : text);
}

/* Negative means unknown and becomes null. */
static void put_count(cJSON *o, const char *key, int64_t v)
{
    if (v < 0) {
        json_put_null(o, key);
    } else {
        json_put_int(o, key, v);
    }
}

/* The estimated rest in milliseconds, by the attempt's pace; negative: unknown. */
static double left_of(const struct shell_attempt *a)
{
    if (a == NULL || a->row.done <= 0 || a->row.total < a->row.done) {
        return -1;
    }
    double pace = attempt_pace_ms(a);
    return isnan(pace) ? -1 : pace * (double)(a->row.total - a->row.done);
}

/* The members that `cells` and `explain` have in common. */
void answer_put_task(cJSON *o, const struct shell *sh, const struct hosted *h, uint32_t task)
{
    const struct task_row *t = &h->tasks[task];
    const struct shell_attempt *a = live_of(sh, h, task);
    const struct plan_program *p = h->bundle->program;
    json_put_string(o, "stage", p->stages[hosted_stage(h, task)].name);
    json_put_string(o, "state", summary_task_state(sh, h, task));
    put_text(o, "cause", cause_name(t->cause));
    json_put_int(o, "attempts", t->n_attempts);
    put_text(o, "section",
             a != NULL && a->row.section < SECTION_NR ? section_name(a->row.section) : NULL);
    put_count(o, "done", a != NULL ? a->row.done : -1);
    put_count(o, "total", a != NULL ? a->row.total : -1);
    put_text(o, "unit", a != NULL ? a->unit : NULL);
    json_put(o, "gpus", placement_gpus(sh, a != NULL ? a->row.placement.gpus : ""));
    summary_put_span(o, "eta_ms", left_of(a));
}

/* ---- cells ---- */

static cJSON *cell_json(const struct shell *sh, const struct hosted *h, size_t cell)
{
    const struct plan_program *p = h->bundle->program;
    cJSON *o = json_object();
    cJSON *tasks = json_array();
    char *folder = xasprintf("%s/" LAYOUT_CELLS "/%s", h->folder, p->cells[cell].folder);
    json_put_string(o, "name", p->cells[cell].name);
    json_put_string(o, "folder", folder);
    for (size_t s = 0; s < p->n_stages; s++) {
        cJSON *t = json_object();
        answer_put_task(t, sh, h, (uint32_t)(cell * p->n_stages + s));
        json_push(tasks, t);
    }
    json_put(o, "tasks", tasks);
    free(folder);
    return o;
}

/* One page: at most RPC_CELLS_PAGE_MAX cells from `offset` on. */
int answer_cells(struct answer_context *ctx, const cJSON *params, cJSON **result, struct err *err)
{
    struct hosted *h = NULL;
    int64_t offset = 0;
    int64_t limit = RPC_CELLS_PAGE_MAX;
    int rc = answer_find_program(ctx->shell, params, &h, err);
    if (rc != 0 || (rc = json_opt_int(params, "offset", 0, JSON_INT_MAX, &offset, err)) != 0 ||
        (rc = json_opt_int(params, "limit", 1, RPC_CELLS_PAGE_MAX, &limit, err)) != 0) {
        return rc;
    }
    const struct plan_program *p = h->bundle->program;
    cJSON *stages = json_array();
    cJSON *cells = json_array();
    for (size_t s = 0; s < p->n_stages; s++) {
        json_push_string(stages, p->stages[s].name);
    }
    for (int64_t c = offset; c < offset + limit && (uint64_t)c < p->n_cells; c++) {
        json_push(cells, cell_json(ctx->shell, h, (size_t)c));
    }
    *result = json_object();
    json_put_string(*result, "program", h->id);
    json_put_int(*result, "n_cells", (int64_t)p->n_cells);
    json_put_int(*result, "offset", offset);
    json_put(*result, "stages", stages);
    json_put(*result, "cells", cells);
    json_put(*result, "apparatus", summary_checks(ctx->shell, h));
    return 0;
}

/* ---- explain ---- */

static int find_one(struct answer_context *ctx, const cJSON *params, struct hosted **h,
                    uint32_t *task, struct err *err)
{
    const char *name = NULL;
    int rc = answer_find_program(ctx->shell, params, h, err);
    if (rc == 0) {
        rc = json_get_string(params, "task", &name, err);
    }
    if (rc != 0) {
        return rc;
    }
    *task = hosted_find_task(*h, name);
    return *task != UINT32_MAX ? 0 : answer_no_task(*h, name, err);
}

/* The core's reason as a word of docs/rpc.md, which has fewer of them. */
static const char *why_code(const struct core_explanation *e)
{
    switch (e->why) {
    case WHY_ENDED: return task_state_name(e->row.state);
    case WHY_UNKNOWN: return "unknown";
    case WHY_RUNNING: return e->row.state == TASK_STARTING ? "starting" : "running";
    case WHY_VERIFYING:
    case WHY_ENDING: return "running";
    case WHY_DEPENDENCY: return "dependency";
    case WHY_PAUSED: return (e->paused & PAUSE_DISK) != 0 ? "disk" : "paused";
    case WHY_APPARATUS: return "apparatus";
    case WHY_GRID: return "grid";
    case WHY_BACKOFF: return "backoff";
    case WHY_QUEUED: return "queued";
    case WHY_PRIORITY: return "priority";
    case WHY_SLOTS: break;
    }
    if (e->executor != EXECUTOR_LOCAL) {
        return "queue";
    }
    if (e->lacks_gpus && e->free_slots > 0) {
        return "gpus";
    }
    return e->memory_bytes > e->free_memory_bytes ? "memory" : "slots";
}

/* What the executor of its live attempt has to say; NULL when there is none, or nothing. */
static char *executor_words(const struct shell *sh, const struct hosted *h, uint32_t task,
                            uint32_t no)
{
    const struct attempt_key key = {.program = h->no, .task = task, .no = no};
    const struct shell_attempt *a = no == 0 ? NULL : attempt_find(sh, &key);
    struct strbuf words = STRBUF_INIT;
    if (a != NULL) {
        const struct executor *x = shell_executor_of(sh, a);
        (void)x->ops->explain(x, &key, false, &words);
    }
    if (words.len > 0) {
        return strbuf_detach(&words);
    }
    strbuf_release(&words);
    return NULL;
}

/* The reason in a word and in a sentence, whether a retry is allowed, and the times that it waits
 * for. */
static void put_why(cJSON *o, const struct shell *sh, const struct core_explanation *e,
                    const char *far)
{
    struct strbuf text = STRBUF_INIT;
    core_explanation_text(sh->core, e, clock_mono(), &text);
    if (far != NULL) {
        strbuf_addf(&text, "%s %s", e->why == WHY_QUEUED ? ":" : "; in Slurm:", far);
    }
    json_put_string(o, "why", why_code(e));
    put_text(o, "why_text", text.buf);
    strbuf_release(&text);
    bool has_failed = e->row.state == TASK_BLOCKED || e->row.state == TASK_NEVER_RUN;
    json_put_bool(o, "may_retry", e->retry_refusal == NULL);
    put_text(o, "retry_refusal", has_failed ? e->retry_refusal : NULL);
    int64_t wait = e->wait_due_ms - clock_mono().ms;
    put_count(o, "not_before_ms", e->wait_due_ms == 0 ? -1 : wait > 0 ? wait : 0);
    int64_t left = e->deadline_ms - clock_mono().ms;
    put_count(o, "deadline_left_ms", e->deadline_ms == 0 ? -1 : left > 0 ? left : 0);
}

/* The stages it waits for: those of its cell that it needs and that are not done; then, by its
 * whole name, the task that does its work. */
static void put_dependencies(cJSON *o, const struct shell *sh, const struct hosted *h,
                             uint32_t task)
{
    const struct plan_program *p = h->bundle->program;
    const struct plan_stage *s = &p->stages[hosted_stage(h, task)];
    uint32_t first = task - task % (uint32_t)p->n_stages;
    cJSON *list = json_array();
    for (size_t i = 0; i < s->n_after && !hosted_is_check(h, task); i++) {
        const uint32_t other = first + (uint32_t)s->after[i];
        const struct task_row *t = &h->tasks[other];
        if (t->state == TASK_DONE) {
            continue;
        }
        cJSON *d = json_object();
        json_put_string(d, "stage", p->stages[s->after[i]].name);
        json_put_string(d, "state", summary_task_state(sh, h, other));
        put_text(d, "cause", cause_name(t->cause));
        json_push(list, d);
    }
    const uint32_t worker = hosted_is_check(h, task) ? task : (uint32_t)program_worker_of(p, task);
    if (worker != task && h->tasks[worker].state != TASK_DONE) {
        char *name = hosted_task_name(h, worker);
        cJSON *d = json_object();
        json_put_string(d, "stage", name);
        json_put_string(d, "state", summary_task_state(sh, h, worker));
        put_text(d, "cause", cause_name(h->tasks[worker].cause));
        json_push(list, d);
        free(name);
    }
    json_put(o, "waits_for", list);
}

static cJSON *budget(int64_t used, int64_t limit)
{
    cJSON *o = json_object();
    json_put_int(o, "used", used);
    json_put_int(o, "limit", limit);
    return o;
}

/* What the failures so far have spent, and the limits at which the task is blocked. */
static void put_budgets(cJSON *o, const struct hosted *h, uint32_t task)
{
    const struct stage_run *run = &h->bundle->program->stages[hosted_stage(h, task)].run;
    const struct task_row *t = &h->tasks[task];
    cJSON *budgets = json_object();
    json_put(budgets, "crashes", budget(t->crashes, run->crashes));
    json_put(budgets, "attempts", budget(t->spent, run->attempts));
    json_put(budgets, "no_progress",
             budget(t->idle, run->crashes > CORE_IDLE_MAX ? run->crashes : CORE_IDLE_MAX));
    json_put(o, "budgets", budgets);
}

#define PLACES_READ_MAX 16 /* of the newest attempts: their files are read on the loop */

struct attempts_list {
    const struct shell *shell;
    const struct hosted *hosted;
    cJSON *list;
    int64_t malformed;
    bool files; /* logs: paths; else explain: how it went */
};

/* What never ran has a reason and no cause: host_lost, in its row, only says which budget it
 * spares. */
static void put_ending(cJSON *o, const struct attempt_row *a)
{
    const bool has_cause = a->reason != END_NEVER_LAUNCHED || a->cause != CAUSE_HOST_LOST;
    summary_put_time(o, "started", a->started);
    summary_put_time(o, "ended", a->ended);
    put_text(o, "cause", has_cause ? cause_name(a->cause) : NULL);
    put_count(o, "code", a->code);
    put_count(o, "signal", a->signal == 0 ? -1 : a->signal);
    put_text(o, "reason", a->state == ATTEMPT_ENDED ? end_reason_name(a->reason) : NULL);
    put_count(o, "resumed_from", a->resumed_from);
    json_put_int(o, "garbage_lines", a->malformed);
    json_put_null(o, "detail");
}

static void put_file(cJSON *o, const char *key, const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    json_put_string(o, key, path);
    free(path);
}

/* One attempt: its files for `logs`, its ending for `explain`. */
static int push_attempt(void *ctx, uint32_t task, const struct attempt_row *a, struct err *err)
{
    struct attempts_list *l = ctx;
    (void)err;
    l->malformed += a->malformed;
    cJSON *o = json_object();
    char *folder = hosted_attempt_folder(l->hosted, task, a->no, a->id);
    json_put_int(o, "no", a->no);
    json_put_string(o, "id", a->id);
    json_put_string(o, "folder", folder);
    if (l->files) {
        put_file(o, "stdout", folder, LAYOUT_STDOUT);
        put_file(o, "stderr", folder, LAYOUT_STDERR);
        put_file(o, "events", folder, LAYOUT_EVENTS);
    } else {
        put_ending(o, a);
        const bool is_recent = l->hosted->tasks[task].n_attempts < a->no + PLACES_READ_MAX;
        placement_put(o, l->shell, is_recent ? folder : NULL, a);
    }
    json_put_bool(o, "live", a->state != ATTEMPT_ENDED);
    if (l->files) {
        (void)cJSON_InsertItemInArray(l->list, 0, o); /* newest first */
    } else {
        json_push(l->list, o);
    }
    free(folder);
    return 0;
}

/* Adds the journal's details to their attempts. They are about forms, names and digests: nothing
 * that verifies a result states a value. */
static int put_detail(void *ctx, uint32_t attempt_no, const char *detail, struct err *err)
{
    const struct attempts_list *l = ctx;
    cJSON *o = NULL;
    (void)err;
    cJSON_ArrayForEach(o, l->list)
    {
        int64_t no = 0;
        struct err ignored;
        if (json_get_int(o, "no", 0, UINT32_MAX, &no, &ignored) == 0 && no == attempt_no) {
            (void)cJSON_ReplaceItemInObjectCaseSensitive(o, "detail", cJSON_CreateString(detail));
        }
    }
    return 0;
}

/* For a done task: whether its result is still there as it was accepted. as_accepted is null when
 * that cannot be determined now. */
static void put_on_disk(cJSON *o, const struct shell *sh, const struct hosted *h, uint32_t task)
{
    struct accepted_list one = {0};
    struct err err;
    size_t n = 0;
    if (hosted_is_check(h, task) || h->tasks[task].state != TASK_DONE) {
        json_put_null(o, "on_disk");
        return;
    }
    int rc = inputs_of_one(sh->store, h, task, &one, &err);
    if (rc == 0) {
        rc = inputs_glance(&one, &n, &err);
    }
    cJSON *disk = json_object();
    if (h->status.removed) {
        rc = err_set(&err, ERR_REFUSED, "the program's cells were removed");
    }
    if (rc == 0 || rc == ERR_LOCK) {
        json_put_bool(disk, "as_accepted", rc == 0);
    } else {
        json_put_null(disk, "as_accepted");
    }
    json_put_int(disk, "artifacts", (int64_t)n);
    json_put_string(disk, "why", rc == 0 ? NULL : err.msg);
    json_put(o, "on_disk", disk);
    inputs_release(&one);
}

/* The core gives the reason; store and mirror give the attempts and what is on the disk. */
int answer_explain(struct answer_context *ctx, const cJSON *params, cJSON **result, struct err *err)
{
    struct hosted *h = NULL;
    struct core_explanation e;
    uint32_t task = 0;
    int rc = find_one(ctx, params, &h, &task, err);
    if (rc != 0) {
        return rc;
    }
    if (!core_explain(ctx->shell->core, h->no, task, &e)) {
        return err_set(err, ERR_NOT_FOUND, "%s has no such task", h->id);
    }
    const struct plan_program *p = h->bundle->program;
    size_t stage = hosted_stage(h, task);
    cJSON *o = json_object();
    struct attempts_list l = {.shell = ctx->shell, .hosted = h, .list = json_array()};
    json_put_string(o, "program", h->id);
    answer_put_task(o, ctx->shell, h, task);
    bool of_grid = !hosted_is_check(h, task);
    json_put_string(o, "cell", of_grid ? p->cells[hosted_cell(h, task)].name : NULL);
    cJSON *check = of_grid ? NULL : summary_check(ctx->shell, h, task);
    json_put(o, "apparatus", check != NULL ? check : cJSON_CreateNull());
    json_put_bool(o, "counted", of_grid && program_stage_is_counted(p, stage));
    json_put_bool(o, "sealed",
                  of_grid && program_stage_is_sealed(p, stage) && !h->status.unsealed &&
                      !h->status.unblinded);
    json_put_string(o, "narrower", counted_narrower(ctx->shell, h, task));
    char *far = executor_words(ctx->shell, h, task, e.attempt.no);
    put_why(o, ctx->shell, &e, far);
    free(far);
    const struct hosted *ahead = e.why == WHY_PRIORITY ? shell_program(ctx->shell, e.ahead) : NULL;
    json_put_string(o, "behind", ahead == NULL ? NULL : ahead->id);
    put_on_disk(o, ctx->shell, h, task);
    put_dependencies(o, ctx->shell, h, task);
    put_budgets(o, h, task);
    rc = store_attempts(ctx->shell->store, h->no, task, push_attempt, &l, err);
    /* a worker's last words: who reads may see those of a sealed stage only at the end, even if the
     * owner has opened the scores before */
    const bool quiet =
        ctx->call->reader && of_grid && program_stage_is_sealed(p, stage) && !h->status.unsealed;
    if (rc == 0 && !quiet) {
        rc = store_endings(ctx->shell->store, h->no, task, put_detail, &l, err);
    }
    json_put_int(o, "garbage_lines", l.malformed);
    json_put(o, "attempt_list", l.list);
    if (rc != 0) {
        cJSON_Delete(o);
        return rc;
    }
    *result = o;
    return 0;
}

int answer_logs(struct answer_context *ctx, const cJSON *params, cJSON **result, struct err *err)
{
    struct hosted *h = NULL;
    uint32_t task = 0;
    int rc = find_one(ctx, params, &h, &task, err);
    if (rc != 0) {
        return rc;
    }
    if (h->status.removed && !hosted_is_check(h, task)) {
        return err_set(
            err, ERR_REFUSED,
            "the cells of %.80s were removed, its logs with them; plan, journal, verdict "
            "and report are kept",
            h->id);
    }
    struct attempts_list l = {.hosted = h, .list = json_array(), .files = true};
    rc = store_attempts(ctx->shell->store, h->no, task, push_attempt, &l, err);
    if (rc != 0) {
        cJSON_Delete(l.list);
        return rc;
    }
    char *name = hosted_task_name(h, task);
    *result = json_object();
    json_put_string(*result, "program", h->id);
    json_put_string(*result, "task", name);
    json_put(*result, "attempts", l.list);
    free(name);
    return 0;
}
