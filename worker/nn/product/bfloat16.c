/*
 * Rounding adds half a unit of the last place that stays, less one where the digit before is even,
 * and cuts. NaN stays NaN. In the double build nothing is rounded: it checks the order alone.
 *
 * Before the instruction is relied on it is tried on numbers that tell the orders apart, and timed:
 * on Emerald Rapids it takes as long as four fma, of which two would do.
 */
#include "worker/nn/product/bfloat16.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "worker/nn/kernel.h"
#include "worker/nn/pass_clock.h"
#include "worker/nn/product/tile.h"
#include "worker/nn/threads.h"

#ifdef TILE_HAS_PAIRS
#include <immintrin.h>
#endif

#define AHEAD      4 /* rows */
#define TRIALS     64
#define TRIAL_COLS (4 * TILE_COLS)

size_t bfloat16_units(size_t k)
{
    size_t pairs = (k + 1) / 2;

    return bfloat16_is_native() ? pairs : 2 * pairs;
}

#ifdef NN_F64

bool bfloat16_is_native(void)
{
    return false;
}

NN_BODY real rounded(real x)
{
    return x;
}

NN_BODY real paired(real first, real second)
{
    (void)second;
    return first;
}

#else

/* The upper half of the bits of x, rounded. */
NN_BODY uint32_t half_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    uint32_t up = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
    uint32_t quiet = bits >> 16 | 0x40u;
    return (bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : up;
}

NN_BODY float of_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

NN_BODY float rounded(float x)
{
    return of_bits(half_bits(x) << 16);
}

NN_BODY float paired(float first, float second)
{
    return of_bits(half_bits(second) << 16 | half_bits(first));
}

#ifdef TILE_HAS_PAIRS

/* One pair at a time through the tile, against the chain: of numbers near 1, of products and sums
 * about 2^-126, and of subnormal operands. */
static bool pairs_are_chains(void)
{
    /* The upper seven bits of the exponents of a, b and c */
    static const uint8_t EXPONENTS[][3] = {{63, 63, 63}, {64, 63, 64}, {32, 31, 0}, {0, 63, 0}};
    uint32_t draw = 1;

    for (int i = 0; i < TRIALS; i++) {
        float x[5], c[TILE_COLS], b[TILE_COLS] = {0};
        for (int j = 0; j < 5; j++) {
            draw = draw * 1664525u + 1013904223u;
            x[j] = of_bits((draw & 0x80FFFFFFu) | (uint32_t)EXPONENTS[i % 4][j / 2] << 24);
            x[j] = j < 4 ? rounded(x[j]) : x[j];
        }
        for (int j = 0; j < TILE_COLS; j++) {
            b[j] = paired(x[2], x[3]);
            c[j] = x[4];
        }
        float want = NN_FMA(x[0], x[2], NN_FMA(x[1], x[3], c[0]));
        x[0] = paired(x[0], x[1]);
        tile_multiply_pairs(c, TILE_COLS, TILE_CONTINUED, tile_plain(x, 1),
                            (struct tile_panel){b, TILE_COLS}, 1, TILE_COLS, 1);
        for (int j = 0; j < TILE_COLS; j++)
            if (!(c[j] == want))
                return false;
    }
    return true;
}

/* In the mode of threads that compute (worker/nn/threads.h). */
static bool keeps_the_contract(void)
{
    unsigned mode = _mm_getcsr();

    nn_flush_denormals();
    bool keeps = pairs_are_chains();
    _mm_setcsr(mode);
    return keeps;
}

/* Units of k against a whole tile of C, in the nearest cache: the least time of TRIALS. */
static bool is_fast(void)
{
    static const float b[TRIALS * TRIAL_COLS], a[TRIALS * TILE_ROWS];
    float c[TILE_ROWS * TRIAL_COLS];
    struct tile_view rows = tile_strips(a, TRIALS);
    struct tile_panel panel = {b, TRIAL_COLS};
    int64_t pairs = INT64_MAX, numbers = INT64_MAX;

    for (int i = 0; i < TRIALS; i++) {
        int64_t begin = pass_clock_now_ns(CLOCK_MONOTONIC);
        tile_multiply_pairs(c, TRIAL_COLS, TILE_NEW, rows, panel, TILE_ROWS, TRIAL_COLS, TRIALS);
        int64_t middle = pass_clock_now_ns(CLOCK_MONOTONIC);
        tile_multiply(c, TRIAL_COLS, TILE_NEW, rows, panel, TILE_ROWS, TRIAL_COLS, TRIALS);
        int64_t end = pass_clock_now_ns(CLOCK_MONOTONIC);
        pairs = middle - begin < pairs ? middle - begin : pairs;
        numbers = end - middle < numbers ? end - middle : numbers;
    }
    return pairs < 2 * numbers;
}

static bool is_native;

static void choose(void)
{
    is_native = nn_cpu_has_bfloat16() && keeps_the_contract() &&
                (nn_cpu_bfloat16_wish() == NN_WISH_YES || is_fast());
}

/* Once, because two timings could differ. */
bool bfloat16_is_native(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    return pthread_once(&once, choose) == 0 && is_native;
}

#else

bool bfloat16_is_native(void)
{
    return false;
}

#endif

#endif

/* Rows are often pages apart, and then only a request brings the next ones in time. */
NN_BODY void request(const real *row, size_t n)
{
    for (size_t i = 0; i < n; i += 64 / sizeof(real))
        __builtin_prefetch(row + i);
}

NN_BODY void rows_as_numbers_body(real *restrict to, size_t ldt, const real *restrict from,
                                  size_t ldf, size_t rows, size_t k)
{
    for (size_t r = 0; r < rows; r++) {
        const real *x = from + r * ldf;
        real *restrict y = to + r * ldt;
        request(x + AHEAD * ldf, k);
        for (size_t i = 0; i + 1 < k; i += 2) {
            y[i] = rounded(x[i + 1]);
            y[i + 1] = rounded(x[i]);
        }
        if (k % 2 == 1) {
            y[k - 1] = 0;
            y[k] = rounded(x[k - 1]);
        }
    }
}

static void rows_as_numbers(real *restrict to, size_t ldt, const real *restrict from, size_t ldf,
                            size_t rows, size_t k);
NN_KERNEL(rows_as_numbers,
          (real *restrict to, size_t ldt, const real *restrict from, size_t ldf, size_t rows,
           size_t k),
          (to, ldt, from, ldf, rows, k))

NN_BODY void rows_as_pairs_body(real *restrict to, size_t ldt, const real *restrict from,
                                size_t ldf, size_t rows, size_t k)
{
    for (size_t r = 0; r < rows; r++) {
        const real *x = from + r * ldf;
        real *restrict y = to + r * ldt;
        request(x + AHEAD * ldf, k);
        for (size_t i = 0; i < k / 2; i++)
            y[i] = paired(x[2 * i], x[2 * i + 1]);
        if (k % 2 == 1)
            y[k / 2] = paired(x[k - 1], 0);
    }
}

static void rows_as_pairs(real *restrict to, size_t ldt, const real *restrict from, size_t ldf,
                          size_t rows, size_t k);
NN_KERNEL(rows_as_pairs,
          (real *restrict to, size_t ldt, const real *restrict from, size_t ldf, size_t rows,
           size_t k),
          (to, ldt, from, ldf, rows, k))

void bfloat16_rows(real *restrict to, size_t ldt, const real *restrict from, size_t ldf,
                   size_t rows, size_t k)
{
    if (bfloat16_is_native())
        rows_as_pairs(to, ldt, from, ldf, rows, k);
    else
        rows_as_numbers(to, ldt, from, ldf, rows, k);
}

NN_BODY void columns_as_numbers_body(real *restrict to, size_t ldt, const real *restrict from,
                                     size_t ldf, size_t k, size_t cols)
{
    for (size_t i = 0; i < k; i++) {
        request(from + (i + AHEAD) * ldf, cols);
        for (size_t j = 0; j < cols; j++)
            to[(i ^ 1) * ldt + j] = rounded(from[i * ldf + j]);
    }
    for (size_t j = 0; k % 2 == 1 && j < cols; j++)
        to[(k - 1) * ldt + j] = 0;
}

static void columns_as_numbers(real *restrict to, size_t ldt, const real *restrict from, size_t ldf,
                               size_t k, size_t cols);
NN_KERNEL(columns_as_numbers,
          (real *restrict to, size_t ldt, const real *restrict from, size_t ldf, size_t k,
           size_t cols),
          (to, ldt, from, ldf, k, cols))

NN_BODY void columns_as_pairs_body(real *restrict to, size_t ldt, const real *restrict from,
                                   size_t ldf, size_t k, size_t cols)
{
    for (size_t i = 0; i + 1 < k; i += 2) {
        request(from + (i + AHEAD) * ldf, cols);
        request(from + (i + 1 + AHEAD) * ldf, cols);
        for (size_t j = 0; j < cols; j++)
            to[i / 2 * ldt + j] = paired(from[i * ldf + j], from[(i + 1) * ldf + j]);
    }
    for (size_t j = 0; k % 2 == 1 && j < cols; j++)
        to[k / 2 * ldt + j] = paired(from[(k - 1) * ldf + j], 0);
}

static void columns_as_pairs(real *restrict to, size_t ldt, const real *restrict from, size_t ldf,
                             size_t k, size_t cols);
NN_KERNEL(columns_as_pairs,
          (real *restrict to, size_t ldt, const real *restrict from, size_t ldf, size_t k,
           size_t cols),
          (to, ldt, from, ldf, k, cols))

void bfloat16_columns(real *restrict to, size_t ldt, const real *restrict from, size_t ldf,
                      size_t k, size_t cols)
{
    if (bfloat16_is_native())
        columns_as_pairs(to, ldt, from, ldf, k, cols);
    else
        columns_as_numbers(to, ldt, from, ldf, k, cols);
}
