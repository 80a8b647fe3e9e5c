/* Answers "how many?" and "why is this task not running?" from the core's state, for status and
 * explain. Reads only. The reasons are tried from the strongest to the weakest: a task that has
 * ended, one with an attempt, one that waits for its cell, and only then pauses, backoff and
 * limits. */
#include "daemon/core/explain.h"

#include <assert.h>

#include "daemon/core/apparatus.h"
#include "daemon/core/gpus.h"
#include "daemon/core/internal.h"

static const struct core_program *find(const struct core *c, uint32_t no)
{
    return no < c->cap_programs ? c->programs[no] : NULL;
}

bool core_counts_get(const struct core *c, uint32_t program, struct core_counts *out)
{
    assert(c != NULL && out != NULL);
    const struct core_program *p = find(c, program);
    if (p == NULL) {
        return false;
    }
    *out = (struct core_counts){
        .planned = p->n_grid,
        .counted = p->n_counted,
        .counted_open = p->n_counted_open,
        /* a ready task of the grid that is not queued is in backoff */
        .backoff = p->n_by_state[TASK_READY] - (p->n_ready - apparatus_n_ready(p)),
    };
    for (int e = 0; !p->gate_open && e < LANE_NR; e++) {
        const struct ready_queue *q = &p->ready[e];
        for (uint32_t i = 0; i < q->n; i++) {
            out->held += task_is_held(p, q->tasks[i]);
        }
    }
    memcpy(out->by_state, p->n_by_state, sizeof(out->by_state));
    return true;
}

bool core_program_status(const struct core *c, uint32_t program, struct program_row *out)
{
    assert(c != NULL && out != NULL);
    const struct core_program *p = find(c, program);
    if (p != NULL) {
        *out = p->status;
    }
    return p != NULL;
}

static enum core_why why_of_live(const struct core_task *t, const struct live *l)
{
    if (l->phase == LIVE_VERIFYING) {
        return WHY_VERIFYING;
    }
    if (l->health == HEALTH_UNKNOWN && l->phase == LIVE_RUNNING) {
        return WHY_UNKNOWN;
    }
    if (l->kill != KILL_NONE || t->ending != CAUSE_NONE) {
        return WHY_ENDING;
    }
    const bool elsewhere = l->row.placement.executor != EXECUTOR_LOCAL;
    return l->phase == LIVE_STARTING && elsewhere ? WHY_QUEUED : WHY_RUNNING;
}

/* The order of the tests decides which of several true reasons is shown. */
static enum core_why why_of(const struct core *c, const struct core_program *p, uint32_t task,
                            const struct live *l)
{
    const struct core_task *t = &p->tasks[task];
    if (task_state_is_terminal((enum task_state)t->state)) {
        return WHY_ENDED;
    }
    if (l != NULL) {
        return why_of_live(t, l);
    }
    if (t->state == TASK_WAITING) {
        return WHY_DEPENDENCY;
    }
    if (p->status.paused != 0 || p->withheld) {
        return WHY_PAUSED;
    }
    if (!apparatus_is_wanted(p, task) && task_is_again(p, task)) {
        return WHY_GRID;
    }
    if (t->ready_pos == NOWHERE) {
        return WHY_BACKOFF;
    }
    if (task_is_held(p, task)) {
        return WHY_APPARATUS;
    }
    return dispatch_ahead(c, p, stage_lane(task_stage(p, task))) != NULL ? WHY_PRIORITY : WHY_SLOTS;
}

/* What is free; 0 when settings were lowered below what is in use. */
static uint32_t left(uint32_t all, uint32_t used)
{
    return used < all ? all - used : 0;
}

static void fill_machine(const struct core *c, const struct core_program *p,
                         const struct core_stage *s, struct core_explanation *out)
{
    const struct core_config *m = &c->config;
    out->executor = s->executor;
    out->queue_full = c->full[s->executor];
    out->max_queued = p->max_queued;
    out->n_queued = p->n_queued;
    out->threads = live_threads(c, s);
    out->memory_bytes = live_memory(c, s);
    out->free_threads = left(m->cores, c->used_threads);
    out->free_slots = m->slots > 0 ? left(m->slots, c->used_slots) : UINT32_MAX;
    if (p->slots > 0 && left(p->slots, p->used_slots) < out->free_slots) {
        out->free_slots = left(p->slots, p->used_slots);
    }
    out->lacks_gpus = !gpus_fit(c, p, s);
    int64_t memory = m->memory_bytes - c->used_memory;
    out->free_memory_bytes = m->memory_bytes == 0 ? INT64_MAX : memory > 0 ? memory : 0;
}

static int64_t backoff_due_ms(const struct core *c, const struct core_task *t)
{
    return t->state == TASK_READY && t->timer_pos != NOWHERE ? c->timers[t->timer_pos].at_ms : 0;
}

int64_t core_backoff_due_ms(const struct core *c, uint32_t program, uint32_t task)
{
    assert(c != NULL);
    const struct core_program *p = find(c, program);
    return p != NULL && task < p->n_tasks ? backoff_due_ms(c, &p->tasks[task]) : 0;
}

bool core_explain(const struct core *c, uint32_t program, uint32_t task,
                  struct core_explanation *out)
{
    assert(c != NULL && out != NULL);
    const struct core_program *p = find(c, program);
    if (p == NULL || task >= p->n_tasks) {
        return false;
    }
    const struct core_task *t = &p->tasks[task];
    const struct live *l = t->live == NOWHERE ? NULL : &c->live[t->live];
    *out = (struct core_explanation){.program = program,
                                     .task = task,
                                     .why = why_of(c, p, task, l),
                                     .paused = p->status.paused,
                                     .withheld = p->withheld};
    task_snapshot(t, &out->row);
    out->waits_for = t->state == TASK_WAITING ? task_waits_for(p, task) : NOWHERE;
    attempt_row_init(&out->attempt);
    if (l != NULL) {
        out->attempt = l->row;
        out->deadline_ms = l->phase == LIVE_RUNNING && l->kill == KILL_NONE ? l->deadline_ms : 0;
    }
    out->wait_due_ms = backoff_due_ms(c, t);
    fill_machine(c, p, task_stage(p, task), out);
    out->retry_refusal = retry_refusal(p, task);
    out->priority = p->priority;
    const struct core_program *ahead =
        out->why == WHY_PRIORITY ? dispatch_ahead(c, p, stage_lane(task_stage(p, task))) : NULL;
    if (ahead != NULL) {
        out->ahead = ahead->no;
        out->ahead_priority = ahead->priority;
    }
    return true;
}

uint32_t core_program_ahead(const struct core *c, uint32_t program)
{
    assert(c != NULL);
    const struct core_program *p = find(c, program);
    for (int i = 0; p != NULL && i < LANE_NR; i++) {
        const enum lane lane = (enum lane)i;
        const bool ready = p->ready[i].n > 0 && !task_is_held(p, ready_head(p, lane));
        const struct core_program *ahead = ready ? dispatch_ahead(c, p, lane) : NULL;
        if (ahead != NULL) {
            return ahead->no;
        }
    }
    return UINT32_MAX;
}

/* Names the limit that is missed first: slots, then GPUs, cores, memory; of another executor, its
 * own. */
static void text_of_slots(const struct core *c, const struct core_explanation *e,
                          struct strbuf *out)
{
    const struct core_program *p = find(c, e->program);
    if (e->executor != EXECUTOR_LOCAL && e->queue_full) {
        strbuf_adds(out, "waits for Slurm, which accepts no more jobs for now");
    } else if (e->executor != EXECUTOR_LOCAL && e->max_queued > 0 && e->n_queued >= e->max_queued) {
        strbuf_addf(out,
                    "waits for a place in Slurm's queue: %u of its program are there ([run.slurm] "
                    "max_queued)",
                    e->n_queued);
    } else if (e->executor != EXECUTOR_LOCAL) {
        strbuf_adds(out, "is in line behind other tasks");
    } else if (e->free_slots == 0) {
        strbuf_adds(out, "waits for a slot: all are taken");
    } else if (e->lacks_gpus && p != NULL) {
        gpus_why_not(c, p, task_stage(p, e->task), out);
    } else if (e->threads > e->free_threads) {
        strbuf_addf(out, "waits for cores: needs %u, attempts of this daemon hold %u of %u",
                    e->threads, c->used_threads, c->config.cores);
    } else if (e->memory_bytes > e->free_memory_bytes) {
        strbuf_addf(out,
                    "waits for memory: needs %lld MiB, attempts of this daemon hold %lld of %lld "
                    "MiB",
                    (long long)(e->memory_bytes >> 20), (long long)(c->used_memory >> 20),
                    (long long)(c->config.memory_bytes >> 20));
    } else {
        strbuf_adds(out, "is in line behind other tasks");
    }
}

/* A program can be paused for several reasons at once; all are named. */
static void text_of_pause(unsigned paused, bool withheld, struct strbuf *out)
{
    strbuf_adds(out, "its program is paused: ");
    const char *between = "";
    if (withheld) {
        strbuf_adds(out, "its folder cannot be written");
        between = "; ";
    }
    if ((paused & PAUSE_PERSON) != 0) {
        strbuf_addf(out, "%sa user paused it", between);
        between = "; ";
    }
    if ((paused & PAUSE_DISK) != 0) {
        strbuf_addf(out, "%sno room on the disk", between);
        between = "; ";
    }
    if ((paused & PAUSE_LOCK) != 0) {
        strbuf_addf(out, "%sits lock does not hold", between);
        between = "; ";
    }
    if ((paused & PAUSE_APPARATUS) != 0) {
        strbuf_addf(out, "%san apparatus check does not hold", between);
        between = "; ";
    }
    if ((paused & PAUSE_FAILURES) != 0) {
        strbuf_addf(out, "%sthe first cells of a stage fail the same way", between);
        between = "; ";
    }
    if ((paused & PAUSE_DATA) != 0) {
        strbuf_addf(out, "%sits data are missing", between);
        between = "; ";
    }
    if ((paused & PAUSE_HOST) != 0) {
        strbuf_addf(out, "%sattempts cannot be started", between);
        between = "; ";
    }
    if ((paused & PAUSE_STOPPING) != 0) {
        strbuf_addf(out, "%severy task of it is being cancelled", between);
    }
}

static void text_of_end(const struct task_row *row, struct strbuf *out)
{
    strbuf_adds(out, row->state == TASK_DONE      ? "is done"
                     : row->state == TASK_BLOCKED ? "is blocked"
                                                  : "was never run");
    if (row->cause != CAUSE_NONE) {
        strbuf_addf(out, ": %s", cause_name(row->cause));
    }
}

void core_explanation_text(const struct core *c, const struct core_explanation *e,
                           struct mono_time now, struct strbuf *out)
{
    assert(c != NULL && e != NULL && out != NULL);
    char span[32];
    int64_t wait_ms = e->wait_due_ms - now.ms;
    switch (e->why) {
    case WHY_ENDED: text_of_end(&e->row, out); break;
    case WHY_RUNNING: strbuf_addf(out, "is running: attempt %u", e->attempt.no); break;
    case WHY_UNKNOWN:
        strbuf_addf(out,
                    "may still be running: attempt %u does not answer; nothing is done about it "
                    "before its state is known",
                    e->attempt.no);
        break;
    case WHY_VERIFYING:
        strbuf_addf(out, "attempt %u has ended, its result is being verified", e->attempt.no);
        break;
    case WHY_ENDING: strbuf_addf(out, "attempt %u is being ended", e->attempt.no); break;
    case WHY_DEPENDENCY: strbuf_adds(out, "waits for the stage before it"); break;
    case WHY_APPARATUS: strbuf_adds(out, "waits until the apparatus check holds"); break;
    case WHY_GRID: strbuf_adds(out, "waits until every task of the grid has ended"); break;
    case WHY_PAUSED: text_of_pause(e->paused, e->withheld, out); break;
    case WHY_BACKOFF:
        strbuf_addf(out, "is tried again in %s",
                    clock_span_text(wait_ms > 0 ? wait_ms : 0, span, sizeof(span)));
        break;
    case WHY_QUEUED: strbuf_adds(out, "waits in Slurm"); break;
    case WHY_PRIORITY:
        strbuf_addf(out, "waits behind a program of higher priority (%d, its own is %d)",
                    e->ahead_priority, e->priority);
        break;
    case WHY_SLOTS: text_of_slots(c, e, out); break;
    }
}

size_t core_n_live(const struct core *c)
{
    assert(c != NULL);
    return c->n_live;
}

uint32_t core_n_slots_used(const struct core *c)
{
    assert(c != NULL);
    return c->used_slots;
}

uint32_t core_n_queued(const struct core *c)
{
    assert(c != NULL);
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->cap_programs; i++) {
        n += c->programs[i] != NULL ? c->programs[i]->n_queued : 0;
    }
    return n;
}

uint32_t core_n_waiting_for_gpus(const struct core *c, uint32_t program, struct strbuf *text)
{
    assert(c != NULL);
    const struct core_program *p = find(c, program);
    const uint32_t head = p == NULL ? NOWHERE : ready_head(p, LANE_GPU);
    if (head == NOWHERE || task_is_held(p, head) || gpus_fit(c, p, task_stage(p, head))) {
        return 0;
    }
    if (text != NULL) {
        gpus_why_not(c, p, task_stage(p, head), text);
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->ready[LANE_GPU].n; i++) {
        n += !task_is_held(p, p->ready[LANE_GPU].tasks[i]);
    }
    return n;
}

bool core_wants_gpus(const struct core *c)
{
    assert(c != NULL);
    bool wants = false;
    for (uint32_t i = 0; i < c->cap_programs; i++) {
        const struct core_program *p = c->programs[i];
        wants = wants || (p != NULL && (p->ready[LANE_GPU].n > 0 || p->used_gpus > 0));
    }
    return wants;
}
