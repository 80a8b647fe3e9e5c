/*
 * Cells whose prints come from the same set of stages differ unless all these prints are equal, so
 * that a hash finds the equal ones. Cells of two different sets are compared on the stages that
 * both have: a kept cell is therefore in the table once for every set that may ask. Of kept cells
 * that look alike to the asking cell, the first that was asked something else is its first or the
 * first that differs from that one; no others are remembered. Where there are more sets than
 * SETS_MAX, the kept cells are compared one by one.
 */
#include "truthtable/evidence/copy_search.h"

#include <stdlib.h>

#include "base/xalloc.h"

enum { SETS_MAX = 16 };

struct copy_slot { /* kept cells of one group and set that gave the same to cells of the asking set
                    */
    size_t group;
    uint32_t kept_set;
    uint32_t asking_set;
    size_t cells[2]; /* the first, and the first asked something else than it; + 1, 0: none */
};

struct copy_search {
    struct copy_results of;
    struct stage_set sets[SETS_MAX]; /* stages between that have a print */
    size_t n_sets;                   /* SETS_MAX + 1: more than that */
    uint32_t *set_of;                /* [cell] */
    size_t group;
    struct copy_slot *slots; /* open addressing; a power of two, at most half of them used */
    size_t n_slots;
    size_t *kept; /* of this group; with too many sets only */
    size_t n_kept;
    size_t n_compared;
};

static uint64_t print_of(const struct copy_search *cs, size_t cell, size_t stage)
{
    return cs->of.tasks[cell * cs->of.n_stages + stage].print;
}

/* Gives each cell the number of its set of stages. */
static void number_sets(struct copy_search *cs, const size_t *cells, size_t n)
{
    for (size_t i = 0; i < n && cs->n_sets <= SETS_MAX; i++) {
        struct stage_set set = {0};
        uint32_t k = 0;
        for (uint32_t s = stage_set_next(&cs->of.between, 0); s < STAGES_MAX;
             s = stage_set_next(&cs->of.between, s + 1)) {
            stage_set_add(&set, print_of(cs, cells[i], s) != 0 ? s : STAGES_MAX);
        }
        while (k < cs->n_sets && !stage_set_equal(&cs->sets[k], &set)) {
            k++;
        }
        if (k < SETS_MAX) {
            cs->sets[k] = set;
        }
        cs->n_sets = k == cs->n_sets ? k + 1 : cs->n_sets;
        cs->set_of[cells[i]] = k;
    }
}

struct copy_search *copy_search_create(const struct copy_results *results, const size_t *cells,
                                       size_t n)
{
    struct copy_search *cs = xcalloc(1, sizeof(*cs));
    cs->of = *results;
    cs->set_of = xcalloc(results->n_cells, sizeof(*cs->set_of));
    number_sets(cs, cells, n);
    if (cs->n_sets > SETS_MAX) {
        cs->kept = xcalloc(n, sizeof(*cs->kept));
        return cs;
    }
    cs->n_slots = 2;
    while (cs->n_slots < 2 * n * cs->n_sets) {
        cs->n_slots *= 2;
    }
    cs->slots = xcalloc(cs->n_slots, sizeof(*cs->slots));
    return cs;
}

void copy_search_free(struct copy_search *cs)
{
    free(cs->set_of);
    free(cs->slots);
    free(cs->kept);
    free(cs);
}

void copy_search_next_group(struct copy_search *cs)
{
    cs->group++;
    cs->n_kept = 0;
}

size_t copy_search_n_compared(const struct copy_search *cs)
{
    return cs->n_compared;
}

/* Whether a stage of both sets gave two cells different results. */
static bool differ(struct copy_search *cs, const struct stage_set sets[2], size_t a, size_t b)
{
    bool differ = false;
    cs->n_compared++;
    for (uint32_t s = stage_set_next(&sets[0], 0); s < STAGES_MAX && !differ;
         s = stage_set_next(&sets[0], s + 1)) {
        const uint64_t x = print_of(cs, a, s);
        const uint64_t y = print_of(cs, b, s);
        differ = stage_set_has(&sets[1], s) && x != 0 && y != 0 && x != y;
    }
    return differ;
}

static bool asked_same(const struct copy_search *cs, size_t a, size_t b)
{
    return digest_equal(&cs->of.asked[a], &cs->of.asked[b]);
}

/* One step of splitmix64: every bit of the result depends on every bit of both. */
static uint64_t mix(uint64_t hash, uint64_t v)
{
    uint64_t z = (hash ^ v) + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The slot of the kept cells that gave the same as this one in all stages of both sets; an unused
 * one when there are none. The cell is of one of the two sets. */
static struct copy_slot *find_slot(struct copy_search *cs, size_t cell, uint32_t kept_set,
                                   uint32_t asking_set)
{
    const struct stage_set sets[2] = {cs->sets[kept_set], cs->sets[asking_set]};
    uint64_t hash = mix(mix(cs->group, kept_set), asking_set);
    for (uint32_t s = stage_set_next(&sets[0], 0); s < STAGES_MAX;
         s = stage_set_next(&sets[0], s + 1)) {
        hash = stage_set_has(&sets[1], s) ? mix(hash, print_of(cs, cell, s)) : hash;
    }
    size_t i = hash & (cs->n_slots - 1);
    for (;; i = (i + 1) & (cs->n_slots - 1)) {
        struct copy_slot *slot = &cs->slots[i];
        if (slot->cells[0] == 0 ||
            (slot->group == cs->group && slot->kept_set == kept_set &&
             slot->asking_set == asking_set && !differ(cs, sets, cell, slot->cells[0] - 1))) {
            return slot;
        }
    }
}

size_t copy_search_find(struct copy_search *cs, size_t cell)
{
    const struct stage_set all[2] = {cs->of.between, cs->of.between};
    size_t first = INDEX_NONE;
    for (size_t k = 0; k < cs->n_kept && first == INDEX_NONE; k++) {
        const bool is_copy =
            !asked_same(cs, cell, cs->kept[k]) && !differ(cs, all, cell, cs->kept[k]);
        first = is_copy ? cs->kept[k] : INDEX_NONE;
    }
    for (uint32_t set = 0; cs->slots != NULL && set < cs->n_sets; set++) {
        const struct copy_slot *slot = find_slot(cs, cell, set, cs->set_of[cell]);
        for (size_t i = 0; i < 2 && slot->cells[i] != 0; i++) {
            const size_t kept = slot->cells[i] - 1;
            if (kept < first && !asked_same(cs, cell, kept)) {
                first = kept;
            }
        }
    }
    return first;
}

void copy_search_keep(struct copy_search *cs, size_t cell)
{
    if (cs->slots == NULL) {
        cs->kept[cs->n_kept++] = cell;
        return;
    }
    for (uint32_t set = 0; set < cs->n_sets; set++) {
        struct copy_slot *slot = find_slot(cs, cell, cs->set_of[cell], set);
        if (slot->cells[0] == 0) {
            *slot = (struct copy_slot){.group = cs->group,
                                       .kept_set = cs->set_of[cell],
                                       .asking_set = set,
                                       .cells = {cell + 1, 0}};
        } else if (slot->cells[1] == 0 && !asked_same(cs, cell, slot->cells[0] - 1)) {
            slot->cells[1] = cell + 1;
        }
    }
}
