/* x_r = W[id_r].  W (V, C), x (N, C).  dW[id_r] += dx_r. */
#ifndef WORKER_NN_EMBEDDING_H
#define WORKER_NN_EMBEDDING_H

#include <stddef.h>
#include <stdint.h>

#include "worker/nn/real.h"

void embedding_forward(real *restrict x, const real *restrict w, const uint32_t *restrict ids,
                       size_t n, size_t c);
void embedding_backward(real *restrict dw, const real *restrict dx, const uint32_t *restrict ids,
                        size_t n, size_t c);

#endif
