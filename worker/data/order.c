/*
 * Permutations and offsets come from Philox (philox.h), keyed by the seed and counters, so the
 * position alone determines what is read. order_slot() first finds the place within the block, then
 * the source whose share of places contains it.
 */
#include "worker/data/order.h"

#include <assert.h>

#include "worker/data/philox.h"

uint64_t order_holdout_limit(const struct corpus *c, double fraction)
{
    uint64_t limit = (uint64_t)(fraction * 0x1p64);
    uint64_t smallest = UINT64_MAX;

    for (size_t i = 0; i < c->n_documents; i++)
        if (c->documents[i].hash < smallest)
            smallest = c->documents[i].hash;
    return smallest > limit ? smallest : limit;
}

struct order_place order_slot(uint64_t seed, uint64_t slot, const uint32_t *parts, size_t n)
{
    uint64_t block = slot / ORDER_BLOCK;
    uint64_t place = philox_permute(seed, PHILOX_MIX, (uint32_t)block, (uint32_t)(block >> 32),
                                    slot % ORDER_BLOCK, ORDER_BLOCK);
    size_t s = 0;

    while (s < n && place >= parts[s])
        place -= parts[s++];
    assert(s < n);
    return (struct order_place){.source = s, .k = block * parts[s] + place};
}

uint64_t order_windows(size_t n_tokens, size_t context)
{
    return n_tokens < 2 * context ? 0 : (n_tokens - context) / context;
}

size_t order_start(uint64_t seed, struct order_place place, uint64_t n_windows, size_t context)
{
    uint64_t epoch = place.k / n_windows;
    uint64_t window = philox_permute(seed, PHILOX_ORDER, (uint32_t)place.source, (uint32_t)epoch,
                                     place.k % n_windows, n_windows);
    struct philox words = philox_at(seed, PHILOX_OFFSET, (uint32_t)place.source, epoch);

    return words.word[0] % context + (size_t)window * context;
}
