/*
 * Applies the merges to one pretoken; bpe.h defines the result. Short pretokens keep the ranks of
 * all adjacent pairs in an array and scan for the lowest. Long ones use a heap of candidate pairs
 * over a linked list of symbols; a candidate whose pair has changed is dropped when it is popped.
 * Both orders are "lowest rank, then leftmost", so they give the same ids.
 */
#include <assert.h>

#include "base/xalloc.h"
#include "worker/data/tokenizer/bpe.h"
#include "worker/data/tokenizer/bpe_private.h"
#include "worker/data/tokenizer/tokenizer_kind.h"

#define SHORT_MAX 48u /* symbols up to which scanning all pairs is faster than the heap */
#define LEN_MAX   ((size_t)INT32_MAX)

/* Few symbols: the ranks of all adjacent pairs are kept beside them. */
static size_t merge_short(const struct bpe *b, uint32_t *symbols, size_t n)
{
    uint32_t ranks[SHORT_MAX];

    assert(n <= SHORT_MAX);
    for (size_t i = 0; i + 1 < n; i++)
        ranks[i] = bpe_find_pair(b, symbols[i], symbols[i + 1])->rank;
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (ranks[i] < ranks[best])
                best = i;
        if (ranks[best] == BPE_NONE)
            break;
        symbols[best] = b->merges[ranks[best]].id;
        n--;
        memmove(symbols + best + 1, symbols + best + 2, (n - best - 1) * sizeof(*symbols));
        memmove(ranks + best, ranks + best + 1, (n - best - 1) * sizeof(*ranks));
        if (best > 0)
            ranks[best - 1] = bpe_find_pair(b, symbols[best - 1], symbols[best])->rank;
        if (best + 1 < n)
            ranks[best] = bpe_find_pair(b, symbols[best], symbols[best + 1])->rank;
    }
    return n;
}

/* A pair that may be merged: of lowest rank first, then leftmost. Stale when the symbols at `at`
 * have another rank by now. */
struct merge_candidate {
    uint32_t rank;
    uint32_t at;
};

struct long_merge {
    const struct bpe *b;
    uint32_t *symbols; /* BPE_NONE: merged into the one before */
    uint32_t *next;    /* position of the following symbol; n: none */
    uint32_t *prev;    /* position of the one before; n: none */
    uint32_t n;
    struct merge_candidate *heap;
    size_t n_heap;
};

static bool before(const struct merge_candidate *a, const struct merge_candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(struct long_merge *m, struct merge_candidate c)
{
    size_t i = m->n_heap++;

    for (; i > 0 && before(&c, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = c;
}

static struct merge_candidate heap_pop(struct long_merge *m)
{
    struct merge_candidate top = m->heap[0], last = m->heap[--m->n_heap];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= m->n_heap)
            break;
        if (child + 1 < m->n_heap && before(&m->heap[child + 1], &m->heap[child]))
            child++;
        if (!before(&m->heap[child], &last))
            break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = last;
    return top;
}

/* The rank of the pair that begins at a position now; BPE_NONE when there is none. */
static uint32_t rank_at(const struct long_merge *m, uint32_t at)
{
    if (m->symbols[at] == BPE_NONE || m->next[at] == m->n)
        return BPE_NONE;
    return bpe_find_pair(m->b, m->symbols[at], m->symbols[m->next[at]])->rank;
}

/* Pushes the pair at a position, if it may be merged. */
static void consider(struct long_merge *m, uint32_t at)
{
    uint32_t rank = rank_at(m, at);

    if (rank != BPE_NONE)
        heap_push(m, (struct merge_candidate){.rank = rank, .at = at});
}

/* Merges the pair and offers the two pairs that this makes. */
static void merge_at(struct long_merge *m, uint32_t at, uint32_t rank)
{
    uint32_t gone = m->next[at];

    m->symbols[at] = m->b->merges[rank].id;
    m->symbols[gone] = BPE_NONE;
    m->next[at] = m->next[gone];
    if (m->next[at] != m->n)
        m->prev[m->next[at]] = at;
    consider(m, at);
    if (m->prev[at] != m->n)
        consider(m, m->prev[at]);
}

static size_t merge_long(const struct bpe *b, uint32_t *symbols, size_t n)
{
    /* Every merge takes a symbol away and adds two candidates at most. */
    struct long_merge m = {.b = b,
                           .symbols = symbols,
                           .next = xreallocarray(NULL, n, sizeof(uint32_t)),
                           .prev = xreallocarray(NULL, n, sizeof(uint32_t)),
                           .n = (uint32_t)n,
                           .heap = xreallocarray(NULL, 3 * n, sizeof(struct merge_candidate))};
    size_t left = 0;

    for (uint32_t i = 0; i < m.n; i++) {
        m.next[i] = i + 1;
        m.prev[i] = i == 0 ? m.n : i - 1;
    }
    for (uint32_t i = 0; i < m.n; i++)
        consider(&m, i);
    while (m.n_heap > 0) {
        struct merge_candidate c = heap_pop(&m);
        if (rank_at(&m, c.at) == c.rank)
            merge_at(&m, c.at, c.rank);
    }
    for (size_t i = 0; i < n; i++)
        if (symbols[i] != BPE_NONE)
            symbols[left++] = symbols[i];
    free(m.next);
    free(m.prev);
    free(m.heap);
    return left;
}

size_t bpe_merge_symbols(const struct bpe *b, uint32_t *symbols, size_t n)
{
    return n <= SHORT_MAX ? merge_short(b, symbols, n) : merge_long(b, symbols, n);
}

/* The ids of the single bytes; those outside the vocabulary are unk or nothing. */
static size_t put_bytes(const struct bpe *b, const char *text, size_t len, uint32_t *symbols)
{
    size_t n = 0;
    bool after_unk = false;

    for (size_t i = 0; i < len; i++) {
        uint32_t id = b->byte_ids[(unsigned char)text[i]];
        bool unknown = id == BPE_NONE;
        if (!unknown)
            symbols[n++] = id;
        else if (b->unk != BPE_NONE && !(after_unk && b->fuse_unk))
            symbols[n++] = b->unk;
        after_unk = unknown;
    }
    return n;
}

int bpe_encode(const struct bpe *b, const char *text, size_t len, struct token_list *out,
               struct err *err)
{
    uint32_t entry = byte_map_find(&b->whole, text, len);

    if (entry != BYTE_MAP_NONE) {
        token_list_add(out, (uint32_t)b->whole.entries[entry].value);
        return 0;
    }
    if (len > LEN_MAX)
        return err_set(err, ERR_RANGE, "%zu bytes of text without a place to cut it", len);
    token_list_reserve(out, len);
    uint32_t *symbols = out->ids + out->n;
    out->n += bpe_merge_symbols(b, symbols, put_bytes(b, text, len, symbols));
    return 0;
}
