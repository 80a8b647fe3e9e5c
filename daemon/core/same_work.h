/*
 * Tasks of the grid that are another name of a work ([[same_work]]), for the files of daemon/core
 * only. A task is its own worker, or has an earlier one of the same stage that is. Tasks that reuse
 * a result from an earlier receipt ([reuse]) are here, too: they wait for no other task, and run no
 * worker either.
 */
#ifndef DAEMON_CORE_SAME_WORK_H
#define DAEMON_CORE_SAME_WORK_H

#include "daemon/core/model.h"

struct same_work {
    uint32_t *workers;   /* [n_grid]: as in the plan */
    uint32_t *next_name; /* [n_grid]: the next task whose work the same one does; or NOWHERE */
    bool *reused; /* [n_grid]: it accepts a result from an earlier receipt; NULL: none does */
    struct core_stage *naming; /* [n_stages]: the stage of tasks that accept another's result */
};

/* Whether another task does its work: it accepts the result of that one. */
static inline bool task_is_named(const struct core_program *p, uint32_t task)
{
    return p->same != NULL && task < p->n_grid && p->same->workers[task] != task;
}

/* Whether it accepts a result instead of running a worker: another's, or that of a receipt. */
static inline bool task_accepts(const struct core_program *p, uint32_t task)
{
    return task_is_named(p, task) || (p->same != NULL && p->same->reused != NULL &&
                                      task < p->n_grid && p->same->reused[task]);
}

/* The task that does its work. */
static inline uint32_t task_worker(const struct core_program *p, uint32_t task)
{
    return task_is_named(p, task) ? p->same->workers[task] : task;
}

/* The other names of a task's work, in order: the first of a task that is its own worker, and the
 * one after a name; NOWHERE: none. */
static inline uint32_t task_next_name(const struct core_program *p, uint32_t task)
{
    return p->same == NULL || task >= p->n_grid ? NOWHERE : p->same->next_name[task];
}

/* After the stages are set. */
void same_work_set(struct core_program *p, const struct core_plan *plan);
/* After another [run]. */
void same_work_set_run(struct core_program *p);
void same_work_free(struct core_program *p);

#endif
