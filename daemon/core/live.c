/*
 * The pool of live attempts: allocation by free list, the slots they hold, and their deadlines.
 *
 * A task knows its attempt by index, because the pool moves when it grows: a `struct live *` is
 * valid only until the next live_new(). Every count of used slots, threads, memory and GPUs changes
 * in live_hold() and live_let_go() and nowhere else (S3).
 */
#include "daemon/core/gpus.h"

#include "daemon/core/internal.h"
#include <assert.h>

struct live *live_new(struct core *c, struct core_program *p, uint32_t task)
{
    assert(p->tasks[task].live == NOWHERE); /* S1 */
    if (c->free_live == NOWHERE) {
        uint32_t old = c->n_live_cap;
        c->n_live_cap = old == 0 ? 8 : old * 2;
        c->live = xreallocarray(c->live, c->n_live_cap, sizeof(*c->live));
        for (uint32_t i = c->n_live_cap; i-- > old;) {
            c->live[i].next_free = c->free_live;
            c->free_live = i;
        }
    }
    uint32_t i = c->free_live;
    struct live *l = &c->live[i];
    c->free_live = l->next_free;
    c->n_live++;
    *l = (struct live){
        .program = p->no, .task = task, .health = HEALTH_UNKNOWN, .mark_ms = c->now_ms};
    attempt_row_init(&l->row);
    p->tasks[task].live = i;
    return l;
}

void live_free(struct core *c, struct live *l)
{
    assert(c != NULL && l != NULL && l->program < c->cap_programs && c->n_live > 0);
    struct core_task *t = &c->programs[l->program]->tasks[l->task];
    live_let_go(c, l);
    c->n_aside -= l->aside;
    timer_clear(c, c->programs[l->program], l->task);
    l->next_free = c->free_live;
    c->free_live = t->live;
    t->live = NOWHERE;
    c->n_live--;
}

struct live *live_of(struct core *c, const struct core_program *p, uint32_t task)
{
    assert(task < p->n_tasks);
    uint32_t i = p->tasks[task].live;
    return i == NOWHERE ? NULL : &c->live[i];
}

uint32_t live_threads(const struct core *c, const struct core_stage *s)
{
    assert(c != NULL && s != NULL);
    if (s->executor != EXECUTOR_LOCAL) {
        return s->threads;
    }
    return s->threads < c->config.cores ? s->threads : c->config.cores;
}

int64_t live_memory(const struct core *c, const struct core_stage *s)
{
    assert(c != NULL && s != NULL);
    int64_t all = s->executor == EXECUTOR_LOCAL ? c->config.memory_bytes : 0;
    return all > 0 && s->memory_bytes > all ? all : s->memory_bytes;
}

void live_place(const struct core *c, const struct core_stage *s, struct placement *out)
{
    assert(c != NULL && s != NULL && out != NULL);
    *out = (struct placement){.executor = s->executor,
                              .threads = live_threads(c, s),
                              .memory_bytes = live_memory(c, s),
                              .gpu_thousandths = s->gpu_thousandths,
                              .gpu_memory_bytes = s->gpu_memory_bytes};
}

/* Its row has what it took, so letting go returns the same amount after the settings changed. */
void live_hold(struct core *c, struct live *l)
{
    assert(!l->holds_slot);
    struct core_program *p = c->programs[l->program];
    struct placement *at = &l->row.placement;
    if (at->threads == 0) {
        live_place(c, task_stage(p, l->task), at);
    }
    l->holds_slot = true;
    if (at->executor != EXECUTOR_LOCAL) {
        p->n_queued++;
        return;
    }
    c->used_slots++;
    c->used_threads += at->threads;
    c->used_memory += at->memory_bytes;
    gpus_hold(c, p, at);
    p->used_slots++;
    p->used_threads += at->threads;
}

void live_let_go(struct core *c, struct live *l)
{
    if (!l->holds_slot) {
        return;
    }
    struct core_program *p = c->programs[l->program];
    const struct placement *at = &l->row.placement;
    l->holds_slot = false;
    if (at->executor != EXECUTOR_LOCAL) {
        assert(p->n_queued > 0);
        p->n_queued--;
        return;
    }
    assert(c->used_slots > 0 && c->used_threads >= at->threads &&
           c->used_memory >= at->memory_bytes);
    c->used_slots--;
    c->used_threads -= at->threads;
    c->used_memory -= at->memory_bytes;
    gpus_let_go(c, p, at);
    p->used_slots--;
    p->used_threads -= at->threads;
}

/* At most as many as there are cores: what is being verified may wait for its turn at the disk, and
 * must not pile up. A job that has ended holds nothing of another executor's. */
void live_set_aside(struct core *c, struct live *l)
{
    assert(l->phase == LIVE_VERIFYING); /* its worker needs no threads any more */
    const struct core_stage *s = task_stage(c->programs[l->program], l->task);
    if (l->row.placement.executor != EXECUTOR_LOCAL) {
        live_let_go(c, l);
    } else if (!l->aside && c->n_aside < c->config.cores && stage_set_is_empty(&s->dependants)) {
        live_let_go(c, l);
        l->aside = true;
        c->n_aside++;
    }
}

/* A worker that has not named its section yet is in setup. */
static enum section section_of(const struct live *l)
{
    return l->row.section < SECTION_NR ? l->row.section : SECTION_SETUP;
}

/* How long its section may go without a sign of work, in ms: as declared; else measured and
 * widened; else the default for a stage that has not been measured. */
int64_t live_deadline_span(const struct core *c, const struct live *l)
{
    assert(c != NULL && l != NULL && l->program < c->cap_programs);
    const struct core_stage *s = task_stage(c->programs[l->program], l->task);
    enum section section = section_of(l);
    if (s->deadline_ms[section] > 0) {
        return s->deadline_ms[section];
    }
    if (s->n_measured[section] < MEASURED_MIN) {
        return c->config.deadline_first_ms;
    }
    int64_t span = s->measured_ms[section] * WIDEN;
    if (span < c->config.deadline_floor_ms) {
        return c->config.deadline_floor_ms;
    }
    return span < DEADLINE_MAX_MS ? span : DEADLINE_MAX_MS;
}

/* An interval of an attempt that was overdue or is being ended is not measured: else every hang
 * would widen the next deadline by WIDEN. */
void live_mark(struct core *c, struct live *l)
{
    assert(c->now_ms >= l->mark_ms);
    struct core_stage *s = task_stage(c->programs[l->program], l->task);
    enum section section = section_of(l);
    int64_t span = c->now_ms - l->mark_ms;
    if (!l->overdue && l->kill == KILL_NONE && l->health != HEALTH_UNKNOWN) {
        s->measured_ms[section] = span > s->measured_ms[section] ? span : s->measured_ms[section];
        s->n_measured[section] += s->n_measured[section] < UINT32_MAX;
    }
    l->mark_ms = c->now_ms;
    l->overdue = false;
}
