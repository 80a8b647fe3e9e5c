/*
 * Training keeps, for every adjacent pair of symbols, its count and the words in which it came up
 * (pair_map.h). A heap yields the most frequent pair; an entry whose count is out of date is pushed
 * back with the present one. Merging a pair visits only its words and adjusts the counts of the
 * pairs beside it, so the cost is about that of the changes.
 *
 * Ties go to the lower pair of ids, which is what makes the result equal to Hugging Face's trainer.
 */
#include "worker/data/tokenizer/bpe_train.h"

#include <assert.h>

#include "base/xalloc.h"
#include "worker/data/tokenizer/bytelevel.h"
#include "worker/data/tokenizer/pair_map.h"

#define END_OF_TEXT "<|endoftext|>"

/* A distinct pretoken: its symbols at pool + at, and how often it occurs. */
struct word {
    size_t at;
    uint32_t len;
    int64_t count;
};

/* A pair that may be merged, with the words that hold it as far as they were known when it was put
 * here; count may be out of date. */
struct candidate {
    int64_t count;
    uint64_t pair;
    struct places places;
};

struct training {
    struct bpe *bpe;
    uint32_t *pool;
    struct word *words;
    uint32_t n_words;
    struct pair_map pairs;
    struct candidate *heap;
    size_t n_heap;
    size_t cap_heap;
};

/* Most frequent first; of equals the lower pair. */
static bool before(const struct candidate *a, const struct candidate *b)
{
    return a->count != b->count ? a->count > b->count : a->pair < b->pair;
}

static void heap_push(struct training *t, const struct candidate *c)
{
    ARRAY_GROW(t->heap, t->n_heap, t->cap_heap);
    size_t i = t->n_heap++;

    for (; i > 0 && before(c, &t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = *c;
}

/* The most frequent candidate; its count may be out of date. */
static struct candidate heap_pop(struct training *t)
{
    struct candidate top = t->heap[0], last = t->heap[--t->n_heap];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= t->n_heap)
            break;
        if (child + 1 < t->n_heap && before(&t->heap[child + 1], &t->heap[child]))
            child++;
        if (!before(&t->heap[child], &last))
            break;
        t->heap[i] = t->heap[child];
        i = child;
    }
    t->heap[i] = last;
    return top;
}

/* What has new places since the last time becomes a candidate with them. */
static void push_fresh(struct training *t)
{
    for (uint32_t i = 0; i < t->pairs.n_fresh; i++) {
        struct pair_entry *e = &t->pairs.entries[t->pairs.fresh[i]];
        struct candidate c = {.count = e->count, .pair = e->pair, .places = e->places};
        e->places = (struct places){0};
        if (c.count > 0)
            heap_push(t, &c);
        else
            free(c.places.words);
    }
    t->pairs.n_fresh = 0;
}

/* A token written in the byte-level alphabet. */
static int add_text(struct training *t, const struct strbuf *text, uint32_t id, struct err *err)
{
    return bpe_add_token(t->bpe, text->buf, text->len, id, err);
}

/* End-of-text, then the alphabet: bytes whose characters are themselves come before the others. */
static int add_alphabet(struct training *t, uint32_t byte_ids[256], struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = bpe_add_token(t->bpe, END_OF_TEXT, strlen(END_OF_TEXT), 0, err);
    uint32_t id = 1;

    for (int moved = 0; rc == 0 && moved < 2; moved++) {
        for (unsigned b = 0; rc == 0 && b < 256; b++) {
            unsigned char byte = (unsigned char)b;
            strbuf_clear(&text);
            bytelevel_write(&byte, 1, &text);
            /* Characters from U+0100 on begin with 0xc4 or 0xc5. */
            if (((unsigned char)text.buf[0] >= 0xc4) != (moved == 1))
                continue;
            byte_ids[b] = id;
            rc = add_text(t, &text, id++, err);
        }
    }
    strbuf_release(&text);
    return rc;
}

/* Every distinct pretoken becomes a word of byte symbols in one pool. */
static void make_words(struct training *t, const struct byte_map *counts,
                       const uint32_t byte_ids[256])
{
    t->pool = xreallocarray(NULL, counts->pool.len + 1, sizeof(*t->pool));
    t->words = xcalloc((size_t)counts->n + 1, sizeof(*t->words));
    t->n_words = counts->n;
    for (uint32_t i = 0; i < counts->n; i++) {
        const struct byte_map_entry *e = &counts->entries[i];
        t->words[i] = (struct word){.at = e->at, .len = e->len, .count = (int64_t)e->value};
        for (uint32_t j = 0; j < e->len; j++)
            t->pool[e->at + j] = byte_ids[(unsigned char)counts->pool.buf[e->at + j]];
    }
}

/* The initial counts, and with them the first candidates. */
static void count_pairs(struct training *t)
{
    for (uint32_t i = 0; i < t->n_words; i++) {
        const struct word *w = &t->words[i];
        const uint32_t *s = t->pool + w->at;
        for (uint32_t j = 0; j + 1 < w->len; j++)
            pair_map_change(&t->pairs, s[j], s[j + 1], w->count, i);
    }
    push_fresh(t);
}

/* Merges the pair in one word, from left to right, and keeps the counts of its neighbours. */
static void merge_in_word(struct training *t, uint32_t index, uint32_t left, uint32_t right,
                          uint32_t id)
{
    struct word *w = &t->words[index];
    uint32_t *s = t->pool + w->at;
    uint32_t to = 0;

    for (uint32_t from = 0; from < w->len; to++) {
        if (s[from] != left || from + 1 == w->len || s[from + 1] != right) {
            s[to] = s[from++];
            continue;
        }
        from += 2;
        if (to > 0) {
            pair_map_change(&t->pairs, s[to - 1], left, -w->count, index);
            pair_map_change(&t->pairs, s[to - 1], id, w->count, index);
        }
        if (from < w->len) {
            pair_map_change(&t->pairs, right, s[from], -w->count, index);
            pair_map_change(&t->pairs, id, s[from], w->count, index);
        }
        s[to] = id;
    }
    w->len = to;
}

/* Enters the merge and gives the id of the merged token, which may be an old one: the same text can
 * come about in two ways. */
static int enter_merge(struct training *t, uint32_t left, uint32_t right, uint32_t *id,
                       struct err *err)
{
    struct strbuf a = STRBUF_INIT, b = STRBUF_INIT, whole = STRBUF_INIT;
    size_t n = 0;
    int rc = 0;

    const char *text = bpe_text(t->bpe, left, &n);
    strbuf_add(&a, text, n);
    text = bpe_text(t->bpe, right, &n);
    strbuf_add(&b, text, n);
    strbuf_add(&whole, a.buf, a.len);
    strbuf_add(&whole, b.buf, b.len);
    *id = bpe_find(t->bpe, whole.buf, whole.len);
    if (*id == BPE_NONE) {
        *id = t->bpe->n_ids;
        rc = add_text(t, &whole, *id, err);
    }
    if (rc == 0)
        rc = bpe_add_merge(t->bpe, a.buf, a.len, b.buf, b.len, err);
    strbuf_release(&a);
    strbuf_release(&b);
    strbuf_release(&whole);
    return rc;
}

static int merge_candidate(struct training *t, const struct candidate *c, struct err *err)
{
    uint32_t left = (uint32_t)(c->pair >> 32), right = (uint32_t)c->pair, id = 0;
    int rc = enter_merge(t, left, right, &id, err);

    for (uint32_t i = 0; rc == 0 && i < c->places.n; i++)
        merge_in_word(t, c->places.words[i], left, right, id);
    push_fresh(t);
    return rc;
}

/* Merges until the vocabulary is full or no pair is frequent enough. */
static int merge_all(struct training *t, uint32_t vocab, uint32_t min_count,
                     struct progress *progress, struct err *err)
{
    int rc = 0;

    while (rc == 0 && t->bpe->n_ids < vocab && t->n_heap > 0) {
        struct candidate c = heap_pop(t);
        int64_t count = pair_map_count(&t->pairs, c.pair);
        if (count != c.count) {
            c.count = count;
            heap_push(t, &c);
            continue;
        }
        bool enough = count >= 1 && count >= (int64_t)min_count;
        if (enough)
            rc = merge_candidate(t, &c, err);
        free(c.places.words);
        if (!enough)
            break;
        if (progress != NULL)
            progress_set(progress, t->bpe->n_ids);
    }
    return rc;
}

static void training_release(struct training *t)
{
    for (size_t i = 0; i < t->n_heap; i++)
        free(t->heap[i].places.words);
    free(t->heap);
    free(t->pool);
    free(t->words);
    pair_map_release(&t->pairs);
}

int bpe_train(const struct byte_map *counts, uint32_t vocab, uint32_t min_count,
              struct progress *progress, struct bpe_tokenizer *tok, struct err *err)
{
    struct training t = {.bpe = &tok->bpe};
    uint32_t byte_ids[256];

    assert(vocab >= BPE_TRAIN_VOCAB_MIN && vocab <= BPE_TRAIN_VOCAB_MAX);
    pair_map_init(&t.pairs);
    int rc = add_alphabet(&t, byte_ids, err);
    if (rc == 0) {
        make_words(&t, counts, byte_ids);
        count_pairs(&t);
        rc = merge_all(&t, vocab, min_count, progress, err);
    }
    training_release(&t);
    if (rc == 0)
        rc = split_add_pattern(&tok->split, SPLIT_GPT2, err);
    if (rc < 0)
        return rc;
    struct added_token end = {
        .content = xstrdup(END_OF_TEXT), .len = strlen(END_OF_TEXT), .id = 0, .special = true};
    added_put(&tok->added, &end);
    return bpe_tokenizer_finish(tok, err);
}

struct piece_counter {
    struct split_sink sink; /* first */
    struct byte_map *counts;
};

static int count_piece(struct split_sink *sink, const char *text, size_t len, struct err *err)
{
    struct piece_counter *c = (struct piece_counter *)sink;

    if (len >= UINT32_MAX || c->counts->n >= UINT32_MAX / 2 - 1)
        return err_set(err, ERR_RANGE, "too many or too long pretokens");
    uint32_t entry = byte_map_add(c->counts, text, len);
    c->counts->entries[entry].value++;
    return 0;
}

int bpe_count_document(struct byte_map *counts, const struct split *split,
                       struct split_scratch *scratch, const char *text, size_t len, struct err *err)
{
    struct piece_counter c = {.sink = {.piece = count_piece}, .counts = counts};

    return split_run(split, scratch, text, len, &c.sink, err);
}
