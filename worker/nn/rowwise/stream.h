/*
 * The inner product of packed_product() for weights that come from memory: while a stretch of a
 * panel is multiplied, the stretch after it is fetched, a share of it by each strip of rows. A few
 * rows against all weights of a model then take the longer of the two times and not their sum.
 */
#ifndef WORKER_NN_ROWWISE_STREAM_H
#define WORKER_NN_ROWWISE_STREAM_H

#include "worker/nn/product/tile.h"

/* c = a b, add: c += a b, as tile_multiply() computes it, by b.ld columns. `a` is tile_plain();
 * the memory after the stretch, if there is any, is what is multiplied next. */
void stream_multiply(real *restrict c, size_t ldc, bool add, struct tile_view a,
                     struct tile_panel b, size_t rows, size_t k);

#endif
