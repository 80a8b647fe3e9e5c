/* Requests of a person: cancel, give up a lost result, resume, unblind. Each checks first and then
 * changes; a refusal changes nothing and says why. retry.c has the retries, slices.c the requests
 * about all tasks. */
#include "daemon/core/apparatus.h"
#include "daemon/core/internal.h"

#include <assert.h>

void request_end(struct core *c, struct core_program *p, uint32_t task, enum cause cause,
                 const char *text)
{
    assert(task < p->n_tasks);
    assert(!task_state_is_terminal((enum task_state)p->tasks[task].state));
    struct core_task *t = &p->tasks[task];
    struct live *l = live_of(c, p, task);
    enum task_state from = (enum task_state)t->state;
    if (l != NULL) {
        if (t->ending == CAUSE_NONE) {
            t->ending = (uint8_t)cause;
            emit_task_row(c, p, task, ROW_TASK_ENDING, from)->detail = emit_text(c, text);
            attempt_end_by_person(c, l);
        }
        return;
    }
    ready_remove(p, task);
    timer_clear(c, p, task);
    t->not_before_ms = 0;
    task_move(p, task, t->n_attempts > 0 ? TASK_BLOCKED : TASK_NEVER_RUN, cause);
    emit_task_row(c, p, task, ROW_TASK_ENDED, from)->detail = emit_text(c, text);
    if (task_is_apparatus(p, task)) {
        apparatus_blocked(c, p, task, NULL);
    } else {
        task_block_dependants(c, p, task);
    }
}

void request_cancel(struct core *c, struct core_program *p, uint32_t task, const char *text)
{
    assert(task < p->n_tasks);
    if (task_state_is_terminal((enum task_state)p->tasks[task].state)) {
        emit_refusal(c, "it has ended already: %s",
                     task_state_name((enum task_state)p->tasks[task].state));
        return;
    }
    request_end(c, p, task, CAUSE_CANCELLED, text);
}

/* A later stage of the cell that depends on it, or another name of its work, with a live attempt;
 * NOWHERE: none. */
static uint32_t live_dependant(const struct core_program *p, uint32_t task)
{
    assert(!task_is_apparatus(p, task));
    uint32_t first = task - task % p->n_stages;
    for (uint32_t s = task - first + 1; s < p->n_stages; s++) {
        if (stage_set_has(&p->stages[s].after, task - first) &&
            p->tasks[first + s].live != NOWHERE) {
            return first + s;
        }
    }
    for (uint32_t i = task_next_name(p, task); i != NOWHERE; i = task_next_name(p, i)) {
        if (task_worker(p, i) == task && p->tasks[i].live != NOWHERE) {
            return i;
        }
    }
    return NOWHERE;
}

/* A dependant that was ready, and what depends on it. */
static void end_ready(struct core *c, struct core_program *p, uint32_t task)
{
    if (p->tasks[task].state != TASK_READY) {
        return;
    }
    ready_remove(p, task);
    timer_clear(c, p, task);
    p->tasks[task].not_before_ms = 0;
    task_move(p, task, TASK_NEVER_RUN, CAUSE_DEPENDENCY);
    (void)emit_task_row(c, p, task, ROW_TASK_ENDED, TASK_READY);
    task_block_dependants(c, p, task);
}

/* Dependants that have not ended never will; those that are done keep their results. */
static void end_dependants(struct core *c, struct core_program *p, uint32_t task)
{
    assert(!task_is_apparatus(p, task));
    uint32_t first = task - task % p->n_stages;
    for (uint32_t s = task - first + 1; s < p->n_stages; s++) {
        uint32_t other = first + s;
        if (stage_set_has(&p->stages[s].after, task - first)) {
            end_ready(c, p, other);
        }
    }
    for (uint32_t i = task_next_name(p, task); i != NOWHERE; i = task_next_name(p, i)) {
        if (task_worker(p, i) == task) {
            end_ready(c, p, i);
        }
    }
    task_block_dependants(c, p, task);
}

/* The one way from `done` to blocked. The caller has verified that the result is gone or changed;
 * the verdict must not have used it, and no stage may be reading it now. */
void request_lost(struct core *c, struct core_program *p, uint32_t task, const char *text)
{
    assert(task < p->n_tasks);
    struct core_task *t = &p->tasks[task];
    if (task_is_apparatus(p, task) || t->state != TASK_DONE) {
        emit_refusal(c, "only a task that is done has an accepted result to lose");
        return;
    }
    if (p->status.verdict || p->verdict_asked) {
        emit_refusal(c, "the verdict is out, and rests on it");
        return;
    }
    if (live_dependant(p, task) != NOWHERE) {
        emit_refusal(
            c, "a task that needs it is at work on it: wait until that has ended, or cancel it");
        return;
    }
    t->cause = CAUSE_NONE;
    task_move(p, task, TASK_BLOCKED, CAUSE_LOST);
    emit_task_row(c, p, task, ROW_RESULT_LOST, TASK_DONE)->detail = emit_text(c, text);
    end_dependants(c, p, task);
    p->verdict_failed = false;
    if ((p->status.paused & PAUSE_LOCK) != 0) {
        p->status.paused &= ~(unsigned)PAUSE_LOCK;
        (void)emit_program_row(c, p, ROW_RESUMED, "the result that was missed is given up");
    }
}

/* Lifts every pause but STOPPING, which ends by itself. */
void request_resume(struct core *c, struct core_program *p, const struct core_event *ev)
{
    assert(c != NULL && p != NULL && ev != NULL);
    const unsigned lifted = p->status.paused & ~(unsigned)PAUSE_STOPPING;
    bool accepts = ev->accept_failures && !p->status.failures_accepted;
    if (lifted == 0 && !p->verdict_failed && !accepts) {
        emit_refusal(c, p->status.paused == 0 ? "it is not paused" : REFUSAL_STOPPING);
        return;
    }
    p->verdict_failed = false;
    p->n_unlaunched = 0;
    if ((lifted & PAUSE_FAILURES) != 0) {
        failures_answer(c, p);
    }
    if (lifted != 0 || accepts) {
        p->status.paused &= ~lifted;
        p->status.failures_accepted |= accepts;
        (void)emit_program_row(c, p, ROW_RESUMED, ev->text);
        apparatus_revive(c, p);
    }
}

/* Gives up the cells of a program that has ended, for good. Asked for again it asks the shell
 * again: a disk may have kept it from removing all of them. */
void request_remove(struct core *c, struct core_program *p, const char *text)
{
    assert(c != NULL && p != NULL);
    if (!p->status.reported) {
        emit_refusal(c, "it has no verdict and report yet");
        return;
    }
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        if (p->tasks[i].live != NOWHERE) {
            emit_refusal(c, "an attempt of it is still at work");
            return;
        }
    }
    if (!p->status.removed) {
        p->status.removed = true;
        (void)emit_program_row(c, p, ROW_REMOVED, text);
    }
    emit_act(c, ACT_REMOVE, p);
}

/* Opening the scores early is allowed, journalled, and cannot be taken back. */
void request_unblind(struct core *c, struct core_program *p, const char *text)
{
    assert(c != NULL && p != NULL);
    if (program_scores_are_open(p)) {
        emit_refusal(c, "its scores are open already");
        return;
    }
    p->status.unblinded = true;
    (void)emit_program_row(c, p, ROW_UNBLINDED, text);
}
