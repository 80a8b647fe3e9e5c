/*
 * The three products of a linear layer as views of one product(): weights are (out, in), rows are
 * tokens, so the forward pass reads the transpose of W and the weight's gradient the transpose of
 * dy.
 */
#include "worker/nn/linear.h"

void linear_forward(real *restrict y, bool add, const real *restrict x, const real *restrict w,
                    const struct linear_dims *dims)
{
    product(dims->precision, y, dims->out, add, operand_plain(x, dims->in),
            operand_turned(w, dims->in), dims->n, dims->out, dims->in);
}

void linear_backward_input(real *restrict dx, bool add, const real *restrict dy,
                           const real *restrict w, const struct linear_dims *dims)
{
    product(dims->precision, dx, dims->in, add, operand_plain(dy, dims->out),
            operand_plain(w, dims->in), dims->n, dims->in, dims->out);
}

void linear_backward_weight(real *restrict dw, const real *restrict dy, const real *restrict x,
                            const struct linear_dims *dims)
{
    product(dims->precision, dw, dims->in, true, operand_turned(dy, dims->out),
            operand_plain(x, dims->in), dims->out, dims->in, dims->n);
}
