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

/* xg: each token's input is copied to the K rows of its experts. */
static void gather(const struct moe_kept *kept, const struct moe_plan *plan, const real *restrict x,
                   const struct moe_dims *dims)
{
    size_t c = dims->width, k = dims->top_k;

    for (size_t i = 0; i < dims->n * k; i++)
        memcpy(kept->xg + plan->place[i] * c, x + i / k * c, c * sizeof(*x));
    pass_clock_mark(dims->clock, PASS_ROUTING);
}

void moe_forward(real *restrict y, const struct moe_kept *kept, const struct moe_plan *plan,
                 const real *restrict x, const real *restrict weights, const real *restrict wgu,
                 const real *restrict wd, const struct moe_dims *dims)
{
    size_t c = dims->width, f = dims->ffn, k = dims->top_k;

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
    for (size_t i = 0; i < dims->n * k; i++)
        vec_axpy(y + i / k * c, weights[i], kept->yg + plan->place[i] * c, c);
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
    size_t c = dims->width, k = dims->top_k;

    gather(kept, plan, x, dims);
    for (size_t i = 0; i < dims->n * k; i++) {
        const real *from = dy + i / k * c;
        real *to = grad->dyg + plan->place[i] * c;
        grad->dw[i] = vec_dot(from, kept->yg + plan->place[i] * c, c);
        for (size_t j = 0; j < c; j++)
            to[j] = weights[i] * from[j];
    }
    pass_clock_mark(dims->clock, PASS_ROUTING);
    for (size_t e = 0; e < dims->experts; e++) {
        size_t at = plan->first[e], m = plan->first[e + 1] - at;
        if (m > 0)
            expert_backward(grad, kept, e, at, m, wgu, wd, dims);
    }
    for (size_t i = 0; i < dims->n * k; i++)
        vec_add(grad->dx + i / k * c, grad->dyg + plan->place[i] * c, c);
    pass_clock_mark(dims->clock, PASS_ROUTING);
}
