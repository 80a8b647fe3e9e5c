/*
 * A hash table with 64-bit keys. Entries stay in order of arrival and are listed in `fresh` when
 * they get their first word after being collected, so the trainer's order of work, and with it the
 * vocabulary, is deterministic.
 */
#include "worker/data/tokenizer/pair_map.h"

#include <assert.h>

#include "base/xalloc.h"

#define EMPTY       UINT32_MAX
#define SLOTS_FIRST 1024u

void pair_map_init(struct pair_map *m)
{
    *m = (struct pair_map){0};
}

void pair_map_release(struct pair_map *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        free(m->entries[i].places.words);
    free(m->entries);
    free(m->slots);
    free(m->fresh);
    pair_map_init(m);
}

static uint32_t find_slot(const struct pair_map *m, uint64_t pair)
{
    uint32_t mask = m->n_slots - 1;
    uint32_t s = (uint32_t)(((pair ^ pair >> 29) * 0x9e3779b97f4a7c15u) >> 32) & mask;

    while (m->slots[s] != EMPTY && m->entries[m->slots[s]].pair != pair)
        s = (s + 1) & mask;
    return s;
}

static void rehash(struct pair_map *m)
{
    m->n_slots = m->n_slots == 0 ? SLOTS_FIRST : m->n_slots * 2;
    m->slots = xreallocarray(m->slots, m->n_slots, sizeof(*m->slots));
    memset(m->slots, 0xff, m->n_slots * sizeof(*m->slots));
    for (uint32_t i = 0; i < m->n; i++)
        m->slots[find_slot(m, m->entries[i].pair)] = i;
}

/* The pair's entry, created with count 0 when absent. */
static struct pair_entry *get(struct pair_map *m, uint64_t pair)
{
    assert(m->n < EMPTY / 4);
    if (m->n >= m->n_slots / 2)
        rehash(m);
    uint32_t slot = find_slot(m, pair);
    if (m->slots[slot] == EMPTY) {
        ARRAY_GROW(m->entries, m->n, m->cap);
        m->entries[m->n] = (struct pair_entry){.pair = pair};
        m->slots[slot] = m->n++;
    }
    return &m->entries[m->slots[slot]];
}

void pair_map_change(struct pair_map *m, uint32_t left, uint32_t right, int64_t change,
                     uint32_t word)
{
    struct pair_entry *e = get(m, (uint64_t)left << 32 | right);
    struct places *p = &e->places;

    e->count += change;
    if (change <= 0 || (p->n > 0 && p->words[p->n - 1] == word))
        return;
    if (p->n == 0) {
        ARRAY_GROW(m->fresh, m->n_fresh, m->cap_fresh);
        m->fresh[m->n_fresh++] = (uint32_t)(e - m->entries);
    }
    ARRAY_GROW(p->words, p->n, p->cap);
    p->words[p->n++] = word;
}

int64_t pair_map_count(const struct pair_map *m, uint64_t pair)
{
    if (m->n == 0)
        return 0;
    uint32_t slot = find_slot(m, pair);
    return m->slots[slot] == EMPTY ? 0 : m->entries[m->slots[slot]].count;
}
