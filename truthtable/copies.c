/*
 * Cells that are copies of one another: a foreign worker that ignores its seed gives three equal
 * models, and three equal models are one replicate. Results are the same when a stage's metrics and
 * the digests of its artifacts are, and there is an artifact: equal scores alone may be chance. A
 * score is a copy when its own stage's result is the same as that of another cell, or when it
 * equals that cell's score and a stage before it gave the same for another task (other parameters),
 * unless a stage between the two gave another result: what the score comes from is then not the
 * same, and the scores are equal by chance.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/xalloc.h"
#include "prereg/stage_set.h"
#include "truthtable/reading.h"

struct printed {
    uint64_t print;
    size_t cell;
};

static int by_print(const void *a, const void *b)
{
    const struct printed *x = a;
    const struct printed *y = b;
    return x->print != y->print ? (x->print > y->print) - (x->print < y->print)
                                : (x->cell > y->cell) - (x->cell < y->cell);
}

/* For each cell the first one with the same result of the stage; INDEX_NONE: none. NULL when the
 * stage has no two. */
static size_t *find_twins(const struct evidence *e, size_t stage, struct arena *arena)
{
    const struct program *p = e->program;
    struct printed *all = xcalloc(p->n_cells, sizeof(*all));
    size_t *twins = NULL;
    size_t n = 0;
    for (size_t c = 0; c < p->n_cells; c++) {
        const struct evidence_task *t = &e->tasks[c * p->n_stages + stage];
        if (t->end == TASK_END_DONE && t->print != 0) {
            all[n++] = (struct printed){.print = t->print, .cell = c};
        }
    }
    if (n > 1) {
        qsort(all, n, sizeof(*all), by_print);
    }
    for (size_t i = 1, first = 0; i < n; i++) {
        first = all[i].print == all[first].print ? first : i;
        if (first == i) {
            continue;
        }
        if (twins == NULL) {
            twins = arena_array(arena, p->n_cells, sizeof(*twins));
            for (size_t c = 0; c < p->n_cells; c++) {
                twins[c] = INDEX_NONE;
            }
        }
        twins[all[i].cell] = all[first].cell;
    }
    free(all);
    return twins;
}

static bool same_params(const struct program *p, size_t stage, size_t a, size_t b)
{
    cJSON *x = program_task_params(p, stage, a);
    cJSON *y = program_task_params(p, stage, b);
    bool same = cJSON_Compare(x, y, true) != 0;
    cJSON_Delete(x);
    cJSON_Delete(y);
    return same;
}

/* For each stage itself and all that come before it, for free(); each stage's `after` is looked at
 * once, stages standing in topological order. */
static struct stage_set *find_before(const struct program *p)
{
    struct stage_set *before = xcalloc(p->n_stages, sizeof(*before));
    for (size_t s = 0; s < p->n_stages; s++) {
        stage_set_add(&before[s], s);
        for (size_t i = 0; i < p->stages[s].n_after; i++) {
            stage_set_unite(&before[s], &before[p->stages[s].after[i]]);
        }
    }
    return before;
}

/* Whether a stage strictly between `first` and `last` gave two cells different results. */
static bool differ_between(const struct evidence *e, const struct stage_set *before, size_t first,
                           size_t last, const size_t cells[2])
{
    const size_t n = e->program->n_stages;
    bool differ = false;
    for (size_t s = first + 1; s < last && !differ; s++) {
        const uint64_t a = e->tasks[cells[0] * n + s].print;
        const uint64_t b = e->tasks[cells[1] * n + s].print;
        differ = stage_set_has(&before[s], first) && stage_set_has(&before[last], s) && a != 0 &&
                 b != 0 && a != b;
    }
    return differ;
}

static bool same_score(const struct score *a, const struct score *b)
{
    return number_is_point(&a->value) && number_compare(a->value, REL_EQ, b->value) == TRUTH_TRUE;
}

static void mark_scores(struct reading *r, const struct evidence *e, size_t stage,
                        const size_t *twins, const struct stage_set *before, struct arena *arena)
{
    const struct program *p = e->program;
    for (size_t m = 0; m < p->n_measures; m++) {
        const size_t own = p->measures[m].stage;
        if (!stage_set_has(&before[own], stage)) {
            continue;
        }
        struct score *scores = &r->scores[m * p->n_cells];
        for (size_t c = 0; c < p->n_cells; c++) {
            const size_t twin = twins[c];
            if (twin != INDEX_NONE && scores[c].copy == NULL &&
                (own == stage ||
                 (same_score(&scores[c], &scores[twin]) && !same_params(p, stage, c, twin) &&
                  !differ_between(e, before, stage, own, (const size_t[2]){c, twin})))) {
                scores[c].copy = arena_printf(
                    arena, "not independent: %s/%s gave the same as %s/%s", p->cells[c].name,
                    p->stages[stage].name, p->cells[twin].name, p->stages[stage].name);
                r->n_copies++;
            }
        }
    }
}

void mark_copies(struct reading *r, const struct evidence *e, struct arena *arena)
{
    struct stage_set *before = find_before(e->program);
    for (size_t s = 0; s < e->program->n_stages; s++) {
        const size_t *twins = find_twins(e, s, arena);
        if (twins != NULL) {
            mark_scores(r, e, s, twins, before, arena);
        }
    }
    free(before);
}
