/*
 * Which documents are held out, and which sequence comes when: functions of the text, and of (seed,
 * position), alone. So a run resumes by its step number, and a split survives another seed, another
 * tokenizer and another order of files.
 */
#ifndef WORKER_DATA_ORDER_H
#define WORKER_DATA_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "worker/data/shard.h"

#define ORDER_BLOCK 10000u /* slots in which each source has its exact share */

/* Documents with a hash up to this are held out: fraction x 2^64, or the smallest hash there is,
 * whichever is more. */
uint64_t order_holdout_limit(const struct corpus *c, double fraction);

/* The k-th sequence of a source. */
struct order_place {
    size_t source;
    uint64_t k;
};

/* Who has training slot number `slot`: slots come in blocks, in each of which source s has parts[s]
 * of ORDER_BLOCK places, in a keyed permutation. The parts sum to ORDER_BLOCK. */
struct order_place order_slot(uint64_t seed, uint64_t slot, const uint32_t *parts, size_t n);

/* Windows of an epoch: n_tokens hold that many, each with the token after it, whatever the offset
 * under one context with which the epoch begins; 0 when there are too few. */
uint64_t order_windows(size_t n_tokens, size_t context);
/* The token at which the place's window begins: window permute(k mod n) of epoch k / n. */
size_t order_start(uint64_t seed, struct order_place place, uint64_t n_windows, size_t context);

#endif
