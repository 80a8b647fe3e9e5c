/* Shared by bpe.c, which builds a model, and bpe_encode.c, which applies it. */
#ifndef WORKER_DATA_TOKENIZER_BPE_PRIVATE_H
#define WORKER_DATA_TOKENIZER_BPE_PRIVATE_H

#include "worker/data/tokenizer/bpe.h"

static inline uint64_t bpe_pair(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 32 | right;
}

static inline uint32_t bpe_pair_hash(uint64_t pair)
{
    return (uint32_t)(((pair ^ pair >> 29) * 0x9e3779b97f4a7c15u) >> 32);
}

/* The slot of a pair, or an empty one (rank BPE_NONE). */
static inline const struct bpe_pair_slot *bpe_find_pair(const struct bpe *b, uint32_t left,
                                                        uint32_t right)
{
    uint64_t pair = bpe_pair(left, right);
    uint32_t mask = b->n_pairs - 1;
    uint32_t s = bpe_pair_hash(pair) & mask;

    while (b->pairs[s].rank != BPE_NONE && b->pairs[s].pair != pair)
        s = (s + 1) & mask;
    return &b->pairs[s];
}

/* Merges in place and returns how many symbols are left. */
size_t bpe_merge_symbols(const struct bpe *b, uint32_t *symbols, size_t n);

#endif
