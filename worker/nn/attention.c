/*
 * One group of one sequence at a time: its keys and values are laid out once for
 * worker/nn/product/tile.h, then each query head walks over tiles of queries, which meet all keys
 * up to the tile's end: two matrix products around a softmax over rows.
 *
 * Queries are scaled by 1 / sqrt(D) as they are copied, so that the products need no factor. Chains
 * run over D, over keys from position 0, and in the gradients of keys and values over the queries
 * of the group's first head, then of its next one. Groups are shared out to threads, each with its
 * own part of the scratch.
 */
#include "worker/nn/attention.h"

#include <string.h>

#include "worker/nn/product/pack.h"
#include "worker/nn/product/tile.h"
#include "worker/nn/threads.h"
#include "worker/nn/vec.h"

#define BLOCK PACK_COLS_MAX /* keys of one panel */
#define APART TILE_COLS     /* keeps rows of scores off one another's places in the nearest cache */

static size_t round_up(size_t n, size_t step)
{
    return (n + step - 1) / step * step;
}

/* Columns of a head's rows, padded for the tiles. */
static size_t padded(const struct attention_dims *dims)
{
    return round_up(dims->dim, TILE_COLS);
}

static size_t score_ld(const struct attention_dims *dims)
{
    return round_up(dims->tokens, BLOCK) + APART;
}

/* What one thread works on: a group's operands, then a tile's. Turned ones are panels of BLOCK
 * positions, (D, BLOCK) each; the others have rows `padded` wide. */
struct desk {
    real *keys_turned;
    real *values;
    real *values_turned; /* this and what follows: the backward pass alone */
    real *keys;
    real *d_keys;
    real *d_values;
    real *q; /* of a tile, scaled */
    real *dout;
    real *out; /* of a tile: the result before it is copied to its place */
    real *s;   /* rows score_ld() apart */
    real *ds;
};

static size_t desk_size(const struct attention_dims *dims)
{
    size_t turned = round_up(dims->tokens, BLOCK) * dims->dim;
    size_t rows = dims->tokens * padded(dims), tile = ATTENTION_TILE * padded(dims);

    return round_up(2 * turned + 4 * rows + 3 * tile + 2 * ATTENTION_TILE * score_ld(dims),
                    TILE_COLS);
}

static struct desk desk_at(real *scratch, const struct attention_dims *dims)
{
    size_t turned = round_up(dims->tokens, BLOCK) * dims->dim;
    size_t rows = dims->tokens * padded(dims), tile = ATTENTION_TILE * padded(dims);
    struct desk d;

    d.keys_turned = scratch;
    d.values_turned = d.keys_turned + turned;
    d.values = d.values_turned + turned;
    d.keys = d.values + rows;
    d.d_keys = d.keys + rows;
    d.d_values = d.d_keys + rows;
    d.q = d.d_values + rows;
    d.dout = d.q + tile;
    d.out = d.dout + tile;
    d.s = d.out + tile;
    d.ds = d.s + ATTENTION_TILE * score_ld(dims);
    return d;
}

size_t attention_scratch(const struct attention_dims *dims)
{
    return desk_size(dims);
}

/* Where one group of one sequence is in the packed rows. */
struct group {
    size_t row;   /* the sequence's first row */
    size_t head;  /* the first query head */
    size_t share; /* query heads of the group */
    size_t k;     /* columns of qkv */
    size_t v;
    size_t ld; /* of qkv */
};

static struct group group_at(const struct attention_dims *dims, size_t i)
{
    size_t d = dims->dim, g = i % dims->groups, share = dims->heads / dims->groups;

    return (struct group){
        .row = i / dims->groups * dims->tokens,
        .head = g * share,
        .share = share,
        .k = (dims->heads + g) * d,
        .v = (dims->heads + dims->groups + g) * d,
        .ld = (dims->heads + 2 * dims->groups) * d,
    };
}

/* Positions 0 .. n - 1 of one head as panels of BLOCK positions. */
static void turn_rows(real *restrict to, const real *restrict from, size_t ld, size_t n, size_t d)
{
    for (size_t at = 0; at < n; at += BLOCK)
        pack_turned(to + at * d, BLOCK, from + at * ld, ld, n - at < BLOCK ? n - at : BLOCK, d);
}

/* n rows of one head to rows `wide` apart; columns beyond d are zero. */
static void copy_rows(real *restrict to, size_t wide, const real *restrict from, size_t ld,
                      size_t n, size_t d)
{
    for (size_t r = 0; r < n; r++) {
        memcpy(to + r * wide, from + r * ld, d * sizeof(real));
        memset(to + r * wide + d, 0, (wide - d) * sizeof(real));
    }
}

NN_BODY void scale_rows_body(real *restrict to, size_t to_ld, const real *restrict from,
                             size_t from_ld, real scale, const size_t n[2])
{
    for (size_t r = 0; r < n[0]; r++)
        for (size_t i = 0; i < n[1]; i++)
            to[r * to_ld + i] = from[r * from_ld + i] * scale;
}

/* to = scale from, for n[0] rows of n[1] columns. */
static void scale_rows(real *restrict to, size_t to_ld, const real *restrict from, size_t from_ld,
                       real scale, const size_t n[2]);
NN_KERNEL(scale_rows,
          (real *restrict to, size_t to_ld, const real *restrict from, size_t from_ld, real scale,
           const size_t n[2]),
          (to, to_ld, from, from_ld, scale, n))

/* One row of scores against n_keys keys to weights, zeros beyond. Returns the sum of exponentials
 * of the scores less the greatest, m. */
NN_BODY real softmax_row(real *restrict s, size_t n_keys, size_t end, real m)
{
    real acc[NN_LANES] = {0};
    size_t i = 0;

    for (; i + NN_LANES <= n_keys; i += NN_LANES)
        for (size_t j = 0; j < NN_LANES; j++) {
            s[i + j] = nn_exp(s[i + j] - m);
            acc[j] += s[i + j];
        }
    for (size_t j = 0; i + j < n_keys; j++) {
        s[i + j] = nn_exp(s[i + j] - m);
        acc[j] += s[i + j];
    }
    real sum = nn_lanes_sum(acc);
    real k = 1 / sum;
    for (i = 0; i < n_keys; i++)
        s[i] *= k;
    for (i = n_keys; i < end; i++)
        s[i] = 0;
    return sum;
}

/* Row i of s holds the scores of query first + i against keys 0 .. first + i. */
NN_BODY void softmax_tile_body(real *restrict s, size_t ld, real *restrict lse, size_t lse_step,
                               size_t first, size_t rows)
{
    real max[ATTENTION_TILE], sum[ATTENTION_TILE];

    for (size_t i = 0; i < rows; i++) {
        max[i] = nn_max(s + i * ld, first + i + 1);
        sum[i] = softmax_row(s + i * ld, first + i + 1, first + rows, max[i]);
    }
    for (size_t i = 0; i < rows; i++)
        max[i] += nn_log(sum[i]);
    for (size_t i = 0; i < rows; i++)
        lse[i * lse_step] = max[i];
}

static void softmax_tile(real *restrict s, size_t ld, real *restrict lse, size_t lse_step,
                         size_t first, size_t rows);
NN_KERNEL(softmax_tile,
          (real *restrict s, size_t ld, real *restrict lse, size_t lse_step, size_t first,
           size_t rows),
          (s, ld, lse, lse_step, first, rows))

/* What the passes over groups share. */
struct attention_pass {
    const struct attention_dims *dims;
    const real *qkv;
    real *scratch;
    real *out;        /* forward */
    real *lse;        /* forward */
    const real *kept; /* backward: out of the forward pass, and its lse */
    const real *kept_lse;
    const real *dout;
    real *dqkv;
    real scale; /* 1 / sqrt(D) */
};

/* s = q k for `rows` rows of a tile and the keys before `end`; keys up to the end of the last block
 * get scores, too, which nothing reads. */
static void score_keys(real *s, const real *rows_at, size_t wide, const real *keys_turned,
                       size_t rows, size_t end, const struct attention_dims *dims)
{
    for (size_t key = 0; key < end; key += BLOCK)
        tile_multiply(s + key, score_ld(dims), TILE_NEW, tile_plain(rows_at, wide),
                      (struct tile_panel){keys_turned + key * dims->dim, BLOCK}, rows, BLOCK,
                      dims->dim);
}

static void head_forward(const struct attention_pass *p, const struct desk *desk,
                         const struct group *g, size_t head)
{
    const struct attention_dims *dims = p->dims;
    size_t d = dims->dim, width = dims->heads * d, wide = padded(dims), ld = score_ld(dims);

    for (size_t first = 0; first < dims->tokens; first += ATTENTION_TILE) {
        size_t rows = dims->tokens - first < ATTENTION_TILE ? dims->tokens - first : ATTENTION_TILE;
        size_t at = g->row + first, end = first + rows;
        scale_rows(desk->q, wide, p->qkv + at * g->ld + head * d, g->ld, p->scale,
                   (const size_t[]){rows, d});
        score_keys(desk->s, desk->q, wide, desk->keys_turned, rows, end, dims);
        softmax_tile(desk->s, ld, p->lse + at * dims->heads + head, dims->heads, first, rows);
        tile_multiply(desk->out, wide, TILE_NEW, tile_plain(desk->s, ld),
                      (struct tile_panel){desk->values, wide}, rows, wide, end);
        scale_rows(p->out + at * width + head * d, width, desk->out, wide, 1,
                   (const size_t[]){rows, d});
    }
}

static void groups_forward(void *ctx, size_t from, size_t to, int thread)
{
    const struct attention_pass *p = ctx;
    const struct attention_dims *dims = p->dims;
    struct desk desk = desk_at(p->scratch + (size_t)thread * desk_size(dims), dims);

    for (size_t i = from; i < to; i++) {
        struct group g = group_at(dims, i);
        const real *base = p->qkv + g.row * g.ld;
        turn_rows(desk.keys_turned, base + g.k, g.ld, dims->tokens, dims->dim);
        copy_rows(desk.values, padded(dims), base + g.v, g.ld, dims->tokens, dims->dim);
        for (size_t h = 0; h < g.share; h++)
            head_forward(p, &desk, &g, g.head + h);
    }
}

void attention_forward(real *restrict out, real *restrict lse, const real *restrict qkv,
                       real *restrict scratch, const struct attention_dims *dims)
{
    struct attention_pass p = {.dims = dims,
                               .qkv = qkv,
                               .scratch = scratch,
                               .out = out,
                               .lse = lse,
                               .scale = (real)(1.0 / sqrt((double)dims->dim))};

    nn_parallel(dims->batch * dims->groups, groups_forward, &p);
}

/* p from scores and lse; ds from p, dp (in ds) and delta; the masked part becomes zero. */
NN_BODY void softmax_tile_backward_body(real *restrict p, real *restrict ds, size_t ld,
                                        const real *restrict lse, size_t lse_step,
                                        const real *restrict delta, size_t first, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        real *restrict pi = p + i * ld;
        real *restrict di = ds + i * ld;
        real l = lse[i * lse_step], e = delta[i];
        size_t n_keys = first + i + 1;
        for (size_t j = 0; j < n_keys; j++) {
            pi[j] = nn_exp(pi[j] - l);
            di[j] = pi[j] * (di[j] - e);
        }
        for (size_t j = n_keys; j < first + rows; j++) {
            pi[j] = 0;
            di[j] = 0;
        }
    }
}

static void softmax_tile_backward(real *restrict p, real *restrict ds, size_t ld,
                                  const real *restrict lse, size_t lse_step,
                                  const real *restrict delta, size_t first, size_t rows);
NN_KERNEL(softmax_tile_backward,
          (real *restrict p, real *restrict ds, size_t ld, const real *restrict lse,
           size_t lse_step, const real *restrict delta, size_t first, size_t rows),
          (p, ds, ld, lse, lse_step, delta, first, rows))

/* Copies the tile's queries and dout, and computes p and ds. delta_i is dout_i out_i, which equals
 * the sum over j of p_ij dp_ij. */
static void tile_weights(const struct attention_pass *p, const struct desk *desk,
                         const struct group *g, size_t head, size_t first, size_t rows)
{
    const struct attention_dims *dims = p->dims;
    size_t d = dims->dim, width = dims->heads * d, wide = padded(dims), at = g->row + first;
    const real *dout = p->dout + at * width + head * d;
    real delta[ATTENTION_TILE];

    memset(desk->q, 0, rows * wide * sizeof(real));
    scale_rows(desk->q, wide, p->qkv + at * g->ld + head * d, g->ld, p->scale,
               (const size_t[]){rows, d});
    copy_rows(desk->dout, wide, dout, width, rows, d);
    for (size_t i = 0; i < rows; i++)
        delta[i] = vec_dot(dout + i * width, p->kept + (at + i) * width + head * d, d);
    score_keys(desk->s, desk->q, wide, desk->keys_turned, rows, first + rows, dims);
    score_keys(desk->ds, desk->dout, wide, desk->values_turned, rows, first + rows, dims);
    softmax_tile_backward(desk->s, desk->ds, score_ld(dims), p->kept_lse + at * dims->heads + head,
                          dims->heads, delta, first, rows);
}

static void head_backward(const struct attention_pass *p, const struct desk *desk,
                          const struct group *g, size_t head)
{
    const struct attention_dims *dims = p->dims;
    size_t wide = padded(dims), ld = score_ld(dims);

    for (size_t first = 0; first < dims->tokens; first += ATTENTION_TILE) {
        size_t rows = dims->tokens - first < ATTENTION_TILE ? dims->tokens - first : ATTENTION_TILE;
        size_t at = g->row + first, end = first + rows;
        tile_weights(p, desk, g, head, first, rows);
        tile_multiply(desk->d_values, wide, TILE_CONTINUED, tile_turned(desk->s, ld),
                      (struct tile_panel){desk->dout, wide}, end, wide, rows);
        tile_multiply(desk->d_keys, wide, TILE_CONTINUED, tile_turned(desk->ds, ld),
                      (struct tile_panel){desk->q, wide}, end, wide, rows);
        tile_multiply(desk->out, wide, TILE_NEW, tile_plain(desk->ds, ld),
                      (struct tile_panel){desk->keys, wide}, rows, wide, end);
        scale_rows(p->dqkv + at * g->ld + head * dims->dim, g->ld, desk->out, wide, p->scale,
                   (const size_t[]){rows, dims->dim});
    }
}

static void groups_backward(void *ctx, size_t from, size_t to, int thread)
{
    const struct attention_pass *p = ctx;
    const struct attention_dims *dims = p->dims;
    size_t d = dims->dim, t = dims->tokens, wide = padded(dims);
    struct desk desk = desk_at(p->scratch + (size_t)thread * desk_size(dims), dims);

    for (size_t i = from; i < to; i++) {
        struct group g = group_at(dims, i);
        const real *base = p->qkv + g.row * g.ld;
        real *d_base = p->dqkv + g.row * g.ld;
        turn_rows(desk.keys_turned, base + g.k, g.ld, t, d);
        turn_rows(desk.values_turned, base + g.v, g.ld, t, d);
        copy_rows(desk.keys, wide, base + g.k, g.ld, t, d);
        memset(desk.d_keys, 0, t * wide * sizeof(real));
        memset(desk.d_values, 0, t * wide * sizeof(real));
        for (size_t h = 0; h < g.share; h++)
            head_backward(p, &desk, &g, g.head + h);
        scale_rows(d_base + g.k, g.ld, desk.d_keys, wide, 1, (const size_t[]){t, d});
        scale_rows(d_base + g.v, g.ld, desk.d_values, wide, 1, (const size_t[]){t, d});
    }
}

void attention_backward(real *dqkv, const real *restrict dout, const real *restrict out,
                        const real *restrict lse, const real *qkv, real *restrict scratch,
                        const struct attention_dims *dims)
{
    struct attention_pass p = {.dims = dims,
                               .qkv = qkv,
                               .scratch = scratch,
                               .kept_lse = lse,
                               .kept = out,
                               .dout = dout,
                               .dqkv = dqkv,
                               .scale = (real)(1.0 / sqrt((double)dims->dim))};

    nn_parallel(dims->batch * dims->groups, groups_backward, &p);
}
