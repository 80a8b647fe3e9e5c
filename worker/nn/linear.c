/*
 * The three products of a linear layer as views of one gemm(): weights are (out, in), rows are
 * tokens, so the forward pass reads the transpose of W and the weight's gradient the transpose of
 * dy.
 */
#include "worker/nn/linear.h"

#include "worker/nn/gemm.h"

void linear_forward(real *restrict y, real beta, const real *restrict x, const real *restrict w,
                    size_t n, size_t in, size_t out)
{
    gemm(y, out, beta, 1, gemm_plain(x, in), gemm_turned(w, in), n, out, in);
}

void linear_backward_input(real *restrict dx, real beta, const real *restrict dy,
                           const real *restrict w, size_t n, size_t in, size_t out)
{
    gemm(dx, in, beta, 1, gemm_plain(dy, out), gemm_plain(w, in), n, in, out);
}

void linear_backward_weight(real *restrict dw, const real *restrict dy, const real *restrict x,
                            size_t n, size_t in, size_t out)
{
    gemm(dw, in, 1, 1, gemm_turned(dy, out), gemm_plain(x, in), out, in, n);
}
