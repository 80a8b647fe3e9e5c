/*
 * The output head without the full logits. Rows that requests want are collected, and when
 * ENGINE_HEAD_ROWS wait (or the call ends) they are multiplied with the head in column blocks of
 * ENGINE_HEAD_COLS. Each block updates a running log-sum (worker/nn/logsum.h) per row and leaves
 * the logits of the wanted tokens in engine_want. Requests that want the row after the same tokens
 * share one row.
 *
 * Wants are answered in the order in which they were made, so a request's sum is added left to
 * right.
 */
#include "base/xalloc.h"
#include "worker/model/engine_private.h"
#include "worker/nn/rowwise/packed.h"

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

void engine_head_product(const struct engine *e, real *logits, const real *x, size_t rows,
                         size_t from, size_t n)
{
    size_t c = engine_width(e);
    const real *w = weights_at(e->w, e->cfg.tie_embeddings ? TENSOR_EMBED : TENSOR_HEAD, -1);

    packed_product(logits, n, false, x, w + from * c, rows, c, n);
}

void engine_head_sums(struct engine *e, const real *x, size_t rows)
{
    struct engine_head *head = &e->head;
    size_t vocab = (size_t)e->cfg.vocab;

    for (size_t r = 0; r < rows; r++)
        logsum_init(&head->sums[r]);
    for (size_t from = 0; from < vocab; from += ENGINE_HEAD_COLS) {
        size_t n = min_size(ENGINE_HEAD_COLS, vocab - from);
        engine_head_product(e, head->logits, x, rows, from, n);
        for (size_t r = 0; r < rows; r++)
            logsum_add(&head->sums[r], head->logits + r * n, n, from);
        for (size_t i = 0; i < head->n_wants; i++) {
            struct engine_want *want = &head->wants[i];
            if (want->target >= from && want->target - from < n)
                want->logit = head->logits[want->row * n + want->target - from];
        }
    }
}

void engine_head_flush(struct engine *e)
{
    struct engine_head *head = &e->head;

    engine_head_sums(e, head->x, head->rows.n);
    for (size_t i = 0; i < head->n_wants; i++) {
        const struct engine_want *want = &head->wants[i];
        const struct logsum *sum = &head->sums[want->row];
        want->request->sum += (double)want->logit - logsum_value(sum);
        if (sum->top != want->target)
            want->request->greedy = false;
    }
    head->n_wants = 0;
    prefix_rows_clear(&head->rows);
}

/* Enters token i of the request; its row is the hidden state of the token before it. */
static void want(struct engine *e, struct score_request *r, size_t i)
{
    struct engine_head *head = &e->head;
    size_t c = engine_width(e), before = head->rows.n;
    size_t row = prefix_rows_want(&head->rows, i - 1, ENGINE_HEAD_ROWS);

    if (row == ENGINE_HEAD_ROWS) {
        engine_head_flush(e);
        before = 0;
        row = prefix_rows_want(&head->rows, i - 1, ENGINE_HEAD_ROWS);
    }
    if (row == before)
        memcpy(head->x + row * c, e->hidden + (i - 1) * c, c * sizeof(real));
    if (head->n_wants == head->cap_wants) {
        head->cap_wants = head->cap_wants == 0 ? 1024 : 2 * head->cap_wants;
        head->wants = xreallocarray(head->wants, head->cap_wants, sizeof(*head->wants));
    }
    head->wants[head->n_wants++] =
        (struct engine_want){.row = row, .target = r->tokens[i], .request = r};
}

void engine_head_take(struct engine *e, struct score_request *r)
{
    r->sum = 0.0;
    r->greedy = true;
    for (size_t i = r->first; i < r->n; i++)
        want(e, r, i);
}
