/*
 * Groups tasks by [[same_work]]. Each entry joins, in its stages, the cells that differ in its
 * levels alone; entries may overlap, so groups are joined until none changes (union by the smaller
 * task). Levels of replicate factors are never across, so no group holds two replicates.
 */
#include "prereg/program/same_work.h"

#include <assert.h>

static uint32_t find_worker(uint32_t *workers, uint32_t task)
{
    while (workers[task] != task) {
        workers[task] = workers[workers[task]]; /* halves the way for the next search */
        task = workers[task];
    }
    return task;
}

static void join(uint32_t *workers, uint32_t a, uint32_t b)
{
    const uint32_t x = find_worker(workers, a);
    const uint32_t y = find_worker(workers, b);
    if (x < y) {
        workers[y] = x;
    } else {
        workers[x] = y;
    }
}

/* Whether the entry is about the cell: it has the levels of `where`, and one of those across. */
static bool is_about(const struct plan_same_work *e, const struct plan_cell *c)
{
    bool about = false;
    for (size_t i = 0; i < e->n_levels; i++) {
        about = about || c->levels[e->factor] == e->levels[i];
    }
    for (size_t i = 0; i < e->n_where; i++) {
        about = about && c->levels[e->where[i].factor] == e->where[i].level;
    }
    return about;
}

/* The cell that has the entry's first level instead, all else equal. */
static size_t first_name(const struct plan_program *p, const struct plan_same_work *e, size_t cell)
{
    size_t stride = 1;
    for (size_t f = e->factor + 1; f < p->n_factors; f++) {
        stride *= p->factors[f].n_levels;
    }
    return cell - p->cells[cell].levels[e->factor] * stride + e->levels[0] * stride;
}

void same_work_expand(struct plan_program *p)
{
    if (p->n_same_work == 0) {
        return;
    }
    const size_t n = program_n_tasks(p);
    assert(n < UINT32_MAX);
    uint32_t *workers = arena_array(&p->arena, n, sizeof(*workers));
    for (size_t i = 0; i < n; i++) {
        workers[i] = (uint32_t)i;
    }
    for (size_t i = 0; i < p->n_same_work; i++) {
        const struct plan_same_work *e = &p->same_work[i];
        for (size_t c = 0; c < p->n_cells; c++) {
            const size_t first = is_about(e, &p->cells[c]) ? first_name(p, e, c) : c;
            for (size_t s = 0; s < p->n_stages && first != c; s++) {
                if (stage_set_has(&e->stages, s)) {
                    join(workers, (uint32_t)(first * p->n_stages + s),
                         (uint32_t)(c * p->n_stages + s));
                }
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        workers[i] = find_worker(workers, (uint32_t)i);
    }
    p->workers = workers;
}

size_t program_n_other_names(const struct plan_program *p)
{
    size_t n = 0;
    for (size_t i = 0; p->workers != NULL && i < program_n_tasks(p); i++) {
        n += p->workers[i] != i ? 1 : 0;
    }
    return n;
}

bool program_task_waits(const struct plan_program *p, size_t task)
{
    return p->stages[task % p->n_stages].n_after > 0 || program_worker_of(p, task) != task;
}
