/*
 * The dry run of score.h: the same walk and the same sharing of rows as the engine (walk.h,
 * prefix.h), with counters in place of products. Its counts equal what the engine would compute,
 * since both follow the same code; only generations are counted at their upper limit, because where
 * they end depends on the model.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "worker/model/config.h"
#include "worker/model/score.h"
#include "worker/model/walk.h"

struct score_counter {
    size_t position_bytes; /* of a slot's keys and values */
    size_t slot_context;   /* the longest of the calls so far */
    struct prefix_path path;
    struct prefix_rows rows;
};

struct score_counter *score_counter_create(const struct model_config *cfg)
{
    struct score_counter *c = xcalloc(1, sizeof(*c));
    size_t context = (size_t)cfg->context;

    c->position_bytes = (size_t)cfg->layers * 2 * (size_t)cfg->kv_heads *
                        (size_t)(cfg->width / cfg->heads) * sizeof(float);
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

/* Rows that stop in the last layer. */
static void count_unread(const struct walk_step *s, struct score_cost *cost)
{
    cost->unread += (double)s->unread;
    cost->unread_keys += keys_between(s->first, s->first + s->unread);
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
            count_unread(s, cost);
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

/* Steps until the last of them has its most tokens; each begins in the slot that is free first. */
static double count_steps(struct score_counter *c, const struct score_generation *g, size_t n)
{
    size_t until[SCORE_SLOTS] = {0}, last = 0;

    for (size_t i = 0; i < n; i++)
        if (g[i].n + g[i].max_tokens - 1 > c->slot_context)
            c->slot_context = g[i].n + g[i].max_tokens - 1;
    size_t fit = n == 0 ? 1 : SCORE_SLOT_BYTES / (c->position_bytes * c->slot_context);
    size_t slots = fit < 1 ? 1 : fit < SCORE_SLOTS ? fit : SCORE_SLOTS;
    for (size_t i = 0; i < n; i++) {
        size_t free_first = 0;
        for (size_t k = 1; k < slots; k++)
            if (until[k] < until[free_first])
                free_first = k;
        until[free_first] += g[i].max_tokens;
        last = until[free_first] > last ? until[free_first] : last;
    }
    return (double)last;
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
    cost->steps += count_steps(c, g, n);
    walk_start(&w, &c->path);
    while (walk_next(&w, &c->path, n))
        for (size_t i = 0; i < w.n_steps; i++) {
            cost->distinct_tokens += (double)w.steps[i].n;
            cost->keys += keys_between(w.steps[i].first, w.steps[i].first + w.steps[i].n);
            count_unread(&w.steps[i], cost);
        }
    walk_release(&w);
}

double score_seconds(const struct score_cost *cost, const struct score_rates *rates)
{
    return cost->distinct_tokens * rates->distinct_token + cost->keys * rates->key +
           cost->head_rows * rates->head_row - cost->unread * rates->unread -
           cost->unread_keys * rates->unread_key + cost->generated * rates->generated +
           cost->generated_keys * rates->generated_key + cost->steps * rates->step;
}
