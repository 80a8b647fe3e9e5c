/*
 * The two limits of a machine: what the multiplying kernel reaches with operands in the nearest
 * cache, and what memory delivers to y += a x over vectors that no cache holds (two reads and a
 * write). All threads work at the same time, each on operands of its own.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "worker/model/weights.h"
#include "worker/nn/product/bfloat16.h"
#include "worker/nn/product/pack.h"
#include "worker/nn/product/tile.h"
#include "worker/nn/threads.h"
#include "worker/nn/vec.h"
#include "worker/train/bench.h"

#define DEPTH     128 /* of the kernel's product: with all its columns in 32 KiB */
#define ROWS      ((size_t)2 * TILE_ROWS)
#define REPEATS   2000
#define PIECE     65536 /* elements of a call of the triad */
#define VECTORS   2
#define BYTES_MIN ((size_t)64 << 20) /* of both vectors */
#define BYTES_MAX ((size_t)512 << 20)

struct bench_machine {
    enum product_precision precision;
    clockid_t clock;
    real *x, *y;
    size_t n;
    size_t rounds;
    double peak[BENCH_ROUNDS_MAX], bandwidth[BENCH_ROUNDS_MAX];
};

/* Twice the last cache, where the system knows it. */
static size_t vector_length(void)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t bytes = cache > 0 ? 2 * (size_t)cache : BYTES_MIN;

    bytes = bytes < BYTES_MIN ? BYTES_MIN : bytes > BYTES_MAX ? BYTES_MAX : bytes;
    return bytes / VECTORS / sizeof(real) / PIECE * PIECE;
}

int bench_machine_create(enum product_precision precision, clockid_t clock,
                         struct bench_machine **out, struct err *err)
{
    struct bench_machine *m = xcalloc(1, sizeof(*m));

    *out = NULL;
    m->precision = precision;
    m->clock = clock;
    m->n = vector_length();
    m->x = real_alloc(m->n);
    m->y = real_alloc(m->n);
    if (m->x == NULL || m->y == NULL) {
        bench_machine_free(m);
        return err_set(err, ERR_OTHER, "no memory to measure the memory's speed");
    }
    for (size_t i = 0; i < m->n; i++)
        m->x[i] = m->y[i] = 1;
    *out = m;
    return 0;
}

void bench_machine_free(struct bench_machine *m)
{
    if (m == NULL)
        return;
    free(m->x);
    free(m->y);
    free(m);
}

static bool in_pairs(const struct bench_machine *m)
{
    return m->precision == PRODUCT_BFLOAT16 && bfloat16_is_native();
}

static void multiply_part(void *ctx, size_t from, size_t to, int thread)
{
    const struct bench_machine *m = ctx;
    static _Thread_local _Alignas(64) real a[ROWS * DEPTH], b[DEPTH * PACK_COLS_MAX],
        c[ROWS * PACK_COLS_MAX];
    size_t cols = pack_cols();
    struct tile_view rows = tile_strips(a, DEPTH);
    struct tile_panel panel = {b, cols};

    (void)thread;
    for (size_t i = 0; i < (to - from) * REPEATS; i++)
#ifdef TILE_HAS_PAIRS
        if (in_pairs(m))
            tile_multiply_pairs(c, cols, TILE_NEW, rows, panel, ROWS, cols, DEPTH);
        else
#endif
            tile_multiply(c, cols, TILE_NEW, rows, panel, ROWS, cols, DEPTH);
    (void)m;
}

static void triad_part(void *ctx, size_t from, size_t to, int thread)
{
    const struct bench_machine *m = ctx;

    (void)thread;
    for (size_t i = from; i < to; i++)
        vec_axpy(m->y + i * PIECE, (real)0.5, m->x + i * PIECE, PIECE);
}

void bench_machine_round(struct bench_machine *m)
{
    double threads = nn_threads(), units = in_pairs(m) ? 2.0 : 1.0;

    if (m->rounds == BENCH_ROUNDS_MAX)
        return;
    int64_t begin = pass_clock_now_ns(m->clock);
    nn_parallel((size_t)nn_threads(), multiply_part, m);
    int64_t middle = pass_clock_now_ns(m->clock);
    nn_parallel(m->n / PIECE, triad_part, m);
    int64_t end = pass_clock_now_ns(m->clock);
    m->peak[m->rounds] = threads * units * REPEATS * 2.0 * (double)(ROWS * pack_cols() * DEPTH) /
                         ((double)(middle - begin) * 1e-9);
    m->bandwidth[m->rounds] = 3.0 * (double)(m->n * sizeof(real)) / ((double)(end - middle) * 1e-9);
    m->rounds++;
}

double bench_machine_peak(struct bench_machine *m)
{
    return bench_spread_of(m->peak, m->rounds).median;
}

double bench_machine_bandwidth(struct bench_machine *m)
{
    return bench_spread_of(m->bandwidth, m->rounds).median;
}
