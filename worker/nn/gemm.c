/*
 * Maps operands to CBLAS calls, sgemm or dgemm by the number type of the build (worker/nn/real.h).
 * An empty product (m or n is 0) has nothing to write and returns early; k = 0 is passed on, since
 * beta still applies.
 */
#include "worker/nn/gemm.h"

#include <cblas.h>
#include <stdio.h>
#include <string.h>

#include "worker/nn/cpu.h"

void gemm(real *c, size_t ldc, bool add, struct operand a, struct operand b, size_t m, size_t n,
          size_t k)
{
    real beta = add;
    CBLAS_TRANSPOSE ta = a.transposed ? CblasTrans : CblasNoTrans;
    CBLAS_TRANSPOSE tb = b.transposed ? CblasTrans : CblasNoTrans;

    if (m == 0 || n == 0)
        return;
#ifdef NN_F64
    cblas_dgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)k, 1, a.at, (blasint)a.ld,
                b.at, (blasint)b.ld, beta, c, (blasint)ldc);
#else
    cblas_sgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)k, 1, a.at, (blasint)a.ld,
                b.at, (blasint)b.ld, beta, c, (blasint)ldc);
#endif
}

void gemm_set_threads(int threads)
{
    openblas_set_num_threads(threads);
}

bool gemm_is_narrow(void)
{
    static const char *const narrow[] = {"core Haswell", "core Zen"};

    for (size_t i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++)
        if (strstr(gemm_blas_text(), narrow[i]) != NULL)
            return nn_cpu() == NN_CPU_AVX512;
    return false;
}

const char *gemm_blas_text(void)
{
    static char text[256];

    if (text[0] == '\0')
        (void)snprintf(text, sizeof(text), "%s, core %s", openblas_get_config(),
                       openblas_get_corename());
    return text;
}
