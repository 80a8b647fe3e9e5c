/*
 * y = x W^T with W packed for it, once for many products; worker/nn/linear.h packs W in each.
 * x (N, I), W (O, I), y (N, O).
 *
 * Packed, W is cut into panels of a number of its rows that divides PACKED_COLS, each turned: (I,
 * rows of the panel); the last one has the remaining rows. A panel takes the place of the rows it
 * is made of, so packing needs no second copy of a model. The width of panels follows nn_cpu(), so
 * a packed matrix is valid in one process only.
 */
#ifndef WORKER_NN_ROWWISE_PACKED_H
#define WORKER_NN_ROWWISE_PACKED_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/nn/real.h"

#define PACKED_COLS 64

/* In place. scratch: PACKED_COLS x in. */
void packed_make(real *restrict w, real *restrict scratch, size_t out, size_t in);
/* Row r of W, of out rows, as it was. */
void packed_row(real *restrict row, const real *restrict w, size_t r, size_t out, size_t in);

/* y = x W^T; add: y += x W^T. Rows of y are ldy apart. W may be the part of a packed matrix that
 * begins at a multiple of PACKED_COLS: w + first * in, out - first rows of it. */
void packed_product(real *restrict y, size_t ldy, bool add, const real *restrict x,
                    const real *restrict w, size_t n, size_t in, size_t out);

#endif
