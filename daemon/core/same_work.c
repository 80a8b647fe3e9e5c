/*
 * Tasks that are another name of a work. Such a task waits for the one that does the work, besides
 * the stages of its own cell, and then accepts that result: an attempt like any other, but on this
 * machine, of one thread and within moments. So it has a stage entry of its own: what is measured
 * of it says nothing of the work. A task that reuses a result from an earlier receipt is the same
 * except that it waits for no task that does its work.
 */
#include "daemon/core/same_work.h"

#include <assert.h>

#include "daemon/core/internal.h"

void same_work_set_run(struct core_program *p)
{
    for (uint32_t s = 0; p->same != NULL && s < p->n_stages; s++) {
        const struct core_stage *of = &p->stages[s];
        struct core_stage *own = &p->same->naming[s];
        own->executor = EXECUTOR_LOCAL;
        own->threads = 1;
        own->crashes = of->crashes;
        own->attempts = of->attempts;
    }
}

/* Copies what is not measured; the name stays the stage's own. */
static void set_naming(struct core_program *p)
{
    p->same->naming = xcalloc(p->n_stages, sizeof(*p->same->naming));
    for (uint32_t s = 0; s < p->n_stages; s++) {
        const struct core_stage *of = &p->stages[s];
        p->same->naming[s] = (struct core_stage){.name = of->name,
                                                 .after = of->after,
                                                 .dependants = of->dependants,
                                                 .order = of->order,
                                                 .counted = of->counted,
                                                 .sealed = of->sealed,
                                                 .held = of->held};
    }
    same_work_set_run(p);
}

void same_work_set(struct core_program *p, const struct core_plan *plan)
{
    assert(p->stages != NULL && p->same == NULL);
    if (plan->workers == NULL && plan->reused == NULL) {
        return;
    }
    struct same_work *same = xcalloc(1, sizeof(*same));
    same->workers = xcalloc(p->n_grid, sizeof(*same->workers));
    same->next_name = xcalloc(p->n_grid, sizeof(*same->next_name));
    for (uint32_t i = 0; i < p->n_grid; i++) {
        same->workers[i] = plan->workers == NULL ? i : plan->workers[i];
        same->next_name[i] = NOWHERE;
    }
    if (plan->reused != NULL) {
        same->reused = xcalloc(p->n_grid, sizeof(*same->reused));
        memcpy(same->reused, plan->reused, p->n_grid * sizeof(*same->reused));
    }
    for (uint32_t i = p->n_grid; i-- > 0;) { /* downwards: the names of a work are in order */
        const uint32_t worker = same->workers[i];
        if (worker != i) {
            same->next_name[i] = same->next_name[worker];
            same->next_name[worker] = i;
        }
    }
    p->same = same;
    set_naming(p);
}

void same_work_free(struct core_program *p)
{
    if (p->same != NULL) {
        free(p->same->workers);
        free(p->same->next_name);
        free(p->same->reused);
        free(p->same->naming);
        free(p->same);
    }
}
