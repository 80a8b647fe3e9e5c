/*
 * The conditions a program must meet before the core accepts it; checked first when one is added.
 * A plan comes from the text of a program and the rest from a database; either may be damaged, or
 * written by another version. Everything that the other files of the core rely on is checked here,
 * so that an inconsistent program is refused and the daemon goes on with the others.
 */
#include <assert.h>
#include <stdarg.h>

#include "daemon/core/gpus.h"
#include "daemon/core/internal.h"

/* Of attempts: far beyond real use, and half the range is left to count on. */
#define COUNT_MAX ((uint32_t)INT32_MAX)
/* Of an attempt: sums over all that could be alive stay within their types. */
#define THREADS_MAX 4096u
#define MEMORY_MAX  (INT64_C(1) << 46)

struct addition {
    const struct core_event *ev;
    char *fault;
    size_t size;
    uint32_t n_tasks;
};

/* Writes the fault and returns false, so that a check can return its result. */
static bool PRINTF_LIKE(2, 3) faulty(const struct addition *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(a->fault, a->size, fmt, args);
    va_end(args);
    return false;
}

static bool size_is_sound(const struct addition *a)
{
    const struct core_plan *plan = &a->ev->added.plan;
    if (a->ev->program == 0 || a->ev->program == NOWHERE) {
        return faulty(a, "%u is not the number of a program", a->ev->program);
    }
    if (plan->n_stages == 0 || plan->n_stages > STAGES_MAX) {
        return faulty(a, "it has %u stages; expected 1 to %u", plan->n_stages, STAGES_MAX);
    }
    if (plan->n_cells == 0 || plan->n_cells >= NOWHERE / plan->n_stages ||
        plan->n_apparatus >= NOWHERE - plan->n_cells * plan->n_stages) {
        return faulty(a, "it has %u cells of %u stages: more tasks than can be numbered",
                      plan->n_cells, plan->n_stages);
    }
    return true;
}

static bool stages_are_sound(const struct addition *a)
{
    const struct core_plan *plan = &a->ev->added.plan;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        const struct core_plan_stage *stage = &plan->stages[s];
        for (size_t i = 0; i < stage->n_after; i++) {
            if (stage->after[i] >= s) {
                return faulty(a, "stage %u comes after stage %u: the order of stages is wrong", s,
                              stage->after[i]);
            }
            if (stage->counted && !plan->stages[stage->after[i]].counted) {
                return faulty(a, "stage %u is counted, and stage %u that it needs is not", s,
                              stage->after[i]);
            }
        }
    }
    return true;
}

/* A work and its other names are of one stage, and the first task of them does it. */
static bool workers_are_sound(const struct addition *a)
{
    const struct core_plan *plan = &a->ev->added.plan;
    const uint32_t n = plan->workers == NULL ? 0 : plan->n_cells * plan->n_stages;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t worker = plan->workers[i];
        if (worker > i || plan->workers[worker] != worker ||
            worker % plan->n_stages != i % plan->n_stages) {
            return faulty(a, "task %u does the work of task %u, which is not another name of it",
                          worker, i);
        }
    }
    return true;
}

static bool is_at_work(enum task_state state)
{
    return state == TASK_STARTING || state == TASK_RUNNING;
}

static bool counts_are_sound(const struct addition *a, uint32_t task)
{
    const struct task_row *row = &a->ev->added.tasks[task];
    if (row->n_attempts > COUNT_MAX || row->spent > COUNT_MAX || row->crashes > COUNT_MAX ||
        row->idle > UINT16_MAX || row->no_space > UINT16_MAX) {
        return faulty(a, "the row of task %u is damaged: its counts of attempts are too large",
                      task);
    }
    return true;
}

/* A task that has begun, or may begin, while one that it needs has not ended. The opposite, a task
 * that waits for nothing, is repaired by settle() in program_add.c. */
static bool order_is_sound(const struct addition *a, uint32_t task)
{
    const struct core_plan *plan = &a->ev->added.plan;
    const struct task_row *rows = a->ev->added.tasks;
    if (task >= plan->n_cells * plan->n_stages ||
        (rows[task].state != TASK_READY && !is_at_work(rows[task].state))) {
        return true;
    }
    const struct core_plan_stage *stage = &plan->stages[task % plan->n_stages];
    for (size_t i = 0; i < stage->n_after; i++) {
        uint32_t other = task - task % plan->n_stages + stage->after[i];
        if (!task_state_is_terminal(rows[other].state)) {
            return faulty(a, "task %u is %s, and task %u that it needs is %s", task,
                          task_state_name(rows[task].state), other,
                          task_state_name(rows[other].state));
        }
    }
    const uint32_t worker = plan->workers == NULL ? task : plan->workers[task];
    return worker == task || task_state_is_terminal(rows[worker].state) ||
           faulty(a, "task %u is %s, and task %u that does its work is %s", task,
                  task_state_name(rows[task].state), worker, task_state_name(rows[worker].state));
}

static bool rows_are_sound(const struct addition *a, uint32_t *n_at_work)
{
    for (uint32_t i = 0; a->ev->added.tasks != NULL && i < a->n_tasks; i++) {
        const struct task_row *row = &a->ev->added.tasks[i];
        bool ended = row->state == TASK_BLOCKED || row->state == TASK_NEVER_RUN;
        if (row->state >= TASK_STATE_NR || row->cause >= CAUSE_NR || row->ending >= CAUSE_NR ||
            (row->cause != CAUSE_NONE) != ended) {
            return faulty(a, "the row of task %u is damaged: state %s, cause \"%s\"", i,
                          task_state_name(row->state),
                          row->cause < CAUSE_NR ? cause_name(row->cause) : "?");
        }
        if (!counts_are_sound(a, i)) {
            return false;
        }
        *n_at_work += is_at_work(row->state);
    }
    for (uint32_t i = 0; a->ev->added.tasks != NULL && i < a->n_tasks; i++) {
        if (!order_is_sound(a, i)) { /* every state is known now */
            return false;
        }
    }
    return true;
}

/* Exactly one attempt without an end for every task at work, and none for any other. `live` is
 * sorted by task. */
static bool attempts_are_sound(const struct addition *a, uint32_t n_at_work)
{
    const struct core_live *live = a->ev->added.live;
    size_t n = a->ev->added.n_live;
    for (size_t i = 0; i < n; i++) {
        uint32_t task = live[i].task;
        if (task >= a->n_tasks || (i > 0 && live[i - 1].task >= task)) {
            return faulty(a, "task %u has an attempt too many, or is none of its %u tasks", task,
                          a->n_tasks);
        }
        if (a->ev->added.tasks == NULL || !is_at_work(a->ev->added.tasks[task].state)) {
            return faulty(a, "task %u is not at work, and an attempt of it has no end", task);
        }
        if (live[i].attempt.no != a->ev->added.tasks[task].n_attempts) {
            return faulty(a, "task %u has had %u attempts, and attempt %u of it has no end", task,
                          a->ev->added.tasks[task].n_attempts, live[i].attempt.no);
        }
        const struct placement *at = &live[i].attempt.placement;
        if (live[i].attempt.section > SECTION_NR || live[i].attempt.reason >= END_REASON_NR ||
            at->executor >= EXECUTOR_NR || at->threads > THREADS_MAX || at->memory_bytes < 0 ||
            at->memory_bytes > MEMORY_MAX || at->gpu_thousandths < 0 ||
            at->gpu_thousandths > PLACEMENT_GPU_THOUSANDTHS_MAX || at->gpu_memory_bytes < 0 ||
            at->gpu_memory_bytes > MEMORY_MAX || !gpus_text_is_sound(at->gpus)) {
            return faulty(a, "the attempt of task %u is damaged", task);
        }
    }
    return n == n_at_work ||
           faulty(a, "%u tasks are at work, and %zu attempts have no end", n_at_work, n);
}

static bool ends_are_sound(const struct addition *a)
{
    for (size_t i = 0; i < a->ev->added.n_ends; i++) {
        if (a->ev->added.ends[i].task >= a->n_tasks) {
            return faulty(a, "an attempt of task %u has ended, and it has %u tasks",
                          a->ev->added.ends[i].task, a->n_tasks);
        }
    }
    return true;
}

bool added_is_sound(const struct core_event *ev, char *fault, size_t size)
{
    assert(ev != NULL && fault != NULL && size > 0);
    struct addition a = {.ev = ev, .fault = fault, .size = size};
    uint32_t n_at_work = 0;
    if (!size_is_sound(&a) || !stages_are_sound(&a) || !workers_are_sound(&a)) {
        return false;
    }
    const struct core_plan *plan = &ev->added.plan;
    a.n_tasks = plan->n_cells * plan->n_stages + plan->n_apparatus;
    return rows_are_sound(&a, &n_at_work) && attempts_are_sound(&a, n_at_work) &&
           ends_are_sound(&a);
}
