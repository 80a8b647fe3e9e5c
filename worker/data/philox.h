/*
 * Philox 4x32-10 (Salmon et al., SC 2011): a counter-based generator. The same key and counter
 * always give the same four words, so nothing here has state: initial weights, data order and
 * resets depend on neither threads nor history.
 */
#ifndef WORKER_DATA_PHILOX_H
#define WORKER_DATA_PHILOX_H

#include <stdint.h>

/* What a stream is for: part of every counter, so that no two uses share words. */
enum philox_stream {
    PHILOX_INIT = 1,   /* initial weights: a = tensor, b = element pair */
    PHILOX_RESET = 2,  /* a re-initialised expert */
    PHILOX_MIX = 3,    /* which source a training sequence comes from */
    PHILOX_ORDER = 4,  /* the order of a source's sequences */
    PHILOX_OFFSET = 5, /* where an epoch's windows begin */
    PHILOX_ROUTER = 6, /* noise on a router's logits: a = layer, b = token x 512 + expert pair */
};

struct philox {
    uint32_t word[4];
};

/* Counter (a: 32 bits, stream, b: 64 bits), key = seed. */
struct philox philox_at(uint64_t seed, enum philox_stream stream, uint32_t a, uint64_t b);
/* The bare function, for the reference vectors. */
struct philox philox_4x32_10(const uint32_t counter[4], const uint32_t key[2]);

/* Two standard normal numbers from four words (Box and Muller, 53-bit uniforms in (0, 1)). */
void philox_normal(const struct philox *words, double out[2]);

/*
 * A keyed permutation of 0 .. n - 1: where i goes. A Feistel network of 4 rounds on the next even
 * number of bits, walked until it falls inside; n >= 1, i < n. Different (seed, stream, a, b) give
 * unrelated permutations.
 */
uint64_t philox_permute(uint64_t seed, enum philox_stream stream, uint32_t a, uint32_t b,
                        uint64_t i, uint64_t n);

#endif
