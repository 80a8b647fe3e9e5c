/* What changes the apparatus checks of a program (apparatus.c): an amendment that adds, changes or
 * removes them, the pause for one that does not hold, and a resume that repeats it. */
#include "daemon/core/apparatus.h"
#include "daemon/core/internal.h"

#include <assert.h>

void apparatus_blocked(struct core *c, struct core_program *p, uint32_t task, const char *text)
{
    assert(task_is_apparatus(p, task) &&
           task_state_is_terminal((enum task_state)p->tasks[task].state));
    const struct apparatus_slot *slot = &p->apparatus[task - p->n_grid];
    enum cause cause = (enum cause)p->tasks[task].cause;
    char why[512];
    if (!slot->declared || cause == CAUSE_STOPPED || again_has_failed(p, task)) {
        return; /* nothing waits for it, nothing is to be started any more, or it is final */
    }
    if (cause == CAUSE_APPARATUS) {
        (void)snprintf(why, sizeof(why), "apparatus.%s: %s", slot->name,
                       text != NULL ? text : cause_name(cause));
    } else {
        (void)snprintf(why, sizeof(why), "apparatus.%s could not be made (%s)%s%s", slot->name,
                       cause_name(cause), text != NULL ? ": " : "", text != NULL ? text : "");
    }
    program_pause(c, p, PAUSE_APPARATUS, why);
}

static bool is_blocked(const struct core_task *t)
{
    return t->state == TASK_BLOCKED || t->state == TASK_NEVER_RUN;
}

void apparatus_revive(struct core *c, struct core_program *p)
{
    assert(c != NULL && p != NULL && p->n_grid + p->n_apparatus == p->n_tasks);
    for (uint32_t i = 0; i < p->n_apparatus; i++) {
        uint32_t task = p->n_grid + i;
        if (p->apparatus[i].declared && is_blocked(&p->tasks[task]) && !p->status.verdict &&
            !p->verdict_asked && p->stop_below == 0 && !again_has_failed(p, task)) {
            task_revive(c, p, task, ROW_TASK_RETRIED, NULL);
        }
    }
}

/* The tasks of checks that an amendment added begin as ready, like those of a new program. */
static void grow_tasks(struct core_program *p, uint32_t n_before)
{
    uint32_t n = p->n_grid + p->n_apparatus;
    p->tasks = xreallocarray(p->tasks, n, sizeof(*p->tasks));
    for (uint32_t task = p->n_grid + n_before; task < n; task++) {
        struct task_row fresh;
        task_row_init(&fresh, TASK_READY);
        task_init(&p->tasks[task], &fresh);
    }
    p->n_tasks = n;
    for (uint32_t task = p->n_grid + n_before; task < n; task++) {
        ready_push(p, task);
    }
}

void apparatus_amend(struct core *c, struct core_program *p, const struct core_plan *plan)
{
    assert(c != NULL && p != NULL && plan != NULL);
    uint32_t n_before = p->n_apparatus;
    bool lifts = (p->status.paused & PAUSE_APPARATUS) != 0;
    apparatus_set(p, plan);
    grow_tasks(p, n_before);
    for (uint32_t i = 0; i < n_before; i++) {
        uint32_t task = p->n_grid + i;
        const struct core_task *t = &p->tasks[task];
        if (!p->apparatus[i].declared) {
            ready_remove(p, task);
            continue;
        }
        /* A live attempt goes on: its question is in its task.json, and its result is recognised as
         * an answer to the old one (RESULT_STALE). */
        if (plan->apparatus[i].changed && task_state_is_terminal((enum task_state)t->state)) {
            task_revive(c, p, task, ROW_APPARATUS_AGAIN, NULL);
        }
        if (t->state == TASK_READY && t->timer_pos == NOWHERE) {
            ready_push(p, task); /* it was removed once, and is declared again */
        }
        lifts = lifts && !is_blocked(t);
    }
    ready_update_gate(p);
    if (lifts) {
        p->status.paused &= ~(unsigned)PAUSE_APPARATUS;
        (void)emit_program_row(c, p, ROW_RESUMED, "the apparatus check was amended");
    }
}
