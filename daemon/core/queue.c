/* Two binary heaps whose elements know where they are, so that any of them can be taken out in
 * O(log n). */
#include "daemon/core/internal.h"

#define HELD (UINT64_C(1) << 48) /* more than any order of those that may start */

/* The order of dispatch within a program (S8): apparatus checks first; then deeper stages, so that
 * cells finish; then the program's order. Behind all of them stands what those checks hold. */
static uint64_t ready_key(const struct program *p, uint32_t task)
{
    if (task_is_apparatus(p, task)) {
        return task - p->n_grid;
    }
    uint64_t order = task_stage(p, task)->order;
    uint64_t key = p->n_apparatus + order * p->n_cells + task / p->n_stages;
    return task_is_held(p, task) ? HELD + key : key;
}

static void ready_place(struct program *p, uint32_t pos, uint32_t task)
{
    p->ready[pos] = task;
    p->tasks[task].ready_pos = pos;
}

static void ready_up(struct program *p, uint32_t pos)
{
    uint32_t task = p->ready[pos];
    uint64_t key = ready_key(p, task);
    while (pos > 0) {
        uint32_t parent = (pos - 1) / 2;
        if (ready_key(p, p->ready[parent]) <= key) {
            break;
        }
        ready_place(p, pos, p->ready[parent]);
        pos = parent;
    }
    ready_place(p, pos, task);
}

static void ready_down(struct program *p, uint32_t pos)
{
    uint32_t task = p->ready[pos];
    uint64_t key = ready_key(p, task);
    for (;;) {
        uint32_t child = 2 * pos + 1;
        if (child >= p->n_ready) {
            break;
        }
        if (child + 1 < p->n_ready &&
            ready_key(p, p->ready[child + 1]) < ready_key(p, p->ready[child])) {
            child++;
        }
        if (ready_key(p, p->ready[child]) >= key) {
            break;
        }
        ready_place(p, pos, p->ready[child]);
        pos = child;
    }
    ready_place(p, pos, task);
}

void ready_push(struct program *p, uint32_t task)
{
    if (p->tasks[task].ready_pos != NOWHERE || !apparatus_is_wanted(p, task)) {
        return;
    }
    assert(p->tasks[task].state == TASK_READY);
    ARRAY_GROW(p->ready, p->n_ready, p->cap_ready);
    p->ready[p->n_ready] = task;
    ready_up(p, p->n_ready++);
}

void ready_remove(struct program *p, uint32_t task)
{
    uint32_t pos = p->tasks[task].ready_pos;
    if (pos == NOWHERE) {
        return;
    }
    p->tasks[task].ready_pos = NOWHERE;
    uint32_t last = p->ready[--p->n_ready];
    if (last == task) {
        return;
    }
    ready_place(p, pos, last);
    ready_up(p, pos);
    ready_down(p, p->tasks[last].ready_pos);
}

void ready_reorder(struct program *p)
{
    for (uint32_t pos = p->n_ready / 2; pos-- > 0;) {
        ready_down(p, pos);
    }
}

static struct task *timer_task(const struct core *c, const struct timer *t)
{
    return &c->programs[t->program]->tasks[t->task];
}

static bool timer_before(const struct timer *a, const struct timer *b)
{
    if (a->at_ms != b->at_ms) {
        return a->at_ms < b->at_ms;
    }
    if (a->program != b->program) {
        return a->program < b->program;
    }
    return a->task < b->task;
}

static void timer_place(struct core *c, uint32_t pos, struct timer t)
{
    c->timers[pos] = t;
    timer_task(c, &t)->timer_pos = pos;
}

static void timer_up(struct core *c, uint32_t pos)
{
    struct timer t = c->timers[pos];
    while (pos > 0) {
        uint32_t parent = (pos - 1) / 2;
        if (!timer_before(&t, &c->timers[parent])) {
            break;
        }
        timer_place(c, pos, c->timers[parent]);
        pos = parent;
    }
    timer_place(c, pos, t);
}

static void timer_down(struct core *c, uint32_t pos)
{
    struct timer t = c->timers[pos];
    for (;;) {
        uint32_t child = 2 * pos + 1;
        if (child >= c->n_timers) {
            break;
        }
        if (child + 1 < c->n_timers && timer_before(&c->timers[child + 1], &c->timers[child])) {
            child++;
        }
        if (!timer_before(&c->timers[child], &t)) {
            break;
        }
        timer_place(c, pos, c->timers[child]);
        pos = child;
    }
    timer_place(c, pos, t);
}

void timer_set(struct core *c, const struct program *p, uint32_t task, int64_t at_ms)
{
    uint32_t pos = p->tasks[task].timer_pos;
    if (pos == NOWHERE) {
        ARRAY_GROW(c->timers, c->n_timers, c->cap_timers);
        pos = c->n_timers++;
    }
    c->timers[pos] = (struct timer){at_ms, p->no, task};
    timer_up(c, pos);
    timer_down(c, p->tasks[task].timer_pos);
}

void timer_clear(struct core *c, const struct program *p, uint32_t task)
{
    uint32_t pos = p->tasks[task].timer_pos;
    if (pos == NOWHERE) {
        return;
    }
    p->tasks[task].timer_pos = NOWHERE;
    struct timer last = c->timers[--c->n_timers];
    if (last.program == p->no && last.task == task) {
        return;
    }
    timer_place(c, pos, last);
    timer_up(c, pos);
    timer_down(c, timer_task(c, &last)->timer_pos);
}
