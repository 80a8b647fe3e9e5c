/*
 * Prompts are read like scored requests, through the path's cache; a prompt that is whole is copied
 * into a slot with keys and values of its own. Then all running generations advance together, one
 * token each per pass. A slot that becomes free is refilled with the next prompt before the next
 * step, so prompts and generations alternate.
 *
 * The hidden state of each running generation's last token is in row i of decoder.hidden, with i
 * its place in `running`; finished ones are closed up in decode_step().
 */
#include <math.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "worker/model/engine_private.h"

/* A generation under way: its next token follows from the row of `hidden` that is its place among
 * those running. */
struct sequence {
    size_t index; /* of the call */
    size_t slot;
    size_t position; /* of its next token */
};

struct decoder {
    struct engine *e;
    struct score_generation *g;
    const struct score_stop *stop;
    struct walk walk;
    struct sequence running[SCORE_SLOTS];
    size_t n_running;
    bool taken[SCORE_SLOTS];
    size_t n_slots;
    real *hidden; /* (n_slots, C) */
    struct engine_segment *segments;
};

static int check(const struct engine *e, const struct score_generation *g, size_t n,
                 struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (g[i].n < 1 || g[i].max_tokens < 1 || g[i].max_tokens > e->dims.context ||
            g[i].n > e->dims.context + 1 - g[i].max_tokens)
            return err_set(err, ERR_RANGE,
                           "generation %zu: %zu tokens and %zu more in a context of %zu", i, g[i].n,
                           g[i].max_tokens, e->dims.context);
        int rc = engine_check_tokens(e, g[i].prompt, g[i].n, err);
        if (rc < 0)
            return err_wrap(err, "generation %zu", i);
    }
    return 0;
}

int engine_open_slots(struct engine *e, size_t context, size_t wanted, size_t *n, struct err *err)
{
    if (context > e->slot_context) {
        engine_free_slots(e);
        e->slot_context = context;
    }
    struct attend_dims dims = e->dims;
    dims.context = e->slot_context;
    size_t size = engine_slot_reals(&e->cfg, &dims), most = engine_slots_fitting(&e->cfg, &dims);
    *n = wanted < most ? wanted : most;
    for (size_t i = 0; i < *n; i++) {
        struct engine_cache *cache = &e->slots[i];
        if (cache->at != NULL)
            continue;
        *cache = (struct engine_cache){.at = real_alloc(size), .context = dims.context};
        if (cache->at == NULL)
            return err_set(err, ERR_OTHER, "no memory to generate %zu at a time", *n);
    }
    return 0;
}

/* Slots are as long as the longest generation needs. */
static int open_slots(struct decoder *c, size_t n, struct err *err)
{
    size_t need = 1;

    for (size_t i = 0; i < n; i++)
        if (c->g[i].n + c->g[i].max_tokens - 1 > need)
            need = c->g[i].n + c->g[i].max_tokens - 1;
    return engine_open_slots(c->e, need, n, &c->n_slots, err);
}

static size_t take_slot(struct decoder *c)
{
    size_t slot = 0;

    while (c->taken[slot])
        slot++;
    c->taken[slot] = true;
    return slot;
}

/* The segments of a chunk of prompts; each that becomes whole gets a slot. */
static size_t place_chunk(struct decoder *c)
{
    struct engine *e = c->e;
    size_t n = 0;

    for (size_t i = 0; i < c->walk.n_steps; i++) {
        const struct walk_step *s = &c->walk.steps[i];
        struct engine_segment *segment = &c->segments[n++];
        *segment = (struct engine_segment){.row = s->row,
                                           .n = s->n,
                                           .first = s->first,
                                           .unread = s->unread,
                                           .cache = &e->path_cache};
        memcpy(e->ids + s->row, c->g[s->request].prompt + s->first, s->n * sizeof(*e->ids));
        if (!s->whole)
            continue;
        size_t slot = take_slot(c);
        segment->copy_to = &e->slots[slot];
        c->running[c->n_running++] = (struct sequence){
            .index = s->request, .slot = slot, .position = c->walk.inputs[s->request].n};
    }
    return n;
}

static int stopped(const struct decoder *c, struct err *err)
{
    return err_set(err, ERR_BUSY, "asked to stop after %zu of %zu prompts", c->walk.at, c->walk.n);
}

/* Reads prompts until every slot is taken or none is left. */
static int fill_slots(struct decoder *c, struct err *err)
{
    struct engine *e = c->e;
    size_t width = engine_width(e);

    while (walk_next(&c->walk, &e->path, c->n_slots - c->n_running)) {
        size_t place = c->n_running;
        size_t n_segments = place_chunk(c);
        engine_pass(e, c->segments, n_segments, c->walk.rows);
        for (size_t i = 0; i < c->walk.n_steps; i++) {
            const struct walk_step *s = &c->walk.steps[i];
            engine_keep_hidden(e, s);
            if (s->whole)
                memcpy(c->hidden + place++ * width,
                       e->hidden + (c->walk.inputs[s->request].n - 1) * width,
                       width * sizeof(real));
        }
        if (c->stop->asked != NULL && c->stop->asked())
            return stopped(c, err);
    }
    return 0;
}

/* Takes the likeliest token; false when the generation ends with it. */
static bool go_on(struct decoder *c, struct sequence *v, const struct logsum *sum)
{
    struct score_generation *g = &c->g[v->index];

    g->finite = isfinite(logsum_value(sum));
    if (!g->finite)
        return false;
    g->ended = sum->top == c->stop->end_of_text;
    if (g->ended)
        return false;
    token_list_add(&g->out, sum->top);
    g->ended = c->stop->over != NULL && c->stop->over(c->stop->self, v->index, &g->out);
    return !g->ended && g->out.n < g->max_tokens;
}

/* One token for every generation that is running. */
static void decode_step(struct decoder *c)
{
    struct engine *e = c->e;
    size_t n = 0, width = engine_width(e);

    engine_head_sums(e, c->hidden, c->n_running);
    for (size_t i = 0; i < c->n_running; i++) {
        struct sequence v = c->running[i];
        if (!go_on(c, &v, &e->head.sums[i])) {
            c->taken[v.slot] = false;
            continue;
        }
        e->ids[n] = c->g[v.index].out.ids[c->g[v.index].out.n - 1];
        c->segments[n] = (struct engine_segment){
            .row = n, .n = 1, .first = v.position++, .cache = &e->slots[v.slot]};
        c->running[n++] = v;
    }
    c->n_running = n;
    if (n > 0)
        engine_pass(e, c->segments, n, n);
    memcpy(c->hidden, e->xn, n * width * sizeof(real));
}

static int run(struct decoder *c, struct err *err)
{
    for (;;) {
        int rc = fill_slots(c, err);
        if (rc < 0 || c->n_running == 0)
            return rc;
        decode_step(c);
        if (c->stop->asked != NULL && c->stop->asked())
            return stopped(c, err);
    }
}

int engine_generate(struct engine *e, struct score_generation *g, size_t n,
                    const struct score_stop *stop, struct err *err)
{
    struct decoder c = {.e = e, .g = g, .stop = stop};
    int rc = check(e, g, n, err);

    if (rc < 0)
        return rc;
    rc = open_slots(&c, n, err);
    if (rc < 0)
        return rc;
    c.hidden = xcalloc(c.n_slots, engine_width(e) * sizeof(*c.hidden));
    c.segments = xcalloc(n + SCORE_SLOTS, sizeof(*c.segments));
    walk_init(&c.walk, n);
    for (size_t i = 0; i < n; i++) {
        g[i].out.n = 0;
        g[i].ended = false;
        g[i].finite = true;
        c.walk.inputs[i] = (struct prefix_input){g[i].prompt, g[i].n, g[i].n - 1};
    }
    engine_trim_path(e, c.walk.inputs, n);
    walk_start(&c.walk, &e->path);
    rc = run(&c, err);
    if (rc < 0)
        engine_forget(e); /* the path may be ahead of what is computed */
    walk_release(&c.walk);
    free(c.segments);
    free(c.hidden);
    return rc;
}
