/*
 * A row ends in the middle of a vector. The vectors up to the end of its strip are computed whole,
 * and what is beyond the query's own key is then left out: a choice between numbers, which
 * compilers turn into a mask, where a loop over the rest would compute each exponential by itself.
 */
#include "worker/nn/attention_rows.h"

#include "worker/nn/product/tile.h"
#include "worker/nn/vec.h"

NN_BODY void attention_scale_body(real *restrict to, size_t to_ld, const real *restrict from,
                                  size_t from_ld, real scale, size_t n, size_t d)
{
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < d; i++)
            to[r * to_ld + i] = from[r * from_ld + i] * scale;
}

NN_KERNEL(attention_scale,
          (real *restrict to, size_t to_ld, const real *restrict from, size_t from_ld, real scale,
           size_t n, size_t d),
          (to, to_ld, from, from_ld, scale, n, d))

NN_BODY void attention_dots_body(real *restrict delta, const real *restrict a,
                                 const real *restrict b, size_t ld, size_t n, size_t d)
{
    for (size_t r = 0; r < n; r++) {
        const real *x = a + r * ld, *y = b + r * ld;
        real acc[NN_LANES] = {0};
        size_t i = 0;
        for (; i + NN_LANES <= d; i += NN_LANES)
            for (size_t j = 0; j < NN_LANES; j++)
                acc[j] += x[i + j] * y[i + j];
        for (size_t j = 0; i + j < d; j++)
            acc[j] += x[i + j] * y[i + j];
        delta[r] = nn_lanes_sum(acc);
    }
}

NN_KERNEL(attention_dots,
          (real *restrict delta, const real *restrict a, const real *restrict b, size_t ld,
           size_t n, size_t d),
          (delta, a, b, ld, n, d))

/* Keys of row i that are whole vectors, all that it has, and where its strip ends. */
struct row_reach {
    size_t whole;
    size_t keys;
    size_t end;
};

NN_BODY struct row_reach reach_of(const struct attention_tile *tile, size_t i)
{
    size_t keys = tile->first + i + 1, strip = (i / TILE_ROWS + 1) * TILE_ROWS;

    return (struct row_reach){.whole = keys / NN_LANES * NN_LANES,
                              .keys = keys,
                              .end = tile->first + (strip < tile->rows ? strip : tile->rows)};
}

/* Scores to e^(s - m); returns their sum. */
NN_BODY real exponentials(real *restrict s, struct row_reach reach, real m)
{
    real acc[NN_LANES] = {0};
    size_t i = 0;

    for (; i < reach.whole; i += NN_LANES)
        for (size_t j = 0; j < NN_LANES; j++) {
            s[i + j] = nn_exp_low(s[i + j] - m);
            acc[j] += s[i + j];
        }
    for (; i < reach.end; i += NN_LANES) {
        int keys = (int)(reach.keys - i);
        for (int j = 0; j < NN_LANES; j++) {
            real e = nn_exp_low(s[i + (size_t)j] - m);
            e = j < keys ? e : 0;
            s[i + (size_t)j] = e;
            acc[j] += e;
        }
    }
    return nn_lanes_sum(acc);
}

NN_BODY void attention_soften_body(real *restrict s, size_t ld, real *restrict lse, size_t lse_step,
                                   const struct attention_tile *tile)
{
    real max[ATTENTION_TILE], sum[ATTENTION_TILE];

    for (size_t i = 0; i < tile->rows; i++)
        max[i] = nn_max(s + i * ld, tile->first + i + 1);
    for (size_t i = 0; i < tile->rows; i++)
        sum[i] = exponentials(s + i * ld, reach_of(tile, i), max[i]);
    for (size_t i = 0; i < tile->rows; i++) {
        real *row = s + i * ld, k = 1 / sum[i];
        size_t end = reach_of(tile, i).end;
        for (size_t at = 0; at < end; at += NN_LANES)
            for (size_t j = 0; j < NN_LANES; j++)
                row[at + j] *= k;
    }
    for (size_t i = 0; i < tile->rows; i++)
        max[i] += nn_log(sum[i]);
    for (size_t i = 0; i < tile->rows; i++)
        lse[i * lse_step] = max[i];
}

NN_KERNEL(attention_soften,
          (real *restrict s, size_t ld, real *restrict lse, size_t lse_step,
           const struct attention_tile *tile),
          (s, ld, lse, lse_step, tile))

NN_BODY void attention_soften_backward_body(real *restrict p, real *restrict ds, size_t ld,
                                            const real *restrict lse, size_t lse_step,
                                            const real *restrict delta,
                                            const struct attention_tile *tile)
{
    for (size_t i = 0; i < tile->rows; i++) {
        real *restrict pi = p + i * ld;
        real *restrict di = ds + i * ld;
        real l = lse[i * lse_step], e = delta[i];
        struct row_reach reach = reach_of(tile, i);
        size_t at = 0;
        for (; at < reach.whole; at++) {
            pi[at] = nn_exp_low(pi[at] - l);
            di[at] = pi[at] * (di[at] - e);
        }
        for (; at < reach.end; at += NN_LANES) {
            int keys = (int)(reach.keys - at);
            for (int j = 0; j < NN_LANES; j++) {
                real w = nn_exp_low(pi[at + (size_t)j] - l), d = w * (di[at + (size_t)j] - e);
                pi[at + (size_t)j] = j < keys ? w : 0;
                di[at + (size_t)j] = j < keys ? d : 0;
            }
        }
    }
}

NN_KERNEL(attention_soften_backward,
          (real *restrict p, real *restrict ds, size_t ld, const real *restrict lse,
           size_t lse_step, const real *restrict delta, const struct attention_tile *tile),
          (p, ds, ld, lse, lse_step, delta, tile))
