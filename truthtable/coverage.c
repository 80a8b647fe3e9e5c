#include "truthtable/coverage.h"

#include <math.h>

#include "base/json.h"
#include "truthtable/exact.h"

static void tally_add(struct tally *t, enum task_end end)
{
    t->planned++;
    switch (end) {
    case TASK_END_DONE: t->done++; break;
    case TASK_END_BLOCKED: t->blocked++; break;
    case TASK_END_NEVER_RUN: t->never_run++; break;
    case TASK_END_PENDING: t->pending++; break;
    }
}

static bool is_mechanical(enum cause c)
{
    return c < CAUSE_NR && cause_is_mechanical(c);
}

/* The cause of the stages before; one that is not mechanical outweighs those that are. Stages stand
 * in topological order, so that root[] of earlier ones is there already. */
static enum cause dependency_root(const struct stage *s, const enum cause *root_of_cell)
{
    enum cause found = CAUSE_NR;
    for (size_t i = 0; i < s->n_after; i++) {
        enum cause c = root_of_cell[s->after[i]];
        if (c == CAUSE_NONE) {
            continue;
        }
        if (!is_mechanical(c)) {
            return c;
        }
        found = c;
    }
    return found;
}

static enum cause root_of(const struct evidence_task *t, const struct stage *s,
                          const enum cause *root_of_cell)
{
    if (t->end == TASK_END_DONE || t->end == TASK_END_PENDING) {
        return CAUSE_NONE;
    }
    enum cause c = t->cause == NULL ? CAUSE_NR : cause_from_name(t->cause);
    if (c == CAUSE_NONE) {
        return CAUSE_NR;
    }
    return c == CAUSE_DEPENDENCY ? dependency_root(s, root_of_cell) : c;
}

static size_t budget_of(double share, size_t planned)
{
    char text[JSON_NUMBER_MAX];
    struct decimal d;
    json_number_text(share, text);
    /* Exact, because 0.29 * 100 is below 29 in floating point. */
    return decimal_parse(text, &d) ? (size_t)decimal_floor_of(&d, planned)
                                   : (size_t)floor(share * (double)planned);
}

void coverage_init(struct coverage *c, const struct evidence *e, struct arena *arena)
{
    const struct program *p = e->program;
    size_t n_tasks = program_n_tasks(p);
    enum cause *root = arena_array(arena, n_tasks, sizeof(*root));
    bool *excluded = arena_array(arena, n_tasks, sizeof(*excluded));
    *c = (struct coverage){.root = root, .excluded = excluded};
    for (size_t s = 0; s < p->n_stages; s++) {
        bool excludable = program_stage_is_excludable(p, s);
        bool budgeted = program_stage_is_budgeted(p, s);
        for (size_t cell = 0; cell < p->n_cells; cell++) {
            size_t i = cell * p->n_stages + s;
            root[i] = root_of(&e->tasks[i], &p->stages[s], &root[cell * p->n_stages]);
            excluded[i] = excludable && is_mechanical(root[i]) && root[i] != CAUSE_NONE;
            tally_add(&c->tasks, e->tasks[i].end);
            if (budgeted) {
                tally_add(&c->counted, e->tasks[i].end);
                c->n_excluded += excluded[i] ? 1 : 0;
            }
        }
    }
    for (size_t m = 0; m < p->n_measures; m++) {
        for (size_t cell = 0;
             cell < p->n_cells && (p->measures[m].counted || p->measures[m].has_floor); cell++) {
            tally_add(&c->records, e->tasks[cell * p->n_stages + p->measures[m].stage].end);
        }
    }
    c->budget = budget_of(p->exclusion_budget, c->counted.planned);
}

bool coverage_over_budget(const struct coverage *c)
{
    return c->n_excluded > c->budget;
}
