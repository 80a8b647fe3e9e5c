/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012): a hash for tables whose keys come from a stranger.
 * With a key that nobody knows, no one can choose keys that fall on one slot.
 *
 * Nothing may depend on its values but where something is found: they differ from run to run.
 */
#ifndef BASE_KEYED_HASH_H
#define BASE_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_key {
    uint64_t k[2];
};

/* Draws a key. Without random numbers from the kernel it is taken from the clock and the addresses
 * of the process. */
struct hash_key hash_key_draw(void);
uint64_t keyed_hash(const struct hash_key *key, const void *data, size_t n);

#endif
