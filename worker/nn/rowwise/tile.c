/*
 * tile_body.h is compiled once per instruction set under different names; tile_multiply()
 * dispatches. The blocks differ in width only: every element of C is accumulated in the same order
 * with a product and a sum, each rounded, in all three, so the choice does not show in the result.
 * TILE_ROWS times TILE_WIDE accumulators fit into the vector registers of each set.
 */
#include "worker/nn/rowwise/tile.h"

#include <assert.h>
#include <string.h>

#include "worker/nn/kernel.h"

#define TILE_ROWS 6

#ifdef __clang__
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif

#define TILE_NAME(x) tile_##x##_baseline
#define TILE_TARGET
#define TILE_BYTES 16
#define TILE_WIDE  2
#include "worker/nn/rowwise/tile_body.h"
#undef TILE_NAME
#undef TILE_TARGET
#undef TILE_BYTES
#undef TILE_WIDE

#ifdef __x86_64__

#define TILE_NAME(x) tile_##x##_avx2
#define TILE_TARGET  NN_AVX2
#define TILE_BYTES   32
#define TILE_WIDE    2
#include "worker/nn/rowwise/tile_body.h"
#undef TILE_NAME
#undef TILE_TARGET
#undef TILE_BYTES
#undef TILE_WIDE

#define TILE_NAME(x) tile_##x##_avx512
#define TILE_TARGET  NN_AVX512
#define TILE_BYTES   64
#define TILE_WIDE    4
#include "worker/nn/rowwise/tile_body.h"

#endif

void tile_multiply(real *restrict c, size_t ldc, bool add, struct tile_view a, struct tile_view b,
                   size_t rows, size_t cols, size_t k)
{
    assert(cols % TILE_COLS == 0);
#ifdef __x86_64__
    enum nn_cpu cpu = nn_cpu();
    if (cpu == NN_CPU_AVX512)
        tile_multiply_avx512(c, ldc, add, a, b, rows, cols, k);
    else if (cpu == NN_CPU_AVX2)
        tile_multiply_avx2(c, ldc, add, a, b, rows, cols, k);
    else
#endif
        tile_multiply_baseline(c, ldc, add, a, b, rows, cols, k);
}
