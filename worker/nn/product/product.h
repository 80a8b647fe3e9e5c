/*
 * The matrix products of training: C (m, n) = A (m, k) B (k, n), or C += A B, either operand
 * transposed, any shape. Every element is the chain of worker/nn/product/tile.h, so the bytes of C
 * depend on the operands alone.
 */
#ifndef WORKER_NN_PRODUCT_PRODUCT_H
#define WORKER_NN_PRODUCT_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/nn/product/operand.h"
#include "worker/nn/real.h"

/* Who computes the products that follow, in this process. OpenBLAS is the reference of tests and
 * benchmarks: its bytes depend on the processor and the number of threads. */
enum product_kind { PRODUCTS_FIXED, PRODUCTS_OPENBLAS, PRODUCTS_NR };

/* threads: of OpenBLAS; the fixed products use nn_threads(). */
void product_choose(enum product_kind kind, int threads);
/* What decides the bytes of a result: "fixed products, contract 2", or OpenBLAS's build and core.
 */
const char *product_text(void);
/* The version of the contract in docs/arithmetic.md that holds for them; 0 with OpenBLAS. */
int product_contract(void);

/* The distance of rows of `cols` numbers at which products are fast: long rows at others share
 * their places in the caches. */
size_t product_pitch(size_t cols);

/* PRODUCT_BFLOAT16 rounds both operands to bfloat16 and adds in float32, in the order of
 * worker/nn/product/bfloat16.h. OpenBLAS computes in float32 whatever is asked for. */
enum product_precision { PRODUCT_FLOAT32, PRODUCT_BFLOAT16, PRODUCT_PRECISION_NR };

/* Rows of C are ldc apart. add false never reads C, and k = 0 then writes zeros. */
void product(enum product_precision precision, real *restrict c, size_t ldc, bool add,
             struct operand a, struct operand b, size_t m, size_t n, size_t k);

#endif
