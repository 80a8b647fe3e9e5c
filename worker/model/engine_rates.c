/*
 * Measures the costs in score_rates on the engine itself. A pass's time is linear in its tokens and
 * in the keys they attend to, so two passes of the same tokens, one at the start of the context and
 * one at its end, separate the two. Times are processor time and the least of a few rounds: other
 * work on the machine only ever adds.
 *
 * The caches hold zeros or old keys during the trial, which costs the same.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "worker/model/engine_private.h"
#include "worker/nn/pass_clock.h"

#define ROUNDS          3
#define SPARE_ENOUGH_NS 300000000 /* a part that takes this long is measured once */

/* What is measured: rows of a pass in segments of `length` at position `first`, each in its own
 * cache of `caches`. */
struct trial {
    struct engine *e;
    struct engine_segment *segments;
    size_t n_segments;
    size_t rows;
};

static double seconds_since(int64_t start)
{
    return (double)(pass_clock_now_ns(CLOCK_PROCESS_CPUTIME_ID) - start) * 1e-9;
}

static void do_pass(const struct trial *t)
{
    engine_pass(t->e, t->segments, t->n_segments, t->rows);
}

static void do_head(const struct trial *t)
{
    engine_head_sums(t->e, t->e->xn, t->rows);
}

/* The fastest of a few. */
static double time_of(void (*part)(const struct trial *t), const struct trial *t)
{
    double best = 0;

    for (int i = 0; i < ROUNDS; i++) {
        int64_t start = pass_clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
        part(t);
        double took = seconds_since(start);
        best = i == 0 || took < best ? took : best;
        if (took * 1e9 > SPARE_ENOUGH_NS)
            break;
    }
    return best;
}

/* Puts segments of `length` tokens one after the other, all at position `first`. */
static void place(struct trial *t, size_t length, size_t first)
{
    for (size_t i = 0; i < t->n_segments; i++) {
        t->segments[i].row = i * length;
        t->segments[i].n = length;
        t->segments[i].first = first;
    }
    t->rows = t->n_segments * length;
}

/* A pass's time by tokens and by keys: the same tokens at the beginning and at the end of the
 * context. */
static void split_pass(struct trial *t, size_t length, size_t end, double *token, double *key)
{
    size_t last = end - length;

    place(t, length, 0);
    double near = time_of(do_pass, t);
    place(t, length, last);
    double far = time_of(do_pass, t);
    *key = last > 0 && far > near ? (far - near) / ((double)last * (double)t->rows) : 0;
    double rest = near / (double)t->rows - *key * (double)(length + 1) / 2;
    *token = rest > 0 ? rest : 0; /* what is measured scatters */
}

/* What a token saves that the last layer leaves early, its keys there not counted. */
static double measure_unread(struct trial *t, size_t length, const struct score_rates *rates)
{
    double part = rates->distinct_token + rates->key * (double)(length + 1) / 2;

    place(t, length, 0);
    for (size_t i = 0; i < t->n_segments; i++)
        t->segments[i].unread = length;
    part -= time_of(do_pass, t) / (double)t->rows;
    for (size_t i = 0; i < t->n_segments; i++)
        t->segments[i].unread = 0;
    part -= rates->unread_key * (double)(length + 1) / 2;
    return part > 0 ? part : 0;
}

static void measure_scoring(struct trial *t, struct score_rates *rates)
{
    struct engine *e = t->e;
    size_t half = (e->dims.context + 1) / 2;
    size_t length = half < ENGINE_CHUNK ? half : ENGINE_CHUNK;

    t->n_segments = ENGINE_CHUNK / length;
    for (size_t i = 0; i < t->n_segments; i++)
        t->segments[i].cache = &e->path_cache;
    split_pass(t, length, e->dims.context, &rates->distinct_token, &rates->key);
    rates->unread_key = rates->key / e->cfg.layers;
    rates->unread = measure_unread(t, length, rates);
    t->rows = ENGINE_HEAD_ROWS;
    rates->head_row = time_of(do_head, t) / (double)t->rows;
}

static int measure_generating(struct trial *t, struct score_rates *rates, struct err *err)
{
    struct engine *e = t->e;

    int rc = engine_open_slots(e, e->dims.context, SCORE_SLOTS, &t->n_segments, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < t->n_segments; i++)
        t->segments[i].cache = &e->slots[i];
    double slots = (double)t->n_segments;
    split_pass(t, 1, e->dims.context, &rates->generated, &rates->generated_key);
    double full = slots * rates->generated + time_of(do_head, t);
    t->n_segments = 1;
    place(t, 1, 0);
    double one = time_of(do_pass, t) + time_of(do_head, t) - rates->generated_key;
    rates->generated = slots > 1 && full > one ? (full - one) / (slots - 1) : 0;
    rates->step = one > rates->generated ? one - rates->generated : 0;
    return 0;
}

double engine_measure_tokens(void)
{
    /* Three passes of scoring; of generating, two of all slots and one of one. */
    return 3.0 * ENGINE_CHUNK + 2.0 * SCORE_SLOTS + 1.0;
}

int engine_measure(struct engine *e, struct score_rates *rates, struct err *err)
{
    struct trial t = {.e = e, .segments = xcalloc(ENGINE_CHUNK, sizeof(*t.segments))};

    engine_forget(e);
    for (size_t i = 0; i < ENGINE_CHUNK; i++)
        e->ids[i] = (uint32_t)(i * 7919 % (size_t)e->cfg.vocab);
    measure_scoring(&t, rates);
    int rc = measure_generating(&t, rates, err);
    free(t.segments);
    return rc;
}
