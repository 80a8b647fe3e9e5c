/*
 * Each call of walk_next() fills one chunk of up to WALK_CHUNK rows with requests in prefix order.
 * A request that does not fit is continued in the next chunk (`done` remembers how far); one that
 * is on the path already adds no rows but still becomes whole in its turn, so results arrive in
 * order.
 */
#include "worker/model/walk.h"

#include <stdlib.h>

#include "base/xalloc.h"

void walk_init(struct walk *w, size_t n)
{
    *w = (struct walk){.inputs = xcalloc(n + 1, sizeof(*w->inputs)),
                       .order = xcalloc(n + 1, sizeof(*w->order)),
                       .steps = xcalloc(n + 1, sizeof(*w->steps)),
                       .n = n};
}

/* A position is computed by the first request that has it, so that one must know what the requests
 * after it read of what they share. */
static void lower_reads(struct walk *w)
{
    size_t *shared = xcalloc(w->n + 1, sizeof(*shared)); /* of k - 1 and k in the order */

    for (size_t k = 1; k < w->n; k++) {
        const struct prefix_input *a = &w->inputs[w->order[k - 1]], *b = &w->inputs[w->order[k]];
        shared[k] = prefix_common(a->tokens, a->n, b->tokens, b->n);
    }
    for (size_t k = 0; k < w->n; k++) {
        struct prefix_input *in = &w->inputs[w->order[k]];
        size_t common = in->n;
        for (size_t j = k + 1; j < w->n; j++) {
            size_t read = w->inputs[w->order[j]].read;
            common = common < shared[j] ? common : shared[j];
            if (common <= shared[k]) /* the request before k computed these */
                break;
            if (read < common && read < in->read)
                in->read = read;
        }
    }
    free(shared);
}

void walk_start(struct walk *w, const struct prefix_path *path)
{
    prefix_order(w->inputs, w->n, path, w->order);
    lower_reads(w);
}

void walk_release(struct walk *w)
{
    free(w->inputs);
    free(w->order);
    free(w->steps);
}

bool walk_next(struct walk *w, struct prefix_path *path, size_t limit)
{
    size_t end = w->n - w->at < limit ? w->n : w->at + limit;

    w->n_steps = 0;
    w->rows = 0;
    while (w->at < end && w->rows < WALK_CHUNK) {
        const struct prefix_input *in = &w->inputs[w->order[w->at]];
        size_t from = w->done > 0 ? w->done : prefix_take(path, in);
        size_t left = WALK_CHUNK - w->rows;
        struct walk_step s = {.request = w->order[w->at],
                              .first = from,
                              .row = w->rows,
                              .n = in->n - from < left ? in->n - from : left};
        s.unread = in->read <= from ? 0 : in->read - from < s.n ? in->read - from : s.n;
        s.whole = from + s.n == in->n;
        w->done = s.whole ? 0 : from + s.n;
        w->at += s.whole;
        w->rows += s.n;
        w->steps[w->n_steps++] = s;
    }
    return w->n_steps > 0;
}
