/*
 * The buffers of a pass. lay_out() walks through them in one fixed order: once with no memory to
 * add up the size (which is also run_bytes()), once to hand out pieces of the allocation
 * (worker/model/carve.h). Adding a buffer there is all it takes.
 *
 * What is cheap to recompute (normalised inputs, sums of experts' outputs, SwiGLU's output,
 * gathered inputs of experts) exists once for all layers (run->again), and each layer points to it.
 * With RUN_TRAIN_WHOLE the largest of the rest are in the gradient, as far as it reaches.
 *
 * Logits exist between the passes forward and backward, so what only those need can be where the
 * logits are. That takes less memory unless the gradient has room for everything: set_up() counts
 * both layouts.
 */
#include "worker/model/run.h"

#include <assert.h>
#include <math.h>

#include "base/xalloc.h"
#include "worker/model/carve.h"
#include "worker/model/run_private.h"
#include "worker/nn/pages.h"
#include "worker/nn/product/product.h"
#include "worker/nn/rope.h"
#include "worker/nn/threads.h"

#define HEAD_ROWS_SMALL  1024 /* tokens a chunk of logits, vocabulary up to HEAD_VOCAB_SMALL */
#define HEAD_ROWS_LARGE  256
#define HEAD_VOCAB_SMALL 4096

#define LINE (CARVE_ALIGN / sizeof(real)) /* elements */

/* Room for n elements that are needed until the backward pass reaches `layer`: from the gradient,
 * as far back as it is free, where there is enough. */
static real *carve_lent(struct carver *c, struct run *run, int layer, size_t n)
{
    struct run_lent *lent = &run->lent;
    size_t size = (n + LINE - 1) / LINE * LINE;

    if (run->mode != RUN_TRAIN_WHOLE)
        return carve_real(c, n);
    size_t top = (lent->free < lent->first[layer] ? lent->free : lent->first[layer]) / LINE * LINE;
    if (top < lent->first[0] + size)
        return carve_real(c, n);
    lent->free = top - size;
    return lent->grad == NULL ? NULL : lent->grad + lent->free;
}

/* Whether the last layer's n elements are in its own gradient, until they are moved. */
static bool carve_moved(struct run *run, real **at, size_t n)
{
    struct run_lent *lent = &run->lent;
    size_t size = (n + LINE - 1) / LINE * LINE, top = lent->free / LINE * LINE;

    if (!run->shares_logits || run->mode != RUN_TRAIN_WHOLE || n == 0 ||
        run->n_moved == RUN_MOVED_MAX || top <= lent->first[run->cfg.layers - 1] ||
        top < lent->first[0] + size || run->room.used + size * sizeof(real) > run->room_bytes)
        return false;
    lent->free = top - size;
    *at = lent->grad == NULL ? NULL : lent->grad + lent->free;
    run->moved[run->n_moved++] =
        (struct run_moved){.at = at, .early = *at, .late = carve_real(&run->room, n), .n = n};
    return true;
}

/* Room for n elements that `layer` keeps for its backward pass. */
static void carve_kept(struct carver *c, struct run *run, int layer, real **at, size_t n)
{
    if (layer + 1 < run->cfg.layers || !carve_moved(run, at, n))
        *at = carve_lent(c, run, layer, n);
}

/* The router's and the experts' part of one layer. */
static void carve_mixture(struct carver *c, struct run *run, int layer)
{
    struct layer_kept *k = &run->layers[layer];
    const struct model_config *cfg = &run->cfg;
    size_t n = run->max_tokens, e = (size_t)cfg->experts, top = n * (size_t)cfg->top_k;
    size_t f = (size_t)cfg->expert_ffn;

    k->p = carve_real(c, n * e);
    k->route_lse = carve_real(c, n);
    k->chosen = carve_u32(c, top);
    k->route_w = carve_real(c, top);
    k->counts = carve_u32(c, e);
    k->plan.place = carve_u32(c, top);
    k->plan.first = carve_u32(c, e + 1);
    k->plan.source = carve_u32(c, top);
    k->moe.xg = run->again.xg;
    carve_kept(c, run, layer, &k->moe.gu, top * 2 * f);
    k->moe.h = run->again.moe_h;
    carve_kept(c, run, layer, &k->moe.yg, top * (size_t)cfg->width);
}

/* A block's activations; dense_ffn is the width of its dense part, 0 for none. */
static void carve_layer(struct carver *c, struct run *run, int layer, size_t dense_ffn, bool moe)
{
    struct layer_kept *k = &run->layers[layer];
    size_t n = run->max_tokens, width = (size_t)run->cfg.width;

    k->rstd1 = carve_real(c, n);
    k->xn1 = run->again.xn;
    carve_kept(c, run, layer, &k->qkv, n * model_config_qkv(&run->cfg));
    carve_kept(c, run, layer, &k->att, n * width);
    k->lse = carve_real(c, n * (size_t)run->cfg.heads);
    carve_kept(c, run, layer, &k->x_mid, n * width);
    k->rstd2 = carve_real(c, n);
    k->xn2 = run->again.xn;
    carve_kept(c, run, layer, &k->gu, n * 2 * dense_ffn);
    k->h = run->again.h;
    if (moe)
        carve_mixture(c, run, layer);
}

static void carve_scratch(struct carver *c, struct run *run)
{
    const struct model_config *cfg = &run->cfg;
    size_t n = run->max_tokens;

    run->grad.dn = carve_real(c, n * (size_t)cfg->width);
    run->grad.dw = carve_real(c, n * (size_t)cfg->top_k);
    run->grad.dr = carve_real(c, n * (size_t)cfg->experts);
}

/* What is not needed while there are logits. */
static void carve_beside_logits(struct carver *c, struct run *run, size_t dense_ffn)
{
    const struct model_config *cfg = &run->cfg;
    size_t n = run->max_tokens;

    run->again.xn = carve_real(c, n * (size_t)cfg->width);
    run->again.h = carve_real(c, n * dense_ffn);
    run->again.moe_h = carve_real(c, cfg->experts > 0 ? n * (size_t)cfg->expert_ffn : 0);
    if (run->mode != RUN_INFER)
        run->grad.dx = carve_real(c, n * (size_t)cfg->width);
}

static void carve_logits(struct carver *c, struct run *run, size_t dense_ffn)
{
    size_t logits = run->head_rows * run->logits_ld;

    if (!run->shares_logits) {
        carve_beside_logits(c, run, dense_ffn);
        run->logits = carve_lent(c, run, run->cfg.layers, logits);
        return;
    }
    struct carver beside = {.overlaid = true};
    carve_beside_logits(&beside, run, dense_ffn);
    size_t all = max_size(logits, beside.used / sizeof(real));
    run->logits = carve_real(c, all);
    run->room = (struct carver){.memory = (char *)run->logits, .overlaid = true};
    run->room_bytes = all * sizeof(real);
    carve_beside_logits(&run->room, run, dense_ffn);
}

static struct attention_dims scratch_dims(const struct model_config *cfg)
{
    return (struct attention_dims){.tokens = (size_t)cfg->context,
                                   .dim = (size_t)(cfg->width / cfg->heads)};
}

bool run_restores_input(const struct model_config *cfg, int layer)
{
    return layer == 0 ||
           (model_config_is_moe(cfg, layer - 1) && model_config_dense_ffn(cfg, layer - 1) == 0);
}

/* The input of a block, or the last one's output: without keeping, every block reads and writes the
 * same residual stream. */
static real *carve_stream(struct carver *c, struct run *run, int layer)
{
    if (run->mode == RUN_INFER || run_restores_input(&run->cfg, layer))
        return run->again.x;
    return carve_lent(c, run, layer, run->max_tokens * (size_t)run->cfg.width);
}

/* RUN_INFER: one set for all layers, as large as the largest. */
static void share_layer(struct carver *c, struct run *run, size_t dense_ffn)
{
    carve_layer(c, run, 0, dense_ffn, run->cfg.experts > 0);
    run->layers[0].x = run->again.x;
    for (int layer = 1; layer < run->cfg.layers; layer++)
        run->layers[layer] = run->layers[0];
}

static void lay_out(struct carver *c, struct run *run)
{
    const struct model_config *cfg = &run->cfg;
    size_t n = run->max_tokens, width = (size_t)cfg->width, dense_ffn = 0;
    struct attention_dims dims = scratch_dims(cfg);

    for (int layer = 0; layer < cfg->layers; layer++)
        dense_ffn = max_size(dense_ffn, model_config_dense_ffn(cfg, layer));
    run->n_moved = 0;
    run->again.x = carve_real(c, n * width);
    run->again.xg = cfg->experts > 0 ? run->again.x : NULL;
    /* From what is used up first to what is needed longest, as carve_lent() wants. */
    carve_logits(c, run, dense_ffn);
    run->x_last = carve_stream(c, run, cfg->layers);
    for (int layer = cfg->layers - 1; run->mode != RUN_INFER && layer >= 0; layer--) {
        carve_layer(c, run, layer, model_config_dense_ffn(cfg, layer),
                    model_config_is_moe(cfg, layer));
        run->layers[layer].x = carve_stream(c, run, layer);
    }
    if (run->mode == RUN_INFER)
        share_layer(c, run, dense_ffn);
    run->rstd_last = carve_real(c, n);
    run->xn_last = carve_real(c, run->head_rows * width);
    run->rope = carve_real(c, (size_t)cfg->context * (size_t)(cfg->width / cfg->heads));
    run->attention = carve_real(c, (size_t)nn_threads() * attention_scratch(&dims));
    run->row_loss = carve(c, run->head_rows, sizeof(double));
    if (run->mode != RUN_INFER)
        carve_scratch(c, run);
}

/* Where the layers' gradients are. */
static void find_lent(struct run_lent *lent, const struct model_config *cfg)
{
    struct tensor_table table;

    tensor_table_init(&table, cfg);
    lent->first = xcalloc((size_t)cfg->layers + 1, sizeof(*lent->first));
    for (int layer = 0; layer < cfg->layers; layer++)
        lent->first[layer] = tensor_find(&table, TENSOR_NORM_ATTENTION, layer)->offset;
    lent->first[cfg->layers] = tensor_find(&table, TENSOR_NORM_FINAL, -1)->offset;
    lent->free = lent->first[cfg->layers];
    tensor_table_release(&table);
}

/* Bytes of a layout. */
static size_t count(struct run *run, bool shares_logits)
{
    struct carver counter = {0};

    run->shares_logits = shares_logits;
    if (run->mode == RUN_TRAIN_WHOLE)
        run->lent.free = run->lent.first[run->cfg.layers];
    lay_out(&counter, run);
    return counter.used;
}

static void set_up(struct run *run, const struct model_config *cfg, enum run_mode mode,
                   size_t max_tokens)
{
    size_t rows = cfg->vocab <= HEAD_VOCAB_SMALL ? HEAD_ROWS_SMALL : HEAD_ROWS_LARGE;

    *run = (struct run){.cfg = *cfg, .mode = mode, .max_tokens = max_tokens};
    run->head_rows = max_tokens < rows ? max_tokens : rows;
    run->logits_ld = product_pitch((size_t)cfg->vocab);
    run->layers = xcalloc((size_t)cfg->layers, sizeof(*run->layers));
    if (mode == RUN_TRAIN_WHOLE)
        find_lent(&run->lent, cfg);
    size_t apart = count(run, false), shared = count(run, true);
    run->shares_logits = shared < apart;
    run->bytes = shared < apart ? shared : apart;
}

double run_thread_bytes(const struct model_config *cfg)
{
    struct attention_dims dims = scratch_dims(cfg);

    return (double)attention_scratch(&dims) * sizeof(real);
}

double run_bytes(const struct model_config *cfg, enum run_mode mode, size_t max_tokens)
{
    struct run run;

    set_up(&run, cfg, mode, max_tokens);
    free(run.layers);
    free(run.lent.first);
    return (double)run.bytes;
}

/* Every buffer gets its place. */
static void hand_out(struct run *run)
{
    struct carver carver = {.memory = run->memory};

    if (run->mode == RUN_TRAIN_WHOLE)
        run->lent.free = run->lent.first[run->cfg.layers];
    lay_out(&carver, run);
}

void run_lend(struct run *run, real *grad)
{
    assert(run->mode == RUN_TRAIN_WHOLE);
    run->lent.grad = grad;
    hand_out(run);
}

int run_create(const struct model_config *cfg, enum run_mode mode, size_t max_tokens,
               struct run **out, struct err *err)
{
    struct run *run = xcalloc(1, sizeof(*run));

    *out = NULL;
    set_up(run, cfg, mode, max_tokens);
    run->memory = pages_alloc(run->bytes);
    if (run->memory == NULL) {
        int rc = err_set(err, ERR_OTHER, "no memory: %zu bytes for the activations of %zu tokens",
                         run->bytes, max_tokens);
        run_free(run);
        return rc;
    }
    hand_out(run);
    rope_table(run->rope, cfg->rope_theta, (size_t)cfg->context, (size_t)(cfg->width / cfg->heads));
    *out = run;
    return 0;
}

void run_move(struct run *run)
{
    for (size_t i = 0; i < run->n_moved; i++) {
        struct run_moved *m = &run->moved[i];
        memcpy(m->late, m->early, m->n * sizeof(real));
        *m->at = m->late;
    }
}

void run_move_back(struct run *run)
{
    for (size_t i = 0; i < run->n_moved; i++)
        *run->moved[i].at = run->moved[i].early;
}

void run_free(struct run *run)
{
    if (run == NULL)
        return;
    free(run->memory);
    free(run->layers);
    free(run->lent.first);
    free(run);
}

void run_set_precision(struct run *run, enum product_precision precision)
{
    run->precision = precision;
}

void run_set_clock(struct run *run, struct pass_clock *clock)
{
    run->clock = clock;
}

void run_first_choices(const struct run *run, int layer, size_t n, uint32_t *first)
{
    size_t top_k = (size_t)run->cfg.top_k;
    const uint32_t *chosen = run->layers[layer].chosen;

    assert(run->mode != RUN_INFER && n <= run->max_tokens);
    assert(model_config_is_moe(&run->cfg, layer));
    for (size_t i = 0; i < n; i++)
        first[i] = chosen[i * top_k];
}

struct attention_dims run_attention_dims(const struct run *run, const struct run_batch *batch)
{
    return (struct attention_dims){
        .batch = batch->batch,
        .tokens = batch->length,
        .heads = (size_t)run->cfg.heads,
        .groups = (size_t)run->cfg.kv_heads,
        .dim = (size_t)(run->cfg.width / run->cfg.heads),
    };
}

/* The capacity of an expert in a pass of n tokens: at least one assignment. */
static size_t moe_capacity(const struct run *run, size_t n)
{
    double factor = run->objective == NULL ? 0.0 : run->objective->capacity_factor;
    double even = (double)n * run->cfg.top_k / run->cfg.experts;

    if (!(factor > 0.0))
        return 0;
    return factor * even >= (double)n ? n : (size_t)fmax(ceil(factor * even), 1.0);
}

struct moe_dims run_moe_dims(const struct run *run, size_t n)
{
    return (struct moe_dims){
        .n = n,
        .width = (size_t)run->cfg.width,
        .experts = (size_t)run->cfg.experts,
        .top_k = (size_t)run->cfg.top_k,
        .ffn = (size_t)run->cfg.expert_ffn,
        .capacity = moe_capacity(run, n),
        .precision = run->precision,
        .clock = run->clock,
    };
}

real *run_grad_at(const struct weights *w, real *grad, enum tensor_role role, int layer)
{
    const struct tensor *t = tensor_find(&w->table, role, layer);

    return t == NULL ? NULL : grad + t->offset;
}
