/*
 * Query heads of one group read the same keys, so the rows of a batch are (query, head of the
 * group) pairs in the order of their positions: row r sees no fewer keys than row r - 1.
 *
 * Scores are computed in blocks of keys, skipping rows that end before the block; the surplus
 * within a block is never read. Weights times values go through weigh(), which splits the rows by
 * where their keys end. The result of a row is the same whatever batch the row is in: every product
 * is tile_multiply(), and its chains over keys all start at position 0.
 */
#include "worker/nn/rowwise/attend.h"

#include <math.h>
#include <string.h>

#include "worker/nn/product/tile.h"
#include "worker/nn/vec.h"

#define BATCH 48        /* rows, of one query head each, that walk over the keys together */
#define STEP  6         /* rows that share the end of their walk */
#define APART TILE_COLS /* keeps rows of scores off one another's places in the nearest cache */
#define DEPTH 256       /* values that are met in one stretch */

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Blocks of ATTEND_BLOCK keys that cover the positions. */
static size_t blocks_of(size_t positions)
{
    return (positions + ATTEND_BLOCK - 1) / ATTEND_BLOCK;
}

static size_t value_width(const struct attend_dims *dims)
{
    return (dims->dim + TILE_COLS - 1) / TILE_COLS * TILE_COLS;
}

static size_t keys_of_group(const struct attend_dims *dims, size_t context)
{
    return blocks_of(context) * ATTEND_BLOCK * dims->dim;
}

static size_t values_of_group(const struct attend_dims *dims, size_t context)
{
    return blocks_of(context) * ATTEND_BLOCK * value_width(dims);
}

size_t attend_cache(const struct attend_dims *dims)
{
    return dims->groups *
           (keys_of_group(dims, dims->context) + values_of_group(dims, dims->context));
}

size_t attend_scratch(const struct attend_dims *dims)
{
    size_t scores = blocks_of(dims->context) * ATTEND_BLOCK + APART;

    return BATCH * (dims->dim + value_width(dims) + scores);
}

void attend_store(real *restrict cache, const real *restrict qkv, size_t n, size_t first,
                  const struct attend_dims *dims)
{
    size_t d = dims->dim, ld = (dims->heads + 2 * dims->groups) * d;
    real *values = cache + dims->groups * keys_of_group(dims, dims->context);

    for (size_t g = 0; g < dims->groups; g++) {
        real *k = cache + g * keys_of_group(dims, dims->context);
        real *v = values + g * values_of_group(dims, dims->context);
        for (size_t r = 0; r < n; r++) {
            const real *row = qkv + r * ld + (dims->heads + g) * d;
            size_t at = first + r;
            real *turned = k + at / ATTEND_BLOCK * ATTEND_BLOCK * d + at % ATTEND_BLOCK;
            for (size_t i = 0; i < d; i++)
                turned[i * ATTEND_BLOCK] = row[i];
            memcpy(v + at * value_width(dims), row + dims->groups * d, d * sizeof(real));
        }
    }
}

void attend_copy(real *restrict to, size_t to_context, const real *restrict from, size_t n,
                 const struct attend_dims *dims)
{
    size_t k_to = keys_of_group(dims, to_context), v_to = values_of_group(dims, to_context);
    size_t k_from = keys_of_group(dims, dims->context);
    size_t v_from = values_of_group(dims, dims->context);

    for (size_t g = 0; g < dims->groups; g++) {
        memcpy(to + g * k_to, from + g * k_from, keys_of_group(dims, n) * sizeof(real));
        memcpy(to + dims->groups * k_to + g * v_to, from + dims->groups * k_from + g * v_from,
               n * value_width(dims) * sizeof(real));
    }
}

/* Up to BATCH rows of one group: row r is query (at + r) / share, its head's place in the group
 * (at + r) % share. */
struct batch {
    const struct attend_dims *dims;
    const real *keys;   /* of the group */
    const real *values; /* of the group */
    size_t group;
    size_t share; /* query heads of a group */
    size_t at;
    size_t rows;
    size_t first; /* position of query 0 */
    real *q;      /* (rows, D) scaled */
    real *s;      /* (rows, ld) scores, then weights */
    real *o;      /* (rows, value width) */
    size_t ld;
};

/* Keys of row r. */
static size_t reach(const struct batch *b, size_t r)
{
    return b->first + (b->at + r) / b->share + 1;
}

/* Copies the batch's queries, scaled by 1 / sqrt(D). */
static void take_queries(const struct batch *b, const real *restrict qkv)
{
    const struct attend_dims *dims = b->dims;
    size_t d = dims->dim, ld = (dims->heads + 2 * dims->groups) * d;
    real scale = (real)(1.0 / sqrt((double)d));

    for (size_t r = 0; r < b->rows; r++) {
        size_t i = b->at + r;
        const real *q = qkv + i / b->share * ld + (b->group * b->share + i % b->share) * d;
        for (size_t j = 0; j < d; j++)
            b->q[r * d + j] = q[j] * scale;
    }
}

/* s = q k for all keys that the batch reaches. Keys beyond a row's own position get a score, too,
 * which soften() and weigh() leave out. */
static void score(const struct batch *b)
{
    size_t d = b->dims->dim, end = reach(b, b->rows - 1), row = 0;

    for (size_t key = 0; key < end; key += ATTEND_BLOCK) {
        while (reach(b, row) <= key)
            row++;
        tile_multiply(b->s + row * b->ld + key, b->ld, TILE_NEW, tile_plain(b->q + row * d, d),
                      (struct tile_panel){b->keys + key * d, ATTEND_BLOCK}, b->rows - row,
                      ATTEND_BLOCK, d);
    }
}

NN_BODY real soften_body(real *restrict s, size_t n)
{
    real acc[NN_LANES] = {0};
    real m = nn_max(s, n);
    size_t i = 0;

    for (; i + NN_LANES <= n; i += NN_LANES)
        for (size_t j = 0; j < NN_LANES; j++) {
            s[i + j] = nn_exp(s[i + j] - m);
            acc[j] += s[i + j];
        }
    for (size_t j = 0; i + j < n; j++) {
        s[i + j] = nn_exp(s[i + j] - m);
        acc[j] += s[i + j];
    }
    return nn_lanes_sum(acc);
}

/* Scores of one row to weights; gives their sum. */
static real soften(real *restrict s, size_t n);
NN_KERNEL_RETURN(real, soften, (real *restrict s, size_t n), (s, n))

/* The values of keys from .. to - 1 into rows row .. row + rows - 1. */
static void add_values(const struct batch *b, size_t row, size_t rows, size_t from, size_t to)
{
    size_t width = value_width(b->dims);

    for (size_t key = from; key < to; key += DEPTH)
        tile_multiply(b->o + row * width, width, key > 0 ? TILE_CONTINUED : TILE_NEW,
                      tile_plain(b->s + row * b->ld + key, b->ld),
                      (struct tile_panel){b->values + key * width, width}, rows, width,
                      min_size(DEPTH, to - key));
}

/* All rows together as far as the first one reaches, then a few, then each to its own end: no row
 * meets a key beyond its position, not even with weight 0. */
static void weigh(const struct batch *b)
{
    size_t together = reach(b, 0);

    add_values(b, 0, b->rows, 0, together);
    for (size_t row = 0; row < b->rows; row += STEP) {
        size_t rows = min_size(STEP, b->rows - row), few = reach(b, row);
        add_values(b, row, rows, together, few);
        for (size_t r = row; r < row + rows; r++)
            add_values(b, r, 1, few, reach(b, r));
    }
}

/* Divides by the sums of weights and writes the rows to their heads' columns of out. */
static void give(const struct batch *b, real *restrict out, const real *sums)
{
    size_t d = b->dims->dim, width = value_width(b->dims);

    for (size_t r = 0; r < b->rows; r++) {
        size_t i = b->at + r;
        real *to = out + (i / b->share * b->dims->heads + b->group * b->share + i % b->share) * d;
        real k = 1 / sums[r];
        for (size_t j = 0; j < d; j++)
            to[j] = b->o[r * width + j] * k;
    }
}

void attend_forward(real *restrict out, const real *restrict qkv, size_t n, size_t first,
                    const real *restrict cache, real *restrict scratch,
                    const struct attend_dims *dims)
{
    size_t group_keys = keys_of_group(dims, dims->context);
    struct batch b = {.dims = dims, .share = dims->heads / dims->groups, .first = first};
    real sums[BATCH];

    b.q = scratch;
    b.o = b.q + BATCH * dims->dim;
    b.s = b.o + BATCH * value_width(dims);
    b.ld = blocks_of(first + n) * ATTEND_BLOCK + APART;
    for (b.group = 0; b.group < dims->groups; b.group++) {
        b.keys = cache + b.group * group_keys;
        b.values =
            cache + dims->groups * group_keys + b.group * values_of_group(dims, dims->context);
        for (b.at = 0; b.at < n * b.share; b.at += BATCH) {
            b.rows = min_size(BATCH, n * b.share - b.at);
            take_queries(&b, qkv);
            score(&b);
            for (size_t r = 0; r < b.rows; r++)
                sums[r] = soften(b.s + r * b.ld, reach(&b, r));
            weigh(&b);
            give(&b, out, sums);
        }
    }
}
