/* A seeded generator for everything that must be repeatable but is not model initialisation: demo
 * data, simulated faults, random tables. xoshiro256** (Blackman & Vigna 2018) seeded by splitmix64.
 * Not for secrets. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
    uint64_t s[4];
};

void rng_seed(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);
/* Uniform in 0..n-1 without bias; n > 0. */
uint64_t rng_below(struct rng *r, uint64_t n);
/* Uniform in [0, 1), 53 bits. */
double rng_unit(struct rng *r);

#endif
