/* SipHash-2-4 as in its paper: two rounds for each word of eight bytes, four at the end. Words are
 * read in the order of little-endian machines on all. */
#include "base/keyed_hash.h"

#include <sys/random.h>

#include "base/clock.h"

static uint64_t turn(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void rounds(uint64_t v[4], int n)
{
    for (int i = 0; i < n; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = turn(v[1], 13) ^ v[0];
        v[3] = turn(v[3], 16) ^ v[2];
        v[0] = turn(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = turn(v[1], 17) ^ v[2];
        v[3] = turn(v[3], 21) ^ v[0];
        v[2] = turn(v[2], 32);
    }
}

struct hash_key hash_key_draw(void)
{
    struct hash_key key;
    if (getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key)) {
        key = (struct hash_key){{(uint64_t)clock_mono_ns(), (uint64_t)(uintptr_t)&key}};
    }
    return key;
}

uint64_t keyed_hash(const struct hash_key *key, const void *data, size_t n)
{
    const unsigned char *at = data;
    uint64_t v[4] = {key->k[0] ^ 0x736f6d6570736575ULL, key->k[1] ^ 0x646f72616e646f6dULL,
                     key->k[0] ^ 0x6c7967656e657261ULL, key->k[1] ^ 0x7465646279746573ULL};
    for (size_t left = n;; left -= 8, at += 8) {
        /* The last word has the rest, and the length in its highest byte. */
        uint64_t word = left < 8 ? (uint64_t)n << 56 : 0;
        for (size_t i = 0; i < (left < 8 ? left : 8); i++) {
            word |= (uint64_t)at[i] << (8 * i);
        }
        v[3] ^= word;
        rounds(v, 2);
        v[0] ^= word;
        if (left < 8) {
            break;
        }
    }
    v[2] ^= 0xff;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
