/*
 * A hash table from byte strings to small numbers: vocabularies, and pretokens with their counts.
 *
 * Owns copies of the keys, one after the other in `pool`; entries stay in the order of insertion,
 * so that walking 0 .. n - 1 is deterministic. Open addressing, at most half full. Looking up
 * changes nothing: threads may share a table that is no longer added to.
 */
#ifndef WORKER_DATA_TOKENIZER_BYTE_MAP_H
#define WORKER_DATA_TOKENIZER_BYTE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define BYTE_MAP_NONE UINT32_MAX

struct byte_map_entry {
    size_t at; /* in the pool */
    uint32_t len;
    uint32_t hash;
    uint64_t value;
};

struct byte_map {
    struct strbuf pool;
    struct byte_map_entry *entries;
    uint32_t n;
    uint32_t cap;
    uint32_t *slots; /* index of an entry, or BYTE_MAP_NONE */
    uint32_t n_slots;
};

void byte_map_init(struct byte_map *m);
void byte_map_release(struct byte_map *m);

/* Index of the key's entry; BYTE_MAP_NONE when absent. */
uint32_t byte_map_find(const struct byte_map *m, const void *key, size_t len);
/* Index of the key's entry, made with value 0 when absent. len < 2^32, at most 2^31 entries. */
uint32_t byte_map_add(struct byte_map *m, const void *key, size_t len);

/* Of entry i; valid until the next byte_map_add. */
const char *byte_map_key(const struct byte_map *m, uint32_t i);

#endif
