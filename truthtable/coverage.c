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

/* Why a task has no values. */
struct loss {
    enum cause root;
    const char *narrower;
};

/* Chance: it may be excluded. */
static bool is_chance(const struct loss *l)
{
    return l->root != CAUSE_NONE && is_mechanical(l->root) && l->narrower == NULL;
}

/* Of the stages before; a loss that is not chance outweighs those that are. Stages stand in
 * topological order, so that the losses of earlier ones are there already. */
static struct loss dependency_loss(const struct stage *s, const enum cause *roots,
                                   const char *const *narrower)
{
    struct loss found = {.root = CAUSE_NR};
    for (size_t i = 0; i < s->n_after; i++) {
        const struct loss l = {roots[s->after[i]], narrower[s->after[i]]};
        if (l.root == CAUSE_NONE) {
            continue;
        }
        if (!is_chance(&l)) {
            return l;
        }
        found = l;
    }
    return found;
}

static struct loss loss_of(const struct evidence_task *t, const struct stage *s,
                           const enum cause *roots, const char *const *narrower)
{
    if (t->end == TASK_END_DONE || t->end == TASK_END_PENDING) {
        return (struct loss){.root = CAUSE_NONE};
    }
    enum cause c = t->cause == NULL ? CAUSE_NR : cause_from_name(t->cause);
    if (c == CAUSE_NONE) {
        return (struct loss){.root = CAUSE_NR};
    }
    return c == CAUSE_DEPENDENCY ? dependency_loss(s, roots, narrower)
                                 : (struct loss){c, is_mechanical(c) ? t->narrower : NULL};
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
    const char **narrower = arena_array(arena, n_tasks, sizeof(*narrower));
    *c = (struct coverage){.root = root, .excluded = excluded, .narrower = narrower};
    for (size_t s = 0; s < p->n_stages; s++) {
        bool excludable = program_stage_is_excludable(p, s);
        bool budgeted = program_stage_is_budgeted(p, s);
        for (size_t cell = 0; cell < p->n_cells; cell++) {
            size_t i = cell * p->n_stages + s;
            const size_t first = cell * p->n_stages;
            const struct loss l =
                loss_of(&e->tasks[i], &p->stages[s], &root[first], &narrower[first]);
            root[i] = l.root;
            narrower[i] = l.narrower;
            excluded[i] = excludable && is_chance(&l);
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
