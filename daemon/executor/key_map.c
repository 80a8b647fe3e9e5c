/* Linear probing in a table that is at most half full. Removal moves later elements of the same run
 * back, so that no marks of removed ones are left. */
#include "daemon/executor/key_map.h"

#include <assert.h>
#include <stdlib.h>

#include "base/xalloc.h"

#define CAP_MIN ((size_t)64)

static size_t home_of(const struct key_map *m, const struct attempt_key *key)
{
    uint64_t mixed = (((uint64_t)key->program << 32) | key->task) * UINT64_C(0x9e3779b97f4a7c15);
    mixed ^= key->no * UINT64_C(0xff51afd7ed558ccd);
    return (size_t)(mixed >> 29) & (m->cap - 1);
}

static bool same_key(const struct attempt_key *a, const struct attempt_key *b)
{
    return a->program == b->program && a->task == b->task && a->no == b->no;
}

/* The slot of the key, or the free one where it would go. Requires cap > 0. */
static size_t find(const struct key_map *m, const struct attempt_key *key)
{
    size_t i = home_of(m, key);
    while (m->slots[i].value != NULL && !same_key(&m->slots[i].key, key)) {
        i = (i + 1) & (m->cap - 1);
    }
    return i;
}

void key_map_release(struct key_map *m)
{
    free(m->slots);
    *m = (struct key_map){0};
}

void *key_map_get(const struct key_map *m, const struct attempt_key *key)
{
    return m->cap == 0 ? NULL : m->slots[find(m, key)].value;
}

static void grow(struct key_map *m)
{
    struct key_map old = *m;
    m->cap = old.cap == 0 ? CAP_MIN : 2 * old.cap;
    m->slots = xcalloc(m->cap, sizeof(*m->slots));
    for (size_t i = 0; i < old.cap; i++) {
        if (old.slots[i].value != NULL) {
            m->slots[find(m, &old.slots[i].key)] = old.slots[i];
        }
    }
    free(old.slots);
}

void key_map_put(struct key_map *m, const struct attempt_key *key, void *value)
{
    assert(value != NULL && key_map_get(m, key) == NULL);
    if (2 * (m->n + 1) > m->cap) {
        grow(m);
    }
    m->slots[find(m, key)] = (struct key_slot){.key = *key, .value = value};
    m->n++;
}

void key_map_remove(struct key_map *m, const struct attempt_key *key)
{
    size_t hole = m->cap == 0 ? 0 : find(m, key);
    if (m->cap == 0 || m->slots[hole].value == NULL) {
        return;
    }
    m->n--;
    for (size_t i = (hole + 1) & (m->cap - 1); m->slots[i].value != NULL;
         i = (i + 1) & (m->cap - 1)) {
        const size_t home = home_of(m, &m->slots[i].key);
        /* whether the hole is on its way from home to where it is, around the end */
        if (((i - home) & (m->cap - 1)) >= ((i - hole) & (m->cap - 1))) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole].value = NULL;
}
