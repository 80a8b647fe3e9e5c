/*
 * The derivative of run_forward.c, block by block from the last to the first; the equations are in
 * worker/model/tensors.h, each operation's derivative in its header in worker/nn. Throughout,
 * grad.dx is the gradient of the residual stream and grad.dn that of a normalised input.
 *
 * A block adds its own share to dx, since the stream also passes it by. What is marked "again" in
 * run_private.h is recomputed just before its use, and gradients of what a layer kept take its
 * place. In a gradient that was lent to activations a layer's part is cleared just before the
 * layer.
 */
#include <assert.h>

#include "worker/model/run.h"
#include "worker/model/run_private.h"
#include "worker/nn/embedding.h"
#include "worker/nn/linear.h"
#include "worker/nn/rmsnorm.h"
#include "worker/nn/rope.h"
#include "worker/nn/swiglu.h"

/* What every part of the backward pass needs. */
struct pass {
    struct run *run;
    const struct weights *w;
    real *grad;
    struct run_objective objective; /* router weights already divided by the number of mixtures */
    const struct run_batch *batch;
    size_t n;
};

static real *weight(const struct pass *ps, enum tensor_role role, int layer)
{
    return weights_at(ps->w, role, layer);
}

static real *gradient(const struct pass *ps, enum tensor_role role, int layer)
{
    return run_grad_at(ps->w, ps->grad, role, layer);
}

/* Adds to dn, or writes it; reads dx, the gradient of the block's output. */
static void dense_ffn_backward(const struct pass *ps, const struct layer_kept *k, int layer,
                               bool add)
{
    struct run_scratch *g = &ps->run->grad;
    bool moe = model_config_is_moe(&ps->run->cfg, layer);
    size_t c = (size_t)ps->run->cfg.width, f = model_config_dense_ffn(&ps->run->cfg, layer);
    enum tensor_role down = moe ? TENSOR_SHARED_DOWN : TENSOR_DOWN;
    enum tensor_role gate = moe ? TENSOR_SHARED_GATE : TENSOR_GATE;

    swiglu_forward(k->h, k->gu, ps->n, f);
    pass_clock_mark(ps->run->clock, PASS_ELEMENTS);
    linear_backward_weight(gradient(ps, down, layer), g->dx, k->h,
                           &(struct linear_dims){ps->n, f, c, ps->run->precision});
    linear_backward_input(k->h, false, g->dx, weight(ps, down, layer),
                          &(struct linear_dims){ps->n, f, c, ps->run->precision});
    pass_clock_mark(ps->run->clock, PASS_BODY);
    swiglu_backward(k->gu, k->h, ps->n, f);
    pass_clock_mark(ps->run->clock, PASS_ELEMENTS);
    linear_backward_weight(gradient(ps, gate, layer), k->gu, k->xn2,
                           &(struct linear_dims){ps->n, c, 2 * f, ps->run->precision});
    linear_backward_input(g->dn, add, k->gu, weight(ps, gate, layer),
                          &(struct linear_dims){ps->n, c, 2 * f, ps->run->precision});
    pass_clock_mark(ps->run->clock, PASS_BODY);
}

/* Adds to dn. */
static void mixture_backward(const struct pass *ps, const struct layer_kept *k, int layer)
{
    struct run_scratch *g = &ps->run->grad;
    struct moe_dims dims = run_moe_dims(ps->run, ps->n);
    struct router_dims router = {.n = ps->n,
                                 .experts = dims.experts,
                                 .top_k = dims.top_k,
                                 .renormalise = ps->run->cfg.renormalise};
    struct router_weights losses = {.balance = ps->objective.balance, .z = ps->objective.z};
    struct moe_gradient out = {.dx = g->dn,
                               .dw = g->dw,
                               .dwgu = gradient(ps, TENSOR_EXPERT_GATE_UP, layer),
                               .dwd = gradient(ps, TENSOR_EXPERT_DOWN, layer)};

    moe_backward(&out, g->dx, &k->moe, &k->plan, k->xn2, k->route_w,
                 weight(ps, TENSOR_EXPERT_GATE_UP, layer), weight(ps, TENSOR_EXPERT_DOWN, layer),
                 &dims);
    router_backward(g->dr, g->dw, k->p, k->route_lse, k->chosen, k->route_w, k->counts, &losses,
                    &router);
    pass_clock_mark(ps->run->clock, PASS_ROUTING);
    linear_backward_weight(gradient(ps, TENSOR_ROUTER, layer), g->dr, k->xn2,
                           &(struct linear_dims){ps->n, dims.width, dims.experts, PRODUCT_FLOAT32});
    linear_backward_input(g->dn, true, g->dr, weight(ps, TENSOR_ROUTER, layer),
                          &(struct linear_dims){ps->n, dims.width, dims.experts, PRODUCT_FLOAT32});
    pass_clock_mark(ps->run->clock, PASS_BODY);
}

/* From the gradient of the block's output in dx to that of x_mid, in dx. */
static void ffn_block_backward(const struct pass *ps, const struct layer_kept *k, int layer)
{
    struct run_scratch *g = &ps->run->grad;
    size_t c = (size_t)ps->run->cfg.width;
    bool dense = model_config_dense_ffn(&ps->run->cfg, layer) > 0;

    rmsnorm_forward(k->xn2, k->rstd2, k->x_mid, weight(ps, TENSOR_NORM_FFN, layer),
                    (real)ps->run->cfg.norm_eps, ps->n, c);
    pass_clock_mark(ps->run->clock, PASS_ELEMENTS);
    if (dense)
        dense_ffn_backward(ps, k, layer, false);
    else
        memset(g->dn, 0, ps->n * c * sizeof(real));
    if (model_config_is_moe(&ps->run->cfg, layer))
        mixture_backward(ps, k, layer);
    rmsnorm_backward(g->dx, gradient(ps, TENSOR_NORM_FFN, layer), g->dn, k->x_mid,
                     weight(ps, TENSOR_NORM_FFN, layer), k->rstd2, ps->n, c);
    pass_clock_mark(ps->run->clock, PASS_ELEMENTS);
}

/* x of a block that does not keep it, with the bits of the forward pass. */
static void restore_input(const struct pass *ps, int layer)
{
    struct run *run = ps->run;
    size_t c = (size_t)run->cfg.width;
    const struct layer_kept *before = &run->layers[layer > 0 ? layer - 1 : 0];
    struct moe_dims dims = run_moe_dims(run, ps->n);

    if (layer == 0) {
        embedding_forward(run->again.x, weight(ps, TENSOR_EMBED, -1), ps->batch->tokens, ps->n, c);
    } else {
        moe_combine(run->again.x, before->x_mid, &before->moe, &before->plan, before->route_w,
                    &dims);
    }
    pass_clock_mark(run->clock, PASS_ELEMENTS);
}

/* From the gradient of x_mid in dx to that of the block's input, in dx. */
static void attention_block_backward(const struct pass *ps, const struct layer_kept *k,
                                     const struct attention_dims *dims, int layer)
{
    struct run_scratch *g = &ps->run->grad;
    size_t c = (size_t)ps->run->cfg.width;
    size_t packed = (dims->heads + 2 * dims->groups) * dims->dim;

    linear_backward_weight(gradient(ps, TENSOR_O, layer), g->dx, k->att,
                           &(struct linear_dims){ps->n, c, c, ps->run->precision});
    linear_backward_input(g->dn, false, g->dx, weight(ps, TENSOR_O, layer),
                          &(struct linear_dims){ps->n, c, c, ps->run->precision});
    pass_clock_mark(ps->run->clock, PASS_BODY);
    attention_backward(k->qkv, g->dn, k->att, k->lse, k->qkv, ps->run->attention, dims);
    pass_clock_mark(ps->run->clock, PASS_ATTENTION);
    rope_backward(k->qkv, ps->run->rope, ps->n, dims->tokens, dims->heads + dims->groups, dims->dim,
                  packed);
    if (run_restores_input(&ps->run->cfg, layer))
        restore_input(ps, layer);
    rmsnorm_forward(k->xn1, k->rstd1, k->x, weight(ps, TENSOR_NORM_ATTENTION, layer),
                    (real)ps->run->cfg.norm_eps, ps->n, c);
    pass_clock_mark(ps->run->clock, PASS_ELEMENTS);
    linear_backward_weight(gradient(ps, TENSOR_Q, layer), k->qkv, k->xn1,
                           &(struct linear_dims){ps->n, c, packed, ps->run->precision});
    linear_backward_input(g->dn, false, k->qkv, weight(ps, TENSOR_Q, layer),
                          &(struct linear_dims){ps->n, c, packed, ps->run->precision});
    pass_clock_mark(ps->run->clock, PASS_BODY);
    rmsnorm_backward(g->dx, gradient(ps, TENSOR_NORM_ATTENTION, layer), g->dn, k->x,
                     weight(ps, TENSOR_NORM_ATTENTION, layer), k->rstd1, ps->n, c);
    pass_clock_mark(ps->run->clock, PASS_ELEMENTS);
}

/* Clears elements first .. end - 1 of a gradient that was lent: what was there is used up. */
static void clear_lent(const struct pass *ps, size_t first, size_t end)
{
    memset(ps->grad + first, 0, (end - first) * sizeof(real));
    pass_clock_mark(ps->run->clock, PASS_REST);
}

/* Means over the mixtures of this pass's balance and z. */
static void note_router_losses(const struct run *run, const struct router_stats *stats,
                               struct run_loss *loss)
{
    int n_moe = model_config_moe_layers(&run->cfg);

    loss->balance = 0.0;
    loss->z = 0.0;
    if (n_moe == 0 || stats == NULL)
        return;
    for (int layer = run->cfg.dense_layers; layer < run->cfg.layers; layer++) {
        loss->balance += stats[layer].balance / n_moe;
        loss->z += stats[layer].z / n_moe;
    }
}

void run_gradient(struct run *run, const struct weights *w, const struct run_batch *batch,
                  const struct run_objective *objective, struct router_stats *stats, real *grad,
                  struct run_loss *loss)
{
    size_t n = batch->batch * batch->length, c = (size_t)run->cfg.width;
    struct attention_dims dims = run_attention_dims(run, batch);
    int n_moe = model_config_moe_layers(&run->cfg);
    double per_layer = n_moe == 0 ? 0.0 : objective->share / n_moe;
    struct pass ps = {.run = run,
                      .w = w,
                      .grad = grad,
                      .objective = {.balance = objective->balance * per_layer,
                                    .z = objective->z * per_layer,
                                    .share = objective->share},
                      .batch = batch,
                      .n = n};

    assert(run->mode != RUN_INFER);
    run->objective = objective;
    run_forward(run, w, batch, stats);
    note_router_losses(run, stats, loss);
    if (run->mode == RUN_TRAIN_WHOLE) {
        clear_lent(&ps, 0, run->lent.first[0]);
        clear_lent(&ps, run->lent.first[run->cfg.layers], w->table.n_params);
    }
    loss->cross_entropy = run_head_gradient(run, w, batch, objective->share, grad);
    run_move(run);
    pass_clock_mark(run->clock, PASS_REST);
    /* The head left the gradient of the final norm's output in dn; the stream's own begins at
     * zero. */
    memset(run->grad.dx, 0, n * c * sizeof(real));
    rmsnorm_backward(run->grad.dx, gradient(&ps, TENSOR_NORM_FINAL, -1), run->grad.dn, run->x_last,
                     weight(&ps, TENSOR_NORM_FINAL, -1), run->rstd_last, n, c);
    for (int layer = run->cfg.layers - 1; layer >= 0; layer--) {
        if (run->mode == RUN_TRAIN_WHOLE)
            clear_lent(&ps, run->lent.first[layer], run->lent.first[layer + 1]);
        ffn_block_backward(&ps, &run->layers[layer], layer);
        attention_block_backward(&ps, &run->layers[layer], &dims, layer);
    }
    embedding_backward(gradient(&ps, TENSOR_EMBED, -1), run->grad.dx, batch->tokens, n, c);
    run->objective = NULL;
    pass_clock_mark(run->clock, PASS_ELEMENTS);
}
