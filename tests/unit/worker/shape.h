/* Shapes of the models under test, as one line of a table. */
#ifndef TESTS_UNIT_WORKER_SHAPE_H
#define TESTS_UNIT_WORKER_SHAPE_H

#include "worker/model/config.h"

/* L blocks of width C, H query heads in G groups, V tokens, T of context; then what the blocks have
 * (.ffn, .experts, ...). */
#define SHAPE(L, C, H, G, V, T, ...)                                                               \
    {                                                                                              \
        .layers = L, .width = C, .heads = H, .kv_heads = G, .vocab = V, .context = T,              \
        .rope_theta = 10000, .norm_eps = 1e-5, __VA_ARGS__                                         \
    }

#endif
