/*
 * A call walks its requests in prefix order (worker/model/walk.h), chunk by chunk: the new tokens
 * of a chunk are one pass, and their hidden states are kept by position. A request is handed to the
 * head as soon as its last token is computed, while the path still is its own.
 *
 * When a call stops early, the path names tokens whose keys were never computed; engine_forget()
 * drops it.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "worker/model/engine_private.h"

static void walk_requests(struct walk *w, const struct score_request *r, size_t n, struct engine *e)
{
    walk_init(w, n);
    for (size_t i = 0; i < n; i++)
        w->inputs[i] = (struct prefix_input){r[i].tokens, r[i].n - 1, r[i].first - 1};
    engine_trim_path(e, w->inputs, n);
    walk_start(w, &e->path);
}

static void run_chunk(struct engine *e, const struct walk *w, struct engine_segment *segments)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n_steps; i++) {
        const struct walk_step *s = &w->steps[i];
        if (s->n == 0)
            continue;
        memcpy(e->ids + s->row, w->inputs[s->request].tokens + s->first, s->n * sizeof(*e->ids));
        segments[n++] = (struct engine_segment){.row = s->row,
                                                .n = s->n,
                                                .first = s->first,
                                                .unread = s->unread,
                                                .cache = &e->path_cache};
    }
    if (n > 0)
        engine_pass(e, segments, n, w->rows);
}

/* Once more in order, now that the hidden states are there: requests take what they want while the
 * path is theirs. */
static void take_wanted(struct engine *e, const struct walk *w, struct score_request *r)
{
    for (size_t i = 0; i < w->n_steps; i++) {
        const struct walk_step *s = &w->steps[i];
        if (s->n > 0) {
            prefix_rows_leave(&e->head.rows, s->first);
            engine_keep_hidden(e, s);
        }
        if (s->whole)
            engine_head_take(e, &r[s->request]);
    }
}

static int check(const struct engine *e, const struct score_request *r, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (r[i].first < 1 || r[i].first >= r[i].n || r[i].n - 1 > e->dims.context)
            return err_set(err, ERR_RANGE, "request %zu: score %zu .. %zu of a context of %zu", i,
                           r[i].first, r[i].n, e->dims.context);
        int rc = engine_check_tokens(e, r[i].tokens, r[i].n, err);
        if (rc < 0)
            return err_wrap(err, "request %zu", i);
    }
    return 0;
}

int engine_score(struct engine *e, struct score_request *r, size_t n, bool (*asked)(void),
                 struct err *err)
{
    struct walk w;
    int rc = check(e, r, n, err);

    if (rc < 0)
        return rc;
    walk_requests(&w, r, n, e);
    struct engine_segment *segments = xcalloc(n + 1, sizeof(*segments));
    while (rc == 0 && walk_next(&w, &e->path, n)) {
        run_chunk(e, &w, segments);
        take_wanted(e, &w, r);
        if (asked != NULL && w.at < n && asked())
            rc = err_set(err, ERR_BUSY, "asked to stop after %zu of %zu requests", w.at, n);
    }
    if (rc == 0)
        engine_head_flush(e);
    else
        engine_forget(e); /* the path may be ahead of what is computed */
    free(segments);
    walk_release(&w);
    return rc;
}

int engine_logits(struct engine *e, const uint32_t *tokens, size_t n, real *logits, struct err *err)
{
    if (n < 1 || n > e->dims.context)
        return err_set(err, ERR_RANGE, "%zu tokens in a context of %zu", n, e->dims.context);
    /* Scored for the hidden state after the last of them; what follows is any token. */
    uint32_t *more = xcalloc(n + 1, sizeof(*more));
    memcpy(more, tokens, n * sizeof(*more));
    struct score_request r = {.tokens = more, .n = n + 1, .first = n};
    int rc = engine_score(e, &r, 1, NULL, err);
    if (rc == 0)
        engine_head_product(e, logits, e->hidden + (n - 1) * engine_width(e), 1, 0,
                            (size_t)e->cfg.vocab);
    free(more);
    return rc;
}
