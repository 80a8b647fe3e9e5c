/*
 * Rows are copied forward and added backward. The backward pass goes through the tokens in order,
 * so a token that occurs twice adds twice, always in the same order: gradients do not depend on
 * threads.
 */
#include "worker/nn/embedding.h"

#include "worker/nn/vec.h"

void embedding_forward(real *restrict x, const real *restrict w, const uint32_t *restrict ids,
                       size_t n, size_t c)
{
    for (size_t r = 0; r < n; r++)
        memcpy(x + r * c, w + ids[r] * c, c * sizeof(*x));
}

void embedding_backward(real *restrict dw, const real *restrict dx, const uint32_t *restrict ids,
                        size_t n, size_t c)
{
    for (size_t r = 0; r < n; r++)
        vec_add(dw + ids[r] * c, dx + r * c, c);
}
