/*
 * The forward pass of worker/model/tensors.h for tokens that follow a cached prefix. All rows of a
 * pass go through the matrix products together; attention runs segment by segment, in order,
 * because a segment may read keys that the one before it has just stored in the same cache.
 *
 * In the last layer only rows that are read go on after their keys and values are stored: they are
 * moved together, and at the end back to their places.
 *
 * Every operation computes a row from that row alone (packed_product(), attend_forward() and the
 * row-wise kernels), which makes a token's result independent of the rest of the pass. The training
 * pass (run_forward.c) computes the same equations, but divides by a softmax's sum before it
 * multiplies the values, and need not have the same bits.
 */
#include <assert.h>

#include "worker/model/engine_private.h"
#include "worker/nn/moe.h"
#include "worker/nn/rmsnorm.h"
#include "worker/nn/rope.h"
#include "worker/nn/router.h"
#include "worker/nn/rowwise/packed.h"
#include "worker/nn/swiglu.h"
#include "worker/nn/vec.h"

/* A tied embedding is packed as the head, so its rows are unpacked one by one. */
static void embed(struct engine *e, size_t n)
{
    const real *w = weights_at(e->w, TENSOR_EMBED, -1);
    size_t c = engine_width(e);

    for (size_t r = 0; r < n; r++)
        if (e->cfg.tie_embeddings)
            packed_row(e->x + r * c, w, e->ids[r], (size_t)e->cfg.vocab, c);
        else
            memcpy(e->x + r * c, w + e->ids[r] * c, c * sizeof(real));
}

/* e->xn = rmsnorm(e->x) */
static void normalise(struct engine *e, enum tensor_role role, int layer, size_t n)
{
    rmsnorm_forward(e->xn, e->rstd, e->x, weights_at(e->w, role, layer), (real)e->cfg.norm_eps, n,
                    engine_width(e));
}

/* Rows of a segment that do not go on from a layer. */
static size_t dropped(const struct engine *e, const struct engine_segment *s, int layer)
{
    return layer + 1 == e->cfg.layers ? s->unread : 0;
}

/* Rotates, stores and attends one segment in one layer, and copies the sequence so far to the slot
 * that goes on with it. */
static void attend_segment(struct engine *e, const struct engine_segment *s, int layer)
{
    struct attend_dims dims = e->dims;
    size_t skip = dropped(e, s, layer), d = dims.dim, packed = (dims.heads + 2 * dims.groups) * d;
    real *qkv = e->qkv + s->row * packed;

    dims.context = s->cache->context;
    real *cache = s->cache->at + (size_t)layer * attend_cache(&dims);
    rope_forward(qkv, e->rope + s->first * d, s->n, s->n, dims.heads + dims.groups, d, packed);
    attend_store(cache, qkv, s->n, s->first, &dims);
    attend_forward(e->att + (s->row + skip) * engine_width(e), qkv + skip * packed, s->n - skip,
                   s->first + skip, cache, e->attention, &dims);
    if (s->copy_to != NULL) {
        struct attend_dims to = dims;
        to.context = s->copy_to->context;
        attend_copy(s->copy_to->at + (size_t)layer * attend_cache(&to), to.context, cache,
                    s->first + s->n, &dims);
    }
}

/* Moves the rows that go on together; returns how many they are. */
static size_t close_up(struct engine *e, const struct engine_segment *segments, size_t n_segments,
                       int layer)
{
    size_t c = engine_width(e), to = 0;

    for (size_t i = 0; i < n_segments; i++) {
        size_t skip = dropped(e, &segments[i], layer), n = segments[i].n - skip;
        size_t from = segments[i].row + skip;
        memmove(e->x + to * c, e->x + from * c, n * c * sizeof(real));
        memmove(e->att + to * c, e->att + from * c, n * c * sizeof(real));
        to += n;
    }
    return to;
}

/* The rows of e->xn that were moved together, n of them, back to their places. */
static void spread(struct engine *e, const struct engine_segment *segments, size_t n_segments,
                   size_t n)
{
    size_t c = engine_width(e);

    for (size_t i = n_segments; i-- > 0;) {
        const struct engine_segment *s = &segments[i];
        size_t rows = s->n - s->unread;
        n -= rows;
        memmove(e->xn + (s->row + s->unread) * c, e->xn + n * c, rows * c * sizeof(real));
    }
}

/* x += attention(rmsnorm(x)); returns the rows that go on. */
static size_t attention_block(struct engine *e, const struct engine_segment *segments,
                              size_t n_segments, size_t n, int layer)
{
    size_t c = engine_width(e), packed = (e->dims.heads + 2 * e->dims.groups) * e->dims.dim;

    normalise(e, TENSOR_NORM_ATTENTION, layer, n);
    packed_product(e->qkv, packed, false, e->xn, weights_at(e->w, TENSOR_Q, layer), n, c, packed);
    for (size_t i = 0; i < n_segments; i++)
        attend_segment(e, &segments[i], layer);
    if (layer + 1 == e->cfg.layers)
        n = close_up(e, segments, n_segments, layer);
    packed_product(e->x, c, true, e->att, weights_at(e->w, TENSOR_O, layer), n, c, c);
    return n;
}

/* out (+)= down(swiglu(gate_up(in))) */
static void feed(struct engine *e, real *out, bool add, const real *in, const real *gate_up,
                 const real *down, size_t n, size_t f)
{
    size_t c = engine_width(e);

    packed_product(e->gu, 2 * f, false, in, gate_up, n, c, 2 * f);
    swiglu_forward(e->h, e->gu, n, f);
    packed_product(out, c, add, e->h, down, n, f, c);
}

/* Assignments are grouped by expert; a row's experts are added in the order of its choice. */
static void mixture(struct engine *e, size_t n, int layer)
{
    size_t c = engine_width(e), experts = (size_t)e->cfg.experts, top = (size_t)e->cfg.top_k;
    size_t f = (size_t)e->cfg.expert_ffn;
    const real *wgu = weights_at(e->w, TENSOR_EXPERT_GATE_UP, layer);
    const real *wd = weights_at(e->w, TENSOR_EXPERT_DOWN, layer);
    struct router_dims router = {
        .n = n, .experts = experts, .top_k = top, .renormalise = e->cfg.renormalise};
    struct moe_dims dims = {.n = n, .width = c, .experts = experts, .top_k = top, .ffn = f};
    struct moe_plan plan = {.place = e->place, .first = e->begins};

    packed_product(e->p, experts, false, e->xn, weights_at(e->w, TENSOR_ROUTER, layer), n, c,
                   experts);
    router_forward(e->p, e->rstd, e->chosen, e->route_w, e->counts,
                   e->w->route_bias + (size_t)layer * experts, NULL, &router);
    moe_plan_make(&plan, e->chosen, e->counts, &dims);
    for (size_t i = 0; i < n * top; i++)
        memcpy(e->grouped + e->place[i] * c, e->xn + i / top * c, c * sizeof(real));
    for (size_t x = 0; x < experts; x++) {
        size_t at = e->begins[x], rows = e->begins[x + 1] - at;
        real *grouped = e->grouped + at * c;
        feed(e, grouped, false, grouped, wgu + x * 2 * f * c, wd + x * c * f, rows, f);
    }
    for (size_t i = 0; i < n * top; i++)
        vec_axpy(e->x + i / top * c, e->route_w[i], e->grouped + e->place[i] * c, c);
}

/* x += ffn(rmsnorm(x)) */
static void ffn_block(struct engine *e, size_t n, int layer)
{
    bool moe = model_config_is_moe(&e->cfg, layer);
    size_t f = model_config_dense_ffn(&e->cfg, layer);

    normalise(e, TENSOR_NORM_FFN, layer, n);
    if (moe)
        mixture(e, n, layer);
    if (f > 0)
        feed(e, e->x, true, e->xn, weights_at(e->w, moe ? TENSOR_SHARED_GATE : TENSOR_GATE, layer),
             weights_at(e->w, moe ? TENSOR_SHARED_DOWN : TENSOR_DOWN, layer), n, f);
}

void engine_pass(struct engine *e, const struct engine_segment *segments, size_t n_segments,
                 size_t n)
{
    size_t rows = n;

    assert(n <= ENGINE_CHUNK);
    embed(e, n);
    for (int layer = 0; layer < e->cfg.layers; layer++) {
        rows = attention_block(e, segments, n_segments, n, layer);
        ffn_block(e, rows, layer);
    }
    normalise(e, TENSOR_NORM_FINAL, -1, rows);
    spread(e, segments, n_segments, rows);
}
