/*
 * The round function and its constants are those of the paper; tests compare philox_4x32_10() with
 * the published vectors. philox_permute() is a Feistel network on an even number of bits, applied
 * again while the result is outside 0 .. n - 1 (cycle walking), which is a permutation of the range
 * for any n.
 */
#include "worker/data/philox.h"

#include <assert.h>
#include <math.h>

#include "base/math/elementary.h"

#define PHILOX_M0 0xD2511F53u
#define PHILOX_M1 0xCD9E8D57u
#define PHILOX_W0 0x9E3779B9u
#define PHILOX_W1 0xBB67AE85u

#define FEISTEL_ROUNDS 4

struct philox philox_4x32_10(const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)PHILOX_M0 * c0;
        uint64_t p1 = (uint64_t)PHILOX_M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
    return (struct philox){{c0, c1, c2, c3}};
}

struct philox philox_at(uint64_t seed, enum philox_stream stream, uint32_t a, uint64_t b)
{
    const uint32_t counter[4] = {(uint32_t)b, (uint32_t)(b >> 32), a, (uint32_t)stream};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};

    return philox_4x32_10(counter, key);
}

/* 53 bits, moved by half a step so that neither 0 nor 1 occurs. */
static double unit(uint32_t high, uint32_t low)
{
    uint64_t bits = ((uint64_t)high << 32 | low) >> 11;

    return ((double)bits + 0.5) * 0x1p-53;
}

void philox_normal(const struct philox *words, double out[2])
{
    const double two_pi = 6.283185307179586476925286766559;
    double r = sqrt(-2.0 * elementary_log(unit(words->word[0], words->word[1])));
    double angle = two_pi * unit(words->word[2], words->word[3]);

    out[0] = r * elementary_cos(angle);
    out[1] = r * elementary_sin(angle);
}

uint64_t philox_permute(uint64_t seed, enum philox_stream stream, uint32_t a, uint32_t b,
                        uint64_t i, uint64_t n)
{
    unsigned half = 1;

    assert(i < n);
    while (half < 32 && (uint64_t)1 << (2 * half) < n)
        half++;
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint32_t round = 0; round < FEISTEL_ROUNDS; round++) {
            const uint32_t counter[4] = {(uint32_t)right, b, a, (uint32_t)stream << 8 | round};
            uint64_t next = left ^ (philox_4x32_10(counter, key).word[0] & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}
