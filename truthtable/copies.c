/*
 * Cells that are copies of one another: a foreign worker that ignores its seed gives three equal
 * models, and three equal models are one replicate. Results are the same when a stage's metrics and
 * the digests of its artifacts are, and there is an artifact: equal scores alone may be chance. A
 * score is a copy when its own stage's result is the same as that of another cell, or when it
 * equals that cell's score and a stage before it gave the same for another task (other parameters),
 * unless a stage between the two gave another result: what the score comes from is then not the
 * same, and the scores are equal by chance. Replicates that the plan itself gives the same tasks,
 * up to the measure's stage, are copies whatever came out, and need no artifact.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/xalloc.h"
#include "truthtable/asked.h"
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
    bool same = json_equal(x, y);
    cJSON_Delete(x);
    cJSON_Delete(y);
    return same;
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
                scores[c].copied = twin;
                r->n_copies++;
            }
        }
    }
}

/* Cells that the plan gives the same tasks are one, whatever came out: of each group the first with
 * a value is left. */
static void mark_asked(struct reading *r, const struct program *p, size_t measure,
                       const size_t *twins, struct arena *arena)
{
    struct score *scores = &r->scores[measure * p->n_cells];
    size_t *kept = xcalloc(p->n_cells, sizeof(*kept)); /* by first cell of a group: + 1; 0: none */
    for (size_t c = 0; c < p->n_cells; c++) {
        size_t *k = &kept[twins[c]];
        if (scores[c].value.known && *k == 0) {
            *k = c + 1;
        } else if (scores[c].value.known) {
            scores[c].copy =
                arena_printf(arena, "not independent: %s is given the same tasks as %s",
                             p->cells[c].name, p->cells[*k - 1].name);
            scores[c].copied = *k - 1;
            r->n_copies++;
        }
    }
    free(kept);
}

static void mark_all_asked(struct reading *r, const struct program *p,
                           const struct stage_set *before, struct arena *arena)
{
    struct stage_set last = {0};
    const size_t *twins = NULL; /* of `last`: stages after the same training share them */
    bool known = false;
    for (size_t m = 0; m < p->n_measures; m++) {
        struct stage_set telling;
        if (!asked_telling(p, &before[p->measures[m].stage], &telling)) {
            continue;
        }
        if (!known || !stage_set_equal(&telling, &last)) {
            twins = asked_twins(p, &telling, arena);
            last = telling;
            known = true;
        }
        if (twins != NULL) {
            mark_asked(r, p, m, twins, arena);
        }
    }
}

void mark_copies(struct reading *r, const struct evidence *e, struct arena *arena)
{
    struct stage_set *before = asked_before(e->program);
    mark_all_asked(r, e->program, before, arena);
    for (size_t s = 0; s < e->program->n_stages; s++) {
        const size_t *twins = find_twins(e, s, arena);
        if (twins != NULL) {
            mark_scores(r, e, s, twins, before, arena);
        }
    }
    free(before);
}
