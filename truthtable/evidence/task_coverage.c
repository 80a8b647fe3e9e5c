/*
 * Counts planned tasks by how they ended, and decides which losses are excluded. Only a mechanical
 * loss is chance: the machine failed the task, no person chose it, and it did not run under
 * narrower limits than its siblings. Everything else leaves its values unknown, so choosing what to
 * lose cannot choose the outcome. The budget is computed exactly from the share as it is written.
 */
#include "truthtable/evidence/task_coverage.h"

#include <assert.h>
#include <math.h>

#include "base/json/json.h"
#include "prereg/program/same_work.h"
#include "truthtable/condition/exact.h"

/* Every planned task is in exactly one column. */
static void tally_add(struct tally *t, enum task_end end, bool reused)
{
    t->planned++;
    t->reused += reused && end == TASK_END_DONE ? 1 : 0;
    switch (end) {
    case TASK_END_DONE: t->done++; break;
    case TASK_END_BLOCKED: t->blocked++; break;
    case TASK_END_NEVER_RUN: t->never_run++; break;
    case TASK_END_PENDING: t->pending++; break;
    }
}

/* CAUSE_NR is a cause outside the closed list, and not mechanical. */
static bool is_mechanical(enum cause c)
{
    return c < CAUSE_NR && cause_is_mechanical(c);
}

/* A task that is not lost has no cause and is not a chance loss. */
bool coverage_loss_is_chance(const struct loss *l)
{
    return l->root != CAUSE_NONE && is_mechanical(l->root) && l->narrower == NULL;
}

/* The loss that a task inherits from the stages before it, and from the task that does its work.
 * One that is not chance outweighs those that are. Stages are in topological order and a work is an
 * earlier task, so these losses are known already. */
static struct loss dependency_loss(const struct plan_stage *s, const struct loss *before,
                                   const struct loss *work)
{
    struct loss found = {.root = CAUSE_NR};
    for (size_t i = 0; i < s->n_after + (work != NULL); i++) {
        const struct loss *l = i < s->n_after ? &before[s->after[i]] : work;
        if (l->root == CAUSE_NONE) {
            continue;
        }
        if (!coverage_loss_is_chance(l)) {
            return *l;
        }
        found = *l;
    }
    return found;
}

/* A blocked task without a cause is treated like one with an unknown cause: not excluded. */
struct loss coverage_loss(const struct task_ended *t, const struct plan_stage *s,
                          const struct loss *before, const struct loss *work)
{
    if (t->end == TASK_END_DONE || t->end == TASK_END_PENDING) {
        return (struct loss){.root = CAUSE_NONE};
    }
    if (t->cause == CAUSE_NONE) {
        return (struct loss){.root = CAUSE_NR};
    }
    return t->cause == CAUSE_DEPENDENCY
               ? dependency_loss(s, before, work)
               : (struct loss){t->cause, is_mechanical(t->cause) ? t->narrower : NULL};
}

size_t coverage_budget(double share, size_t planned)
{
    char text[JSON_NUMBER_MAX];
    struct decimal d;
    json_number_text(share, text);
    /* Exact, because 0.29 * 100 is below 29 in floating point. */
    return decimal_parse(text, &d) ? (size_t)decimal_floor_of(&d, planned)
                                   : (size_t)floor(share * (double)planned);
}

/* Another name of a work follows it and counts for no cell. */
static void count_reused(struct coverage *c, const struct evidence *e)
{
    const struct plan_program *p = e->program;
    c->reused_root = e->reused_root;
    for (size_t cell = 0; e->reused_root != NULL && cell < p->n_cells; cell++) {
        size_t own = 0;
        size_t reused = 0;
        for (size_t s = 0; s < p->n_stages; s++) {
            const size_t task = cell * p->n_stages + s;
            if (program_worker_of(p, task) == task) {
                own++;
                reused += e->tasks[task].reused ? 1 : 0;
            }
        }
        c->reused_tasks += reused;
        c->reused_cells += own > 0 && own == reused ? 1 : 0;
    }
}

/* Tasks are numbered cell by cell, so `losses` holds the cell's earlier stages when one is
 * reached. */
void coverage_init(struct coverage *c, const struct evidence *e, struct arena *arena)
{
    assert(e->program != NULL && arena != NULL);
    const struct plan_program *p = e->program;
    size_t n_tasks = program_n_tasks(p);
    enum cause *root = arena_array(arena, n_tasks, sizeof(*root));
    bool *excluded = arena_array(arena, n_tasks, sizeof(*excluded));
    const char **narrower = arena_array(arena, n_tasks, sizeof(*narrower));
    struct loss *losses = arena_array(arena, p->n_stages, sizeof(*losses)); /* of one cell */
    *c = (struct coverage){.root = root, .excluded = excluded, .narrower = narrower};
    for (size_t i = 0; i < n_tasks; i++) {
        const size_t stage = i % p->n_stages;
        const struct evidence_task *t = &e->tasks[i];
        const enum cause cause = t->cause == NULL ? CAUSE_NR : cause_from_name(t->cause);
        const size_t worker = program_worker_of(p, i);
        const struct loss work = {root[worker], narrower[worker]};
        losses[stage] = coverage_loss(&(struct task_ended){t->end, cause, t->narrower},
                                      &p->stages[stage], losses, worker == i ? NULL : &work);
        root[i] = losses[stage].root;
        narrower[i] = losses[stage].narrower;
        excluded[i] =
            program_stage_is_excludable(p, stage) && coverage_loss_is_chance(&losses[stage]);
        tally_add(&c->tasks, t->end, t->reused);
        if (program_stage_is_budgeted(p, stage)) {
            tally_add(&c->counted, t->end, t->reused);
            c->n_excluded += excluded[i] ? 1 : 0;
        }
    }
    for (size_t m = 0; m < p->n_measures; m++) {
        for (size_t cell = 0;
             cell < p->n_cells && (p->measures[m].counted || p->measures[m].has_floor); cell++) {
            const struct evidence_task *t = &e->tasks[cell * p->n_stages + p->measures[m].stage];
            tally_add(&c->records, t->end, t->reused);
        }
    }
    c->budget = coverage_budget(p->exclusion_budget, c->counted.planned);
    count_reused(c, e);
}

/* Within the budget, losses are excluded; over it, the verdict is VOID. */
bool coverage_over_budget(const struct coverage *c)
{
    assert(c->n_excluded <= c->counted.planned);
    return c->n_excluded > c->budget;
}
