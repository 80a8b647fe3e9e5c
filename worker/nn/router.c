/*
 * Experts are chosen by the biased logits before the softmax overwrites them; the weights use the
 * unbiased probabilities, so a choice bias moves tokens between experts without scaling their
 * outputs. The gradient of the balance loss enters in router_backward() as `push`, which is the
 * same for every token: the assignments count as constants.
 */
#include "worker/nn/router.h"

#include <assert.h>

#include "worker/nn/vec.h"

NN_BODY real softmax_body(real *restrict r, size_t n)
{
    real m = r[0], sum = 0;

    for (size_t e = 1; e < n; e++)
        m = m > r[e] ? m : r[e];
    for (size_t e = 0; e < n; e++) {
        r[e] = nn_exp(r[e] - m);
        sum += r[e];
    }
    for (size_t e = 0; e < n; e++)
        r[e] /= sum;
    return m + nn_log(sum);
}

/* In place; returns the log of the sum of exponentials. */
static real softmax(real *restrict r, size_t n);
NN_KERNEL_RETURN(real, softmax, (real *restrict r, size_t n), (r, n))

/* The indices of the K largest scores, largest first, ties to the lower index. */
static void choose(uint32_t *restrict chosen, const real *restrict score, size_t n, size_t k)
{
    bool taken[ROUTER_EXPERTS_MAX] = {false};

    for (size_t i = 0; i < k; i++) {
        size_t best = n;
        for (size_t e = 0; e < n; e++)
            if (!taken[e] && (best == n || score[e] > score[best]))
                best = e;
        taken[best] = true;
        chosen[i] = (uint32_t)best;
    }
}

/* The weights of one token's experts: their p, divided by its sum when renormalised. */
static void weigh(real *restrict weights, const real *restrict p, const uint32_t *restrict chosen,
                  const struct router_dims *dims)
{
    real sum = 0;

    for (size_t k = 0; k < dims->top_k; k++) {
        weights[k] = p[chosen[k]];
        sum += weights[k];
    }
    for (size_t k = 0; k < dims->top_k && dims->renormalise; k++)
        weights[k] /= sum;
}

/* Adds this call's assignments and probabilities to stats; the losses are this call's alone. */
static void note_stats(struct router_stats *stats, const real *restrict p, const real *restrict lse,
                       const uint32_t *restrict counts, const struct router_dims *dims)
{
    double p_sum[ROUTER_EXPERTS_MAX] = {0}, z = 0.0, balance = 0.0;
    double n = (double)dims->n;

    for (size_t r = 0; r < dims->n; r++) {
        for (size_t e = 0; e < dims->experts; e++)
            p_sum[e] += (double)p[r * dims->experts + e];
        z += (double)lse[r] * (double)lse[r];
    }
    for (size_t e = 0; e < dims->experts; e++) {
        balance += (double)counts[e] / (n * (double)dims->top_k) * p_sum[e] / n;
        stats->counts[e] += counts[e];
        stats->p_sum[e] += p_sum[e];
    }
    stats->balance = balance * (double)dims->experts;
    stats->z = z / n;
    stats->z_sum += z;
    stats->tokens += dims->n;
}

void router_forward(real *restrict logits_to_p, real *restrict lse, uint32_t *restrict chosen,
                    real *restrict weights, uint32_t *restrict call_counts,
                    const real *restrict bias, struct router_stats *stats,
                    const struct router_dims *dims)
{
    size_t n_experts = dims->experts, top_k = dims->top_k;
    real score[ROUTER_EXPERTS_MAX];

    assert(n_experts <= ROUTER_EXPERTS_MAX);
    memset(call_counts, 0, n_experts * sizeof(*call_counts));
    for (size_t r = 0; r < dims->n; r++) {
        real *p = logits_to_p + r * n_experts;
        for (size_t e = 0; e < n_experts; e++)
            score[e] = bias == NULL ? p[e] : p[e] + bias[e];
        choose(chosen + r * top_k, score, n_experts, top_k);
        lse[r] = softmax(p, n_experts);
        weigh(weights + r * top_k, p, chosen + r * top_k, dims);
        for (size_t k = 0; k < top_k; k++)
            call_counts[chosen[r * top_k + k]]++;
    }
    if (stats != NULL)
        note_stats(stats, logits_to_p, lse, call_counts, dims);
}

/* dp of the chosen experts of one token, added to dp (E). */
static void weigh_backward(real *restrict dp, const real *restrict dw, const real *restrict p,
                           const uint32_t *restrict chosen, const real *restrict weights,
                           const struct router_dims *dims)
{
    real sum = 0, mean = 0;

    for (size_t k = 0; k < dims->top_k; k++) {
        sum += p[chosen[k]];
        mean += dw[k] * weights[k];
    }
    for (size_t k = 0; k < dims->top_k; k++)
        dp[chosen[k]] += dims->renormalise ? (dw[k] - mean) / sum : dw[k];
}

void router_backward(real *restrict dr, const real *restrict dw, const real *restrict p,
                     const real *restrict lse, const uint32_t *restrict chosen,
                     const real *restrict weights, const uint32_t *restrict call_counts,
                     const struct router_weights *loss, const struct router_dims *dims)
{
    size_t n_experts = dims->experts, top_k = dims->top_k;
    double n = (double)dims->n;
    real push[ROUTER_EXPERTS_MAX];

    for (size_t e = 0; e < n_experts; e++)
        push[e] = (real)(loss->balance * (double)n_experts * (double)call_counts[e] /
                         (n * (double)top_k * n));
    for (size_t r = 0; r < dims->n; r++) {
        const real *pr = p + r * n_experts;
        real *restrict out = dr + r * n_experts;
        real z = (real)(2.0 * loss->z / n) * lse[r], mean = 0;
        memcpy(out, push, n_experts * sizeof(*out));
        weigh_backward(out, dw + r * top_k, pr, chosen + r * top_k, weights + r * top_k, dims);
        for (size_t e = 0; e < n_experts; e++)
            mean += pr[e] * out[e];
        for (size_t e = 0; e < n_experts; e++)
            out[e] = pr[e] * (out[e] - mean + z);
    }
}
