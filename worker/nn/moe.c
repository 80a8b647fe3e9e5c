/*
 * A counting sort places the N K assignments: the router's counts give each expert a contiguous
 * range of rows, and assignments keep their order within it. Experts without tokens are skipped.
 * Outputs are added back in the order of a token's choice, not of the experts, so the order of a
 * token's sum does not depend on other tokens.
 */
#include "worker/nn/moe.h"

#include <string.h>

#include "worker/nn/linear.h"
#include "worker/nn/swiglu.h"
#include "worker/nn/threads.h"
#include "worker/nn/vec.h"

void moe_plan_make(struct moe_plan *plan, const uint32_t *restrict chosen,
                   const uint32_t *restrict counts, const struct moe_dims *dims)
{
    /* first[e + 1] runs ahead as the next free row of e, and ends where e + 1 begins. */
    plan->first[0] = 0;
    for (size_t e = 0, sum = 0; e < dims->experts; e++) {
        plan->first[e + 1] = (uint32_t)sum;
        sum += counts[e];
    }
    for (size_t i = 0; i < dims->n * dims->top_k; i++)
        plan->place[i] = plan->first[chosen[i] + 1]++;
}

/* What goes between rows of tokens and grouped rows. Threads share out the tokens. */
struct exchange {
    const struct moe_plan *plan;
    const real *tokens;  /* (N, C), read */
    real *out;           /* (N, C), added to */
    real *grouped;       /* (N K, C) */
    const real *yg;      /* (N K, C) of the forward pass */
    const real *weights; /* (N, K) */
    real *dw;            /* (N, K) */
    size_t c;
    size_t k;
};

static void gather_part(void *ctx, size_t from, size_t to, int thread)
{
    const struct exchange *e = ctx;

    (void)thread;
    for (size_t i = from * e->k; i < to * e->k; i++)
        memcpy(e->grouped + e->plan->place[i] * e->c, e->tokens + i / e->k * e->c,
               e->c * sizeof(real));
}

/* xg: each token's input is copied to the K rows of its experts. */
static void gather(const struct moe_kept *kept, const struct moe_plan *plan, const real *restrict x,
                   const struct moe_dims *dims)
{
    struct exchange e = {
        .plan = plan, .tokens = x, .grouped = kept->xg, .c = dims->width, .k = dims->top_k};

    nn_parallel_rows(dims->n, e.k * e.c, gather_part, &e);
    pass_clock_mark(dims->clock, PASS_ROUTING);
}

/* y += w yg */
static void weigh_part(void *ctx, size_t from, size_t to, int thread)
{
    const struct exchange *e = ctx;

    (void)thread;
    for (size_t i = from * e->k; i < to * e->k; i++)
        vec_axpy(e->out + i / e->k * e->c, e->weights[i], e->yg + e->plan->place[i] * e->c, e->c);
}

/* dw = dy yg, dyg = w dy */
static void weigh_back_part(void *ctx, size_t from, size_t to, int thread)
{
    const struct exchange *e = ctx;

    (void)thread;
    for (size_t i = from * e->k; i < to * e->k; i++) {
        const real *dy = e->tokens + i / e->k * e->c;
        real *dyg = e->grouped + e->plan->place[i] * e->c;
        e->dw[i] = vec_dot(dy, e->yg + e->plan->place[i] * e->c, e->c);
        for (size_t j = 0; j < e->c; j++)
            dyg[j] = e->weights[i] * dy[j];
    }
}

/* dx += dxg */
static void collect_part(void *ctx, size_t from, size_t to, int thread)
{
    const struct exchange *e = ctx;

    (void)thread;
    for (size_t i = from * e->k; i < to * e->k; i++)
        vec_add(e->out + i / e->k * e->c, e->yg + e->plan->place[i] * e->c, e->c);
}

void moe_forward(real *restrict y, const struct moe_kept *kept, const struct moe_plan *plan,
                 const real *restrict x, const real *restrict weights, const real *restrict wgu,
                 const real *restrict wd, const struct moe_dims *dims)
{
    size_t c = dims->width, f = dims->ffn;
    struct exchange back = {
        .plan = plan, .out = y, .yg = kept->yg, .weights = weights, .c = c, .k = dims->top_k};

    gather(kept, plan, x, dims);
    for (size_t e = 0; e < dims->experts; e++) {
        size_t at = plan->first[e], m = plan->first[e + 1] - at;
        if (m == 0)
            continue;
        linear_forward(kept->gu + at * 2 * f, false, kept->xg + at * c, wgu + e * 2 * f * c,
                       &(struct linear_dims){m, c, 2 * f, dims->precision});
        pass_clock_mark(dims->clock, PASS_BODY);
        swiglu_forward(kept->h + at * f, kept->gu + at * 2 * f, m, f);
        pass_clock_mark(dims->clock, PASS_ELEMENTS);
        linear_forward(kept->yg + at * c, false, kept->h + at * f, wd + e * c * f,
                       &(struct linear_dims){m, f, c, dims->precision});
        pass_clock_mark(dims->clock, PASS_BODY);
    }
    nn_parallel_rows(dims->n, back.k * c, weigh_part, &back);
    pass_clock_mark(dims->clock, PASS_ROUTING);
}

/* Rows at .. at + m - 1 of expert e. h is recomputed; dyg is read and then overwritten by dxg. */
static void expert_backward(const struct moe_gradient *grad, const struct moe_kept *kept, size_t e,
                            size_t at, size_t m, const real *restrict wgu, const real *restrict wd,
                            const struct moe_dims *dims)
{
    size_t c = dims->width, f = dims->ffn;
    real *dyg = grad->dyg + at * c;
    real *dgu = grad->dgu + at * 2 * f;
    real *dh = grad->dh + at * f;

    swiglu_forward(kept->h + at * f, kept->gu + at * 2 * f, m, f);
    pass_clock_mark(dims->clock, PASS_ELEMENTS);
    linear_backward_weight(grad->dwd + e * c * f, dyg, kept->h + at * f,
                           &(struct linear_dims){m, f, c, dims->precision});
    linear_backward_input(dh, false, dyg, wd + e * c * f,
                          &(struct linear_dims){m, f, c, dims->precision});
    pass_clock_mark(dims->clock, PASS_BODY);
    swiglu_backward(dgu, dh, kept->gu + at * 2 * f, m, f);
    pass_clock_mark(dims->clock, PASS_ELEMENTS);
    linear_backward_weight(grad->dwgu + e * 2 * f * c, dgu, kept->xg + at * c,
                           &(struct linear_dims){m, c, 2 * f, dims->precision});
    linear_backward_input(dyg, false, dgu, wgu + e * 2 * f * c,
                          &(struct linear_dims){m, c, 2 * f, dims->precision});
    pass_clock_mark(dims->clock, PASS_BODY);
}

void moe_backward(const struct moe_gradient *grad, const real *restrict dy,
                  const struct moe_kept *kept, const struct moe_plan *plan, const real *restrict x,
                  const real *restrict weights, const real *restrict wgu, const real *restrict wd,
                  const struct moe_dims *dims)
{
    size_t c = dims->width;
    struct exchange in = {.plan = plan,
                          .tokens = dy,
                          .grouped = grad->dyg,
                          .yg = kept->yg,
                          .weights = weights,
                          .dw = grad->dw,
                          .c = c,
                          .k = dims->top_k};
    struct exchange back = {
        .plan = plan, .out = grad->dx, .yg = grad->dyg, .c = c, .k = dims->top_k};

    gather(kept, plan, x, dims);
    nn_parallel_rows(dims->n, in.k * c, weigh_back_part, &in);
    pass_clock_mark(dims->clock, PASS_ROUTING);
    for (size_t e = 0; e < dims->experts; e++) {
        size_t at = plan->first[e], m = plan->first[e + 1] - at;
        if (m > 0)
            expert_backward(grad, kept, e, at, m, wgu, wd, dims);
    }
    nn_parallel_rows(dims->n, back.k * c, collect_part, &back);
    pass_clock_mark(dims->clock, PASS_ROUTING);
}
