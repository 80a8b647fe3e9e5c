/*
 * Operands laid out for worker/nn/product/tile.h: pieces of B as panels of pack_cols() columns, one
 * after another, each (k, columns of the panel); pieces of a transposed A as strips of TILE_ROWS
 * rows, each (k, TILE_ROWS). The last panel is as wide as the remaining columns, rounded up to
 * TILE_COLS; what is added to it, and to the last strip, is zero.
 */
#ifndef WORKER_NN_PRODUCT_PACK_H
#define WORKER_NN_PRODUCT_PACK_H

#include <stddef.h>

#include "worker/nn/product/operand.h"
#include "worker/nn/real.h"

#define PACK_COLS_MAX 64

/* Columns of a panel: as many as tile_multiply() keeps in registers on this processor, a divisor of
 * PACK_COLS_MAX. */
size_t pack_cols(void);

/* to (k, rows) = the transpose of from (rows, k); rows are ldt and ldf apart. */
void pack_turned(real *restrict to, size_t ldt, const real *restrict from, size_t ldf, size_t rows,
                 size_t k);
/* B (k, cols) to panels. */
void pack_panels(real *restrict to, struct operand b, size_t k, size_t cols);
/* The first k columns of strips that are `length` long: of A (rows, k), which is the transpose of
 * `at` (k, rows) with rows ld apart. */
void pack_strips(real *restrict to, size_t length, const real *at, size_t ld, size_t rows,
                 size_t k);

#endif
