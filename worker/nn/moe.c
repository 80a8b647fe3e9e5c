/*
 * A counting sort places the N K assignments: the router's counts give each expert a contiguous
 * range of rows, and assignments keep their order within it. Experts without tokens are skipped.
 * Outputs are added back in the order of a token's choice, not of the experts, so the order of a
 * token's sum does not depend on other tokens. One expert after the other copies its inputs
 * together, which then stay in the caches. Gradients take the place of what they are derived from.
 */
#include "worker/nn/moe.h"

#include <string.h>

#include "worker/nn/linear.h"
#include "worker/nn/swiglu.h"
#include "worker/nn/threads.h"
#include "worker/nn/vec.h"

#define DROPPED UINT32_MAX /* in place, until it has a row */

/* Marks what is over the capacity, choice by choice and token by token; first[e + 1] counts. */
static void mark_dropped(struct moe_plan *plan, const uint32_t *restrict chosen,
                         const struct moe_dims *dims)
{
    memset(plan->first, 0, (dims->experts + 1) * sizeof(*plan->first));
    for (size_t k = 0; k < dims->top_k; k++) {
        for (size_t i = k; i < dims->n * dims->top_k; i += dims->top_k) {
            uint32_t *taken = &plan->first[chosen[i] + 1];
            bool fits = *taken < dims->capacity;
            plan->place[i] = fits ? 0 : DROPPED;
            *taken += fits ? 1 : 0;
        }
    }
}

size_t moe_plan_make(struct moe_plan *plan, const uint32_t *restrict chosen,
                     const uint32_t *restrict counts, const struct moe_dims *dims)
{
    size_t n = dims->n * dims->top_k, sum = 0;

    if (dims->capacity > 0)
        mark_dropped(plan, chosen, dims);
    /* first[e + 1] runs ahead as the next free row of e, and ends where e + 1 begins. */
    plan->first[0] = 0;
    for (size_t e = 0; e < dims->experts; e++) {
        plan->first[e + 1] = (uint32_t)sum;
        sum += dims->capacity > 0 && counts[e] > dims->capacity ? dims->capacity : counts[e];
    }
    uint32_t over = (uint32_t)sum;
    for (size_t i = 0; i < n; i++)
        plan->place[i] =
            dims->capacity > 0 && plan->place[i] == DROPPED ? over++ : plan->first[chosen[i] + 1]++;
    for (size_t i = 0; plan->source != NULL && i < dims->n * dims->top_k; i++)
        plan->source[plan->place[i]] = (uint32_t)(i / dims->top_k);
    return n - sum;
}

/* What was dropped adds nothing, on the way forward and back. */
static void clear_dropped(const struct moe_kept *kept, const struct moe_plan *plan,
                          const struct moe_dims *dims)
{
    size_t first = plan->first[dims->experts], n = dims->n * dims->top_k;

    if (first < n)
        memset(kept->yg + first * dims->width, 0, (n - first) * dims->width * sizeof(real));
}

/* What goes between rows of tokens and grouped rows. Threads share out the tokens, or an expert's
 * rows. */
struct exchange {
    const struct moe_plan *plan;
    const real *tokens;  /* (N, C), read */
    real *out;           /* (N, C), written or added to */
    real *grouped;       /* rows of C */
    const real *weights; /* (N, K) */
    real *dw;            /* (N, K) */
    size_t first;        /* gather alone: the expert's first row */
    size_t c;
    size_t k;
};

static void gather_part(void *ctx, size_t from, size_t to, int thread)
{
    const struct exchange *e = ctx;

    (void)thread;
    for (size_t i = from; i < to; i++)
        memcpy(e->grouped + i * e->c, e->tokens + e->plan->source[e->first + i] * e->c,
               e->c * sizeof(real));
}

/* xg: the inputs of the m rows that begin at `at`. */
static void gather(const struct moe_kept *kept, const struct moe_plan *plan, const real *restrict x,
                   size_t at, size_t m, const struct moe_dims *dims)
{
    struct exchange e = {
        .plan = plan, .tokens = x, .grouped = kept->xg, .first = at, .c = dims->width};

    nn_parallel_rows(m, e.c, gather_part, &e);
    pass_clock_mark(dims->clock, PASS_ROUTING);
}

/* y = base + w yg */
static void weigh_part(void *ctx, size_t from, size_t to, int thread)
{
    const struct exchange *e = ctx;

    (void)thread;
    for (size_t row = from; row < to; row++) {
        real *out = e->out + row * e->c;
        memcpy(out, e->tokens + row * e->c, e->c * sizeof(real));
        for (size_t i = row * e->k; i < (row + 1) * e->k; i++)
            vec_axpy(out, e->weights[i], e->grouped + e->plan->place[i] * e->c, e->c);
    }
}

/* dw = dy yg, and yg becomes dyg = w dy */
static void weigh_back_part(void *ctx, size_t from, size_t to, int thread)
{
    const struct exchange *e = ctx;

    (void)thread;
    for (size_t i = from * e->k; i < to * e->k; i++) {
        const real *dy = e->tokens + i / e->k * e->c;
        real *restrict row = e->grouped + e->plan->place[i] * e->c;
        e->dw[i] = vec_dot(dy, row, e->c);
        for (size_t j = 0; j < e->c; j++)
            row[j] = e->weights[i] * dy[j];
    }
}

/* dx += dxg */
static void collect_part(void *ctx, size_t from, size_t to, int thread)
{
    const struct exchange *e = ctx;

    (void)thread;
    for (size_t i = from * e->k; i < to * e->k; i++)
        vec_add(e->out + i / e->k * e->c, e->grouped + e->plan->place[i] * e->c, e->c);
}

void moe_combine(real *restrict y, const real *restrict base, const struct moe_kept *kept,
                 const struct moe_plan *plan, const real *restrict weights,
                 const struct moe_dims *dims)
{
    struct exchange e = {.plan = plan,
                         .tokens = base,
                         .out = y,
                         .grouped = kept->yg,
                         .weights = weights,
                         .c = dims->width,
                         .k = dims->top_k};

    nn_parallel_rows(dims->n, e.k * e.c, weigh_part, &e);
    pass_clock_mark(dims->clock, PASS_ROUTING);
}

void moe_forward(const struct moe_kept *kept, const struct moe_plan *plan, const real *restrict x,
                 const real *restrict wgu, const real *restrict wd, const struct moe_dims *dims)
{
    size_t c = dims->width, f = dims->ffn;

    for (size_t e = 0; e < dims->experts; e++) {
        size_t at = plan->first[e], m = plan->first[e + 1] - at;
        if (m == 0)
            continue;
        gather(kept, plan, x, at, m, dims);
        linear_forward(kept->gu + at * 2 * f, false, kept->xg, wgu + e * 2 * f * c,
                       &(struct linear_dims){m, c, 2 * f, dims->precision});
        pass_clock_mark(dims->clock, PASS_BODY);
        swiglu_forward(kept->h, kept->gu + at * 2 * f, m, f);
        pass_clock_mark(dims->clock, PASS_ELEMENTS);
        linear_forward(kept->yg + at * c, false, kept->h, wd + e * c * f,
                       &(struct linear_dims){m, f, c, dims->precision});
        pass_clock_mark(dims->clock, PASS_BODY);
    }
    clear_dropped(kept, plan, dims);
}

/* Rows at .. at + m - 1 of expert e, whose xg is there: yg holds dyg and gets dxg, gu gets dgu, h
 * is recomputed and gets dh. */
static void expert_backward(const struct moe_gradient *grad, const struct moe_kept *kept, size_t e,
                            size_t at, size_t m, const real *restrict wgu, const real *restrict wd,
                            const struct moe_dims *dims)
{
    size_t c = dims->width, f = dims->ffn;
    real *dyg = kept->yg + at * c;
    real *gu = kept->gu + at * 2 * f;

    swiglu_forward(kept->h, gu, m, f);
    pass_clock_mark(dims->clock, PASS_ELEMENTS);
    linear_backward_weight(grad->dwd + e * c * f, dyg, kept->h,
                           &(struct linear_dims){m, f, c, dims->precision});
    linear_backward_input(kept->h, false, dyg, wd + e * c * f,
                          &(struct linear_dims){m, f, c, dims->precision});
    pass_clock_mark(dims->clock, PASS_BODY);
    swiglu_backward(gu, kept->h, m, f);
    pass_clock_mark(dims->clock, PASS_ELEMENTS);
    linear_backward_weight(grad->dwgu + e * 2 * f * c, gu, kept->xg,
                           &(struct linear_dims){m, c, 2 * f, dims->precision});
    linear_backward_input(dyg, false, gu, wgu + e * 2 * f * c,
                          &(struct linear_dims){m, c, 2 * f, dims->precision});
    pass_clock_mark(dims->clock, PASS_BODY);
}

void moe_backward(const struct moe_gradient *grad, const real *restrict dy,
                  const struct moe_kept *kept, const struct moe_plan *plan, const real *restrict x,
                  const real *restrict weights, const real *restrict wgu, const real *restrict wd,
                  const struct moe_dims *dims)
{
    struct exchange rows = {.plan = plan,
                            .tokens = dy,
                            .out = grad->dx,
                            .grouped = kept->yg,
                            .weights = weights,
                            .dw = grad->dw,
                            .c = dims->width,
                            .k = dims->top_k};

    nn_parallel_rows(dims->n, rows.k * rows.c, weigh_back_part, &rows);
    clear_dropped(kept, plan, dims);
    pass_clock_mark(dims->clock, PASS_ROUTING);
    for (size_t e = 0; e < dims->experts; e++) {
        size_t at = plan->first[e], m = plan->first[e + 1] - at;
        if (m == 0)
            continue;
        gather(kept, plan, x, at, m, dims);
        expert_backward(grad, kept, e, at, m, wgu, wd, dims);
    }
    nn_parallel_rows(dims->n, rows.k * rows.c, collect_part, &rows);
    pass_clock_mark(dims->clock, PASS_ROUTING);
}
