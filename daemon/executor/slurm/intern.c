/* A hash table of words with open addressing; it grows by doubling and never shrinks. */
#include "daemon/executor/slurm/intern.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

void intern_init(struct intern *t)
{
    *t = (struct intern){.n_cells = 64};
    t->cells = xcalloc(t->n_cells, sizeof(*t->cells));
    ARRAY_GROW(t->words, t->n, t->cap);
    t->words[t->n++] = xstrdup("");
}

void intern_release(struct intern *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        free(t->words[i]);
    }
    free(t->words);
    free(t->cells);
    *t = (struct intern){0};
}

/* FNV-1a */
static uint32_t hash(const char *s)
{
    uint32_t h = 2166136261u;
    for (; *s != '\0'; s++) {
        h = (h ^ (unsigned char)*s) * 16777619u;
    }
    return h;
}

/* The cell of a word, or the free one where it belongs. */
static uint32_t *find(const struct intern *t, const char *word)
{
    uint32_t at = hash(word) & (t->n_cells - 1);
    while (t->cells[at] != 0 && strcmp(t->words[t->cells[at]], word) != 0) {
        at = (at + 1) & (t->n_cells - 1);
    }
    return &t->cells[at];
}

static void grow(struct intern *t)
{
    free(t->cells);
    t->n_cells *= 2;
    t->cells = xcalloc(t->n_cells, sizeof(*t->cells));
    for (uint32_t i = 1; i < t->n; i++) {
        *find(t, t->words[i]) = i;
    }
}

uint16_t intern_add(struct intern *t, const char *word)
{
    if (word[0] == '\0') {
        return 0;
    }
    uint32_t *cell = find(t, word);
    if (*cell == 0) {
        if (t->n >= INTERN_MAX) {
            return 0;
        }
        if (t->n * 2 >= t->n_cells) {
            grow(t);
            cell = find(t, word);
        }
        ARRAY_GROW(t->words, t->n, t->cap);
        *cell = t->n;
        t->words[t->n++] = xstrdup(word);
    }
    return (uint16_t)*cell;
}

const char *intern_word(const struct intern *t, uint16_t number)
{
    assert(number < t->n);
    return t->words[number];
}
