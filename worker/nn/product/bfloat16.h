/*
 * Operands of products in bfloat16, in the form that worker/nn/product/tile.h multiplies.
 *
 * The contract of a pair of positions along k: c = fma(a_(2i+1), b_(2i+1), c), then c = fma(a_2i,
 * b_2i, c), with a and b rounded to bfloat16 (to nearest, ties to even); an odd k ends with a pair
 * whose second number is zero. The instruction vdpbf16ps computes this. Where the processor has it
 * and is faster by it, a unit of k is a pair in the bits of one float; elsewhere a unit is one
 * rounded number, the second of each pair first, and the chain of fma is the same.
 */
#ifndef WORKER_NN_PRODUCT_BFLOAT16_H
#define WORKER_NN_PRODUCT_BFLOAT16_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/nn/real.h"

/* Whether units are pairs: the processor has the instruction, which was seen to keep the contract
 * and to be faster than numbers are. PREREG_BFLOAT16=yes does not ask how fast. The same for the
 * life of the process. */
bool bfloat16_is_native(void);
/* Units that k positions become. */
size_t bfloat16_units(size_t k);

/* Rows along k: to (rows, units) from (rows, k); rows are ldt and ldf apart. */
void bfloat16_rows(real *restrict to, size_t ldt, const real *restrict from, size_t ldf,
                   size_t rows, size_t k);
/* Columns along k: to (units, cols) from (k, cols). */
void bfloat16_columns(real *restrict to, size_t ldt, const real *restrict from, size_t ldf,
                      size_t k, size_t cols);

#endif
