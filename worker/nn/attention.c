/*
 * One head of one sequence at a time, a tile of queries against all keys up to the tile's end: two
 * matrix products around a softmax over rows. The products read the packed rows in place, with the
 * leading dimension of qkv, so nothing is copied.
 *
 * The backward pass walks the tiles from the last to the first. The last tile covers every key, so
 * it can write dk and dv (beta 0) and the others add; the other query heads of a group add to what
 * its first head wrote.
 */
#include "worker/nn/attention.h"

#include "worker/nn/gemm.h"
#include "worker/nn/vec.h"

size_t attention_scratch(const struct attention_dims *dims)
{
    return 2 * ATTENTION_TILE * (dims->tokens + NN_LANES);
}

/* Where one head of one sequence is in the packed rows. */
struct head {
    size_t row;   /* the sequence's first row */
    size_t index; /* the query head */
    size_t q;     /* columns of qkv */
    size_t k;
    size_t v;
    size_t ld; /* of qkv */
};

static struct head head_at(const struct attention_dims *dims, size_t b, size_t h)
{
    size_t d = dims->dim;
    size_t group = h / (dims->heads / dims->groups);

    return (struct head){
        .row = b * dims->tokens,
        .index = h,
        .q = h * d,
        .k = (dims->heads + group) * d,
        .v = (dims->heads + dims->groups + group) * d,
        .ld = (dims->heads + 2 * dims->groups) * d,
    };
}

/* Row i of s (rows end apart) holds scores of query first + i: softmax over keys 0 .. first + i,
 * zeros beyond. */
NN_BODY real softmax_row(real *restrict s, size_t n_keys, size_t end)
{
    real acc[NN_LANES] = {0};
    real m = nn_max(s, n_keys);
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
    return m + (real)elementary_log((double)sum);
}

NN_BODY void softmax_tile_body(real *restrict s, real *restrict lse, size_t lse_step, size_t first,
                               size_t rows, size_t end)
{
    for (size_t i = 0; i < rows; i++)
        lse[i * lse_step] = softmax_row(s + i * end, first + i + 1, end);
}

static void softmax_tile(real *restrict s, real *restrict lse, size_t lse_step, size_t first,
                         size_t rows, size_t end);
NN_KERNEL(softmax_tile,
          (real *restrict s, real *restrict lse, size_t lse_step, size_t first, size_t rows,
           size_t end),
          (s, lse, lse_step, first, rows, end))

void attention_forward(real *restrict out, real *restrict lse, const real *restrict qkv,
                       real *restrict scratch, const struct attention_dims *dims)
{
    size_t d = dims->dim, t = dims->tokens, width = dims->heads * d;
    real scale = (real)(1.0 / sqrt((double)d));

    for (size_t bh = 0; bh < dims->batch * dims->heads; bh++) {
        struct head hd = head_at(dims, bh / dims->heads, bh % dims->heads);
        const real *base = qkv + hd.row * hd.ld;
        for (size_t first = 0; first < t; first += ATTENTION_TILE) {
            size_t rows = t - first < ATTENTION_TILE ? t - first : ATTENTION_TILE;
            size_t end = first + rows;
            const real *q = base + first * hd.ld + hd.q;
            size_t at = hd.row + first;
            gemm(scratch, end, 0, scale, gemm_plain(q, hd.ld), gemm_turned(base + hd.k, hd.ld),
                 rows, end, d);
            softmax_tile(scratch, lse + at * dims->heads + hd.index, dims->heads, first, rows, end);
            gemm(out + at * width + hd.index * d, width, 0, 1, gemm_plain(scratch, end),
                 gemm_plain(base + hd.v, hd.ld), rows, d, end);
        }
    }
}

/* p from scores and lse; ds from p, dp and delta. Both (rows, end), masked part zero. */
NN_BODY void softmax_tile_backward_body(real *restrict p, real *restrict ds,
                                        const real *restrict lse, size_t lse_step,
                                        const real *restrict delta, size_t first, size_t rows,
                                        size_t end)
{
    for (size_t i = 0; i < rows; i++) {
        real *restrict pi = p + i * end;
        real *restrict di = ds + i * end;
        real l = lse[i * lse_step], e = delta[i];
        size_t n_keys = first + i + 1;
        for (size_t j = 0; j < n_keys; j++) {
            pi[j] = nn_exp(pi[j] - l);
            di[j] = pi[j] * (di[j] - e);
        }
        for (size_t j = n_keys; j < end; j++) {
            pi[j] = 0;
            di[j] = 0;
        }
    }
}

static void softmax_tile_backward(real *restrict p, real *restrict ds, const real *restrict lse,
                                  size_t lse_step, const real *restrict delta, size_t first,
                                  size_t rows, size_t end);
NN_KERNEL(softmax_tile_backward,
          (real *restrict p, real *restrict ds, const real *restrict lse, size_t lse_step,
           const real *restrict delta, size_t first, size_t rows, size_t end),
          (p, ds, lse, lse_step, delta, first, rows, end))

/* The pointers of one head that the backward tile needs. */
struct head_gradient {
    struct head head;
    const real *qkv; /* the sequence's rows */
    real *dqkv;
    const real *out; /* rows `width` apart, at this head's columns */
    const real *dout;
    const real *lse; /* rows `heads` apart */
    size_t width;
    size_t heads;
    size_t dim;
    bool writes_group; /* the first query head of its group writes dk and dv, the others add */
};

/* Gradients of one tile of queries. `last`: this is the first tile that is computed. delta_i is
 * dout_i out_i, which equals the sum over j of p_ij dp_ij. */
static void tile_backward(const struct head_gradient *g, real *restrict scratch, size_t first,
                          size_t rows, bool last)
{
    const struct head *hd = &g->head;
    size_t end = first + rows, d = g->dim;
    real scale = (real)(1.0 / sqrt((double)d));
    real *p = scratch, *ds = scratch + rows * end;
    real delta[ATTENTION_TILE];
    const real *q = g->qkv + first * hd->ld + hd->q;
    const real *dout = g->dout + first * g->width;
    /* Tiles go from the last to the first, and the last one covers every key. */
    real beta = last && g->writes_group ? 0 : 1;

    for (size_t i = 0; i < rows; i++)
        delta[i] = vec_dot(dout + i * g->width, g->out + (first + i) * g->width, d);
    gemm(p, end, 0, scale, gemm_plain(q, hd->ld), gemm_turned(g->qkv + hd->k, hd->ld), rows, end,
         d);
    gemm(ds, end, 0, 1, gemm_plain(dout, g->width), gemm_turned(g->qkv + hd->v, hd->ld), rows, end,
         d);
    softmax_tile_backward(p, ds, g->lse + first * g->heads, g->heads, delta, first, rows, end);
    gemm(g->dqkv + hd->v, hd->ld, beta, 1, gemm_turned(p, end), gemm_plain(dout, g->width), end, d,
         rows);
    gemm(g->dqkv + hd->k, hd->ld, beta, scale, gemm_turned(ds, end), gemm_plain(q, hd->ld), end, d,
         rows);
    gemm(g->dqkv + first * hd->ld + hd->q, hd->ld, 0, scale, gemm_plain(ds, end),
         gemm_plain(g->qkv + hd->k, hd->ld), rows, d, end);
}

void attention_backward(real *restrict dqkv, const real *restrict dout, const real *restrict out,
                        const real *restrict lse, const real *restrict qkv, real *restrict scratch,
                        const struct attention_dims *dims)
{
    size_t d = dims->dim, t = dims->tokens, width = dims->heads * d;
    size_t n_tiles = (t + ATTENTION_TILE - 1) / ATTENTION_TILE;

    for (size_t bh = 0; bh < dims->batch * dims->heads; bh++) {
        struct head hd = head_at(dims, bh / dims->heads, bh % dims->heads);
        struct head_gradient g = {
            .head = hd,
            .qkv = qkv + hd.row * hd.ld,
            .dqkv = dqkv + hd.row * hd.ld,
            .out = out + hd.row * width + hd.index * d,
            .dout = dout + hd.row * width + hd.index * d,
            .lse = lse + hd.row * dims->heads + hd.index,
            .width = width,
            .heads = dims->heads,
            .dim = d,
            .writes_group = hd.index % (dims->heads / dims->groups) == 0,
        };
        for (size_t tile = n_tiles; tile-- > 0;) {
            size_t first = tile * ATTENTION_TILE;
            size_t rows = t - first < ATTENTION_TILE ? t - first : ATTENTION_TILE;
            tile_backward(&g, scratch, first, rows, tile == n_tiles - 1);
        }
    }
}
