/*
 * The layouts of worker/nn/product/pack.h for operands that are rounded to bfloat16 on the way: k
 * positions become bfloat16_units(k).
 */
#ifndef WORKER_NN_PRODUCT_PACK_ROUNDED_H
#define WORKER_NN_PRODUCT_PACK_ROUNDED_H

#include <stddef.h>

#include "worker/nn/product/operand.h"
#include "worker/nn/real.h"

/* B (k, cols) to panels. */
void pack_rounded_panels(real *restrict to, struct operand b, size_t k, size_t cols);
/* The strips of A (rows, k), which is the transpose of `at` (k, rows) with rows ld apart. */
void pack_rounded_strips(real *restrict to, const real *at, size_t ld, size_t rows, size_t k);

#endif
