/*
 * The dry run of score.h: the same walk and the same sharing of rows as the engine (walk.h,
 * prefix.h), with counters in place of products. Its counts equal what the engine would compute,
 * since both follow the same code; only generations are counted at their upper limit, because where
 * they end depends on the model.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "worker/model/score.h"
#include "worker/model/walk.h"

struct score_counter {
    size_t context;
    struct prefix_path path;
    struct prefix_rows rows;
};

struct score_counter *score_counter_create(size_t context)
{
    struct score_counter *c = xcalloc(1, sizeof(*c));

    c->context = context;
    prefix_path_init(&c->path, context);
    prefix_rows_init(&c->rows, context);
    return c;
}

void score_counter_free(struct score_counter *c)
{
    if (c == NULL)
        return;
    prefix_path_release(&c->path);
    prefix_rows_release(&c->rows);
    free(c);
}

/* Positions from .. to - 1: each attends to itself and all before it. */
static double keys_between(size_t from, size_t to)
{
    return ((double)to * (double)(to + 1) - (double)from * (double)(from + 1)) / 2;
}

/* As want() in engine_head.c: a row is counted when it is new, and a full set is flushed. */
static void count_rows(struct score_counter *c, const struct score_request *r,
                       struct score_cost *cost)
{
    for (size_t i = r->first; i < r->n; i++) {
        size_t before = c->rows.n, row = prefix_rows_want(&c->rows, i - 1, WALK_HEAD_ROWS);
        if (row == WALK_HEAD_ROWS) {
            prefix_rows_clear(&c->rows);
            before = 0;
            row = prefix_rows_want(&c->rows, i - 1, WALK_HEAD_ROWS);
        }
        cost->head_rows += row == before;
    }
}

void score_counter_score(struct score_counter *c, const struct score_request *r, size_t n,
                         struct score_cost *cost)
{
    struct walk w;

    walk_init(&w, n);
    for (size_t i = 0; i < n; i++)
        w.inputs[i] = (struct prefix_input){r[i].tokens, r[i].n - 1, r[i].first - 1};
    walk_start(&w, &c->path);
    while (walk_next(&w, &c->path, n))
        for (size_t i = 0; i < w.n_steps; i++) {
            const struct walk_step *s = &w.steps[i];
            cost->distinct_tokens += (double)s->n;
            cost->keys += keys_between(s->first, s->first + s->n);
            if (s->n > 0)
                prefix_rows_leave(&c->rows, s->first);
            if (s->whole) {
                count_rows(c, &r[s->request], cost);
                cost->requests++;
                cost->tokens += (double)w.inputs[s->request].n;
            }
        }
    prefix_rows_clear(&c->rows);
    walk_release(&w);
}

void score_counter_generate(struct score_counter *c, const struct score_generation *g, size_t n,
                            struct score_cost *cost)
{
    struct walk w;

    walk_init(&w, n);
    for (size_t i = 0; i < n; i++) {
        w.inputs[i] = (struct prefix_input){g[i].prompt, g[i].n, g[i].n - 1};
        cost->requests++;
        cost->tokens += (double)(g[i].n + g[i].max_tokens - 1);
        cost->generated += (double)g[i].max_tokens;
        cost->generated_keys += keys_between(g[i].n, g[i].n + g[i].max_tokens - 1);
    }
    walk_start(&w, &c->path);
    while (walk_next(&w, &c->path, n))
        for (size_t i = 0; i < w.n_steps; i++) {
            cost->distinct_tokens += (double)w.steps[i].n;
            cost->keys += keys_between(w.steps[i].first, w.steps[i].first + w.steps[i].n);
        }
    walk_release(&w);
}

double score_seconds(const struct score_cost *cost, const struct score_rates *rates)
{
    return cost->distinct_tokens * rates->distinct_token + cost->keys * rates->key +
           cost->head_rows * rates->head_row + cost->generated * rates->generated +
           cost->generated_keys * rates->generated_key;
}
