/*
 * stream_body.h is compiled once per instruction set that has a kernel of its own here, for panels
 * as wide as packed.c makes them there; every other product is tile_multiply(). An element is the
 * same chain of fused multiply-adds in both (worker/nn/product/tile.h).
 *
 * With AVX-512 a few rows more than a strip's, as of eight answers at once, meet a stretch half by
 * half of its columns: as fast to multiply, and each half is read once.
 *
 * The next stretch goes to the second cache, where it has room beside the one at hand. Its lines
 * are asked for evenly over the whole product: memory then delivers all the time.
 */
#include "worker/nn/rowwise/stream.h"

#include <string.h>

#include "worker/nn/kernel.h"

#if defined(__x86_64__) && !defined(NN_F64)
#include <immintrin.h>

#define CACHE_LINE  64
#define STREAM_ROWS (TILE_ROWS + 2) /* of halves */

#ifdef __clang__
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

/* What is fetched: `lines` of the cache at each position of k, `step` bytes further each time. */
struct stream_ahead {
    const char *at;
    size_t step;
    size_t lines;
};

#define STREAM_NAME(x)  stream_##x##_avx2
#define STREAM_TARGET   NN_AVX2
#define STREAM_WIDE     2
#define STREAM_HALVES   false
#define STREAM_VEC      __m256
#define STREAM_SPLAT(x) _mm256_set1_ps(x)
#define STREAM_FMA      _mm256_fmadd_ps
#include "worker/nn/rowwise/stream_body.h"

#define STREAM_NAME(x)  stream_##x##_avx512
#define STREAM_TARGET   NN_AVX512
#define STREAM_WIDE     4
#define STREAM_HALVES   true
#define STREAM_VEC      __m512
#define STREAM_SPLAT(x) _mm512_set1_ps(x)
#define STREAM_FMA      _mm512_fmadd_ps
#include "worker/nn/rowwise/stream_body.h"

/* The stretch after b, shared out among the strips. */
static struct stream_ahead ahead_of(struct tile_panel b, size_t rows, size_t k)
{
    size_t strips = (rows + TILE_ROWS - 1) / TILE_ROWS;
    size_t step = (b.ld * sizeof(real) + strips - 1) / strips;

    return (struct stream_ahead){.at = (const char *)(b.at + k * b.ld),
                                 .step = step,
                                 .lines = (step + CACHE_LINE - 1) / CACHE_LINE};
}
#endif

void stream_multiply(real *restrict c, size_t ldc, bool add, struct tile_view a,
                     struct tile_panel b, size_t rows, size_t k)
{
#if defined(__x86_64__) && !defined(NN_F64)
    if (rows > 0 && nn_cpu() == NN_CPU_AVX512 && b.ld == 4 * sizeof(__m512) / sizeof(real)) {
        stream_multiply_avx512(c, ldc, add, a, b.at, rows, k, ahead_of(b, rows, k));
        return;
    }
    if (rows > 0 && nn_cpu() == NN_CPU_AVX2 && b.ld == 2 * sizeof(__m256) / sizeof(real)) {
        stream_multiply_avx2(c, ldc, add, a, b.at, rows, k, ahead_of(b, rows, k));
        return;
    }
#endif
    tile_multiply(c, ldc, add ? TILE_ADDED : TILE_NEW, a, b, rows, b.ld, k);
}
