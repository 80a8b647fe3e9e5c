/* Forward and backward over one pass. A mixture is computed token by token; an expert's gradient
 * gathers its tokens in their order. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/math/elementary.h"
#include "base/xalloc.h"
#include "tests/unit/worker/train/second_numbers.h"
#include "tests/unit/worker/train/second_step.h"

#define PIECE 2048 /* of a row of logits */

/* What a block keeps, in the letters of worker/model/tensors.h; s1 and s2: of the norms. */
struct block {
    float *x, *s1, *a, *qkv, *att, *lse, *mid, *s2, *b, *gu, *h;
    float *p, *z, *w, *egu, *eh, *ey; /* of the router and of each assignment */
    size_t *chosen, *counts, *served; /* served: of the counts, those within the capacity */
    bool *over;                       /* of each assignment */
};

struct work {
    struct second *s;
    const struct second_pass *pass;
    const struct model_config *cfg;
    struct arena arena;
    size_t n, t, c; /* rows, tokens of a sequence, width */
    bool rounds, scores;
    float *dx, *dn;
};

static float *floats(struct work *k, size_t n)
{
    float *p = arena_array(&k->arena, n + 1, sizeof(float));

    memset(p, 0, n * sizeof(float));
    return p;
}

static float *parameter(const struct work *k, enum tensor_role role, int layer)
{
    return k->s->p + tensor_find(&k->s->table, role, layer)->offset;
}

static float *gradient(const struct work *k, enum tensor_role role, int layer)
{
    return k->s->g + tensor_find(&k->s->table, role, layer)->offset;
}

/* Of a linear layer: how many rows, in and out, and whether operands are rounded. */
struct shape {
    size_t n, in, out;
    bool rounds;
};

static void linear(float *y, bool add, const float *x, const float *w, struct shape d)
{
    second_product(y, add, second_plain(x, d.in), second_turned(w, d.in),
                   (const size_t[]){d.n, d.out, d.in}, d.rounds);
}

static void linear_input(float *dx, bool add, const float *dy, const float *w, struct shape d)
{
    second_product(dx, add, second_plain(dy, d.out), second_plain(w, d.in),
                   (const size_t[]){d.n, d.in, d.out}, d.rounds);
}

static void linear_weight(float *dw, const float *dy, const float *x, struct shape d)
{
    second_product(dw, true, second_turned(dy, d.out), second_plain(x, d.in),
                   (const size_t[]){d.out, d.in, d.n}, d.rounds);
}

static void norm(const struct work *k, float *y, float *s, const float *x, const float *w)
{
    second_norm(y, s, x, w, k->cfg->norm_eps, (const size_t[]){k->n, k->c});
}

/* --- attention --- */

/* One query of one head: keys and values begin at the sequence's first row. */
struct query {
    const float *q, *keys, *values; /* in qkv */
    size_t d, ld, n_keys;
};

static struct query query_at(const struct work *k, const float *qkv, size_t row, size_t head)
{
    size_t heads = (size_t)k->cfg->heads, groups = (size_t)k->cfg->kv_heads;
    size_t d = k->c / heads, ld = model_config_qkv(k->cfg), group = head / (heads / groups);
    const float *first = qkv + row / k->t * k->t * ld;

    return (struct query){.q = qkv + row * ld + head * d,
                          .keys = first + (heads + group) * d,
                          .values = first + (heads + groups + group) * d,
                          .d = d,
                          .ld = ld,
                          .n_keys = row % k->t + 1};
}

static float scale_of(size_t d)
{
    return (float)(1 / sqrt((double)d));
}

static void score(float *s, const struct query *at)
{
    for (size_t j = 0; j < at->n_keys; j++) {
        s[j] = 0;
        for (size_t i = 0; i < at->d; i++)
            s[j] = second_fma(at->q[i] * scale_of(at->d), at->keys[j * at->ld + i], s[j]);
    }
}

static void attend(struct work *k, struct block *b)
{
    float *p = floats(k, k->t);
    size_t heads = (size_t)k->cfg->heads;

    for (size_t row = 0; row < k->n; row++)
        for (size_t head = 0; head < heads; head++) {
            struct query at = query_at(k, b->qkv, row, head);
            float m = -INFINITY;
            score(p, &at);
            for (size_t j = 0; j < at.n_keys; j++)
                m = p[j] > m ? p[j] : m;
            for (size_t j = 0; j < at.n_keys; j++)
                p[j] = second_exp(p[j] - m);
            float sum = second_sum(p, at.n_keys), share = 1 / sum;
            b->lse[row * heads + head] = m + second_log(sum);
            for (size_t j = 0; j < at.n_keys && !k->scores; j++)
                p[j] *= share;
            for (size_t i = 0; i < at.d; i++) {
                float out = 0;
                for (size_t j = 0; j < at.n_keys; j++)
                    out = second_fma(p[j], at.values[j * at.ld + i], out);
                b->att[row * k->c + head * at.d + i] = k->scores ? out * share : out;
            }
        }
}

/* p and ds of one query. */
static void weights_back(const struct query *at, const float *dout, const float *out, float lse,
                         float *p, float *ds)
{
    float delta = second_dot(dout, out, at->d);

    score(p, at);
    for (size_t j = 0; j < at->n_keys; j++) {
        float dp = 0;
        for (size_t i = 0; i < at->d; i++)
            dp = second_fma(dout[i], at->values[j * at->ld + i], dp);
        p[j] = second_exp(p[j] - lse);
        ds[j] = p[j] * (dp - delta);
    }
}

/* dkv: of the sequence, where at->keys and at->values are in qkv. */
static void query_back(const struct query *at, float *dq, float *dk, float *dv, const float *p,
                       const float *ds, const float *dout)
{
    for (size_t i = 0; i < at->d; i++) {
        float sum = 0;
        for (size_t j = 0; j < at->n_keys; j++) {
            float *k = dk + j * at->ld + i, *v = dv + j * at->ld + i;
            sum = second_fma(ds[j], at->keys[j * at->ld + i], sum);
            *k = second_fma(ds[j], at->q[i] * scale_of(at->d), *k);
            *v = second_fma(p[j], dout[i], *v);
        }
        dq[i] = sum * scale_of(at->d);
    }
}

/* Heads of a group one after another, so that the chains of keys and values are the page's. */
static void attend_back(struct work *k, const struct block *b, float *dqkv, const float *dout)
{
    float *p = floats(k, k->t), *ds = floats(k, k->t);
    size_t heads = (size_t)k->cfg->heads;

    for (size_t head = 0; head < heads; head++)
        for (size_t row = 0; row < k->n; row++) {
            struct query at = query_at(k, b->qkv, row, head);
            const float *d = dout + row * k->c + head * at.d;
            weights_back(&at, d, b->att + row * k->c + head * at.d, b->lse[row * heads + head], p,
                         ds);
            query_back(&at, dqkv + (at.q - b->qkv), dqkv + (at.keys - b->qkv),
                       dqkv + (at.values - b->qkv), p, ds, d);
        }
}

static void turn(const struct work *k, float *qkv, int sign)
{
    size_t heads = (size_t)k->cfg->heads, groups = (size_t)k->cfg->kv_heads;

    second_rope(qkv, k->cfg->rope_theta, sign, (const size_t[]){k->n, k->t}, heads + groups,
                k->c / heads, model_config_qkv(k->cfg));
}

static void attention_block(struct work *k, struct block *b, int layer)
{
    size_t packed = model_config_qkv(k->cfg);

    b->s1 = floats(k, k->n);
    b->a = floats(k, k->n * k->c);
    b->qkv = floats(k, k->n * packed);
    b->att = floats(k, k->n * k->c);
    b->lse = floats(k, k->n * (size_t)k->cfg->heads);
    b->mid = floats(k, k->n * k->c);
    norm(k, b->a, b->s1, b->x, parameter(k, TENSOR_NORM_ATTENTION, layer));
    linear(b->qkv, false, b->a, parameter(k, TENSOR_Q, layer),
           (struct shape){k->n, k->c, packed, k->rounds});
    turn(k, b->qkv, 1);
    attend(k, b);
    memcpy(b->mid, b->x, k->n * k->c * sizeof(float));
    linear(b->mid, true, b->att, parameter(k, TENSOR_O, layer),
           (struct shape){k->n, k->c, k->c, k->rounds});
}

static void attention_back(struct work *k, const struct block *b, int layer)
{
    size_t packed = model_config_qkv(k->cfg);
    struct shape out = {k->n, k->c, k->c, k->rounds}, in = {k->n, k->c, packed, k->rounds};
    float *dqkv = floats(k, k->n * packed);

    linear_weight(gradient(k, TENSOR_O, layer), k->dx, b->att, out);
    linear_input(k->dn, false, k->dx, parameter(k, TENSOR_O, layer), out);
    attend_back(k, b, dqkv, k->dn);
    turn(k, dqkv, -1);
    linear_weight(gradient(k, TENSOR_Q, layer), dqkv, b->a, in);
    linear_input(k->dn, false, dqkv, parameter(k, TENSOR_Q, layer), in);
    second_norm_back(k->dx, gradient(k, TENSOR_NORM_ATTENTION, layer), k->dn, b->x,
                     parameter(k, TENSOR_NORM_ATTENTION, layer), b->s1,
                     (const size_t[]){k->n, k->c});
}

/* --- the mixture --- */

/* Softmax of one row of logits, and the choice. */
static void route(const struct work *k, struct block *b, int layer, size_t row)
{
    size_t experts = (size_t)k->cfg->experts, top = (size_t)k->cfg->top_k;
    float *p = b->p + row * experts, m = p[0], sum = 0, share = 0;
    const float *bias = k->s->bias + (size_t)layer * experts;
    bool taken[64] = {false};

    for (size_t i = 0; i < top; i++) {
        size_t best = experts;
        for (size_t e = 0; e < experts; e++)
            if (!taken[e] && (best == experts || p[e] + bias[e] > p[best] + bias[best]))
                best = e;
        taken[best] = true;
        b->chosen[row * top + i] = best;
        b->counts[best]++;
        k->s->counts[(size_t)layer * experts + best]++;
    }
    for (size_t e = 1; e < experts; e++)
        m = p[e] > m ? p[e] : m;
    for (size_t e = 0; e < experts; e++) {
        p[e] = second_exp(p[e] - m);
        sum += p[e];
    }
    for (size_t e = 0; e < experts; e++)
        p[e] /= sum;
    b->z[row] = m + second_log(sum);
    for (size_t i = 0; i < top; i++)
        share += p[b->chosen[row * top + i]];
    for (size_t i = 0; i < top; i++)
        b->w[row * top + i] = p[b->chosen[row * top + i]] / (k->cfg->renormalise ? share : 1);
}

/* Element token x 1024 + e of the stream of noise. */
static void make_noisy(const struct work *k, struct block *b, int layer)
{
    size_t experts = (size_t)k->cfg->experts;
    const struct train_options *o = k->s->opt;

    for (size_t i = 0; !k->scores && i < k->n * experts && o->router_noise > 0; i++)
        b->p[i] +=
            (float)(o->router_noise *
                    second_normal(o->seed, 6, (uint32_t)layer,
                                  (k->pass->first_token + i / experts) * 1024 + i % experts));
}

/* First choices of all tokens, then second ones, each expert up to its capacity. */
static void limit(const struct work *k, struct block *b)
{
    size_t experts = (size_t)k->cfg->experts, top = (size_t)k->cfg->top_k;
    double factor = k->scores ? 0 : k->s->opt->capacity_factor;
    double even = (double)k->n * (double)top / (double)experts;
    double capacity = factor > 0 ? ceil(factor * even) : (double)k->n;

    if (capacity < 1)
        capacity = 1;
    for (size_t choice = 0; choice < top; choice++) {
        for (size_t row = 0; row < k->n; row++) {
            size_t i = row * top + choice, e = b->chosen[i];
            b->over[i] = (double)b->served[e] >= capacity;
            b->served[e] += b->over[i] ? 0 : 1;
        }
    }
}

static void mixture(struct work *k, struct block *b, float *out, int layer)
{
    size_t experts = (size_t)k->cfg->experts, top = (size_t)k->cfg->top_k;
    size_t f = (size_t)k->cfg->expert_ffn, c = k->c;

    b->p = floats(k, k->n * experts);
    b->z = floats(k, k->n);
    b->w = floats(k, k->n * top);
    b->chosen = arena_array(&k->arena, k->n * top, sizeof(size_t));
    b->counts = arena_array(&k->arena, experts, sizeof(size_t));
    b->egu = floats(k, k->n * top * 2 * f);
    b->eh = floats(k, k->n * top * f);
    b->ey = floats(k, k->n * top * c);
    b->served = arena_array(&k->arena, experts, sizeof(size_t));
    b->over = arena_array(&k->arena, k->n * top, sizeof(bool));
    memset(b->counts, 0, experts * sizeof(size_t));
    memset(b->served, 0, experts * sizeof(size_t));
    linear(b->p, false, b->b, parameter(k, TENSOR_ROUTER, layer),
           (struct shape){k->n, c, experts, false});
    make_noisy(k, b, layer);
    for (size_t row = 0; row < k->n; row++)
        route(k, b, layer, row);
    limit(k, b);
    for (size_t i = 0; i < k->n * top; i++) {
        size_t e = b->chosen[i];
        if (b->over[i])
            continue;
        linear(b->egu + i * 2 * f, false, b->b + i / top * c,
               parameter(k, TENSOR_EXPERT_GATE_UP, layer) + e * 2 * f * c,
               (struct shape){1, c, 2 * f, k->rounds});
        second_swiglu(b->eh + i * f, b->egu + i * 2 * f, 1, f);
        linear(b->ey + i * c, false, b->eh + i * f,
               parameter(k, TENSOR_EXPERT_DOWN, layer) + e * c * f,
               (struct shape){1, f, c, k->rounds});
        for (size_t j = 0; j < c; j++)
            out[i / top * c + j] += b->w[i] * b->ey[i * c + j];
    }
}

/* The rows of an expert's assignments, in order; `per`: rows of `from` for one of them. */
static float *gathered(struct work *k, const struct block *b, size_t e, const float *from,
                       size_t width, size_t per)
{
    size_t top = (size_t)k->cfg->top_k, m = 0;
    float *rows = floats(k, b->served[e] * width);

    for (size_t i = 0; i < k->n * top; i++)
        if (b->chosen[i] == e && !b->over[i])
            memcpy(rows + m++ * width, from + i / per * width, width * sizeof(float));
    return rows;
}

/* dxg: (N K, C), in the order of tokens and choices. */
static void expert_back(struct work *k, const struct block *b, int layer, size_t e, float *dyg,
                        float *dxg)
{
    size_t top = (size_t)k->cfg->top_k, f = (size_t)k->cfg->expert_ffn, c = k->c;
    size_t m = b->served[e], row = 0;
    struct shape down = {m, f, c, k->rounds}, up = {m, c, 2 * f, k->rounds};
    float *dy = gathered(k, b, e, dyg, c, 1), *dh = floats(k, m * f);
    float *dgu = floats(k, m * 2 * f), *dx = floats(k, m * c);

    linear_weight(gradient(k, TENSOR_EXPERT_DOWN, layer) + e * c * f, dy,
                  gathered(k, b, e, b->eh, f, 1), down);
    linear_input(dh, false, dy, parameter(k, TENSOR_EXPERT_DOWN, layer) + e * c * f, down);
    second_swiglu_back(dgu, dh, gathered(k, b, e, b->egu, 2 * f, 1), m, f);
    linear_weight(gradient(k, TENSOR_EXPERT_GATE_UP, layer) + e * 2 * f * c, dgu,
                  gathered(k, b, e, b->b, c, top), up);
    linear_input(dx, false, dgu, parameter(k, TENSOR_EXPERT_GATE_UP, layer) + e * 2 * f * c, up);
    for (size_t i = 0; i < k->n * top; i++)
        if (b->chosen[i] == e && !b->over[i])
            memcpy(dxg + i * c, dx + row++ * c, c * sizeof(float));
}

/* dr of one row, from dw of its experts. */
static void route_back(const struct work *k, const struct block *b, size_t row, const float *dw,
                       float *dr)
{
    size_t experts = (size_t)k->cfg->experts, top = (size_t)k->cfg->top_k;
    const float *p = b->p + row * experts, *w = b->w + row * top;
    const size_t *chosen = b->chosen + row * top;
    double n = (double)k->n, mixtures = model_config_moe_layers(k->cfg);
    double alpha = k->pass->balance * (k->pass->share / mixtures);
    float z = (float)((2 * (k->pass->z * (k->pass->share / mixtures))) / n) * b->z[row];
    float share = 0, mean = 0, all = 0;

    for (size_t e = 0; e < experts; e++)
        dr[e] =
            (float)(((alpha * (double)experts) * (double)b->counts[e]) / ((n * (double)top) * n));
    for (size_t i = 0; i < top; i++) {
        share += p[chosen[i]];
        mean += dw[i] * w[i];
    }
    for (size_t i = 0; i < top; i++)
        dr[chosen[i]] += k->cfg->renormalise ? (dw[i] - mean) / share : dw[i];
    for (size_t e = 0; e < experts; e++)
        all += p[e] * dr[e];
    for (size_t e = 0; e < experts; e++)
        dr[e] = p[e] * ((dr[e] - all) + z);
}

/* Adds to dn. */
static void mixture_back(struct work *k, const struct block *b, int layer)
{
    size_t experts = (size_t)k->cfg->experts, top = (size_t)k->cfg->top_k, c = k->c;
    struct shape router = {k->n, c, experts, false};
    float *dyg = floats(k, k->n * top * c), *dxg = floats(k, k->n * top * c);
    float *dw = floats(k, k->n * top), *dr = floats(k, k->n * experts);

    for (size_t i = 0; i < k->n * top; i++) {
        dw[i] = second_dot(k->dx + i / top * c, b->ey + i * c, c);
        for (size_t j = 0; j < c; j++)
            dyg[i * c + j] = b->w[i] * k->dx[i / top * c + j];
    }
    for (size_t e = 0; e < experts; e++)
        expert_back(k, b, layer, e, dyg, dxg);
    for (size_t i = 0; i < k->n * top * c; i++)
        k->dn[i / (top * c) * c + i % c] += dxg[i];
    for (size_t row = 0; row < k->n; row++)
        route_back(k, b, row, dw + row * top, dr + row * experts);
    linear_weight(gradient(k, TENSOR_ROUTER, layer), dr, b->b, router);
    linear_input(k->dn, true, dr, parameter(k, TENSOR_ROUTER, layer), router);
}

/* --- feed-forward parts and the whole --- */

static void feed_block(struct work *k, struct block *b, float *out, int layer)
{
    bool moe = model_config_is_moe(k->cfg, layer);
    size_t f = model_config_dense_ffn(k->cfg, layer);

    b->s2 = floats(k, k->n);
    b->b = floats(k, k->n * k->c);
    b->gu = floats(k, k->n * 2 * f);
    b->h = floats(k, k->n * f);
    norm(k, b->b, b->s2, b->mid, parameter(k, TENSOR_NORM_FFN, layer));
    memcpy(out, b->mid, k->n * k->c * sizeof(float));
    if (moe)
        mixture(k, b, out, layer);
    if (f == 0)
        return;
    linear(b->gu, false, b->b, parameter(k, moe ? TENSOR_SHARED_GATE : TENSOR_GATE, layer),
           (struct shape){k->n, k->c, 2 * f, k->rounds});
    second_swiglu(b->h, b->gu, k->n, f);
    linear(out, true, b->h, parameter(k, moe ? TENSOR_SHARED_DOWN : TENSOR_DOWN, layer),
           (struct shape){k->n, f, k->c, k->rounds});
}

static void feed_back(struct work *k, const struct block *b, int layer)
{
    bool moe = model_config_is_moe(k->cfg, layer);
    size_t f = model_config_dense_ffn(k->cfg, layer);
    enum tensor_role up = moe ? TENSOR_SHARED_GATE : TENSOR_GATE;
    enum tensor_role down = moe ? TENSOR_SHARED_DOWN : TENSOR_DOWN;
    struct shape to = {k->n, f, k->c, k->rounds}, from = {k->n, k->c, 2 * f, k->rounds};
    float *dh = floats(k, k->n * f), *dgu = floats(k, k->n * 2 * f);

    memset(k->dn, 0, k->n * k->c * sizeof(float));
    if (f > 0) {
        linear_weight(gradient(k, down, layer), k->dx, b->h, to);
        linear_input(dh, false, k->dx, parameter(k, down, layer), to);
        second_swiglu_back(dgu, dh, b->gu, k->n, f);
        linear_weight(gradient(k, up, layer), dgu, b->b, from);
        linear_input(k->dn, false, dgu, parameter(k, up, layer), from);
    }
    if (moe)
        mixture_back(k, b, layer);
    second_norm_back(k->dx, gradient(k, TENSOR_NORM_FFN, layer), k->dn, b->mid,
                     parameter(k, TENSOR_NORM_FFN, layer), b->s2, (const size_t[]){k->n, k->c});
}

/* Logits to their gradients; returns the loss of the row. */
static double entropy(float *l, size_t v, uint32_t target, float scale)
{
    double was = (double)l[target];
    float m = -INFINITY;

    for (size_t i = 0; i < v; i++)
        m = l[i] > m ? l[i] : m;
    for (size_t i = 0; i < v; i++)
        l[i] = second_exp(l[i] - m);
    float sum = second_sum(l, v), factor = scale / sum;
    for (size_t i = 0; i < v; i++)
        l[i] *= factor;
    l[target] -= scale;
    return (elementary_log((double)sum) + (double)m) - was;
}

/* From the last residual stream to its gradient in dx. */
static double head(struct work *k, const float *x)
{
    size_t v = (size_t)k->cfg->vocab;
    enum tensor_role role = k->cfg->tie_embeddings ? TENSOR_EMBED : TENSOR_HEAD;
    struct shape d = {k->n, k->c, v, k->rounds};
    float *s = floats(k, k->n), *xn = floats(k, k->n * k->c), *logits = floats(k, k->n * v);
    double loss = 0;

    norm(k, xn, s, x, parameter(k, TENSOR_NORM_FINAL, -1));
    linear(logits, false, xn, parameter(k, role, -1), d);
    for (size_t row = 0; row < k->n; row++)
        loss += entropy(logits + row * v, v, k->pass->targets[row],
                        (float)(k->pass->share / (double)k->n));
    linear_input(k->dn, false, logits, parameter(k, role, -1), d);
    linear_weight(gradient(k, role, -1), logits, xn, d);
    second_norm_back(k->dx, gradient(k, TENSOR_NORM_FINAL, -1), k->dn, x,
                     parameter(k, TENSOR_NORM_FINAL, -1), s, (const size_t[]){k->n, k->c});
    return loss / (double)k->n;
}

/* The residual stream from block to block, and what blocks keep. */
static struct block *forward(struct work *k, const struct second *s, const uint32_t *tokens)
{
    size_t layers = (size_t)k->cfg->layers;
    struct block *blocks = xcalloc(layers + 1, sizeof(*blocks));

    for (size_t i = 0; i <= layers; i++)
        blocks[i].x = floats(k, k->n * k->c);
    for (size_t i = 0; i < k->n * k->c; i++)
        blocks[0].x[i] = s->p[tokens[i / k->c] * k->c + i % k->c]; /* the first tensor */
    for (size_t i = 0; i < layers; i++) {
        attention_block(k, &blocks[i], (int)i);
        feed_block(k, &blocks[i], blocks[i + 1].x, (int)i);
    }
    return blocks;
}

double second_gradient(struct second *s, const struct second_pass *pass)
{
    struct work k = {.s = s, .pass = pass, .cfg = &s->opt->model};

    arena_init(&k.arena);
    k.t = (size_t)k.cfg->context;
    k.n = pass->batch * k.t;
    k.c = (size_t)k.cfg->width;
    k.rounds = s->opt->precision == PRODUCT_BFLOAT16;
    k.dx = floats(&k, k.n * k.c);
    k.dn = floats(&k, k.n * k.c);
    struct block *blocks = forward(&k, s, pass->tokens);
    double loss = head(&k, blocks[k.cfg->layers].x);
    for (int i = k.cfg->layers - 1; i >= 0; i--) {
        feed_back(&k, &blocks[i], i);
        attention_back(&k, &blocks[i], i);
    }
    for (size_t i = 0; i < k.n * k.c; i++)
        s->g[pass->tokens[i / k.c] * k.c + i % k.c] += k.dx[i];
    arena_release(&k.arena);
    free(blocks);
    return loss;
}

/* ln p of one token under a row of logits: pieces of 2,048 against the greatest so far. */
static double log_likelihood(struct work *k, const float *logits, uint32_t token)
{
    size_t v = (size_t)k->cfg->vocab;
    float max = -INFINITY, *e = floats(k, PIECE);
    double sum = 0;

    for (size_t from = 0; from < v; from += PIECE) {
        size_t n = v - from < PIECE ? v - from : PIECE;
        float was = max;
        for (size_t i = 0; i < n; i++)
            max = logits[from + i] > max ? logits[from + i] : max;
        if (max > was)
            sum *= elementary_exp((double)was - (double)max);
        for (size_t i = 0; i < n; i++)
            e[i] = second_exp(logits[from + i] - max);
        sum += (double)second_sum(e, n);
    }
    return (double)logits[token] - ((double)max + elementary_log(sum));
}

double second_score(struct second *s, const uint32_t *tokens, size_t n, size_t first)
{
    struct work k = {.s = s, .cfg = &s->opt->model, .n = n - 1, .t = n - 1, .scores = true};
    double sum = 0;

    arena_init(&k.arena);
    k.c = (size_t)k.cfg->width;
    struct block *blocks = forward(&k, s, tokens);
    float *norms = floats(&k, k.n), *xn = floats(&k, k.n * k.c);
    float *logits = floats(&k, k.n * (size_t)k.cfg->vocab);
    norm(&k, xn, norms, blocks[k.cfg->layers].x, parameter(&k, TENSOR_NORM_FINAL, -1));
    linear(logits, false, xn, parameter(&k, k.cfg->tie_embeddings ? TENSOR_EMBED : TENSOR_HEAD, -1),
           (struct shape){k.n, k.c, (size_t)k.cfg->vocab, false});
    for (size_t i = first; i < n; i++)
        sum += log_likelihood(&k, logits + (i - 1) * (size_t)k.cfg->vocab, tokens[i]);
    arena_release(&k.arena);
    free(blocks);
    return sum;
}
