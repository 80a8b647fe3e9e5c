/* Requests about every task at once. The rows of hundreds of thousands would hold the daemon
 * for a minute: up to slice_tasks tasks move in one step, the rest in slices of their own, one for
 * each turn of the timer.
 *
 * `cancel --all`: whatever has not ended ends as stopped. PAUSE_STOPPING is in the row of the
 * first slice and stays until the last one: nothing new is started meanwhile, and a daemon that
 * dies between two slices goes on when it is started again. `retry`: each row is complete by
 * itself; a daemon that dies leaves the rest blocked, and the user may ask again. */
#include "daemon/core/explain.h"

#include "daemon/core/apparatus.h"
#include "daemon/core/internal.h"
#include "daemon/core/same_work.h"
#include <assert.h>

/* The person's reason, which the row of every task has. */
static void set_text(struct core_program *p, const char *text)
{
    free(p->slice_text);
    p->slice_text = text == NULL ? NULL : xstrdup(text);
}

static bool is_open(const struct core_program *p, uint32_t task)
{
    assert(task < p->n_tasks);
    const struct core_task *t = &p->tasks[task];
    return !task_state_is_terminal((enum task_state)t->state) && t->ending == CAUSE_NONE;
}

/* Deepest stages first, so that each ends as "stopped" and none as "dependency". */
static void stop_cell(struct core *c, struct core_program *p, uint32_t first)
{
    assert(first % p->n_stages == 0 && first < p->n_grid);
    for (uint32_t s = p->n_stages; s-- > 0;) {
        if (is_open(p, first + s)) {
            request_end(c, p, first + s, CAUSE_STOPPED, p->slice_text);
        }
    }
}

/* Whether the cell has another name of a task in a cell that is marked. */
static bool has_name_of(const struct core_program *p, uint32_t first, const bool *marked)
{
    bool any = false;
    for (uint32_t i = first; i < first + p->n_stages; i++) {
        any = any || marked[task_worker(p, i) / p->n_stages];
    }
    return any;
}

/* Running attempts are ended at once, however many tasks wait, together with the rest of their
 * cells and the cells with other names of what those do: else these would end with the cause
 * "dependency". A name is later than its work, so cells are marked upwards and end downwards. */
static void stop_live(struct core *c, struct core_program *p)
{
    const uint32_t n_cells = p->n_grid / p->n_stages;
    bool *marked = xcalloc(n_cells, sizeof(*marked));
    for (uint32_t i = 0; i < p->n_grid; i++) {
        const uint32_t cell = i / p->n_stages;
        marked[cell] = marked[cell] || (p->tasks[i].live != NOWHERE && is_open(p, i)) ||
                       (i % p->n_stages == 0 && p->same != NULL && has_name_of(p, i, marked));
    }
    for (uint32_t cell = n_cells; cell-- > 0;) {
        if (marked[cell]) {
            stop_cell(c, p, cell * p->n_stages);
        }
    }
    free(marked);
}

/* Downwards from the last task: apparatus checks, then cells, their deepest stages first. A request
 * that fits one slice is finished in it, because no PAUSE_STOPPING row would tell a restarted
 * daemon that a rest exists. */
static void stop_slice(struct core *c, struct core_program *p)
{
    const bool is_whole = (p->status.paused & PAUSE_STOPPING) == 0;
    uint32_t n = 0;
    while (p->stop_below > 0 && (is_whole || n < c->config.slice_tasks)) {
        uint32_t task = --p->stop_below;
        if (is_open(p, task)) {
            request_end(c, p, task, CAUSE_STOPPED, p->slice_text);
            n++;
        }
    }
}

static uint32_t n_to_stop(const struct core_program *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        n += is_open(p, i);
    }
    return n;
}

static void stop_go_on(struct core *c, struct core_program *p)
{
    stop_slice(c, p);
    if (p->stop_below > 0) {
        c->slice_due_ms = c->now_ms;
    } else if ((p->status.paused & PAUSE_STOPPING) != 0) {
        p->status.paused &= ~(unsigned)PAUSE_STOPPING;
        (void)emit_program_row(c, p, ROW_RESUMED, "every task of it is cancelled");
    }
}

/* The second runs of checks that a resume could repeat. Each is made ready and ended as stopped: a
 * blocked task has no other way out. */
static void give_up_again(struct core *c, struct core_program *p, const char *text)
{
    for (uint32_t i = 0; i < p->n_apparatus; i++) {
        const uint32_t task = p->n_grid + i;
        const enum task_state state = (enum task_state)p->tasks[task].state;
        if (task_is_again(p, task) && p->apparatus[i].declared && !p->status.verdict &&
            (state == TASK_BLOCKED || state == TASK_NEVER_RUN) && !again_has_failed(p, task) &&
            p->tasks[task].cause != CAUSE_STOPPED && p->tasks[task].cause != CAUSE_DEPENDENCY) {
            task_revive(c, p, task, ROW_TASK_RETRIED, text);
            request_end(c, p, task, CAUSE_STOPPED, text);
        }
    }
}

void request_stop(struct core *c, struct core_program *p, const char *text)
{
    assert(c != NULL && p != NULL);
    if ((p->status.paused & PAUSE_STOPPING) != 0) {
        return; /* it is under way */
    }
    set_text(p, text);
    give_up_again(c, p, text);
    if (n_to_stop(p) > c->config.slice_tasks) {
        program_pause(c, p, PAUSE_STOPPING, text);
        stop_live(c, p);
    }
    p->stop_below = p->n_tasks;
    p->retry_from = NOWHERE;
    stop_go_on(c, p);
}

/* Upwards, so that what a stage waits for comes before it. */
static void retry_go_on(struct core *c, struct core_program *p)
{
    uint32_t n = 0;
    while (p->retry_from < p->n_grid && n < c->config.slice_tasks) {
        uint32_t task = p->retry_from++;
        if (p->tasks[task].state == TASK_BLOCKED && retry_refusal(p, task) == NULL) {
            retry_task(c, p, task, p->slice_text);
            n++;
        }
    }
    if (p->retry_from < p->n_grid) {
        c->slice_due_ms = c->now_ms;
    } else {
        p->retry_from = NOWHERE;
    }
}

/* Refusals are collected from blocked tasks only: a task that never ran is revived with the one it
 * waits for. */
uint32_t core_n_retriable(const struct core *c, uint32_t program, const char **refusal)
{
    assert(c != NULL && refusal != NULL);
    const struct core_program *p = program < c->cap_programs ? c->programs[program] : NULL;
    uint32_t n = 0;
    *refusal = NULL;
    for (uint32_t i = 0; p != NULL && i < p->n_grid; i++) {
        if (p->tasks[i].state == TASK_BLOCKED) {
            const char *why = retry_refusal(p, i);
            n += why == NULL;
            *refusal = *refusal == NULL ? why : *refusal;
        }
    }
    return n;
}

void request_retry_all(struct core *c, struct core_program *p, const char *text)
{
    assert(c != NULL && p != NULL);
    const char *refusal = NULL;
    if (core_n_retriable(c, p->no, &refusal) > 0) {
        set_text(p, text);
        p->retry_from = 0;
        retry_go_on(c, p);
    } else if (refusal != NULL) {
        emit_refusal(c, "%s", refusal);
    }
}

void slices_recover(struct core *c, struct core_program *p, const char *text)
{
    assert(c != NULL && p != NULL);
    if ((p->status.paused & PAUSE_STOPPING) != 0) {
        set_text(p, text);
        p->stop_below = p->n_tasks;
        c->slice_due_ms = c->now_ms;
    }
}

/* One slice of each program for each turn of the timer; other events are handled in between. */
void slices_on_timer(struct core *c)
{
    assert(c != NULL);
    if (c->slice_due_ms > c->now_ms) {
        return;
    }
    c->slice_due_ms = INT64_MAX;
    for (uint32_t i = 0; i < c->cap_programs; i++) {
        struct core_program *p = c->programs[i];
        if (p != NULL && p->stop_below > 0) {
            stop_go_on(c, p);
            program_advance(c, p);
        } else if (p != NULL && p->retry_from != NOWHERE) {
            retry_go_on(c, p);
        }
    }
}
