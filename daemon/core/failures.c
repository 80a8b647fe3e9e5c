/*
 * A stage whose first cells all fail the same way: something is missing that all of them need (an
 * import, a file, a driver), and giving the cells up would only burn the program. judge.c has
 * decided that a task is to be blocked; this file decides whether the program pauses instead.
 * Called by attempt.c once the end of the attempt is in its row.
 *
 * The rule: no task of the stage was ever done; SAME_MAX of its tasks, or all that can still end by
 * themselves where they are fewer, are blocked by an end of their own with one cause, exit code and
 * signal. Other names of works (same_work.h) are a stage of their own here: they run none of it.
 * They are then revived with fresh budgets, so that the next count begins at 0, and the program
 * pauses. Attempts that run then belong to that pause: one that fails is revived, too, and counts
 * for no other, even if the program was resumed meanwhile and other cells are done.
 */
#include "daemon/core/apparatus.h"
#include "daemon/core/internal.h"
#include "daemon/core/same_work.h"

#include <assert.h>

#define SAME_MAX 3u

enum { KILL_SIGNAL = 9 }; /* POSIX fixes the number (kill -9) */

/* Failures of the work itself. A kill from outside, a lost machine and a checkpointed stop say
 * nothing about it; "cannot be measured" (exit 69) is an answer, not a failure. */
static bool is_own_failure(const struct core_task *t)
{
    switch ((enum cause)t->cause) {
    case CAUSE_CRASH: return t->end_signal != KILL_SIGNAL;
    case CAUSE_HANG:
    case CAUSE_TIMEOUT:
    case CAUSE_OOM:
    case CAUSE_BAD_RESULT:
    case CAUSE_USER_ERROR:
    case CAUSE_BAD_INPUT:
    case CAUSE_DRIFT: return true;
    case CAUSE_NONE:
    case CAUSE_SILENT_DEATH:
    case CAUSE_PREEMPTED:
    case CAUSE_HOST_LOST:
    case CAUSE_NOT_MEASURABLE:
    case CAUSE_NO_SPACE:
    case CAUSE_DEPENDENCY:
    case CAUSE_CANCELLED:
    case CAUSE_STOPPED:
    case CAUSE_APPARATUS:
    case CAUSE_LOST:
    case CAUSE_NR: break;
    }
    return false;
}

static bool is_same(const struct core_task *t, const struct core_task *of)
{
    assert(of->state == TASK_BLOCKED);
    return t->state == TASK_BLOCKED && t->cause == of->cause && t->end_code == of->end_code &&
           t->end_signal == of->end_signal;
}

/* A task whose dependency was given up meanwhile would wait for ever. */
static bool can_revive(const struct core_program *p, uint32_t task)
{
    return retry_refusal(p, task) == NULL;
}

/* It has ended, and not by its own doing. */
static bool is_out(const struct core_task *t)
{
    return t->state == TASK_NEVER_RUN || t->cause == CAUSE_CANCELLED || t->cause == CAUSE_STOPPED;
}

struct failure_tally {
    uint32_t same;
    uint32_t other; /* blocked by another end of their own */
    uint32_t able;  /* that can still end by themselves, or did */
};

/* Whether a task of the same stage does the same as `of`: the work itself, or accepts one. */
static bool is_alike(const struct core_program *p, uint32_t task, uint32_t of)
{
    return task_accepts(p, task) == task_accepts(p, of);
}

/* Over the cells of one stage: its tasks are n_stages apart. */
static struct failure_tally count(const struct core_program *p, uint32_t task)
{
    assert(task < p->n_grid);
    struct failure_tally n = {0};
    for (uint32_t i = task % p->n_stages; i < p->n_grid; i += p->n_stages) {
        const struct core_task *t = &p->tasks[i];
        if (!is_alike(p, i, task)) {
            continue;
        }
        bool same = is_same(t, &p->tasks[task]) && can_revive(p, i);
        n.same += same;
        n.other += !same && t->state == TASK_BLOCKED && !is_out(t);
        n.able += !is_out(t);
    }
    return n;
}

static void pause_for(struct core *c, struct core_program *p, uint32_t task,
                      const struct failure_tally *n, const char *text)
{
    const struct core_task *t = &p->tasks[task];
    const struct core_stage *s = task_stage(p, task);
    char name[80];
    char how[48] = "";
    char why[640];
    if (s->name != NULL) {
        (void)snprintf(name, sizeof(name), "`%.60s`", s->name);
    } else {
        (void)snprintf(name, sizeof(name), "stage %u", task % p->n_stages);
    }
    if (t->end_signal != 0) {
        (void)snprintf(how, sizeof(how), " (signal %d)", t->end_signal);
    } else if (t->end_code > 0) {
        (void)snprintf(how, sizeof(how), " (exit code %d)", t->end_code);
    }
    if (n->other == 0) {
        (void)snprintf(why, sizeof(why), "every attempt of %s fails the same way: ", name);
    } else {
        (void)snprintf(why, sizeof(why),
                       "%u cells of %s fail the same way, and none is done: ", n->same, name);
    }
    size_t len = strlen(why);
    (void)snprintf(why + len, sizeof(why) - len, "%s%s%s%s", cause_name((enum cause)t->cause), how,
                   text != NULL ? ": " : "", text != NULL ? text : "");
    program_pause(c, p, PAUSE_FAILURES, why);
}

static void revive(struct core *c, struct core_program *p, uint32_t task)
{
    task_revive(c, p, task, ROW_TASK_REVIVED, NULL);
    task_revive_dependants(c, p, task, ROW_TASK_REVIVED, NULL);
}

void failures_answer(struct core *c, struct core_program *p)
{
    assert(c != NULL && p != NULL && p->n_grid <= p->n_tasks);
    for (uint32_t i = 0; i < p->n_grid; i++) {
        struct live *l = live_of(c, p, i);
        if (l != NULL && task_stage(p, i)->n_accepted == 0) {
            l->answered = true;
        }
    }
}

bool failures_pause(struct core *c, struct core_program *p, uint32_t task, bool answered,
                    const char *text)
{
    assert(p->tasks[task].state == TASK_BLOCKED);
    const struct core_stage *s = task_stage(p, task);
    struct core_task of = p->tasks[task];
    if (task_is_apparatus(p, task) || p->status.failures_accepted || !is_own_failure(&of) ||
        !can_revive(p, task) || (s->n_accepted > 0 && !answered)) {
        return false;
    }
    if ((p->status.paused & PAUSE_FAILURES) != 0 || answered) {
        revive(c, p, task);
        return true;
    }
    struct failure_tally n = count(p, task);
    if (n.same < SAME_MAX && n.same < n.able) {
        return false;
    }
    pause_for(c, p, task, &n, text);
    for (uint32_t i = task % p->n_stages; i < p->n_grid; i += p->n_stages) {
        if (is_alike(p, i, task) && is_same(&p->tasks[i], &of) && can_revive(p, i)) {
            revive(c, p, i);
        }
    }
    return true;
}
