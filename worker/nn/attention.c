/*
 * One group of one sequence at a time: its keys and values are laid out once for
 * worker/nn/product/tile.h, then each query head walks over tiles of queries, which meet the keys
 * before them in strips of TILE_ROWS: two matrix products around a softmax over rows
 * (attention_rows.h).
 *
 * Queries are scaled by 1 / sqrt(D) as they are copied, so that the products need no factor. Chains
 * run over D, over keys from position 0, and in the gradients of keys and values over the queries
 * of the group's first head, then of its next one. Groups are shared out to threads, each with its
 * own part of the scratch.
 */
#include "worker/nn/attention.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "worker/nn/ahead.h"
#include "worker/nn/attention_rows.h"
#include "worker/nn/product/pack.h"
#include "worker/nn/product/tile.h"
#include "worker/nn/threads.h"

#define BLOCK PACK_COLS_MAX /* keys of one panel */
#define APART TILE_COLS     /* keeps rows of scores off one another's places in the nearest cache */

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

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
    size_t i;
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
        .i = i,
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

/* n rows of d columns. */
static void copy_rows(real *restrict to, size_t to_ld, const real *restrict from, size_t from_ld,
                      size_t n, size_t d)
{
    for (size_t r = 0; r < n; r++)
        memcpy(to + r * to_ld, from + r * from_ld, d * sizeof(real));
}

/* n rows of one head to rows with the columns of the tiles, which are zero beyond D. */
static void pad_rows(real *restrict to, const real *restrict from, size_t ld, size_t n,
                     const struct attention_dims *dims)
{
    size_t d = dims->dim, wide = padded(dims);

    copy_rows(to, wide, from, ld, n, d);
    for (size_t r = 0; wide > d && r < n; r++)
        memset(to + r * wide + d, 0, (wide - d) * sizeof(real));
}

static struct attention_tile tile_at(const struct attention_dims *dims, size_t first)
{
    return (struct attention_tile){first, min_size(ATTENTION_TILE, dims->tokens - first)};
}

/* Of the strip that begins with row r of a tile. */
static size_t strip_rows(const struct attention_tile *tile, size_t r)
{
    return min_size(TILE_ROWS, tile->rows - r);
}

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

/* Asked for after a tile: the next one's rows, and with the tiles of a group's last head also the
 * keys and values of the next group, and where the gradients of this one's belong. */
static struct ahead look_ahead(const struct attention_pass *p, const struct group *g, size_t head,
                               const struct attention_tile *tile)
{
    const struct attention_dims *dims = p->dims;
    size_t d = dims->dim, width = dims->heads * d, n = dims->batch * dims->tokens;
    bool last_head = head + 1 == g->head + g->share;
    bool last_tile = tile->first + tile->rows == dims->tokens;
    struct group after = group_at(dims, g->i + 1);
    size_t row = last_tile ? last_head ? after.row : g->row : g->row + tile->first + tile->rows;
    size_t next = last_tile ? last_head ? after.head : head + 1 : head;
    struct ahead a = {.cols = d, .rows = tile->rows};

    if (row < n) {
        ahead_add(&a, p->qkv + row * g->ld + next * d, g->ld);
        if (p->dqkv == NULL)
            ahead_add(&a, p->out + row * width + next * d, width);
    }
    if (row < n && p->dqkv != NULL) {
        ahead_add(&a, p->dqkv + row * g->ld + next * d, g->ld);
        ahead_add(&a, p->dout + row * width + next * d, width);
        ahead_add(&a, p->kept + row * width + next * d, width);
    }
    if (last_head && after.row < n) {
        ahead_add(&a, p->qkv + (after.row + tile->first) * g->ld + after.k, g->ld);
        ahead_add(&a, p->qkv + (after.row + tile->first) * g->ld + after.v, g->ld);
    }
    if (last_head && p->dqkv != NULL) {
        ahead_add(&a, p->dqkv + (g->row + tile->first) * g->ld + g->k, g->ld);
        ahead_add(&a, p->dqkv + (g->row + tile->first) * g->ld + g->v, g->ld);
    }
    return a;
}

/* s = q k for the rows of a tile, each strip as far as its last query's own key, rounded up to
 * whole vectors; what is beyond a query's key gets a score, too, which nothing reads. */
static void score_keys(struct ahead *ahead, real *s, const real *rows_at, const real *keys_turned,
                       const struct attention_tile *tile, const struct attention_dims *dims)
{
    size_t d = dims->dim, wide = padded(dims), ld = score_ld(dims), key = 0;

    for (; key + BLOCK <= tile->first; key += BLOCK) {
        ahead_fetch(ahead);
        tile_multiply(s + key, ld, TILE_NEW, tile_plain(rows_at, wide),
                      (struct tile_panel){keys_turned + key * d, BLOCK}, tile->rows, BLOCK, d);
    }
    for (size_t r = 0; r < tile->rows; r += TILE_ROWS) {
        size_t rows = strip_rows(tile, r), end = tile->first + r + rows;
        ahead_fetch(ahead);
        for (size_t at = key; at < end; at += BLOCK)
            tile_multiply(s + r * ld + at, ld, TILE_NEW, tile_plain(rows_at + r * wide, wide),
                          (struct tile_panel){keys_turned + at * d, BLOCK}, rows,
                          min_size(BLOCK, round_up(end - at, TILE_COLS)), d);
    }
}

/* c = w b for the rows of a tile, each strip over the keys up to its last query's own. */
static void add_keys(struct ahead *ahead, real *c, size_t ldc, const real *w, const real *b,
                     const struct attention_tile *tile, const struct attention_dims *dims)
{
    size_t wide = padded(dims), ld = score_ld(dims);

    for (size_t r = 0; r < tile->rows; r += TILE_ROWS) {
        size_t rows = strip_rows(tile, r);
        ahead_fetch(ahead);
        tile_multiply(c + r * ldc, ldc, TILE_NEW, tile_plain(w + r * ld, ld),
                      (struct tile_panel){b, wide}, rows, wide, tile->first + r + rows);
    }
}

/* c += the transpose of w, times b: for the tile's own keys over the queries from a strip's first
 * one on, and beginning at 0 for the first head of a group. */
static void add_queries(struct ahead *ahead, real *c, bool begins, const real *w, const real *b,
                        const struct attention_tile *tile, const struct attention_dims *dims)
{
    size_t wide = padded(dims), ld = score_ld(dims);

    for (size_t r = 0; r < tile->first; r += ATTENTION_TILE) {
        ahead_fetch(ahead);
        tile_multiply(c + r * wide, wide, TILE_CONTINUED, tile_turned(w + r, ld),
                      (struct tile_panel){b, wide}, ATTENTION_TILE, wide, tile->rows);
    }
    for (size_t r = 0; r < tile->rows; r += TILE_ROWS) {
        ahead_fetch(ahead);
        tile_multiply(c + (tile->first + r) * wide, wide, begins ? TILE_NEW : TILE_CONTINUED,
                      tile_turned(w + r * ld + tile->first + r, ld),
                      (struct tile_panel){b + r * wide, wide}, strip_rows(tile, r), wide,
                      tile->rows - r);
    }
}

static void head_forward(const struct attention_pass *p, const struct desk *desk,
                         const struct group *g, size_t head)
{
    const struct attention_dims *dims = p->dims;
    size_t d = dims->dim, width = dims->heads * d, wide = padded(dims), ld = score_ld(dims);

    for (size_t first = 0; first < dims->tokens; first += ATTENTION_TILE) {
        struct attention_tile tile = tile_at(dims, first);
        size_t at = g->row + first;
        real *out = p->out + at * width + head * d;
        struct ahead ahead = look_ahead(p, g, head, &tile);
        attention_scale(desk->q, wide, p->qkv + at * g->ld + head * d, g->ld, p->scale, tile.rows,
                        d);
        score_keys(&ahead, desk->s, desk->q, desk->keys_turned, &tile, dims);
        attention_soften(desk->s, ld, p->lse + at * dims->heads + head, dims->heads, &tile);
        if (wide == d) {
            add_keys(&ahead, out, width, desk->s, desk->values, &tile, dims);
        } else {
            add_keys(&ahead, desk->out, wide, desk->s, desk->values, &tile, dims);
            copy_rows(out, width, desk->out, wide, tile.rows, d);
        }
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
        pad_rows(desk.values, base + g.v, g.ld, dims->tokens, dims);
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

/* Copies the tile's queries and dout, and computes p and ds. delta_i is dout_i out_i, which equals
 * the sum over j of p_ij dp_ij. */
static void tile_weights(const struct attention_pass *p, const struct desk *desk,
                         const struct group *g, size_t head, const struct attention_tile *tile,
                         struct ahead *ahead)
{
    const struct attention_dims *dims = p->dims;
    size_t d = dims->dim, width = dims->heads * d, wide = padded(dims);
    size_t at = g->row + tile->first, to = at * width + head * d;
    real delta[ATTENTION_TILE];

    attention_scale(desk->q, wide, p->qkv + at * g->ld + head * d, g->ld, p->scale, tile->rows, d);
    pad_rows(desk->dout, p->dout + to, width, tile->rows, dims);
    attention_dots(delta, p->dout + to, p->kept + to, width, tile->rows, d);
    score_keys(ahead, desk->s, desk->q, desk->keys_turned, tile, dims);
    score_keys(ahead, desk->ds, desk->dout, desk->values_turned, tile, dims);
    attention_soften_backward(desk->s, desk->ds, score_ld(dims),
                              p->kept_lse + at * dims->heads + head, dims->heads, delta, tile);
}

static void head_backward(const struct attention_pass *p, const struct desk *desk,
                          const struct group *g, size_t head)
{
    const struct attention_dims *dims = p->dims;
    size_t wide = padded(dims);
    bool begins = head == g->head;

    for (size_t first = 0; first < dims->tokens; first += ATTENTION_TILE) {
        struct attention_tile tile = tile_at(dims, first);
        size_t at = g->row + first;
        struct ahead ahead = look_ahead(p, g, head, &tile);
        tile_weights(p, desk, g, head, &tile, &ahead);
        add_queries(&ahead, desk->d_values, begins, desk->s, desk->dout, &tile, dims);
        add_queries(&ahead, desk->d_keys, begins, desk->ds, desk->q, &tile, dims);
        add_keys(&ahead, desk->out, wide, desk->ds, desk->keys, &tile, dims);
        attention_scale(p->dqkv + at * g->ld + head * dims->dim, g->ld, desk->out, wide, p->scale,
                        tile.rows, dims->dim);
    }
}

static void groups_backward(void *ctx, size_t from, size_t to, int thread)
{
    const struct attention_pass *p = ctx;
    const struct attention_dims *dims = p->dims;
    size_t d = dims->dim, t = dims->tokens, wide = padded(dims);
    struct desk desk = desk_at(p->scratch + (size_t)thread * desk_size(dims), dims);

    memset(desk.q, 0, ATTENTION_TILE * wide * sizeof(real)); /* columns beyond D stay zero */
    for (size_t i = from; i < to; i++) {
        struct group g = group_at(dims, i);
        const real *base = p->qkv + g.row * g.ld;
        real *d_base = p->dqkv + g.row * g.ld;
        turn_rows(desk.keys_turned, base + g.k, g.ld, t, d);
        turn_rows(desk.values_turned, base + g.v, g.ld, t, d);
        pad_rows(desk.keys, base + g.k, g.ld, t, dims);
        for (size_t h = 0; h < g.share; h++)
            head_backward(p, &desk, &g, g.head + h);
        copy_rows(d_base + g.k, g.ld, desk.d_keys, wide, t, d);
        copy_rows(d_base + g.v, g.ld, desk.d_values, wide, t, d);
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
