/*
 * tile_body.h is compiled once per instruction set under different names; tile_multiply()
 * dispatches. The blocks differ in width only: every element of C is the same chain of fused
 * multiply-adds in all of them, so the choice does not show in the result. TILE_ROWS times
 * TILE_WIDE accumulators fit into the vector registers of each set. A processor without the
 * instruction computes the chain in software, exactly and slowly (worker/nn/fused.c).
 *
 * With AVX-512 a block of C is 24 cache lines, as many reads as would hold up those of B, so they
 * are read one row at a time, and late: B's panel is larger than the nearest cache. Elsewhere they
 * are few, and dividing the loop costs more.
 */
#include "worker/nn/product/tile.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "worker/nn/kernel.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif
#ifdef __aarch64__
#include <arm_neon.h>
#endif

/* Sanitized builds define TILE_SHARED. With their checks the copies of a block, 150 in all, take a
 * minute to compile; there, a set has one block, which gets its sizes as arguments. */
#if defined(TILE_SHARED) && defined(__clang__)
#define TILE_COPIED __attribute__((noinline))
#define UNROLLED
#elif defined(TILE_SHARED)
#define TILE_COPIED __attribute__((noinline, noclone))
#define UNROLLED
#elif defined(__clang__)
#define TILE_COPIED inline __attribute__((always_inline))
#define UNROLLED    _Pragma("unroll")
#else
#define TILE_COPIED inline __attribute__((always_inline))
#define UNROLLED    _Pragma("GCC unroll 16")
#endif

#define LINE (64 / sizeof(real)) /* numbers in a cache line */

/* Asks for the next lines. */
static inline void fetch(struct tile_ahead *a, size_t lines)
{
    while (a->rows == 0 && a->next != NULL)
        a = a->next;
    for (size_t n = 0; n < lines && a->rows > 0; n++) {
        __builtin_prefetch(a->at + a->col, 0, 2);
        a->col += LINE;
        if (a->col >= a->cols) {
            a->col = 0;
            a->at += a->ld;
            a->rows--;
        }
    }
}

/* --- plain C --- */

typedef real plain_vec __attribute__((vector_size(16)));

static inline plain_vec plain_splat(real x)
{
    return x - (plain_vec){0};
}

static inline plain_vec plain_fma(plain_vec a, plain_vec b, plain_vec c)
{
    for (size_t i = 0; i < sizeof(c) / sizeof(real); i++)
        c[i] = NN_FMA(a[i], b[i], c[i]);
    return c;
}

#define TILE_NAME(x) tile_##x##_baseline
#define TILE_TARGET
#define TILE_VEC      plain_vec
#define TILE_SPLAT(x) plain_splat(x)
#define TILE_FMA      plain_fma
#define TILE_WIDE     2
#define TILE_STRIDE   SIZE_MAX
#define TILE_LEAD     SIZE_MAX
#define TILE_AHEAD    TILE_ROWS
#define TILE_LINES    4
#include "worker/nn/product/tile_body.h"

/* --- aarch64 --- */

#ifdef __aarch64__
#define TILE_NAME(x) tile_##x##_neon
#define TILE_TARGET
#define TILE_WIDE   4
#define TILE_STRIDE SIZE_MAX
#define TILE_LEAD   SIZE_MAX
#define TILE_AHEAD  TILE_ROWS
#define TILE_LINES  8
#ifdef NN_F64
#define TILE_VEC          float64x2_t
#define TILE_SPLAT(x)     vdupq_n_f64(x)
#define TILE_FMA(a, b, c) vfmaq_f64(c, a, b)
#else
#define TILE_VEC          float32x4_t
#define TILE_SPLAT(x)     vdupq_n_f32(x)
#define TILE_FMA(a, b, c) vfmaq_f32(c, a, b)
#endif
#include "worker/nn/product/tile_body.h"
#endif

/* --- x86-64 --- */

#ifdef __x86_64__
#define TILE_NAME(x) tile_##x##_avx2
#define TILE_TARGET  NN_AVX2
#define TILE_WIDE    2
#define TILE_STRIDE  SIZE_MAX
#define TILE_LEAD    SIZE_MAX
#define TILE_AHEAD   TILE_ROWS
#define TILE_LINES   8
#ifdef NN_F64
#define TILE_VEC      __m256d
#define TILE_SPLAT(x) _mm256_set1_pd(x)
#define TILE_FMA      _mm256_fmadd_pd
#else
#define TILE_VEC      __m256
#define TILE_SPLAT(x) _mm256_set1_ps(x)
#define TILE_FMA      _mm256_fmadd_ps
#endif
#include "worker/nn/product/tile_body.h"

#define TILE_NAME(x) tile_##x##_avx512
#define TILE_TARGET  NN_AVX512
#define TILE_WIDE    4
#define TILE_STRIDE  16
#define TILE_LEAD    192
#define TILE_AHEAD   1
#define TILE_LINES   2
#ifdef NN_F64
#define TILE_VEC      __m512d
#define TILE_SPLAT(x) _mm512_set1_pd(x)
#define TILE_FMA      _mm512_fmadd_pd
#else
#define TILE_VEC      __m512
#define TILE_SPLAT(x) _mm512_set1_ps(x)
#define TILE_FMA      _mm512_fmadd_ps
#endif
#include "worker/nn/product/tile_body.h"
#endif

#ifdef TILE_HAS_PAIRS
#ifdef __clang__
#define TILE_TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512bf16")))
#else
#define TILE_TARGET                                                                                \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512bf16,prefer-vector-width="     \
                          "512")))
#endif
#define TILE_NAME(x)      tile_##x##_pairs_body
#define TILE_WIDE         4
#define TILE_STRIDE       16
#define TILE_LEAD         192
#define TILE_AHEAD        1
#define TILE_LINES        2
#define TILE_VEC          __m512
#define TILE_SPLAT(x)     _mm512_set1_ps(x)
#define TILE_FMA(a, b, c) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))
#include "worker/nn/product/tile_body.h"

void tile_multiply_pairs(real *restrict c, size_t ldc, enum tile_chain chain, struct tile_view a,
                         struct tile_panel b, size_t rows, size_t cols, size_t k)
{
    assert(cols % TILE_COLS == 0);
    tile_multiply_pairs_body(c, ldc, chain, a, b, rows, cols, k);
}
#endif

void tile_multiply(real *restrict c, size_t ldc, enum tile_chain chain, struct tile_view a,
                   struct tile_panel b, size_t rows, size_t cols, size_t k)
{
    assert(cols % TILE_COLS == 0);
#ifdef __x86_64__
    if (nn_cpu() == NN_CPU_AVX512) {
        tile_multiply_avx512(c, ldc, chain, a, b, rows, cols, k);
        return;
    }
    if (nn_cpu() == NN_CPU_AVX2) {
        tile_multiply_avx2(c, ldc, chain, a, b, rows, cols, k);
        return;
    }
#endif
#ifdef __aarch64__
    if (nn_cpu() == NN_CPU_NEON) {
        tile_multiply_neon(c, ldc, chain, a, b, rows, cols, k);
        return;
    }
#endif
    tile_multiply_baseline(c, ldc, chain, a, b, rows, cols, k);
}
