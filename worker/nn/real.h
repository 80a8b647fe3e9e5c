/*
 * The number type of the layers: float, or double in the target preregd_nn_f64, where gradients are
 * checked. Headers of worker/nn and worker/model that mention `real` must not be mixed between the
 * two in one executable.
 */
#ifndef WORKER_NN_REAL_H
#define WORKER_NN_REAL_H

#include "base/math/strict.h"

/* NN_FMA(a, b, c): a b + c with one rounding, on every machine (worker/nn/fused.h). */
#ifdef NN_F64
typedef double real;
#define NN_FMA __builtin_fma
#else
typedef float real;
#define NN_FMA __builtin_fmaf
#endif

#endif
