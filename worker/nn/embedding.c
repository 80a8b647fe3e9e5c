/*
 * Rows are copied forward and added backward. The backward pass goes through the tokens in order,
 * so a token that occurs twice adds twice, always in the same order; threads share out the columns.
 */
#include "worker/nn/embedding.h"

#include "worker/nn/threads.h"
#include "worker/nn/vec.h"

#define COLUMNS 32 /* of the gradient that one thread adds to at a time */

/* Arrays of one call, in the letters of the header. */
struct lookup {
    real *x;
    const real *w;
    real *dw;
    const real *dx;
    const uint32_t *ids;
    size_t n;
    size_t c;
};

static void copy_part(void *ctx, size_t from, size_t to, int thread)
{
    const struct lookup *p = ctx;

    (void)thread;
    for (size_t r = from; r < to; r++)
        memcpy(p->x + r * p->c, p->w + p->ids[r] * p->c, p->c * sizeof(real));
}

void embedding_forward(real *restrict x, const real *restrict w, const uint32_t *restrict ids,
                       size_t n, size_t c)
{
    struct lookup p = {.x = x, .w = w, .ids = ids, .n = n, .c = c};

    nn_parallel_rows(n, c, copy_part, &p);
}

static void add_part(void *ctx, size_t from, size_t to, int thread)
{
    const struct lookup *p = ctx;
    size_t first = from * COLUMNS, end = to * COLUMNS < p->c ? to * COLUMNS : p->c;

    (void)thread;
    for (size_t r = 0; r < p->n && first < end; r++)
        vec_add(p->dw + p->ids[r] * p->c + first, p->dx + r * p->c + first, end - first);
}

void embedding_backward(real *restrict dw, const real *restrict dx, const uint32_t *restrict ids,
                        size_t n, size_t c)
{
    struct lookup p = {.dw = dw, .dx = dx, .ids = ids, .n = n, .c = c};

    nn_parallel_rows((c + COLUMNS - 1) / COLUMNS, n * COLUMNS, add_part, &p);
}
