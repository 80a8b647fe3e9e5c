/*
 * Slots hold indices of entries, entries hold the hash and the key's place in the pool. Growing
 * rehashes the slots alone, from the stored hashes; keys are never moved within the pool.
 * find_slot() ends because the table is at most half full.
 */
#include "worker/data/tokenizer/byte_map.h"

#include <assert.h>

#include "base/xalloc.h"

#define SLOTS_FIRST 64u

void byte_map_init(struct byte_map *m)
{
    *m = (struct byte_map){.pool = STRBUF_INIT};
}

void byte_map_release(struct byte_map *m)
{
    strbuf_release(&m->pool);
    free(m->entries);
    free(m->slots);
    byte_map_init(m);
}

/* Up to eight bytes as a number, the missing ones zero. */
static uint64_t load(const unsigned char *at, size_t len)
{
    uint64_t v = 0;

    memcpy(&v, at, len < sizeof(v) ? len : sizeof(v));
    return v;
}

/* Multiply and fold, eight bytes at a time. It does not resist chosen collisions: a user who could
 * choose the keys could as well slow things down with more text. */
static uint32_t hash_bytes(const unsigned char *key, size_t len)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ len;

    for (; len > 8; key += 8, len -= 8) {
        h = (h ^ load(key, 8)) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    h = (h ^ load(key, len)) * 0xc4ceb9fe1a85ec53u;
    h ^= h >> 29;
    h *= 0xff51afd7ed558ccdu;
    return (uint32_t)(h >> 32);
}

/* The slot that holds the key, or the empty one where it belongs. */
static uint32_t find_slot(const struct byte_map *m, const void *key, size_t len, uint32_t hash)
{
    uint32_t mask = m->n_slots - 1;

    for (uint32_t s = hash & mask;; s = (s + 1) & mask) {
        if (m->slots[s] == BYTE_MAP_NONE)
            return s;
        const struct byte_map_entry *e = &m->entries[m->slots[s]];
        if (e->hash == hash && e->len == len && memcmp(m->pool.buf + e->at, key, len) == 0)
            return s;
    }
}

static void rehash(struct byte_map *m)
{
    m->n_slots = m->n_slots == 0 ? SLOTS_FIRST : m->n_slots * 2;
    m->slots = xreallocarray(m->slots, m->n_slots, sizeof(*m->slots));
    memset(m->slots, 0xff, m->n_slots * sizeof(*m->slots));
    uint32_t mask = m->n_slots - 1;
    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t s = m->entries[i].hash & mask;
        while (m->slots[s] != BYTE_MAP_NONE)
            s = (s + 1) & mask;
        m->slots[s] = i;
    }
}

uint32_t byte_map_find(const struct byte_map *m, const void *key, size_t len)
{
    if (m->n == 0)
        return BYTE_MAP_NONE;
    return m->slots[find_slot(m, key, len, hash_bytes(key, len))];
}

uint32_t byte_map_add(struct byte_map *m, const void *key, size_t len)
{
    assert(len < UINT32_MAX && m->n < UINT32_MAX / 2);
    if (m->n >= m->n_slots / 2)
        rehash(m);
    uint32_t hash = hash_bytes(key, len);
    uint32_t slot = find_slot(m, key, len, hash);
    if (m->slots[slot] != BYTE_MAP_NONE)
        return m->slots[slot];
    ARRAY_GROW(m->entries, m->n, m->cap);
    m->entries[m->n] =
        (struct byte_map_entry){.at = m->pool.len, .len = (uint32_t)len, .hash = hash};
    strbuf_add(&m->pool, key, len);
    m->slots[slot] = m->n;
    return m->n++;
}

const char *byte_map_key(const struct byte_map *m, uint32_t i)
{
    return m->pool.buf + m->entries[i].at;
}
