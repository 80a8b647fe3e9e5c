/* Pairs of symbols while a vocabulary is trained: how often each occurs, and the words in which it
 * arose since the trainer last collected them. For bpe_train.c. */
#ifndef WORKER_DATA_TOKENIZER_PAIR_MAP_H
#define WORKER_DATA_TOKENIZER_PAIR_MAP_H

#include <stdint.h>

/* Words in the order in which they were met, without repeats next to each other. */
struct places {
    uint32_t *words;
    uint32_t n;
    uint32_t cap;
};

struct pair_entry {
    uint64_t pair; /* left << 32 | right */
    int64_t count;
    struct places places;
};

struct pair_map {
    struct pair_entry *entries;
    uint32_t n;
    uint32_t cap;
    uint32_t *slots;
    uint32_t n_slots;
    uint32_t *fresh; /* entries with places */
    uint32_t n_fresh;
    uint32_t cap_fresh;
};

void pair_map_init(struct pair_map *m);
void pair_map_release(struct pair_map *m);

/* Adds to the pair's count; where that is more, the word is one of its places. */
void pair_map_change(struct pair_map *m, uint32_t left, uint32_t right, int64_t change,
                     uint32_t word);
int64_t pair_map_count(const struct pair_map *m, uint64_t pair);

#endif
