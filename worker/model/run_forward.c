/*
 * The forward pass of worker/model/tensors.h over whole sequences, for training and validation.
 * Each block reads k->x and writes the next block's x; when activations are not kept, both are the
 * same buffer. Calls of pass_clock_mark() book the time since the last one and cost nothing when no
 * clock is set.
 */
#include <assert.h>

#include "worker/data/philox.h"
#include "worker/model/run.h"
#include "worker/model/run_private.h"
#include "worker/nn/embedding.h"
#include "worker/nn/linear.h"
#include "worker/nn/rmsnorm.h"
#include "worker/nn/rope.h"
#include "worker/nn/swiglu.h"
#include "worker/nn/threads.h"

/* x_mid = x + attention(rmsnorm(x)) */
static void attention_block(struct run *run, const struct weights *w, struct layer_kept *k,
                            const struct attention_dims *dims, int layer)
{
    size_t n = dims->batch * dims->tokens, c = (size_t)run->cfg.width;
    size_t packed = (dims->heads + 2 * dims->groups) * dims->dim;

    rmsnorm_forward(k->xn1, k->rstd1, k->x, weights_at(w, TENSOR_NORM_ATTENTION, layer),
                    (real)run->cfg.norm_eps, n, c);
    pass_clock_mark(run->clock, PASS_ELEMENTS);
    linear_forward(k->qkv, false, k->xn1, weights_at(w, TENSOR_Q, layer),
                   &(struct linear_dims){n, c, packed, run->precision});
    pass_clock_mark(run->clock, PASS_BODY);
    rope_forward(k->qkv, run->rope, n, dims->tokens, dims->heads + dims->groups, dims->dim, packed);
    pass_clock_mark(run->clock, PASS_ELEMENTS);
    attention_forward(k->att, k->lse, k->qkv, run->attention, dims);
    pass_clock_mark(run->clock, PASS_ATTENTION);
    memcpy(k->x_mid, k->x, n * c * sizeof(real));
    pass_clock_mark(run->clock, PASS_ELEMENTS);
    linear_forward(k->x_mid, true, k->att, weights_at(w, TENSOR_O, layer),
                   &(struct linear_dims){n, c, c, run->precision});
    pass_clock_mark(run->clock, PASS_BODY);
}

/* out += down(swiglu(gate_up(xn2))) of the dense block or the shared experts */
static void dense_ffn(struct run *run, const struct weights *w, struct layer_kept *k, real *out,
                      size_t n, int layer)
{
    size_t c = (size_t)run->cfg.width, f = model_config_dense_ffn(&run->cfg, layer);
    bool moe = model_config_is_moe(&run->cfg, layer);

    linear_forward(k->gu, false, k->xn2,
                   weights_at(w, moe ? TENSOR_SHARED_GATE : TENSOR_GATE, layer),
                   &(struct linear_dims){n, c, 2 * f, run->precision});
    pass_clock_mark(run->clock, PASS_BODY);
    swiglu_forward(k->h, k->gu, n, f);
    pass_clock_mark(run->clock, PASS_ELEMENTS);
    linear_forward(out, true, k->h, weights_at(w, moe ? TENSOR_SHARED_DOWN : TENSOR_DOWN, layer),
                   &(struct linear_dims){n, f, c, run->precision});
    pass_clock_mark(run->clock, PASS_BODY);
}

/* Numbers that depend on token and layer alone: rows are drawn by whichever thread. */
struct noise_job {
    const struct run_noise *noise;
    real *r;
    size_t experts;
    uint32_t layer;
};

static void noise_rows(void *ctx, size_t from, size_t to, int thread)
{
    const struct noise_job *job = ctx;
    const struct run_noise *noise = job->noise;
    const size_t experts = job->experts;

    (void)thread;
    for (size_t i = from; i < to; i++) {
        for (size_t e = 0; e < experts; e += 2) {
            uint64_t pair = (noise->first_token + i) * (ROUTER_EXPERTS_MAX / 2) + e / 2;
            struct philox words = philox_at(noise->seed, PHILOX_ROUTER, job->layer, pair);
            double z[2];
            philox_normal(&words, z);
            job->r[i * experts + e] += (real)(noise->sigma * z[0]);
            if (e + 1 < experts)
                job->r[i * experts + e + 1] += (real)(noise->sigma * z[1]);
        }
    }
}

/* r (N, E) += sigma times normal numbers, two of them from a counter. */
static void add_noise(const struct run_noise *noise, real *r, size_t n, size_t experts, int layer)
{
    struct noise_job job = {.noise = noise, .r = r, .experts = experts, .layer = (uint32_t)layer};

    nn_parallel(n, noise_rows, &job);
}

/* out = x_mid + the mixture's output; k keeps what the backward pass needs of the routing. */
static void mixture(struct run *run, const struct weights *w, struct layer_kept *k, real *out,
                    size_t n, int layer, struct router_stats *stats)
{
    struct moe_dims dims = run_moe_dims(run, n);
    struct router_dims router = {
        .n = n, .experts = dims.experts, .top_k = dims.top_k, .renormalise = run->cfg.renormalise};
    const real *bias = w->route_bias + (size_t)layer * dims.experts;

    linear_forward(k->p, false, k->xn2, weights_at(w, TENSOR_ROUTER, layer),
                   &(struct linear_dims){n, dims.width, dims.experts, PRODUCT_FLOAT32});
    pass_clock_mark(run->clock, PASS_BODY);
    if (run->objective != NULL && run->objective->noise.sigma > 0.0)
        add_noise(&run->objective->noise, k->p, n, dims.experts, layer);
    router_forward(k->p, k->route_lse, k->chosen, k->route_w, k->counts, bias, stats, &router);
    size_t dropped = moe_plan_make(&k->plan, k->chosen, k->counts, &dims);
    if (stats != NULL)
        stats->dropped += dropped;
    moe_forward(&k->moe, &k->plan, k->xn2, weights_at(w, TENSOR_EXPERT_GATE_UP, layer),
                weights_at(w, TENSOR_EXPERT_DOWN, layer), &dims);
    moe_combine(out, k->x_mid, &k->moe, &k->plan, k->route_w, &dims);
}

/* out = x_mid + ffn(rmsnorm(x_mid)) */
static void ffn_block(struct run *run, const struct weights *w, struct layer_kept *k, real *out,
                      size_t n, int layer, struct router_stats *stats)
{
    size_t c = (size_t)run->cfg.width;

    rmsnorm_forward(k->xn2, k->rstd2, k->x_mid, weights_at(w, TENSOR_NORM_FFN, layer),
                    (real)run->cfg.norm_eps, n, c);
    if (!model_config_is_moe(&run->cfg, layer))
        memcpy(out, k->x_mid, n * c * sizeof(real));
    pass_clock_mark(run->clock, PASS_ELEMENTS);
    if (model_config_is_moe(&run->cfg, layer))
        mixture(run, w, k, out, n, layer, stats);
    if (model_config_dense_ffn(&run->cfg, layer) > 0)
        dense_ffn(run, w, k, out, n, layer);
}

void run_forward(struct run *run, const struct weights *w, const struct run_batch *batch,
                 struct router_stats *stats)
{
    size_t n = batch->batch * batch->length, c = (size_t)run->cfg.width;
    struct attention_dims dims = run_attention_dims(run, batch);

    assert(n > 0 && n <= run->max_tokens && batch->length <= (size_t)run->cfg.context);
    assert(run->mode != RUN_TRAIN_WHOLE || run->lent.grad != NULL);
    run_move_back(run);
    embedding_forward(run->layers[0].x, weights_at(w, TENSOR_EMBED, -1), batch->tokens, n, c);
    for (int layer = 0; layer < run->cfg.layers; layer++) {
        struct layer_kept *k = &run->layers[layer];
        real *out = layer + 1 < run->cfg.layers ? run->layers[layer + 1].x : run->x_last;
        attention_block(run, w, k, &dims, layer);
        ffn_block(run, w, k, out, n, layer, stats == NULL ? NULL : &stats[layer]);
    }
}
