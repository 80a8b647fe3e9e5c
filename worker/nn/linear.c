/*
 * The three products of a linear layer as views of one product(): weights are (out, in), rows are
 * tokens, so the forward pass reads the transpose of W and the weight's gradient the transpose of
 * dy.
 */
#include "worker/nn/linear.h"

#include "worker/nn/product/product.h"

void linear_forward(real *restrict y, real beta, const real *restrict x, const real *restrict w,
                    size_t n, size_t in, size_t out)
{
    product(y, out, beta != 0, matrix_plain(x, in), matrix_turned(w, in), n, out, in);
}

void linear_backward_input(real *restrict dx, real beta, const real *restrict dy,
                           const real *restrict w, size_t n, size_t in, size_t out)
{
    product(dx, in, beta != 0, matrix_plain(dy, out), matrix_plain(w, in), n, in, out);
}

void linear_backward_weight(real *restrict dw, const real *restrict dy, const real *restrict x,
                            size_t n, size_t in, size_t out)
{
    product(dw, in, true, matrix_turned(dy, out), matrix_plain(x, in), out, in, n);
}
