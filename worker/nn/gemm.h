/*
 * The only caller of BLAS. Row-major throughout. `products = "openblas"`, and the reference that
 * worker/nn/product is held against.
 *
 * Bit-identity rests on OpenBLAS's build, its core name and the thread count: gemm_blas_text()
 * names the first two.
 */
#ifndef WORKER_NN_GEMM_H
#define WORKER_NN_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/nn/product/operand.h"
#include "worker/nn/real.h"

/* C (m, n; rows ldc apart) = A (m, k) B (k, n), or C += A B. add false never reads C. */
void gemm(real *c, size_t ldc, bool add, struct operand a, struct operand b, size_t m, size_t n,
          size_t k);

/* Threads of the products that follow, in this process. */
void gemm_set_threads(int threads);
/* "OpenBLAS 0.3.21 ... Haswell, core Haswell" */
const char *gemm_blas_text(void);
/* Its core is of AVX2 although the processor has AVX-512 (forced, or newer than OpenBLAS knows):
 * about half the speed. */
bool gemm_is_narrow(void);

#endif
