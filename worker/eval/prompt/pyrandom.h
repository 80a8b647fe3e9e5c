/*
 * CPython's random.Random, as far as the few-shot sampler of lm-evaluation-harness uses it:
 * Mersenne Twister MT19937 seeded by init_by_array of the seed's 32-bit words, getrandbits,
 * randbelow, sample. The same seed gives the same draws as Python 3, call for call.
 */
#ifndef WORKER_EVAL_PROMPT_PYRANDOM_H
#define WORKER_EVAL_PROMPT_PYRANDOM_H

#include <stddef.h>
#include <stdint.h>

#define PYRANDOM_WORDS 624

struct pyrandom {
    uint32_t state[PYRANDOM_WORDS];
    unsigned next;
};

/* random.seed(seed) */
void pyrandom_seed(struct pyrandom *r, uint64_t seed);
/* random.getrandbits(32) */
uint32_t pyrandom_u32(struct pyrandom *r);
/* Uniform in 0..n-1; 1 <= n < 2^32. */
uint32_t pyrandom_below(struct pyrandom *r, uint32_t n);
/* random.sample(range(n), k): k different indices in draw order; k <= n. */
void pyrandom_sample(struct pyrandom *r, uint32_t n, uint32_t k, uint32_t *out);

#endif
