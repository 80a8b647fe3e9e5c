/*
 * The summary of a program, for status and subscribers (SUMMARY in docs/rpc.md). Counts come from
 * the core, most else from the mirror; nothing in it is a score (invariant 8).
 *
 * The time left is estimated per stage from tasks that are done, else from a running attempt's
 * pace, else from what the worker declared; it is null when a stage with work left has none of
 * these. An apparatus check takes as long as its first run took, else as declared.
 */
#include <math.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/answers/answer.h"
#include "daemon/answers/placement.h"
#include "daemon/core/explain.h"
#include "daemon/program/apparatus.h"
#include "daemon/shell/attempts.h"
#include "daemon/shell/gpu_watch.h"
#include "daemon/shell/verdict_job.h"
#include "prereg/program/apparatus_name.h"
#include "prereg/program/input_reads.h"
#include "prereg/program/verdict_kind.h"
#include "prereg/task/describe.h"

#define SPAN_MAX_MS (10 * 365.25 * 24 * 3600 * 1000) /* a longer estimate is of no use */

void summary_put_span(cJSON *o, const char *key, double ms)
{
    json_put_number(o, key, ms >= 0 && ms <= SPAN_MAX_MS ? floor(ms) : (double)NAN);
}

void summary_put_time(cJSON *o, const char *key, struct wall_time t)
{
    char text[WALL_TEXT_SIZE];
    clock_wall_text(t, text);
    json_put_string(o, key, t.ms == 0 ? NULL : text);
}

const char *summary_task_state(const struct shell *sh, const struct hosted *h, uint32_t task)
{
    const struct task_row *t = &h->tasks[task];
    bool waits = t->state == TASK_READY && core_backoff_due_ms(sh->core, h->no, task) != 0;
    return waits ? "backoff" : task_state_name(t->state);
}

/* ---- time left ---- */

/* The time of one whole task of each stage in ms, from tasks that are done, else from the pace of
 * one that runs; NaN where there are none of these. */
static void estimate_stages(const struct shell *sh, const struct hosted *h, double *total_ms)
{
    const struct plan_program *p = h->bundle->program;
    for (size_t s = 0; s < p->n_stages; s++) {
        total_ms[s] = (double)NAN;
    }
    for (const struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        if (a->key.program == h->no && a->row.done > 0 && a->row.total > a->row.done &&
            !hosted_is_check(h, a->key.task)) {
            double pace = attempt_pace_ms(a);
            double *total = &total_ms[hosted_stage(h, a->key.task)];
            *total = isnan(pace) ? *total : pace * (double)a->row.total;
        }
    }
    for (size_t s = 0; s < p->n_stages; s++) {
        if (h->times[s].n > 0) {
            total_ms[s] = h->times[s].sum_ms / (double)h->times[s].n;
        }
    }
}

/* The same for the tasks of every condition, [condition][stage]: where estimate_stages() knows
 * nothing, what the worker forecast for that condition in the lock. */
static double *estimate_conditions(const struct hosted *h, const double *stage_ms)
{
    const struct plan_program *p = h->bundle->program;
    double *ms = xcalloc(p->n_conditions * p->n_stages, sizeof(*ms));
    for (size_t i = 0; i < p->n_conditions * p->n_stages; i++) {
        const size_t s = i % p->n_stages;
        ms[i] = stage_ms[s];
        if (isnan(ms[i])) {
            const cJSON *said = describe_find(h->bundle->lock->describe, p, i / p->n_stages, s);
            const cJSON *seconds = json_member(said, "seconds");
            ms[i] = cJSON_IsNumber(seconds) ? seconds->valuedouble * 1000 : (double)NAN;
        }
    }
    return ms;
}

/* How many tasks of a stage can run at the same time, at least 1. */
static double side_by_side(const struct shell *sh, const struct plan_program *p, size_t stage)
{
    double n = (double)sh->config.cores / (double)p->stages[stage].threads;
    if (sh->config.memory_bytes > 0 && p->stages[stage].run.memory_bytes > 0) {
        n = fmin(n, (double)sh->config.memory_bytes / (double)p->stages[stage].run.memory_bytes);
    }
    if (p->run.slots > 0) {
        n = fmin(n, (double)p->run.slots);
    }
    return fmax(floor(n), 1);
}

/* How long a run of that check took; negative: none has ended well. */
static int64_t check_took_ms(const struct hosted *h, const char *first)
{
    int64_t took = -1;
    for (size_t i = 0; took < 0 && i < h->n_checks; i++) {
        took = apparatus_name_is_of(h->checks[i].name, first) ? h->checks[i].took_ms : took;
    }
    return took;
}

/* The runs of apparatus checks that are left; total_ms as of estimate_stages(). They mostly wait
 * for one another: the first ones come before everything counted, the second ones after it. */
static double checks_left_ms(const struct hosted *h, const double *total_ms)
{
    const struct bundle *b = h->bundle;
    double left = 0;
    for (size_t i = 0; i < h->n_checks; i++) {
        const size_t at = program_find_apparatus(b->program, h->checks[i].name);
        if (at == INDEX_NONE || task_state_is_terminal(h->tasks[h->n_tasks + i].state)) {
            continue;
        }
        const struct plan_apparatus *check = &b->program->apparatus[at];
        const int64_t took = check_took_ms(
            h, check->first == INDEX_NONE ? check->name : b->program->apparatus[check->first].name);
        const double said = describe_check_seconds(b->lock->describe, b->program, check) * 1000;
        left += took >= 0 ? (double)took : isnan(said) ? total_ms[check->stage] : said;
    }
    return left;
}

/* All open tasks at full parallelism, less the progress of running ones. What runs no worker takes
 * moments. */
double summary_eta_ms(const struct shell *sh, const struct hosted *h)
{
    const struct plan_program *p = h->bundle->program;
    double *stage_ms = xcalloc(p->n_stages, sizeof(*stage_ms));
    estimate_stages(sh, h, stage_ms);
    double *task_ms = estimate_conditions(h, stage_ms);
    double left = 0;
    for (size_t i = 0; i < h->n_tasks; i++) {
        const size_t s = i % p->n_stages;
        const size_t condition = p->cells[i / p->n_stages].condition;
        if (!task_state_is_terminal(h->tasks[i].state) && !hosted_accepts(h, (uint32_t)i)) {
            left += task_ms[condition * p->n_stages + s] / side_by_side(sh, p, s);
        }
    }
    for (const struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        if (a->key.program == h->no && a->row.done > 0 && a->row.total >= a->row.done &&
            a->row.total > 0 && !hosted_is_check(h, a->key.task)) {
            const size_t s = hosted_stage(h, a->key.task);
            const size_t condition = p->cells[a->key.task / p->n_stages].condition;
            left -= task_ms[condition * p->n_stages + s] / side_by_side(sh, p, s) *
                    (double)a->row.done / (double)a->row.total;
        }
    }
    left += checks_left_ms(h, stage_ms);
    free(task_ms);
    free(stage_ms);
    return left;
}

/* ---- counts ---- */

/* "ready" excludes backoff, and "starting" what waits in Slurm's queue: each is shown by itself.
 * The members add up to "planned". */
static cJSON *tasks_json(const struct shell *sh, const struct hosted *h)
{
    struct core_counts c = {0};
    cJSON *o = json_object();
    (void)core_counts_get(sh->core, h->no, &c);
    uint32_t queued = placement_n_queued(sh, h); /* its row may be a moment ahead of the count */
    queued = queued < c.by_state[TASK_STARTING] ? queued : c.by_state[TASK_STARTING];
    json_put_int(o, "planned", (int64_t)h->n_tasks);
    json_put_int(o, "waiting", c.by_state[TASK_WAITING]);
    json_put_int(o, "ready", c.by_state[TASK_READY] - c.backoff);
    json_put_int(o, "backoff", c.backoff);
    json_put_int(o, "queued", queued);
    json_put_int(o, "starting", c.by_state[TASK_STARTING] - queued);
    json_put_int(o, "running", c.by_state[TASK_RUNNING]);
    json_put_int(o, "done", c.by_state[TASK_DONE]);
    json_put_int(o, "blocked", c.by_state[TASK_BLOCKED]);
    json_put_int(o, "never_run", c.by_state[TASK_NEVER_RUN]);
    return o;
}

/* Failed tasks by cause; also sums the attempts, in the same pass. */
static cJSON *causes_json(const struct hosted *h, int64_t *n_attempts)
{
    int64_t n[CAUSE_NR] = {0};
    *n_attempts = 0;
    for (size_t i = 0; i < h->n_tasks; i++) {
        const struct task_row *t = &h->tasks[i];
        *n_attempts += t->n_attempts;
        n[t->cause] += t->state == TASK_BLOCKED || t->state == TASK_NEVER_RUN;
    }
    cJSON *o = json_object();
    for (int c = CAUSE_NONE + 1; c < CAUSE_NR; c++) {
        if (n[c] > 0) {
            json_put_int(o, cause_name((enum cause)c), n[c]);
        }
    }
    return o;
}

static void push_why(cJSON *list, const char *why, uint32_t n)
{
    if (n > 0) {
        cJSON *o = json_object();
        json_put_string(o, "why", why);
        json_put_int(o, "tasks", n);
        json_push(list, o);
    }
}

/* What keeps a program from starting anything, or NULL. A state folder that cannot be written stops
 * all programs, a program's own folder that one; neither can be journalled as a pause. */
static const char *paused_by(const struct shell *sh, const struct hosted *h, struct err *why)
{
    err_clear(why);
    if (!h->status.reported && !pump_is_well(sh->pump, why)) {
        return why->code == ERR_NO_SPACE ? "no_space" : "state";
    }
    if (h->withheld_why != NULL) {
        (void)err_set(why, ERR_IO, "%s", h->withheld_why);
        return "folder";
    }
    return h->status.verdict ? NULL
                             : hosted_paused_by(h); /* a pause means nothing after the verdict */
}

/* Also why, unless text is NULL. */
static uint32_t n_waiting_for_gpus(const struct shell *sh, const struct hosted *h,
                                   struct strbuf *text)
{
    const uint32_t n = core_n_waiting_for_gpus(sh->core, h->no, text);
    const char *fault = gpu_watch_fault(sh);
    if (n > 0 && fault != NULL && text != NULL) {
        strbuf_addf(text, "; the GPUs cannot be listed: %s", fault);
    }
    return n;
}

static void put_gpus_why(cJSON *o, const struct shell *sh, const struct hosted *h)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    const bool waits = paused_by(sh, h, &ignored) == NULL && n_waiting_for_gpus(sh, h, &text) > 0;
    json_put_string(o, "gpus_why", waits ? text.buf : NULL);
    strbuf_release(&text);
}

/* Why open tasks are not running, as counts for each reason. */
static cJSON *not_running_json(const struct shell *sh, const struct hosted *h)
{
    struct core_counts c = {0};
    cJSON *list = json_array();
    (void)core_counts_get(sh->core, h->no, &c);
    uint32_t ready = c.by_state[TASK_READY] - c.backoff - c.held;
    push_why(list, "apparatus", c.held);
    push_why(list, "dependency", c.by_state[TASK_WAITING]);
    push_why(list, "backoff", c.backoff);
    struct err why;
    const char *by = paused_by(sh, h, &why);
    bool disk = by != NULL && strcmp(by, "no_space") == 0;
    const bool behind = by == NULL && core_program_ahead(sh->core, h->no) != UINT32_MAX;
    const uint32_t gpus = by == NULL ? n_waiting_for_gpus(sh, h, NULL) : 0;
    push_why(list, "gpus", gpus < ready ? gpus : ready);
    push_why(list,
             disk         ? "disk"
             : by != NULL ? "paused"
             : behind     ? "priority"
                          : "slots",
             gpus < ready ? ready - gpus : 0);
    return list;
}

/* Its live attempts elsewhere, counted by what their executor says of them. */
static cJSON *elsewhere_json(const struct shell *sh, const struct hosted *h)
{
    cJSON *list = json_array();
    struct strbuf words = STRBUF_INIT;
    for (const struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        const struct executor *x = shell_executor_of(sh, a);
        strbuf_clear(&words);
        if (a->key.program != h->no || !x->ops->explain(x, &a->key, true, &words)) {
            continue;
        }
        cJSON *o = list->child;
        while (o != NULL && strcmp(json_member(o, "state")->valuestring, words.buf) != 0) {
            o = o->next;
        }
        if (o == NULL) {
            o = json_object();
            json_put_string(o, "executor", executor_kind_name(a->row.placement.executor));
            json_put_string(o, "state", words.buf);
            json_put_int(o, "attempts", 0);
            json_push(list, o);
        }
        cJSON *n = cJSON_GetObjectItemCaseSensitive(o, "attempts");
        cJSON_SetNumberValue(n, n->valuedouble + 1);
    }
    strbuf_release(&words);
    return list;
}

/* What is taken from an earlier receipt, whatever of it is done; null: nothing. */
static cJSON *reused_json(const struct hosted *h)
{
    const struct bundle *b = h->bundle;
    const struct reuse_pin *pins = hosted_reuse(h);
    const struct reuse_counts n = reuse_count(b->program, pins);
    if (pins == NULL) {
        return cJSON_CreateNull();
    }
    cJSON *o = json_object();
    json_put(o, "root", json_copy(json_member(b->lock->reuse, "root")));
    json_put_int(o, "cells", (int64_t)n.cells);
    json_put_int(o, "tasks", (int64_t)n.tasks);
    return o;
}

/* ---- the whole ---- */

cJSON *summary_check(const struct shell *sh, const struct hosted *h, uint32_t task)
{
    const struct task_row *row = &h->tasks[task];
    cJSON *o = apparatus_json(h, h->bundle, task, row);
    if (o != NULL) {
        json_put_string(o, "state", summary_task_state(sh, h, task));
        json_put_string(o, "cause", row->cause != CAUSE_NONE ? cause_name(row->cause) : NULL);
        json_put_int(o, "attempts", row->n_attempts);
    }
    return o;
}

cJSON *summary_checks(const struct shell *sh, const struct hosted *h)
{
    cJSON *list = json_array();
    for (size_t i = 0; i < h->n_checks; i++) {
        cJSON *o = summary_check(sh, h, (uint32_t)(h->n_tasks + i));
        if (o != NULL) {
            json_push(list, o);
        }
    }
    return list;
}

/* Whether checks are still run after the grid, or wait for a resume. */
static bool is_checked_again(const struct hosted *h)
{
    for (size_t i = 0; i < h->n_checks; i++) {
        const struct task_row *row = &h->tasks[h->n_tasks + i];
        const bool final = again_is_final(row->state, row->cause);
        if (apparatus_name_is_end(h->checks[i].name) && h->checks[i].declared && !final) {
            return !h->status.verdict;
        }
    }
    return false;
}

/* "finishing": all tasks have ended, and verdict or report are under way. */
const char *summary_state(const struct shell *sh, const struct hosted *h)
{
    struct core_counts c = {0};
    (void)core_counts_get(sh->core, h->no, &c);
    uint32_t open = c.by_state[TASK_WAITING] + c.by_state[TASK_READY] + c.by_state[TASK_STARTING] +
                    c.by_state[TASK_RUNNING];
    if (h->status.reported) {
        return "finished";
    }
    if (open == 0 && !is_checked_again(h)) {
        return "finishing";
    }
    struct err why;
    return paused_by(sh, h, &why) != NULL ? "paused" : "running";
}

static cJSON *verdict_json(const struct hosted *h)
{
    if (!h->status.verdict) {
        return cJSON_CreateNull();
    }
    cJSON *o = json_object();
    char *path = path_join(h->folder, LAYOUT_IN_REPORT(LAYOUT_VERDICT));
    verdict_kind_put(o, h->status.outcome);
    json_put_string(o, "path", path);
    free(path);
    return o;
}

/* The program that it supersedes, if this daemon has it, and those that supersede it. */
static void put_succession(cJSON *o, const struct shell *sh, const struct hosted *h)
{
    const char *old = h->bundle->program->supersedes;
    const struct hosted *before = old == NULL ? NULL : answer_program_by_root(sh, old);
    cJSON *after = json_array();
    for (size_t i = 0; i < sh->cap_programs; i++) {
        const struct hosted *other = sh->programs[i];
        const char *its = other == NULL ? NULL : other->bundle->program->supersedes;
        if (its != NULL && strcmp(its, h->bundle->lock->root) == 0) {
            json_push_string(after, other->id);
        }
    }
    json_put_string(o, "supersedes", old);
    json_put_string(o, "supersedes_program", before == NULL ? NULL : before->id);
    json_put(o, "superseded_by", after);
}

/* What does not change but by an amendment; "work" is where cells/ really is. */
static void put_identity(cJSON *o, const struct hosted *h)
{
    const struct plan_program *p = h->bundle->program;
    char *work = path_join(h->folder, LAYOUT_CELLS);
    char *real = realpath(work, NULL);
    json_put_string(o, "id", h->id);
    json_put_string(o, "name", p->name);
    json_put_string(o, "question", p->question);
    json_put_string(o, "root", h->bundle->lock->root);
    json_put_string(o, "head", h->bundle->lock->head);
    json_put_int(o, "amendments", (int64_t)h->bundle->lock->n_amendments);
    json_put(o, "reused", reused_json(h));
    json_put_string(o, "folder", h->folder);
    json_put_string(o, "work", real == NULL ? work : real);
    json_put_int(o, "priority", p->run.priority);
    free(real);
    free(work);
}

/* The progress of hashing every pinned byte before the verdict, which may take long; else null. */
static void put_hashing(cJSON *o, const struct hosted *h)
{
    int64_t total = atomic_load(&h->hashing.total);
    if (total == 0) {
        json_put_null(o, "hashing");
        return;
    }
    cJSON *hashing = json_object();
    json_put_int(hashing, "done_bytes", atomic_load(&h->hashing.done));
    json_put_int(hashing, "total_bytes", total);
    json_put(o, "hashing", hashing);
}

/* State, pauses, times and seals: what changes while the program runs. */
static void put_life(cJSON *o, const struct shell *sh, const struct hosted *h)
{
    struct wall_time end = h->finished.ms != 0 ? h->finished : clock_wall();
    json_put_string(o, "state", summary_state(sh, h));
    struct err why;
    json_put_string(o, "paused_by", paused_by(sh, h, &why));
    json_put_string(o, "paused_why",
                    why.msg[0] != '\0'  ? why.msg
                    : h->status.verdict ? NULL
                                        : hosted_paused_why(h));
    put_hashing(o, h);
    summary_put_time(o, "submitted", h->submitted);
    summary_put_time(o, "finished", h->finished);
    json_put_bool(o, "sealed", !h->status.unsealed && !h->status.unblinded);
    json_put_bool(o, "unblinded", h->status.unblinded);
    json_put_bool(o, "removed", h->status.removed);
    json_put(o, "open", open_reads(h->bundle->program));
    json_put_string(o, "clock", h->clock_why);
    json_put_string(o, "history", hosted_history(h));
    json_put_string(o, "history_why", h->history_why);
    json_put_int(o, "elapsed_ms", end.ms > h->submitted.ms ? end.ms - h->submitted.ms : 0);
    double eta = summary_eta_ms(sh, h);
    summary_put_span(o, "eta_ms", eta < 0 ? 0 : eta);
}

/* Malformed lines of ended attempts are in the mirror, those of live ones are added. */
cJSON *summary_json(const struct shell *sh, const struct hosted *h)
{
    const struct plan_program *p = h->bundle->program;
    cJSON *o = json_object();
    cJSON *stages = json_array();
    int64_t n_attempts = 0;
    for (size_t i = 0; i < p->n_stages; i++) {
        json_push_string(stages, p->stages[i].name);
    }
    int64_t malformed = h->malformed;
    for (const struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        malformed += a->key.program == h->no ? a->row.malformed : 0;
    }
    put_identity(o, h);
    put_succession(o, sh, h);
    put_life(o, sh, h);
    json_put_int(o, "n_cells", (int64_t)p->n_cells);
    json_put(o, "stages", stages);
    json_put(o, "environments", lock_environments(h->bundle->lock));
    json_put(o, "tasks", tasks_json(sh, h));
    json_put(o, "counted", counted_json(sh, h));
    json_put(o, "apparatus", summary_checks(sh, h));
    json_put(o, "causes", causes_json(h, &n_attempts));
    json_put_int(o, "attempts", n_attempts);
    json_put_int(o, "garbage_lines", malformed);
    json_put(o, "not_running", not_running_json(sh, h));
    json_put(o, "elsewhere", elsewhere_json(sh, h));
    json_put(o, "gpus", placement_held(sh, h));
    const struct hosted *ahead = shell_program(sh, core_program_ahead(sh->core, h->no));
    json_put_string(o, "behind", ahead == NULL ? NULL : ahead->id);
    put_gpus_why(o, sh, h);
    json_put(o, "verdict", verdict_json(h));
    char *report = path_join(h->folder, LAYOUT_IN_REPORT(LAYOUT_REPORT_HTML));
    const bool has_report = h->report_ready || (h->status.reported && shell_has_report(h));
    json_put_string(o, "report", has_report ? report : NULL);
    json_put_string(o, "report_why", has_report ? NULL : h->report_why);
    free(report);
    return o;
}
