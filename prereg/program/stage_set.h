/*
 * A set of stages of one program, as bits. Plain data: {0} is the empty set.
 *
 * STAGES_MAX is the one limit on the stages of a program: the reader of grid.toml refuses more, and
 * the scheduler core has room for as many.
 */
#ifndef PREREG_PROGRAM_STAGE_SET_H
#define PREREG_PROGRAM_STAGE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAGES_MAX 256u

enum { STAGE_SET_WORDS = STAGES_MAX / 64 };

struct stage_set {
    uint64_t words[STAGE_SET_WORDS];
};

/* A stage beyond the limit (INDEX_NONE, say) is in no set, and adding it changes nothing. */
static inline void stage_set_add(struct stage_set *set, size_t stage)
{
    if (stage < STAGES_MAX) {
        set->words[stage / 64] |= UINT64_C(1) << stage % 64;
    }
}

static inline bool stage_set_has(const struct stage_set *set, size_t stage)
{
    return stage < STAGES_MAX && (set->words[stage / 64] >> stage % 64 & 1) != 0;
}

static inline void stage_set_unite(struct stage_set *set, const struct stage_set *other)
{
    for (size_t i = 0; i < STAGE_SET_WORDS; i++) {
        set->words[i] |= other->words[i];
    }
}

/* Returns the first member at or after `stage`; STAGES_MAX when there is none. */
static inline uint32_t stage_set_next(const struct stage_set *set, uint32_t stage)
{
    for (uint32_t i = stage / 64; i < STAGE_SET_WORDS; i++) {
        uint64_t word = set->words[i];
        if (i == stage / 64) {
            word &= UINT64_MAX << stage % 64;
        }
        if (word != 0) {
            return i * 64 + (uint32_t)__builtin_ctzll(word);
        }
    }
    return STAGES_MAX;
}

static inline bool stage_set_is_empty(const struct stage_set *set)
{
    return stage_set_next(set, 0) == STAGES_MAX;
}

/* Whether they have a stage in common. */
static inline bool stage_set_meets(const struct stage_set *a, const struct stage_set *b)
{
    bool meets = false;
    for (size_t i = 0; i < STAGE_SET_WORDS; i++) {
        meets = meets || (a->words[i] & b->words[i]) != 0;
    }
    return meets;
}

static inline bool stage_set_equal(const struct stage_set *a, const struct stage_set *b)
{
    bool equal = true;
    for (size_t i = 0; i < STAGE_SET_WORDS; i++) {
        equal = equal && a->words[i] == b->words[i];
    }
    return equal;
}

#endif
