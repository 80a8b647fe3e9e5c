/*
 * A plain B is copied row by row; a transposed one is turned in squares of SQUARE elements, or of
 * LARGE, by shuffles where the processor has them. Packing moves numbers and computes nothing, so
 * no choice here shows in a result.
 */
#include "worker/nn/product/pack.h"

#include <stdint.h>
#include <string.h>

#include "worker/nn/kernel.h"
#include "worker/nn/product/tile.h"

#if defined(__x86_64__) && !defined(NN_F64)
#include <immintrin.h>
#define HAS_SHUFFLES
#endif

#define SQUARE  8
#define LARGE   16 /* with AVX-512 */
#define STRETCH 16

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t pack_cols(void)
{
    return nn_cpu() == NN_CPU_AVX512 ? PACK_COLS_MAX : TILE_COLS;
}

static void turn_plain(real *restrict to, size_t ldt, const real *restrict from, size_t ldf,
                       size_t rows, size_t k)
{
    for (size_t i = 0; i < k; i++)
        for (size_t r = 0; r < rows; r++)
            to[i * ldt + r] = from[r * ldf + i];
}

#ifdef HAS_SHUFFLES

/* Eight rows of eight: pairs are interleaved, then pairs of pairs, then halves. */
NN_AVX2 static inline void turn_square(float *restrict to, size_t ldt, const float *restrict from,
                                       size_t ldf)
{
    __m256 a[SQUARE], b[SQUARE];

    for (size_t r = 0; r < SQUARE; r++)
        a[r] = _mm256_loadu_ps(from + r * ldf);
    for (size_t r = 0; r < SQUARE; r += 2) {
        b[r] = _mm256_unpacklo_ps(a[r], a[r + 1]);
        b[r + 1] = _mm256_unpackhi_ps(a[r], a[r + 1]);
    }
    for (size_t r = 0; r < SQUARE; r += 4)
        for (size_t h = 0; h < 2; h++) {
            a[r + 2 * h] = _mm256_shuffle_ps(b[r + h], b[r + h + 2], 0x44);
            a[r + 2 * h + 1] = _mm256_shuffle_ps(b[r + h], b[r + h + 2], 0xEE);
        }
    for (size_t i = 0; i < SQUARE / 2; i++) {
        _mm256_storeu_ps(to + i * ldt, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * ldt, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
}

/* Sixteen rows of sixteen: a vector's quarters are of rows four apart, so the quarters, turned in
 * place, are whole rows of the result. */
NN_AVX512 static inline void turn_large_square(float *restrict to, size_t ldt,
                                               const float *restrict from, size_t ldf)
{
    for (size_t i = 0; i < LARGE; i += 4) {
        __m512 a[4], b[4];
        for (size_t r = 0; r < 4; r++) {
            const float *at = from + r * ldf + i;
            a[r] = _mm512_castps128_ps512(_mm_loadu_ps(at));
            a[r] = _mm512_insertf32x4(a[r], _mm_loadu_ps(at + 4 * ldf), 1);
            a[r] = _mm512_insertf32x4(a[r], _mm_loadu_ps(at + 8 * ldf), 2);
            a[r] = _mm512_insertf32x4(a[r], _mm_loadu_ps(at + 12 * ldf), 3);
        }
        for (size_t r = 0; r < 4; r += 2) {
            b[r] = _mm512_unpacklo_ps(a[r], a[r + 1]);
            b[r + 1] = _mm512_unpackhi_ps(a[r], a[r + 1]);
        }
        for (size_t h = 0; h < 2; h++) {
            float *row = to + (i + 2 * h) * ldt;
            _mm512_storeu_ps(row, _mm512_shuffle_ps(b[h], b[h + 2], 0x44));
            _mm512_storeu_ps(row + ldt, _mm512_shuffle_ps(b[h], b[h + 2], 0xEE));
        }
    }
}

NN_AVX512 static void turn_large_squares(float *restrict to, size_t ldt, const float *restrict from,
                                         size_t ldf, size_t rows, size_t k)
{
    for (size_t i = 0; i < k; i += LARGE)
        for (size_t r = 0; r < rows; r += LARGE)
            turn_large_square(to + i * ldt + r, ldt, from + r * ldf + i, ldf);
}

NN_AVX2 static void turn_squares(float *restrict to, size_t ldt, const float *restrict from,
                                 size_t ldf, size_t rows, size_t k)
{
    for (size_t i = 0; i < k; i += SQUARE)
        for (size_t r = 0; r < rows; r += SQUARE)
            turn_square(to + i * ldt + r, ldt, from + r * ldf + i, ldf);
}

#endif

void pack_turned(real *restrict to, size_t ldt, const real *restrict from, size_t ldf, size_t rows,
                 size_t k)
{
    size_t r = 0, i = 0;

#ifdef HAS_SHUFFLES
    if (nn_cpu() != NN_CPU_BASELINE) {
        size_t large = nn_cpu() == NN_CPU_AVX512 ? LARGE : SIZE_MAX;
        size_t r0 = rows / large * large, i0 = k / large * large;
        r = rows / SQUARE * SQUARE;
        i = k / SQUARE * SQUARE;
        if (r0 > 0)
            turn_large_squares(to, ldt, from, ldf, r0, i0);
        turn_squares(to + r0, ldt, from + r0 * ldf, ldf, r - r0, i0);
        turn_squares(to + i0 * ldt, ldt, from + i0, ldf, r, i - i0);
    }
#endif
    turn_plain(to + r, ldt, from + r * ldf, ldf, rows - r, i);
    turn_plain(to + i * ldt, ldt, from + i, ldf, rows, k - i);
}

/* Whole panels of `wide` columns, a constant where this is inlined: in stretches of STRETCH rows,
 * so that a row of B is read while it is near. */
static inline __attribute__((always_inline)) void
copy_panels(real *restrict to, struct operand b, size_t k, size_t cols, const size_t wide)
{
    for (size_t i = 0; i < k; i += STRETCH)
        for (size_t first = 0; first < cols; first += wide)
            for (size_t j = i; j < min_size(i + STRETCH, k); j++)
                memcpy(to + first * k + j * wide, b.at + j * b.ld + first, wide * sizeof(real));
}

static void whole_panels(real *restrict to, struct operand b, size_t k, size_t cols)
{
    size_t wide = pack_cols();

    if (b.transposed)
        for (size_t first = 0; first < cols; first += wide)
            pack_turned(to + first * k, wide, b.at + first * b.ld, b.ld, wide, k);
    else if (wide == PACK_COLS_MAX)
        copy_panels(to, b, k, cols, PACK_COLS_MAX);
    else
        copy_panels(to, b, k, cols, TILE_COLS);
}

void pack_panels(real *restrict to, struct operand b, size_t k, size_t cols)
{
    size_t whole = cols / pack_cols() * pack_cols(), rest = cols - whole;
    size_t ld = (rest + TILE_COLS - 1) / TILE_COLS * TILE_COLS;
    struct operand last = operand_from(b, 0, whole);

    whole_panels(to, b, k, whole);
    to += whole * k;
    if (b.transposed)
        pack_turned(to, ld, last.at, b.ld, rest, k);
    for (size_t i = 0; rest > 0 && i < k; i++) {
        if (!b.transposed)
            memcpy(to + i * ld, last.at + i * b.ld, rest * sizeof(real));
        memset(to + i * ld + rest, 0, (ld - rest) * sizeof(real));
    }
}

/* Whole strips in stretches of STRETCH columns, so that a row of `at` is read while it is near. */
static void whole_strips(real *restrict to, size_t length, const real *at, size_t ld, size_t rows,
                         size_t k)
{
    for (size_t i = 0; i < k; i += STRETCH)
        for (size_t first = 0; first < rows; first += TILE_ROWS) {
            real *strip = to + first * length + i * TILE_ROWS;
            for (size_t j = 0; j < min_size(STRETCH, k - i); j++)
                memcpy(strip + j * TILE_ROWS, at + (i + j) * ld + first, TILE_ROWS * sizeof(real));
        }
}

void pack_strips(real *restrict to, size_t length, const real *at, size_t ld, size_t rows, size_t k)
{
    size_t whole = rows / TILE_ROWS * TILE_ROWS;

    whole_strips(to, length, at, ld, whole, k);
    to += whole * length;
    for (size_t i = 0; whole < rows && i < k; i++)
        for (size_t r = 0; r < TILE_ROWS; r++)
            to[i * TILE_ROWS + r] = whole + r < rows ? at[i * ld + whole + r] : 0;
}
