/*
 * Cells that are copies of one another: a foreign worker that ignores its seed gives three equal
 * models, and three equal models are one replicate. Results are the same when a stage's metrics and
 * the digests of its artifacts are, and there is an artifact: equal scores alone may be chance. A
 * score is a copy when its own stage's result is the same as that of another cell, or when it
 * equals that cell's score and a stage before it gave the same for another task (other parameters),
 * unless a stage between the two gave another result: what the score comes from is then not the
 * same, and the scores are equal by chance. Replicates that the plan itself gives the same tasks,
 * up to the measure's stage, are copies whatever came out, and need no artifact. Cells of which the
 * plan says that they are one work ([[same_work]]) are not copies: their replicates agree, so the
 * spread over replicates is what it was.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/program/same_work.h"
#include "truthtable/evidence/copy_search.h"
#include "truthtable/evidence/measure_scores.h"
#include "truthtable/evidence/task_params.h"

struct printed {
    uint64_t print;
    size_t cell;
};

/* Equal results adjacent, the earliest cell first. */
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
    const struct plan_program *p = e->program;
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

/* The stages strictly between `first` and `last`. */
static struct stage_set stages_between(const struct stage_set *before, size_t first, size_t last)
{
    struct stage_set between = {0};
    for (size_t s = first + 1; s < last; s++) {
        if (stage_set_has(&before[s], first) && stage_set_has(&before[last], s)) {
            stage_set_add(&between, s);
        }
    }
    return between;
}

/* Marks a score as a copy, with the sentence that the report prints. */
static void mark(struct table_reading *r, const struct plan_program *p, struct score *scores,
                 size_t stage, const size_t cells[2], struct arena *arena)
{
    struct score *score = &scores[cells[0]];
    score->copy = arena_printf(arena, "not independent: %s/%s gave the same as %s/%s",
                               p->cells[cells[0]].name, p->stages[stage].name,
                               p->cells[cells[1]].name, p->stages[stage].name);
    score->copied = cells[1];
    r->n_copies++;
}

/* Of cells that have a stage's result in common: what that stage was asked, [cell], or NULL where
 * all of them were asked the same. For free(). */
static struct digest *tell_params(const struct plan_program *p, size_t stage, const size_t *twins)
{
    struct stage_set set = {0};
    struct digest *asked = xcalloc(p->n_cells, sizeof(*asked));
    bool *known = xcalloc(p->n_cells, sizeof(*known));
    bool differ = false;
    stage_set_add(&set, stage);
    for (size_t c = 0; c < p->n_cells; c++) {
        const size_t pair[2] = {twins[c], c};
        for (size_t i = 0; i < 2 && twins[c] != INDEX_NONE; i++) {
            if (!known[pair[i]]) {
                asked[pair[i]] = asked_digest(p, &set, pair[i]);
                known[pair[i]] = true;
            }
        }
        differ = differ || (twins[c] != INDEX_NONE && !digest_equal(&asked[c], &asked[twins[c]]));
    }
    free(known);
    if (!differ) {
        free(asked);
        return NULL;
    }
    return asked;
}

struct alike { /* a cell whose stage gave the same as that of `first`, and its score */
    size_t first;
    double score;
    size_t cell;
};

/* Orders by result, then score, then cell, so that candidates for copies are adjacent. */
static int by_score(const void *a, const void *b)
{
    const struct alike *x = a;
    const struct alike *y = b;
    if (x->first != y->first) {
        return (x->first > y->first) - (x->first < y->first);
    }
    return x->score != y->score ? (x->score > y->score) - (x->score < y->score)
                                : (x->cell > y->cell) - (x->cell < y->cell);
}

/* All of them, in the order of result, score and cell; only values that are known. For free(). */
static struct alike *find_alike(const struct score *scores, const size_t *twins, size_t n_cells,
                                size_t *n)
{
    struct alike *all = xcalloc(n_cells, sizeof(*all));
    bool *is_first = xcalloc(n_cells, sizeof(*is_first));
    *n = 0;
    for (size_t c = 0; c < n_cells; c++) {
        if (twins[c] != INDEX_NONE) {
            is_first[twins[c]] = true;
        }
    }
    for (size_t c = 0; c < n_cells; c++) {
        if ((twins[c] != INDEX_NONE || is_first[c]) && number_is_point(&scores[c].value)) {
            all[(*n)++] = (struct alike){
                .first = is_first[c] ? c : twins[c], .score = scores[c].value.lo, .cell = c};
        }
    }
    if (*n > 1) {
        qsort(all, *n, sizeof(*all), by_score);
    }
    free(is_first);
    return all;
}

/* A score of a later stage: the cell is compared with every one before it that this stage has not
 * made a copy, for the first may have gone another way in between. Equal results of equal
 * parameters are expected, not suspicious. */
static void mark_later(struct table_reading *r, const struct evidence *e, size_t measure,
                       size_t stage, const size_t *twins, const struct digest *asked,
                       const struct stage_set *before, struct arena *arena)
{
    const struct plan_program *p = e->program;
    const struct copy_results results = {
        .tasks = e->tasks,
        .n_stages = p->n_stages,
        .n_cells = p->n_cells,
        .between = stages_between(before, stage, p->measures[measure].stage),
        .asked = asked};
    struct score *scores = &r->scores[measure * p->n_cells];
    size_t n = 0;
    struct alike *all = find_alike(scores, twins, p->n_cells, &n);
    size_t *cells = xcalloc(n, sizeof(*cells));
    for (size_t i = 0; i < n; i++) {
        cells[i] = all[i].cell;
    }
    struct copy_search *search = copy_search_create(&results, cells, n);
    free(cells);
    for (size_t i = 0; i < n; i++) {
        const size_t c = all[i].cell;
        if (i > 0 && (all[i].first != all[i - 1].first || all[i].score != all[i - 1].score)) {
            copy_search_next_group(search);
        }
        const size_t original = copy_search_find(search, c);
        if (original == INDEX_NONE) {
            copy_search_keep(search, c);
        } else if (scores[c].copy == NULL && !program_is_same_work(p, stage, c, original)) {
            mark(r, p, scores, stage, (const size_t[2]){c, original}, arena);
        }
    }
    copy_search_free(search);
    free(all);
}

/* Marks the scores of the stage itself, and those of later stages that rest on it. */
static void mark_scores(struct table_reading *r, const struct evidence *e, size_t stage,
                        const size_t *twins, const struct stage_set *before, struct arena *arena)
{
    const struct plan_program *p = e->program;
    struct digest *asked = tell_params(p, stage, twins);
    for (size_t m = 0; m < p->n_measures; m++) {
        const size_t own = p->measures[m].stage;
        struct score *scores = &r->scores[m * p->n_cells];
        if (own != stage && asked != NULL && stage_set_has(&before[own], stage)) {
            mark_later(r, e, m, stage, twins, asked, before, arena);
        }
        for (size_t c = 0; c < p->n_cells && own == stage; c++) {
            if (twins[c] != INDEX_NONE && scores[c].copy == NULL &&
                !program_is_same_work(p, stage, c, twins[c])) {
                mark(r, p, scores, stage, (const size_t[2]){c, twins[c]}, arena);
            }
        }
    }
    free(asked);
}

/* Cells that the plan gives the same tasks are one, whatever came out: of each group the first with
 * a value is left. */
static void mark_asked(struct table_reading *r, const struct plan_program *p, size_t measure,
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

struct asked_set { /* what was found for it: stages after the same training share it */
    struct stage_set telling;
    const size_t *twins; /* NULL: none */
};

/* Cells that are asked the same in these stages; computed once for each set of stages. */
static const size_t *twins_of(const struct plan_program *p, const struct stage_set *telling,
                              struct asked_set *sets, size_t *n, struct arena *arena)
{
    for (size_t i = 0; i < *n; i++) {
        if (stage_set_equal(&sets[i].telling, telling)) {
            return sets[i].twins;
        }
    }
    sets[*n] = (struct asked_set){.telling = *telling, .twins = asked_twins(p, telling, arena)};
    return sets[(*n)++].twins;
}

/* Copies by plan, before anything is compared. */
static void mark_all_asked(struct table_reading *r, const struct plan_program *p,
                           const struct stage_set *before, struct arena *arena)
{
    struct asked_set *sets = xcalloc(p->n_measures, sizeof(*sets));
    size_t n = 0;
    for (size_t m = 0; m < p->n_measures; m++) {
        struct stage_set telling;
        if (!asked_telling(p, &before[p->measures[m].stage], &telling)) {
            continue;
        }
        const size_t *twins = twins_of(p, &telling, sets, &n, arena);
        if (twins != NULL) {
            mark_asked(r, p, m, twins, arena);
        }
    }
    free(sets);
}

/* Copies by plan first: their reason is the stronger one, and a score is marked only once. */
void mark_copies(struct table_reading *r, const struct evidence *e, struct arena *arena)
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
