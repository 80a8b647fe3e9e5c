/*
 * The second runs of the apparatus checks, after the last task of the grid. Called first in
 * program_advance(), since scores and verdict wait for them.
 *
 * Everything follows from the present states, so that a restart and a rebuild need no row of their
 * own: ready and not queued until the grid has ended; then at work; never run when there is nothing
 * to guard. When a task of the grid is tried again they are taken back (ROW_APPARATUS_AGAIN).
 */
#include "daemon/core/apparatus.h"
#include "daemon/core/internal.h"

#include <assert.h>

/* Whether some held stage has a result: without one no score rests on the checks. */
static bool has_scores(const struct core_program *p)
{
    for (uint32_t i = 0; i < p->n_grid; i++) {
        if (p->tasks[i].state == TASK_DONE && p->stages[i % p->n_stages].held) {
            return true;
        }
    }
    return false;
}

static bool first_holds(const struct core_program *p, const struct apparatus_slot *slot)
{
    return slot->first < p->n_apparatus && p->tasks[p->n_grid + slot->first].state == TASK_DONE;
}

/* The grid has ended: each is queued, or ends where it has nothing to repeat or to guard. */
static void start(struct core *c, struct core_program *p)
{
    for (uint32_t i = 0; i < p->n_apparatus; i++) {
        const struct apparatus_slot *slot = &p->apparatus[i];
        const uint32_t task = p->n_grid + i;
        struct core_task *t = &p->tasks[task];
        if (!slot->again || !slot->declared || t->state != TASK_READY) {
            continue;
        }
        if (first_holds(p, slot) && has_scores(p)) {
            if (t->timer_pos == NOWHERE) {
                ready_push(p, task);
            }
        } else {
            ready_remove(p, task);
            timer_clear(c, p, task);
            t->not_before_ms = 0;
            task_move(p, task, t->n_attempts > 0 ? TASK_BLOCKED : TASK_NEVER_RUN, CAUSE_DEPENDENCY);
            (void)emit_task_row(c, p, task, ROW_TASK_ENDED, TASK_READY);
        }
    }
}

/* The grid goes on: what has ended is to be run once more, but for a score that differed. */
static void take_back(struct core *c, struct core_program *p)
{
    for (uint32_t i = 0; i < p->n_apparatus; i++) {
        const uint32_t task = p->n_grid + i;
        const struct core_task *t = &p->tasks[task];
        struct live *l = live_of(c, p, task);
        if (!p->apparatus[i].again || !p->apparatus[i].declared) {
            continue;
        }
        ready_remove(p, task);
        if (l != NULL) {
            l->reopened = true;
        } else if (t->state == TASK_DONE || t->cause == CAUSE_DEPENDENCY) {
            task_revive(c, p, task, ROW_APPARATUS_AGAIN, NULL);
        }
    }
}

void again_advance(struct core *c, struct core_program *p)
{
    assert(c != NULL && p != NULL);
    if (p->n_apparatus == 0 || p->status.verdict || p->verdict_asked) {
        return;
    }
    p->again_open = program_n_open(p) == 0;
    if (p->again_open) {
        start(c, p);
    } else {
        take_back(c, p);
    }
}
