/*
 * The only caller of BLAS. Row-major throughout.
 *
 * Bit-identity rests on OpenBLAS's build, its core name and the thread count: gemm_blas_text()
 * names the first two.
 */
#ifndef WORKER_NN_GEMM_H
#define WORKER_NN_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/nn/real.h"

/* A matrix in memory whose rows are ld apart; transposed: the operand is its transpose. */
struct gemm_view {
    const real *at;
    size_t ld;
    bool transposed;
};

static inline struct gemm_view gemm_plain(const real *at, size_t ld)
{
    return (struct gemm_view){at, ld, false};
}

static inline struct gemm_view gemm_turned(const real *at, size_t ld)
{
    return (struct gemm_view){at, ld, true};
}

/* C (m, n; rows ldc apart) = alpha A (m, k) B (k, n) + beta C. beta 0 never reads C. */
void gemm(real *c, size_t ldc, real beta, real alpha, struct gemm_view a, struct gemm_view b,
          size_t m, size_t n, size_t k);

/* Threads of the products that follow, in this process. */
void gemm_set_threads(int threads);
/* "OpenBLAS 0.3.21 ... Haswell, core Haswell" */
const char *gemm_blas_text(void);
/* Its core is of AVX2 although the processor has AVX-512 (forced, or newer than OpenBLAS knows):
 * about half the speed. */
bool gemm_is_narrow(void);

#endif
