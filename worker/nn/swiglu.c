/*
 * Gate and up are the halves of one row because one product computes both. The sigmoid is
 * recomputed in the backward pass, so that no buffer has to keep it.
 */
#include "worker/nn/swiglu.h"

#include "worker/nn/vec.h"

NN_BODY void swiglu_forward_body(real *restrict h, const real *restrict gu, size_t n, size_t f)
{
    for (size_t r = 0; r < n; r++) {
        const real *g = gu + r * 2 * f;
        const real *u = g + f;
        real *o = h + r * f;
        for (size_t i = 0; i < f; i++)
            o[i] = g[i] / (1 + nn_exp(-g[i])) * u[i];
    }
}

NN_KERNEL(swiglu_forward, (real *restrict h, const real *restrict gu, size_t n, size_t f),
          (h, gu, n, f))

NN_BODY void swiglu_backward_body(real *restrict dgu, const real *restrict dh,
                                  const real *restrict gu, size_t n, size_t f)
{
    for (size_t r = 0; r < n; r++) {
        const real *g = gu + r * 2 * f;
        const real *u = g + f;
        const real *d = dh + r * f;
        real *restrict dg = dgu + r * 2 * f;
        real *restrict du = dg + f;
        for (size_t i = 0; i < f; i++) {
            real s = 1 / (1 + nn_exp(-g[i]));
            dg[i] = d[i] * u[i] * s * (1 + g[i] * (1 - s));
            du[i] = d[i] * g[i] * s;
        }
    }
}

NN_KERNEL(swiglu_backward,
          (real *restrict dgu, const real *restrict dh, const real *restrict gu, size_t n,
           size_t f),
          (dgu, dh, gu, n, f))
