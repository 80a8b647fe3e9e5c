/*
 * Causes and budgets (docs/scheduler.md):
 *   at once            user_error bad_input not_measurable drift apparatus
 *   crash budget       crash silent_death hang timeout oom bad_result, and exit 75 without progress
 *   attempts only      preempted host_lost, and a SIGKILL from outside or a silent death (the
 *                      machine's or a person's doing) once the attempt had carried the work further
 *   the program's own  what never launched, or could not be prepared or spawned
 *   neither            no_space, which pauses the program instead
 * CORE_IDLE_MAX ends in a row without progress ([run] crashes, if that is more) block the task
 * whatever their cause was.
 */
#include "daemon/core/internal.h"

#include <assert.h>

enum { KILL_SIGNAL = 9 }; /* POSIX fixes the number (kill -9) */
enum { WORKER_AGAIN = 75, WORKER_USAGE = 64, WORKER_BAD_INPUT = 65, WORKER_UNAVAILABLE = 69 };

static enum cause cause_of_code(int code)
{
    switch (code) {
    case WORKER_AGAIN: return CAUSE_PREEMPTED;
    case WORKER_USAGE: return CAUSE_USER_ERROR;
    case WORKER_BAD_INPUT: return CAUSE_BAD_INPUT;
    case WORKER_UNAVAILABLE: return CAUSE_NOT_MEASURABLE;
    default: return CAUSE_CRASH;
    }
}

/* A worker that the daemon ended has the daemon's reason as its cause, whatever its exit says,
 * unless the host was lost. */
enum cause judge_cause(const struct live *l)
{
    assert(l != NULL);
    if (l->row.malformed > CORE_MALFORMED_MAX) {
        return CAUSE_BAD_RESULT;
    }
    if (l->kill_cause != CAUSE_NONE && l->row.reason != END_HOST_LOST) {
        return l->kill_cause;
    }
    switch (l->row.reason) {
    case END_EXITED: return cause_of_code(l->row.code);
    case END_DEADLINE: return CAUSE_TIMEOUT;
    case END_MEMORY: return CAUSE_OOM;
    case END_DISK: return CAUSE_NO_SPACE;
    case END_LOST: return CAUSE_SILENT_DEATH;
    case END_HOST_LOST:
    case END_NEVER_LAUNCHED: return CAUSE_HOST_LOST;
    case END_PREEMPTED: return CAUSE_PREEMPTED;
    case END_SIGNALLED:
    case END_SPAWN_FAILED:
    case END_REASON_NR: break;
    }
    return CAUSE_CRASH;
}

static bool is_at_once(enum cause cause)
{
    return cause == CAUSE_USER_ERROR || cause == CAUSE_BAD_INPUT || cause == CAUSE_NOT_MEASURABLE ||
           cause == CAUSE_DRIFT || cause == CAUSE_APPARATUS;
}

int64_t backoff_longest_ms(const struct core *c, uint32_t step)
{
    assert(c != NULL && c->config.backoff_ms >= 0);
    int64_t delay = c->config.backoff_ms;
    for (uint32_t i = 1; i < step && delay < c->config.backoff_max_ms; i++) {
        delay *= 2;
    }
    return delay < c->config.backoff_max_ms ? delay : c->config.backoff_max_ms;
}

/* Doubled with every end in a row without progress. Half of it is jitter, so that tasks that failed
 * together do not restart together. */
static int64_t backoff(struct core *c, uint32_t step)
{
    int64_t delay = backoff_longest_ms(c, step);
    return delay / 2 + (int64_t)rng_below(&c->rng, (uint64_t)(delay / 2) + 1);
}

/* Killed by neither the daemon nor its memory limit: the work itself has shown no fault. */
static bool was_killed_from_outside(const struct live *l, enum cause cause)
{
    return cause == CAUSE_SILENT_DEATH ||
           (cause == CAUSE_CRASH && l->row.reason == END_SIGNALLED && l->row.signal == KILL_SIGNAL);
}

/* A full disk is not the task's failure and never ends it. Where the disk seems to have room all
 * the same (a quota, say), the delay keeps it from being tried in a loop. */
static struct judgement judge_no_space(struct core *c, struct core_task *t)
{
    t->no_space = (uint16_t)(t->no_space + (t->no_space < UINT16_MAX));
    return (struct judgement){
        .to = TASK_READY, .pause = PAUSE_DISK, .delay_ms = backoff(c, t->no_space)};
}

/* It never ran, which is the machine's failure. The budget is the program's, so that a thousand
 * tasks do not each try; when it is spent the program pauses. A daemon's death, an amendment, a
 * node that is avoided from now on and a program that is paused already spend nothing. */
static struct judgement judge_unlaunched(struct core *c, const struct live *l)
{
    assert(c->programs[l->program] != NULL);
    struct core_program *p = c->programs[l->program];
    if (l->excused || p->status.paused != 0) {
        return (struct judgement){.to = TASK_READY};
    }
    p->n_unlaunched++;
    return (struct judgement){.to = TASK_READY,
                              .delay_ms = backoff(c, p->n_unlaunched),
                              .pause = p->n_unlaunched >= UNLAUNCHED_MAX ? PAUSE_HOST : 0};
}

/* Decides what becomes of the task. Each branch names its line of the table above. A task's budgets
 * are spent here and nowhere else. */
struct judgement judge_end(struct core *c, struct core_task *t, const struct core_stage *s,
                           const struct live *l, enum cause cause)
{
    assert(cause > CAUSE_NONE && cause < CAUSE_NR);
    if (l->row.reason == END_NEVER_LAUNCHED ||
        (l->row.reason == END_SPAWN_FAILED && cause == CAUSE_HOST_LOST)) {
        return judge_unlaunched(c, l); /* the program's own */
    }
    if (is_at_once(cause)) { /* at once */
        return (struct judgement){.to = TASK_BLOCKED};
    }
    if (l->progressed) {
        t->idle = 0;
        t->no_space = 0;
    }
    if (cause == CAUSE_NO_SPACE) { /* neither */
        return judge_no_space(c, t);
    }
    /* attempts only: these ends are not the work's fault; all others spend the crash budget */
    bool preempted = l->row.reason == END_PREEMPTED;
    bool ran = l->row.reason != END_SPAWN_FAILED && !preempted;
    bool spares_crashes =
        cause == CAUSE_HOST_LOST || preempted ||
        (l->progressed && (cause == CAUSE_PREEMPTED || was_killed_from_outside(l, cause)));
    t->spent++;
    t->crashes += !spares_crashes;
    t->idle = (uint16_t)(t->idle + (ran && !l->progressed && t->idle < UINT16_MAX));
    t->no_space = 0;
    uint32_t idle_max = s->crashes > CORE_IDLE_MAX ? s->crashes : CORE_IDLE_MAX;
    bool over = (!spares_crashes && t->crashes >= s->crashes) || t->spent >= s->attempts ||
                t->idle >= idle_max;
    if (over) {
        return (struct judgement){.to = TASK_BLOCKED};
    }
    return (struct judgement){.to = TASK_READY, .delay_ms = backoff(c, ran ? t->idle : t->spent)};
}
