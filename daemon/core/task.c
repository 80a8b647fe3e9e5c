/*
 * Moves of a task, and what follows within its cell: dependants become ready when it is done, and
 * never run when it is blocked.
 *
 * task_move() is the only place that writes a task's state, so it also keeps the program's counters
 * and asserts the table of moves (S2). Dependencies leave a cell, whose tasks are n_stages
 * consecutive indices, only from a work to its other names (same_work.c). A stage is one work only
 * with all that it comes after, so whatever is reached in the cell of the work has its other names
 * reached in theirs.
 */
#include "daemon/core/apparatus.h"
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
    const uint32_t worker = task_worker(p, task);
    return worker != task && p->tasks[worker].state != TASK_DONE ? worker : NOWHERE;
}

bool task_dependencies_done(const struct core_program *p, uint32_t task)
{
    assert(p != NULL && task < p->n_tasks);
    return task_waits_for(p, task) == NOWHERE;
}

/* The first other name of its work; none of a task that is itself another name. */
static uint32_t first_name(const struct core_program *p, uint32_t task)
{
    return task_is_named(p, task) ? NOWHERE : task_next_name(p, task);
}

/* Makes a task ready if it waits for nothing any more. */
static void release(struct core *c, struct core_program *p, uint32_t task)
{
    if (p->tasks[task].state == TASK_WAITING && task_dependencies_done(p, task)) {
        task_move(p, task, TASK_READY, CAUSE_NONE);
        (void)emit_task_row(c, p, task, ROW_TASK_READY, TASK_WAITING);
        ready_push(p, task);
    }
}

void task_release_dependants(struct core *c, struct core_program *p, uint32_t task)
{
    assert(p->tasks[task].state == TASK_DONE);
    uint32_t first = cell_start(p, task);
    const struct stage_set *set = &task_stage(p, task)->dependants;
    for (uint32_t s = stage_set_next(set, 0); s < p->n_stages; s = stage_set_next(set, s + 1)) {
        release(c, p, first + s);
    }
    for (uint32_t i = first_name(p, task); i != NOWHERE; i = task_next_name(p, i)) {
        release(c, p, i);
    }
}

/* Ends a task that waits for what will never be. */
static bool block(struct core *c, struct core_program *p, uint32_t task)
{
    if (p->tasks[task].state != TASK_WAITING) {
        return false;
    }
    task_move(p, task, TASK_NEVER_RUN, CAUSE_DEPENDENCY);
    (void)emit_task_row(c, p, task, ROW_TASK_ENDED, TASK_WAITING);
    return true;
}

static void block_names(struct core *c, struct core_program *p, uint32_t task);

/* Stages are in topological order, so one pass over the cell reaches the dependants of dependants;
 * each has other names in other cells, whose stage is the same. */
static void block_in_cell(struct core *c, struct core_program *p, uint32_t task)
{
    uint32_t first = cell_start(p, task);
    struct stage_set reached = task_stage(p, task)->dependants;
    for (uint32_t s = task - first + 1; s < p->n_stages; s++) {
        if (stage_set_has(&reached, s) && block(c, p, first + s)) {
            stage_set_unite(&reached, &p->stages[s].dependants);
            block_names(c, p, first + s);
        }
    }
}

/* Ends the other names of a work that will never be, and the stages after them. A stage comes only
 * after earlier ones, so this is at most as deep as there are stages. */
static void block_names(struct core *c, struct core_program *p, uint32_t task)
{
    for (uint32_t i = first_name(p, task); i != NOWHERE; i = task_next_name(p, i)) {
        if (block(c, p, i)) {
            block_in_cell(c, p, i);
        }
    }
}

void task_block_dependants(struct core *c, struct core_program *p, uint32_t task)
{
    assert(!task_is_apparatus(p, task) &&
           task_state_is_terminal((enum task_state)p->tasks[task].state));
    block_in_cell(c, p, task);
    block_names(c, p, task);
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
    const uint32_t worker = task_worker(p, task);
    const enum task_state state = (enum task_state)p->tasks[worker].state;
    return worker != task && (state == TASK_BLOCKED || state == TASK_NEVER_RUN) ? worker : NOWHERE;
}

/* Whether a task never ran because of others, none of which is dead any more. */
static bool may_revive(const struct core_program *p, uint32_t task)
{
    const struct core_task *t = &p->tasks[task];
    return t->state == TASK_NEVER_RUN && t->cause == CAUSE_DEPENDENCY &&
           task_dead_dependency(p, task) == NOWHERE;
}

static void revive_names(struct core *c, struct core_program *p, uint32_t task, enum row_kind kind,
                         const char *text);

/* Also reaches dependants of dependants, for the same reason. One that still has another dead
 * dependency stays as it is. */
static void revive_in_cell(struct core *c, struct core_program *p, uint32_t task,
                           enum row_kind kind, const char *text)
{
    uint32_t first = cell_start(p, task);
    struct stage_set reached = task_stage(p, task)->dependants;
    for (uint32_t s = task - first + 1; s < p->n_stages; s++) {
        if (stage_set_has(&reached, s) && may_revive(p, first + s)) {
            task_revive(c, p, first + s, kind, text);
            stage_set_unite(&reached, &p->stages[s].dependants);
            revive_names(c, p, first + s, kind, text);
        }
    }
}

/* As block_names(). */
static void revive_names(struct core *c, struct core_program *p, uint32_t task, enum row_kind kind,
                         const char *text)
{
    for (uint32_t i = first_name(p, task); i != NOWHERE; i = task_next_name(p, i)) {
        if (may_revive(p, i)) {
            task_revive(c, p, i, kind, text);
            revive_in_cell(c, p, i, kind, text);
        }
    }
}

void task_revive_dependants(struct core *c, struct core_program *p, uint32_t task,
                            enum row_kind kind, const char *text)
{
    assert(!task_is_apparatus(p, task));
    revive_in_cell(c, p, task, kind, text);
    revive_names(c, p, task, kind, text);
}
