/*
 * Apparatus checks: tasks beyond the grid (index >= n_grid), each with a stage entry of its own
 * behind the program's stages. All of them must be done before a held stage starts: one whose
 * results are sealed and that comes after another. `done` means that the check holds. One that
 * does not hold, or cannot be made, is blocked and pauses the program. Each has a second run, a
 * task of its own that holds up no stage (apparatus_again.c).
 *
 * They are never counted with the grid (invariant 4), and nothing depends on them by `after`.
 */
#include "daemon/core/apparatus.h"
#include "daemon/core/internal.h"

#include <assert.h>

bool task_is_apparatus(const struct core_program *p, uint32_t task)
{
    assert(p != NULL && task < p->n_tasks);
    return task >= p->n_grid;
}

bool task_is_held(const struct core_program *p, uint32_t task)
{
    assert(task < p->n_tasks);
    return !p->gate_open && !task_is_apparatus(p, task) && task_stage(p, task)->held;
}

static const struct apparatus_slot *slot_of(const struct core_program *p, uint32_t task)
{
    return &p->apparatus[task - p->n_grid];
}

bool apparatus_is_declared(const struct core_program *p, uint32_t task)
{
    assert(task < p->n_tasks);
    return !task_is_apparatus(p, task) || slot_of(p, task)->declared;
}

bool task_is_again(const struct core_program *p, uint32_t task)
{
    assert(task < p->n_tasks);
    return task_is_apparatus(p, task) && p->apparatus[task - p->n_grid].again;
}

bool again_has_failed(const struct core_program *p, uint32_t task)
{
    return task_is_again(p, task) && p->tasks[task].cause == CAUSE_APPARATUS;
}

bool apparatus_is_wanted(const struct core_program *p, uint32_t task)
{
    return apparatus_is_declared(p, task) && (p->again_open || !task_is_again(p, task));
}

/* A check runs with the limits of the stage whose work it does. */
static void set_slot(struct core_program *p, uint32_t i, const struct core_apparatus *from)
{
    struct apparatus_slot *slot = &p->apparatus[i];
    struct core_stage *own = &p->stages[p->n_stages + i];
    if (slot->name == NULL || strcmp(slot->name, from->name) != 0) {
        free(slot->name); /* a rebuilt slot has "" until an amendment names it */
        slot->name = xstrdup(from->name);
    }
    slot->declared = from->declared;
    slot->again = from->again;
    slot->first = from->first;
    if (from->stage < p->n_stages) {
        const struct core_stage *s = &p->stages[from->stage];
        own->executor = s->executor;
        own->threads = s->threads;
        own->memory_bytes = s->memory_bytes;
        own->gpu_thousandths = s->gpu_thousandths;
        own->gpu_memory_bytes = s->gpu_memory_bytes;
        own->crashes = s->crashes;
        own->attempts = s->attempts;
        memcpy(own->deadline_ms, s->deadline_ms, sizeof(own->deadline_ms));
    }
}

void apparatus_set(struct core_program *p, const struct core_plan *plan)
{
    uint32_t n = plan->n_apparatus;
    assert(n >= p->n_apparatus && n < NOWHERE - p->n_grid);
    p->stages = xreallocarray(p->stages, p->n_stages + n, sizeof(*p->stages));
    p->apparatus = xreallocarray(p->apparatus, n + 1, sizeof(*p->apparatus));
    for (uint32_t i = p->n_apparatus; i < n; i++) {
        p->stages[p->n_stages + i] = (struct core_stage){0};
        p->apparatus[i] = (struct apparatus_slot){0};
    }
    for (uint32_t i = 0; i < n; i++) {
        set_slot(p, i, &plan->apparatus[i]);
    }
    p->n_apparatus = n;
    ready_resort(p); /* a check runs where its stage does */
}

/* A program without checks holds. */
bool apparatus_holds(const struct core_program *p)
{
    assert(p->n_tasks >= p->n_grid + p->n_apparatus);
    bool holds = true;
    for (uint32_t i = 0; i < p->n_apparatus; i++) {
        const struct apparatus_slot *slot = &p->apparatus[i];
        holds =
            holds && (!slot->declared || slot->again || p->tasks[p->n_grid + i].state == TASK_DONE);
    }
    return holds;
}

uint32_t apparatus_n_open(const struct core_program *p)
{
    assert(p->n_tasks >= p->n_grid + p->n_apparatus);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_apparatus; i++) {
        enum task_state state = (enum task_state)p->tasks[p->n_grid + i].state;
        n += p->apparatus[i].declared && !p->apparatus[i].again && !task_state_is_terminal(state);
    }
    return n;
}

bool again_is_final(enum task_state s, enum cause cause)
{
    return s == TASK_DONE || cause == CAUSE_APPARATUS || cause == CAUSE_STOPPED ||
           cause == CAUSE_DEPENDENCY;
}

bool again_is_settled(const struct core_program *p)
{
    assert(p->n_tasks >= p->n_grid + p->n_apparatus);
    for (uint32_t i = 0; i < p->n_apparatus && !p->status.verdict; i++) {
        const struct core_task *t = &p->tasks[p->n_grid + i];
        const bool final = again_is_final((enum task_state)t->state, (enum cause)t->cause);
        if (p->apparatus[i].again && p->apparatus[i].declared && !final) {
            return false;
        }
    }
    return true;
}

uint32_t apparatus_n_ready(const struct core_program *p)
{
    assert(p->n_tasks >= p->n_grid + p->n_apparatus);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_apparatus; i++) {
        n += p->tasks[p->n_grid + i].ready_pos != NOWHERE;
    }
    return n;
}

void apparatus_free(struct core_program *p)
{
    assert(p != NULL);
    for (uint32_t i = 0; i < p->n_apparatus; i++) {
        free(p->apparatus[i].name);
    }
    free(p->apparatus);
}
