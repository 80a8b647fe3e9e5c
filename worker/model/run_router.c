/*
 * Reads the routing that a training pass keeps per layer. It is a file of its own so that run.h
 * need not know about routers' logs.
 */
#include "worker/model/run_router.h"

#include <assert.h>

#include "worker/model/run_private.h"

void run_first_choices(const struct run *run, int layer, size_t n, uint32_t *first)
{
    size_t top_k = (size_t)run->cfg.top_k;
    const uint32_t *chosen = run->layers[layer].chosen;

    assert(run->mode == RUN_TRAIN && n <= run->max_tokens);
    assert(model_config_is_moe(&run->cfg, layer));
    for (size_t i = 0; i < n; i++)
        first[i] = chosen[i * top_k];
}
