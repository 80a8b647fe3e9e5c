/*
 * CPython's set (Objects/setobject.c) for small whole numbers: the probe sequence, the growth
 * factors and the reuse of removed entries are the reference's, because the order of the table is
 * the order of the examples. Tests compare the draws with those of CPython.
 */
#include "worker/eval/prompt/dclm_sample.h"

#include <assert.h>
#include <stdbool.h>

#include "base/xalloc.h"

#define SET_SLOTS_MIN 8u
#define LINEAR_PROBES 9u
#define PERTURB_SHIFT 5

#define SLOT_FREE    UINT32_MAX
#define SLOT_REMOVED (UINT32_MAX - 1)

struct set {
    uint32_t *slots; /* the numbers, SLOT_FREE or SLOT_REMOVED */
    uint64_t mask;   /* their number less one, a power of two less one */
    uint64_t used;
    uint64_t filled; /* with the removed ones */
};

static uint32_t *make_slots(uint64_t n)
{
    uint32_t *slots = xreallocarray(NULL, n, sizeof(*slots));
    for (uint64_t i = 0; i < n; i++)
        slots[i] = SLOT_FREE;
    return slots;
}

/* Where v is; else where it goes. */
static uint32_t *find_slot(const struct set *s, uint32_t v)
{
    uint64_t perturb = v;
    uint32_t *removed = NULL;
    for (uint64_t i = v & s->mask;; i = (i * 5 + 1 + perturb) & s->mask) {
        uint64_t last = i + LINEAR_PROBES <= s->mask ? i + LINEAR_PROBES : i;
        for (uint64_t k = i; k <= last; k++) {
            if (s->slots[k] == v)
                return &s->slots[k];
            if (s->slots[k] == SLOT_FREE)
                return removed == NULL ? &s->slots[k] : removed;
            if (s->slots[k] == SLOT_REMOVED)
                removed = &s->slots[k];
        }
        perturb >>= PERTURB_SHIFT;
    }
}

static bool set_has(const struct set *s, uint32_t v)
{
    return *find_slot(s, v) == v;
}

/* Re-inserts in table order, which may change the order of the numbers. */
static void set_grow(struct set *s)
{
    uint64_t n = SET_SLOTS_MIN;
    while (n <= (s->used > 50000 ? s->used * 2 : s->used * 4))
        n *= 2;
    struct set larger = {.slots = make_slots(n), .mask = n - 1, .used = s->used, .filled = s->used};
    for (uint64_t i = 0; i <= s->mask; i++)
        if (s->slots[i] < SLOT_REMOVED)
            *find_slot(&larger, s->slots[i]) = s->slots[i];
    free(s->slots);
    *s = larger;
}

/* v is not in the set. Only a fresh slot counts towards growth. */
static void set_add(struct set *s, uint32_t v)
{
    uint32_t *slot = find_slot(s, v);
    assert(*slot != v);
    const bool was_free = *slot == SLOT_FREE;
    *slot = v;
    s->used++;
    if (!was_free)
        return;
    s->filled++;
    if (s->filled * 5 >= s->mask * 3)
        set_grow(s);
}

static void set_remove(struct set *s, uint32_t v)
{
    *find_slot(s, v) = SLOT_REMOVED;
    s->used--;
}

void dclm_sample(struct pyrandom *r, uint32_t n, uint32_t k, uint32_t own, uint32_t *out)
{
    assert(n < SLOT_REMOVED);
    const uint32_t n_out = dclm_sample_size(n, k);
    if (n_out == 0)
        return;
    struct set s = {.slots = make_slots(SET_SLOTS_MIN), .mask = SET_SLOTS_MIN - 1};
    pyrandom_sample(r, n, n_out, out);
    for (uint32_t i = 0; i < n_out; i++)
        set_add(&s, out[i]);
    if (set_has(&s, own)) {
        set_remove(&s, own);
        uint32_t other;
        do
            other = pyrandom_below(r, n);
        while (other == own || set_has(&s, other));
        set_add(&s, other);
    }
    uint32_t at = 0;
    for (uint64_t i = 0; i <= s.mask; i++)
        if (s.slots[i] < SLOT_REMOVED)
            out[at++] = s.slots[i];
    assert(at == n_out);
    free(s.slots);
}
