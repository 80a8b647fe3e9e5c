/* Retrying a task that is blocked or never ran. Most refusals follow one rule: once scores of a
 * program have been seen, nothing that the verdict depends on may run again, because choosing when
 * to retry would choose the result. */
#include "daemon/core/apparatus.h"
#include "daemon/core/internal.h"

/* An unblinding before any result was accepted has shown nothing. Before the verdict, unsealing
 * waits for an accepted result (program_advance). */
static bool scores_seen(const struct core_program *p)
{
    return program_scores_are_open(p) &&
           (p->n_accepted > 0 || p->status.unsealed || p->status.verdict);
}

/* The first reason that applies, in the words that the user reads. */
const char *retry_refusal(const struct core_program *p, uint32_t task)
{
    assert(task < p->n_tasks);
    enum task_state state = (enum task_state)p->tasks[task].state;
    if (state != TASK_BLOCKED && state != TASK_NEVER_RUN) {
        return "only what is blocked or was never run can be tried again";
    }
    if ((p->status.paused & PAUSE_STOPPING) != 0) {
        return REFUSAL_STOPPING;
    }
    if (p->tasks[task].cause == CAUSE_LOST) {
        return "it was done, and its result was given up as lost";
    }
    if (!apparatus_is_declared(p, task)) {
        return "an amendment took this check away";
    }
    if (again_has_failed(p, task)) {
        return "its score is not that of the first time: no other attempt can change that";
    }
    if (task_is_apparatus(p, task) && (p->status.paused & PAUSE_APPARATUS) != 0) {
        return "its program is paused for it: `preregctl resume` makes the check again";
    }
    if (p->status.verdict || p->verdict_asked) {
        return "the verdict is out, and its coverage states this task: run it in a new program, "
               "whose `[program] supersedes` is the root of this one (docs/amendments.md)";
    }
    if (task_stage(p, task)->counted && scores_seen(p)) {
        return "the verdict depends on it, and scores of its program have been seen: trying again"
               " now could choose the result";
    }
    return task_dead_dependency(p, task) != NOWHERE
               ? "a task it depends on is blocked: try that one again"
               : NULL;
}

void retry_task(struct core *c, struct core_program *p, uint32_t task, const char *text)
{
    assert(task < p->n_tasks);
    const char *refusal = retry_refusal(p, task);
    if (refusal != NULL) {
        emit_refusal(c, "%s", refusal);
        return;
    }
    p->verdict_failed = false;
    task_revive(c, p, task, ROW_TASK_RETRIED, text);
    if (!task_is_apparatus(p, task)) {
        task_revive_dependants(c, p, task, ROW_TASK_RETRIED, text);
    }
}
