/* Binary heaps: the ready tasks of each program, one for each lane, and the timers of all. A
 * task knows its place in both, so any element can be removed in O(log n). */
#include "daemon/core/gpus.h"

#include "daemon/core/apparatus.h"
#include "daemon/core/internal.h"
#include <assert.h>

#define HELD (UINT64_C(1) << 48) /* more than any order of those that may start */

/* The order of dispatch within a program (S8): apparatus checks first; then deeper stages, so that
 * cells finish; then the program's order. Tasks that wait for those checks come last. Every key is
 * unique, so the same rows always give the same order. */
static uint64_t ready_key(const struct core_program *p, uint32_t task)
{
    if (task_is_apparatus(p, task)) {
        return task - p->n_grid;
    }
    uint64_t order = task_stage(p, task)->order;
    uint64_t key = p->n_apparatus + order * p->n_cells + task / p->n_stages;
    return task_is_held(p, task) ? HELD + key : key;
}

static struct ready_queue *queue_of(struct core_program *p, uint32_t task)
{
    return &p->ready[stage_lane(task_stage(p, task))];
}

static void ready_place(struct core_program *p, struct ready_queue *q, uint32_t pos, uint32_t task)
{
    q->tasks[pos] = task;
    p->tasks[task].ready_pos = pos;
}

/* Sifts the element at `pos` towards the root while its parent is larger. */
static void ready_up(struct core_program *p, struct ready_queue *q, uint32_t pos)
{
    uint32_t task = q->tasks[pos];
    uint64_t key = ready_key(p, task);
    while (pos > 0) {
        uint32_t parent = (pos - 1) / 2;
        if (ready_key(p, q->tasks[parent]) <= key) {
            break;
        }
        ready_place(p, q, pos, q->tasks[parent]);
        pos = parent;
    }
    ready_place(p, q, pos, task);
}

/* Sifts the element at `pos` towards the leaves while a child is smaller. */
static void ready_down(struct core_program *p, struct ready_queue *q, uint32_t pos)
{
    uint32_t task = q->tasks[pos];
    uint64_t key = ready_key(p, task);
    for (;;) {
        uint32_t child = 2 * pos + 1;
        if (child >= q->n) {
            break;
        }
        if (child + 1 < q->n && ready_key(p, q->tasks[child + 1]) < ready_key(p, q->tasks[child])) {
            child++;
        }
        if (ready_key(p, q->tasks[child]) >= key) {
            break;
        }
        ready_place(p, q, pos, q->tasks[child]);
        pos = child;
    }
    ready_place(p, q, pos, task);
}

void ready_push(struct core_program *p, uint32_t task)
{
    assert(task < p->n_tasks);
    if (p->tasks[task].ready_pos != NOWHERE || !apparatus_is_wanted(p, task)) {
        return;
    }
    assert(p->tasks[task].state == TASK_READY);
    struct ready_queue *q = queue_of(p, task);
    ARRAY_GROW(q->tasks, q->n, q->cap);
    q->tasks[q->n] = task;
    ready_up(p, q, q->n++);
    p->n_ready++;
}

void ready_remove(struct core_program *p, uint32_t task)
{
    assert(task < p->n_tasks);
    uint32_t pos = p->tasks[task].ready_pos;
    if (pos == NOWHERE) {
        return;
    }
    struct ready_queue *q = queue_of(p, task);
    assert(q->n > 0 && p->n_ready > 0 && q->tasks[pos] == task);
    p->tasks[task].ready_pos = NOWHERE;
    p->n_ready--;
    uint32_t last = q->tasks[--q->n];
    if (last == task) {
        return;
    }
    ready_place(p, q, pos, last); /* it may belong above or below the gap */
    ready_up(p, q, pos);
    ready_down(p, q, p->tasks[last].ready_pos);
}

uint32_t ready_head(const struct core_program *p, enum lane lane)
{
    assert(p != NULL && lane < LANE_NR);
    const struct ready_queue *q = &p->ready[lane];
    return q->n > 0 ? q->tasks[0] : NOWHERE;
}

/* Rebuilds the heaps in O(n): opening the gate changes the keys of many tasks at once. */
static void ready_reorder(struct core_program *p)
{
    for (int e = 0; e < LANE_NR; e++) {
        struct ready_queue *q = &p->ready[e];
        for (uint32_t pos = q->n / 2; pos-- > 0;) {
            ready_down(p, q, pos);
        }
    }
}

/* Every task that was in a queue is put into the one of its stage as it is now. */
void ready_resort(struct core_program *p)
{
    assert(p != NULL);
    struct ready_queue old[LANE_NR];
    memcpy(old, p->ready, sizeof(old));
    memset(p->ready, 0, sizeof(p->ready));
    p->n_ready = 0;
    for (int e = 0; e < LANE_NR; e++) {
        for (uint32_t i = 0; i < old[e].n; i++) {
            p->tasks[old[e].tasks[i]].ready_pos = NOWHERE;
        }
        for (uint32_t i = 0; i < old[e].n; i++) {
            ready_push(p, old[e].tasks[i]);
        }
        free(old[e].tasks);
    }
}

void ready_free(struct core_program *p)
{
    assert(p != NULL);
    for (int e = 0; e < LANE_NR; e++) {
        free(p->ready[e].tasks);
    }
}

void ready_update_gate(struct core_program *p)
{
    assert(p != NULL);
    bool open = apparatus_holds(p);
    if (open != p->gate_open) {
        p->gate_open = open;
        ready_reorder(p);
    }
}

static struct core_task *timer_task(const struct core *c, const struct timer *t)
{
    return &c->programs[t->program]->tasks[t->task];
}

/* Ties are broken by program and task, so that a replay fires them in the same order. */
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

void timer_set(struct core *c, const struct core_program *p, uint32_t task, int64_t at_ms)
{
    assert(task < p->n_tasks);
    uint32_t pos = p->tasks[task].timer_pos;
    if (pos == NOWHERE) {
        ARRAY_GROW(c->timers, c->n_timers, c->cap_timers);
        pos = c->n_timers++;
    }
    c->timers[pos] = (struct timer){at_ms, p->no, task};
    timer_up(c, pos);
    timer_down(c, p->tasks[task].timer_pos);
}

void timer_clear(struct core *c, const struct core_program *p, uint32_t task)
{
    assert(task < p->n_tasks);
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

int64_t core_next_timer_ms(const struct core *c)
{
    assert(c != NULL);
    int64_t at = c->n_timers > 0 ? c->timers[0].at_ms : INT64_MAX;
    return at < c->slice_due_ms ? at : c->slice_due_ms;
}
