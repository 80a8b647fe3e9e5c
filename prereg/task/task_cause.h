/* Why a task ended otherwise than done: the closed list of docs/scheduler.md, shared by scheduler,
 * store, engine and report. Mechanical causes may be excluded within the budget; the others never
 * are. */
#ifndef PREREG_TASK_TASK_CAUSE_H
#define PREREG_TASK_TASK_CAUSE_H

#include <stdbool.h>

enum cause {
    CAUSE_NONE,
    /* the attempt failed; the task is retried within its budgets */
    CAUSE_CRASH,
    CAUSE_SILENT_DEATH,
    CAUSE_HANG,
    CAUSE_TIMEOUT,
    CAUSE_OOM,
    CAUSE_BAD_RESULT,
    CAUSE_PREEMPTED,
    CAUSE_HOST_LOST,
    /* the task ends at once, without a retry */
    CAUSE_USER_ERROR,
    CAUSE_BAD_INPUT,
    CAUSE_NOT_MEASURABLE,
    CAUSE_DRIFT,
    CAUSE_NO_SPACE,
    /* only of an apparatus check: the reference model did not score as expected */
    CAUSE_APPARATUS,
    CAUSE_LOST, /* it was done, and its accepted result is gone: a person gave it up */
    /* the task never ran, or was ended by a person */
    CAUSE_DEPENDENCY,
    CAUSE_CANCELLED,
    CAUSE_STOPPED,
    CAUSE_NR
};

const char *cause_name(enum cause c);         /* "crash", "silent_death", ...; "" for CAUSE_NONE */
enum cause cause_from_name(const char *name); /* CAUSE_NR when unknown */
/* True for what a machine did (crash, silent_death, hang, timeout, oom, host_lost, preempted,
 * no_space, and dependency on such a task is judged by the dependency's own cause); false for a
 * person's act or a bad record. */
bool cause_is_mechanical(enum cause c);

#endif
