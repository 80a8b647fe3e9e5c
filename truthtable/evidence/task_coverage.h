/*
 * Coverage: planned = done + blocked + never_run (+ pending, before the end), in tasks, in records
 * and in counted tasks; and which tasks are excluded (docs/truth-table.md).
 *
 * Records: one for each cell of every measure that is counted or has a floor. Counted tasks: those
 * of a stage that a counted measure or an input of the table reads. A task is lost mechanically
 * when it is blocked for a mechanical cause, or was never run because a task before it, or the one
 * that does its work ([[same_work]]), was. Then its values are left out, as long as no more counted
 * tasks are lost than the budget allows. One that was lost under narrower limits of [run] than
 * others of its stage had is not lost by chance: its values are unknown, as if a person had
 * cancelled it.
 */
#ifndef TRUTHTABLE_EVIDENCE_TASK_COVERAGE_H
#define TRUTHTABLE_EVIDENCE_TASK_COVERAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "prereg/task/task_cause.h"
#include "truthtable/evidence/evidence.h"

struct tally {
    size_t planned;
    size_t done;
    size_t blocked;
    size_t never_run;
    size_t pending;
    size_t reused; /* of those that are done: taken from an earlier receipt */
};

struct coverage {
    struct tally tasks;
    struct tally records;
    struct tally counted;
    size_t budget;           /* counted tasks that may be excluded */
    size_t n_excluded;       /* counted tasks that are lost mechanically */
    size_t reused_cells;     /* all of whose own tasks are reused */
    size_t reused_tasks;     /* that do their own work */
    const char *reused_root; /* of the program that ran them; NULL: nothing is reused */
    const enum cause *root;  /* [task]: why it has no values; a dependency's own cause; CAUSE_NONE
                                when done or pending, CAUSE_NR when not of the closed list */
    const bool *excluded;    /* [task]: its values are left out of figures */
    const char *const *narrower; /* [task]: those limits, its own or of the task that it waited for
                                    and that was lost so; NULL: not that. The evidence's texts. */
};

/* Why a task has no values: CAUSE_NONE when done or pending; else as root and narrower above. */
struct loss {
    enum cause root;
    const char *narrower;
};

/* How a task ended: for this cause and, when that is its own, under such limits (or NULL). */
struct task_ended {
    enum task_end end;
    enum cause cause;
    const char *narrower;
};

/* Returns the loss of a task of stage s. `before` are the losses of its cell's earlier stages, by
 * stage; `work` is that of the task that does its work; NULL: it does its own. */
struct loss coverage_loss(const struct task_ended *t, const struct plan_stage *s,
                          const struct loss *before, const struct loss *work);
/* Whether a loss is chance and may be excluded. */
bool coverage_loss_is_chance(const struct loss *l);
/* The exclusion budget: this share of the planned counted tasks, rounded down. */
size_t coverage_budget(double share, size_t planned);

void coverage_init(struct coverage *c, const struct evidence *e, struct arena *arena);
bool coverage_over_budget(const struct coverage *c);

#endif
