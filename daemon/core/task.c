/*
 * Moves of a task, and what follows within its cell: dependants become ready when it is done, and
 * never run when it is blocked.
 *
 * task_move() is the only place that writes a task's state, so it also keeps the program's counters
 * and asserts the table of moves (S2). Dependencies never leave a cell; its tasks are n_stages
 * consecutive indices.
 */
#include "daemon/core/internal.h"

#include <assert.h>

void task_init(struct core_task *t, const struct task_row *row)
{
    assert(t != NULL && row != NULL);
    *t = (struct core_task){
        .best_done = row->best_done,
        .best_checkpoint = row->best_checkpoint,
        .not_before_ms = row->not_before.ms,
        .n_attempts = row->n_attempts,
        .spent = row->spent,
        .crashes = row->crashes,
        .ready_pos = NOWHERE,
        .timer_pos = NOWHERE,
        .live = NOWHERE,
        .idle = (uint16_t)row->idle,
        .no_space = (uint16_t)row->no_space,
        .state = (uint8_t)row->state,
        .cause = (uint8_t)row->cause,
        .ending = (uint8_t)row->ending,
        .linked = row->linked,
        .end_code = -1,
    };
}

/* `done` is final but for two cases (S2): an apparatus check whose question was amended, and a task
 * whose accepted result is lost. */
static bool may_move(const struct core_program *p, uint32_t task, enum task_state from,
                     enum task_state to)
{
    return task_move_is_allowed(from, to) ||
           (from == TASK_DONE && to == (task_is_apparatus(p, task) ? TASK_READY : TASK_BLOCKED));
}

void task_move(struct core_program *p, uint32_t task, enum task_state to, enum cause cause)
{
    assert(task < p->n_tasks);
    assert(to < TASK_STATE_NR);
    struct core_task *t = &p->tasks[task];
    enum task_state from = (enum task_state)t->state;
    assert(may_move(p, task, from, to));
    assert((cause != CAUSE_NONE) == (to == TASK_BLOCKED || to == TASK_NEVER_RUN));
    assert(to != TASK_NEVER_RUN || t->n_attempts == 0 || cause == CAUSE_DEPENDENCY);
    t->state = (uint8_t)to;
    t->cause = (uint8_t)cause;
    p->n_unlinked += to == TASK_DONE;
    p->n_unlinked -= from == TASK_DONE && !t->linked;
    t->linked = t->linked && from != TASK_DONE;
    if (task_is_apparatus(p, task)) {
        ready_update_gate(p);
        return;
    }
    p->n_by_state[from]--;
    p->n_by_state[to]++;
    p->n_accepted += to == TASK_DONE;
    task_stage(p, task)->n_accepted += to == TASK_DONE;
    if (task_stage(p, task)->counted) {
        p->n_counted_open -= !task_state_is_terminal(from);
        p->n_counted_open += !task_state_is_terminal(to);
    }
}

void task_revive(struct core *c, struct core_program *p, uint32_t task, enum row_kind kind,
                 const char *text)
{
    assert(p->tasks[task].live == NOWHERE); /* S1 */
    struct core_task *t = &p->tasks[task];
    enum task_state from = (enum task_state)t->state;
    t->spent = 0;
    t->crashes = 0;
    t->idle = 0;
    t->no_space = 0;
    t->not_before_ms = 0;
    bool ready = task_dependencies_done(p, task);
    task_move(p, task, ready ? TASK_READY : TASK_WAITING, CAUSE_NONE);
    emit_task_row(c, p, task, kind, from)->detail = emit_text(c, text);
    if (ready) {
        ready_push(p, task);
    }
}

/* The first task of its cell. */
static uint32_t cell_start(const struct core_program *p, uint32_t task)
{
    return task - task % p->n_stages;
}

uint32_t task_waits_for(const struct core_program *p, uint32_t task)
{
    assert(task < p->n_tasks);
    uint32_t first = cell_start(p, task);
    const struct stage_set *after = &task_stage(p, task)->after;
    for (uint32_t s = stage_set_next(after, 0); s < p->n_stages; s = stage_set_next(after, s + 1)) {
        uint32_t other = first + s;
        if (p->tasks[other].state != TASK_DONE) {
            return other;
        }
    }
    return NOWHERE;
}

bool task_dependencies_done(const struct core_program *p, uint32_t task)
{
    assert(p != NULL && task < p->n_tasks);
    return task_waits_for(p, task) == NOWHERE;
}

void task_release_dependants(struct core *c, struct core_program *p, uint32_t task)
{
    assert(p->tasks[task].state == TASK_DONE);
    uint32_t first = cell_start(p, task);
    const struct stage_set *set = &task_stage(p, task)->dependants;
    for (uint32_t s = stage_set_next(set, 0); s < p->n_stages; s = stage_set_next(set, s + 1)) {
        uint32_t other = first + s;
        if (p->tasks[other].state == TASK_WAITING && task_dependencies_done(p, other)) {
            task_move(p, other, TASK_READY, CAUSE_NONE);
            (void)emit_task_row(c, p, other, ROW_TASK_READY, TASK_WAITING);
            ready_push(p, other);
        }
    }
}

/* Stages are in topological order, so one pass over the cell reaches the dependants of dependants.
 */
void task_block_dependants(struct core *c, struct core_program *p, uint32_t task)
{
    assert(!task_is_apparatus(p, task) &&
           task_state_is_terminal((enum task_state)p->tasks[task].state));
    uint32_t first = cell_start(p, task);
    struct stage_set reached = task_stage(p, task)->dependants;
    for (uint32_t s = task - first + 1; s < p->n_stages; s++) {
        uint32_t other = first + s;
        if (!stage_set_has(&reached, s) || p->tasks[other].state != TASK_WAITING) {
            continue;
        }
        task_move(p, other, TASK_NEVER_RUN, CAUSE_DEPENDENCY);
        (void)emit_task_row(c, p, other, ROW_TASK_ENDED, TASK_WAITING);
        stage_set_unite(&reached, &p->stages[s].dependants);
    }
}

uint32_t task_dead_dependency(const struct core_program *p, uint32_t task)
{
    assert(task < p->n_tasks);
    uint32_t first = cell_start(p, task);
    const struct stage_set *after = &task_stage(p, task)->after;
    for (uint32_t s = stage_set_next(after, 0); s < p->n_stages; s = stage_set_next(after, s + 1)) {
        uint32_t other = first + s;
        if (p->tasks[other].state == TASK_BLOCKED || p->tasks[other].state == TASK_NEVER_RUN) {
            return other;
        }
    }
    return NOWHERE;
}

/* Also reaches dependants of dependants, for the same reason. One that still has another dead
 * dependency stays as it is. */
void task_revive_dependants(struct core *c, struct core_program *p, uint32_t task,
                            enum row_kind kind, const char *text)
{
    assert(!task_is_apparatus(p, task));
    uint32_t first = cell_start(p, task);
    struct stage_set reached = task_stage(p, task)->dependants;
    for (uint32_t s = task - first + 1; s < p->n_stages; s++) {
        const struct core_task *t = &p->tasks[first + s];
        if (!stage_set_has(&reached, s) || t->state != TASK_NEVER_RUN ||
            t->cause != CAUSE_DEPENDENCY || task_dead_dependency(p, first + s) != NOWHERE) {
            continue;
        }
        task_revive(c, p, first + s, kind, text);
        stage_set_unite(&reached, &p->stages[s].dependants);
    }
}
