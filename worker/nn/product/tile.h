/*
 * The one inner product that every matrix product is made of: C (+)= A B for a few rows against a
 * piece of B that is at hand, C (rows, cols), A (rows, k), B (k, cols).
 *
 * Every element of C is one chain of fused multiply-adds in the order of k, from 0 or from what C
 * holds: c = fma(a_i, b_i, c). So it depends on its own row of A and column of B alone: not on the
 * number of rows or columns, not on the instruction set, and not on threads, which share out rows
 * and columns and never k. The products of linear layers cut k every TILE_PIECE positions and add
 * up the chains of the pieces: one long chain loses more than OpenBLAS's sums do, 9 times more at
 * 32,768 positions (tests/bench/bench_chains.c). docs/arithmetic.md has the contract.
 */
#ifndef WORKER_NN_PRODUCT_TILE_H
#define WORKER_NN_PRODUCT_TILE_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/nn/real.h"

#define TILE_COLS  16  /* columns come in multiples of this */
#define TILE_PIECE 256 /* positions of k in one chain of a linear layer: part of the contract */
#define TILE_ROWS  6   /* rows that are multiplied together: the width of a strip of A */

/* Rows of memory that are needed soon: they are read ahead into the second cache, a few lines at a
 * time, while tiles are multiplied; then those of the next one. */
struct tile_ahead {
    const real *at; /* the row that is being read */
    size_t ld;
    size_t rows; /* that are left, this one among them */
    size_t cols;
    size_t col; /* of the next line */
    struct tile_ahead *next;
};

/* A, in strips of TILE_ROWS rows that are `strip` apart: element (r, i) of a strip is at[r * row +
 * i * col], and one of row and col is 1. is_far: the next strip is read ahead into a cache. ahead:
 * what else is, or NULL. */
struct tile_view {
    const real *at;
    size_t row;
    size_t col;
    size_t strip;
    bool is_far;
    struct tile_ahead *ahead;
};

/* B: rows ld apart. */
struct tile_panel {
    const real *at;
    size_t ld;
};

/* Rows ld apart. */
static inline struct tile_view tile_plain(const real *at, size_t ld)
{
    return (struct tile_view){at, ld, 1, TILE_ROWS * ld, false, NULL};
}

/* The transpose of rows ld apart. */
static inline struct tile_view tile_turned(const real *at, size_t ld)
{
    return (struct tile_view){at, 1, ld, TILE_ROWS, false, NULL};
}

/* Strips of k columns, packed: each (k, TILE_ROWS). */
static inline struct tile_view tile_strips(const real *at, size_t k)
{
    return (struct tile_view){at, 1, TILE_ROWS, TILE_ROWS * k, false, NULL};
}

/* What the chains do with C. TILE_NEW: they begin at 0, and C is written. TILE_CONTINUED: they
 * begin at what C holds. TILE_ADDED: they begin at 0, and what they end in is added to C. */
enum tile_chain { TILE_NEW, TILE_CONTINUED, TILE_ADDED };

/* C's rows are ldc apart. */
void tile_multiply(real *restrict c, size_t ldc, enum tile_chain chain, struct tile_view a,
                   struct tile_panel b, size_t rows, size_t cols, size_t k);

#if defined(__x86_64__) && !defined(NN_F64)
#define TILE_HAS_PAIRS
/* The same for units of worker/nn/product/bfloat16.h that are pairs. */
void tile_multiply_pairs(real *restrict c, size_t ldc, enum tile_chain chain, struct tile_view a,
                         struct tile_panel b, size_t rows, size_t cols, size_t k);
#endif

#endif
