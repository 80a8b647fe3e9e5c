/*
 * CPython's Mersenne Twister and the functions of random.Random that the references use, bit for
 * bit: seeding from an integer's 32-bit words, getrandbits(), _randbelow(), and sample() with its
 * two strategies (a pool for small ranges, a set of seen numbers for large ones), which consume the
 * generator differently.
 */
#include "worker/eval/prompt/pyrandom.h"

#include <assert.h>
#include <stdbool.h>

#include "base/xalloc.h"

#define SHIFT_WORDS 397

/* init_genrand of the same file. */
static void init_genrand(struct pyrandom *r, uint32_t s)
{
    r->state[0] = s;
    for (uint32_t i = 1; i < PYRANDOM_WORDS; i++)
        r->state[i] = 1812433253u * (r->state[i - 1] ^ (r->state[i - 1] >> 30)) + i;
    r->next = PYRANDOM_WORDS;
}

/* init_by_array of Matsumoto and Nishimura's mt19937ar.c; the key is the seed, low word first. */
void pyrandom_seed(struct pyrandom *r, uint64_t seed)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t n_key = key[1] == 0 ? 1 : 2;
    uint32_t *s = r->state;
    init_genrand(r, 19650218u);
    uint32_t i = 1;
    uint32_t j = 0;
    for (unsigned k = 0; k < PYRANDOM_WORDS; k++) {
        s[i] = (s[i] ^ ((s[i - 1] ^ (s[i - 1] >> 30)) * 1664525u)) + key[j] + j;
        j = (j + 1) % n_key;
        if (++i == PYRANDOM_WORDS) {
            s[0] = s[PYRANDOM_WORDS - 1];
            i = 1;
        }
    }
    for (unsigned k = 0; k < PYRANDOM_WORDS - 1; k++) {
        s[i] = (s[i] ^ ((s[i - 1] ^ (s[i - 1] >> 30)) * 1566083941u)) - i;
        if (++i == PYRANDOM_WORDS) {
            s[0] = s[PYRANDOM_WORDS - 1];
            i = 1;
        }
    }
    s[0] = 0x80000000u;
}

/* Generates the next 624 words. */
static void refill(struct pyrandom *r)
{
    uint32_t *s = r->state;
    for (unsigned i = 0; i < PYRANDOM_WORDS; i++) {
        uint32_t y = (s[i] & 0x80000000u) | (s[(i + 1) % PYRANDOM_WORDS] & 0x7fffffffu);
        s[i] = s[(i + SHIFT_WORDS) % PYRANDOM_WORDS] ^ (y >> 1) ^ ((y & 1) ? 0x9908b0dfu : 0);
    }
    r->next = 0;
}

uint32_t pyrandom_u32(struct pyrandom *r)
{
    if (r->next == PYRANDOM_WORDS)
        refill(r);
    uint32_t y = r->state[r->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

uint32_t pyrandom_below(struct pyrandom *r, uint32_t n)
{
    assert(n > 0);
    const int bits = 32 - __builtin_clz(n);
    uint32_t v;
    do
        v = pyrandom_u32(r) >> (32 - bits);
    while (v >= n);
    return v;
}

/* Python's bound between its two ways to sample: the size of a small set of k elements. */
static uint64_t set_size(uint32_t k)
{
    uint64_t size = 21;
    if (k > 5) {
        uint64_t power = 1; /* 4 ** ceil(log(3k, 4)) */
        while (power < 3 * (uint64_t)k)
            power *= 4;
        size += power;
    }
    return size;
}

/* A partial shuffle of all n numbers. */
static void sample_from_pool(struct pyrandom *r, uint32_t n, uint32_t k, uint32_t *out)
{
    uint32_t *pool = xreallocarray(NULL, n, sizeof(*pool));
    for (uint32_t i = 0; i < n; i++)
        pool[i] = i;
    for (uint32_t i = 0; i < k; i++) {
        uint32_t j = pyrandom_below(r, n - i);
        out[i] = pool[j];
        pool[j] = pool[n - i - 1];
    }
    free(pool);
}

static bool is_among(const uint32_t *values, uint32_t n, uint32_t v)
{
    for (uint32_t i = 0; i < n; i++)
        if (values[i] == v)
            return true;
    return false;
}

/* Draws again what was drawn already. */
static void sample_by_redraw(struct pyrandom *r, uint32_t n, uint32_t k, uint32_t *out)
{
    for (uint32_t i = 0; i < k; i++)
        do
            out[i] = pyrandom_below(r, n);
        while (is_among(out, i, out[i]));
}

void pyrandom_sample(struct pyrandom *r, uint32_t n, uint32_t k, uint32_t *out)
{
    assert(k <= n);
    if (n <= set_size(k))
        sample_from_pool(r, n, k, out);
    else
        sample_by_redraw(r, n, k, out);
}
