/*
 * The product that everything row-independent is made of: C (+)= A B for a few rows against a piece
 * of B that is at hand, C (rows, cols), A (rows, k), B (k, cols).
 *
 * Every element of C is one chain: c + a_0 b_0 + a_1 b_1 + ..., each product and each sum rounded,
 * in the order of k. So it depends on its own row of A and column of B alone: not on the number of
 * rows, not on the row's place among them, not on how k is cut into calls, not on the instruction
 * set. BLAS promises none of this, and OpenBLAS's AVX2 kernels keep none of it. Multiplying and
 * adding apart costs nothing on processors with pipes for both (AMD's since Zen) and half the peak
 * where there are fused ones alone.
 */
#ifndef WORKER_NN_ROWWISE_TILE_H
#define WORKER_NN_ROWWISE_TILE_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/nn/real.h"

#define TILE_COLS 16 /* columns come in multiples of this */

/* A matrix in memory, rows ld apart. */
struct tile_view {
    const real *at;
    size_t ld;
};

/* C's rows are ldc apart. add false: C is written, the chains begin at 0. */
void tile_multiply(real *restrict c, size_t ldc, bool add, struct tile_view a, struct tile_view b,
                   size_t rows, size_t cols, size_t k);

#endif
