/*
 * Builds a model and the tables that bpe_encode.c needs. A merge is stored with the ids of its
 * parts, so parts and result must be in the vocabulary before it. bpe_finish() makes three tables:
 * pairs to ranks, bytes to ids, and whole pretokens to ids. The last holds only tokens whose own
 * bytes really encode to them, which is tested with the merges themselves.
 */
#include "worker/data/tokenizer/bpe.h"

#include <assert.h>

#include "base/xalloc.h"
#include "worker/data/tokenizer/bpe_private.h"
#include "worker/data/tokenizer/bytelevel.h"

#define TEXT_SHOWN 60 /* bytes of a token in a message */

void bpe_init(struct bpe *b)
{
    *b = (struct bpe){.bytes = STRBUF_INIT, .unk = BPE_NONE};
    byte_map_init(&b->vocab);
    byte_map_init(&b->whole);
}

void bpe_release(struct bpe *b)
{
    byte_map_release(&b->vocab);
    byte_map_release(&b->whole);
    strbuf_release(&b->bytes);
    free(b->spans);
    free(b->texts);
    free(b->merges);
    free(b->pairs);
    bpe_init(b);
}

static int shown(size_t len)
{
    return len < TEXT_SHOWN ? (int)len : TEXT_SHOWN;
}

/* Makes room for ids up to id; new ones have no token. */
static void grow_ids(struct bpe *b, uint32_t id)
{
    if (id >= b->cap_ids) {
        uint32_t cap = b->cap_ids * 2 > id + 1 ? b->cap_ids * 2 : id + 1;
        b->spans = xreallocarray(b->spans, cap, sizeof(*b->spans));
        b->texts = xreallocarray(b->texts, cap, sizeof(*b->texts));
        b->cap_ids = cap;
    }
    for (; b->n_ids <= id; b->n_ids++) {
        b->spans[b->n_ids] = (struct bpe_span){0};
        b->texts[b->n_ids] = BPE_NONE;
    }
}

int bpe_add_token(struct bpe *b, const char *text, size_t len, uint32_t id, struct err *err)
{
    if (id > BPE_ID_MAX)
        return err_set(err, ERR_RANGE, "token \"%.*s\": id %u is over %u", shown(len), text, id,
                       BPE_ID_MAX);
    if (byte_map_find(&b->vocab, text, len) != BYTE_MAP_NONE)
        return err_set(err, ERR_SYNTAX, "token \"%.*s\" is duplicated", shown(len), text);
    if (id < b->n_ids && b->texts[id] != BPE_NONE)
        return err_set(err, ERR_SYNTAX, "token \"%.*s\": id %u belongs to another token",
                       shown(len), text, id);
    grow_ids(b, id);
    uint32_t entry = byte_map_add(&b->vocab, text, len);
    b->vocab.entries[entry].value = id;
    b->texts[id] = entry;
    size_t at = b->bytes.len;
    if (!bytelevel_read(text, len, &b->bytes))
        strbuf_add(&b->bytes, text, len);
    if (b->bytes.len > UINT32_MAX)
        return err_set(err, ERR_RANGE, "the vocabulary has over 4 GiB of text");
    b->spans[id] = (struct bpe_span){.at = (uint32_t)at, .len = (uint32_t)(b->bytes.len - at)};
    return 0;
}

uint32_t bpe_find(const struct bpe *b, const char *text, size_t len)
{
    uint32_t entry = byte_map_find(&b->vocab, text, len);

    return entry == BYTE_MAP_NONE ? BPE_NONE : (uint32_t)b->vocab.entries[entry].value;
}

const char *bpe_text(const struct bpe *b, uint32_t id, size_t *len)
{
    *len = 0;
    if (id >= b->n_ids || b->texts[id] == BPE_NONE)
        return NULL;
    *len = b->vocab.entries[b->texts[id]].len;
    return byte_map_key(&b->vocab, b->texts[id]);
}

uint32_t bpe_rank(const struct bpe *b, uint32_t left, uint32_t right)
{
    return bpe_find_pair(b, left, right)->rank;
}

unsigned bpe_missing_bytes(const struct bpe *b)
{
    unsigned n = 0;

    for (size_t i = 0; i < 256; i++)
        n += b->byte_ids[i] == BPE_NONE;
    return n;
}

/* The id of a merge's part by its text. */
static int find_part(const struct bpe *b, const char *text, size_t len, uint32_t *id,
                     struct err *err)
{
    *id = bpe_find(b, text, len);
    if (*id == BPE_NONE)
        return err_set(err, ERR_SYNTAX, "\"%.*s\" is not in the vocabulary", shown(len), text);
    return 0;
}

int bpe_add_merge(struct bpe *b, const char *left, size_t n_left, const char *right, size_t n_right,
                  struct err *err)
{
    struct bpe_merge m = {0};
    struct strbuf whole = STRBUF_INIT;

    strbuf_add(&whole, left, n_left);
    strbuf_add(&whole, right, n_right);
    int rc = find_part(b, left, n_left, &m.left, err);
    if (rc == 0 && (rc = find_part(b, right, n_right, &m.right, err)) == 0)
        rc = find_part(b, whole.buf, whole.len, &m.id, err);
    strbuf_release(&whole);
    if (rc < 0)
        return rc;
    if (b->n_merges == BPE_NONE / 4)
        return err_set(err, ERR_RANGE, "over %u merges", BPE_NONE / 4);
    ARRAY_GROW(b->merges, b->n_merges, b->cap_merges);
    b->merges[b->n_merges++] = m;
    return 0;
}

/* Open addressing at most half full; a pair given twice keeps its later rank. */
static void index_pairs(struct bpe *b)
{
    b->n_pairs = 64;
    while (b->n_pairs < b->n_merges * 2)
        b->n_pairs *= 2;
    b->pairs = xcalloc(b->n_pairs, sizeof(*b->pairs));
    for (uint32_t i = 0; i < b->n_pairs; i++)
        b->pairs[i].rank = BPE_NONE;
    for (uint32_t i = 0; i < b->n_merges; i++) {
        const struct bpe_merge *m = &b->merges[i];
        uint32_t s = (uint32_t)(bpe_find_pair(b, m->left, m->right) - b->pairs);
        b->pairs[s] =
            (struct bpe_pair_slot){.pair = bpe_pair(m->left, m->right), .rank = i, .id = m->id};
    }
}

static void index_bytes(struct bpe *b)
{
    for (unsigned i = 0; i < 256; i++) {
        struct strbuf text = STRBUF_INIT;
        unsigned char byte = (unsigned char)i;
        bytelevel_write(&byte, 1, &text);
        b->byte_ids[i] = bpe_find(b, text.buf, text.len);
        strbuf_release(&text);
    }
}

/* Whether the token's bytes alone, as one pretoken, are encoded to it. */
static bool encodes_to_itself(const struct bpe *b, uint32_t id, struct strbuf *text,
                              uint32_t **symbols, size_t *cap)
{
    struct bpe_span span = b->spans[id];
    size_t len = 0;
    const char *written = bpe_text(b, id, &len);

    if (written == NULL || span.len == 0)
        return false;
    /* A token outside the alphabet has its own text for bytes, which is written otherwise. */
    strbuf_clear(text);
    bytelevel_write(b->bytes.buf + span.at, span.len, text);
    if (text->len != len || memcmp(text->buf, written, len) != 0)
        return false;
    if (b->ignore_merges)
        return true;
    if (span.len > *cap) {
        *cap = span.len;
        *symbols = xreallocarray(*symbols, *cap, sizeof(**symbols));
    }
    for (uint32_t i = 0; i < span.len; i++) {
        (*symbols)[i] = b->byte_ids[(unsigned char)b->bytes.buf[span.at + i]];
        if ((*symbols)[i] == BPE_NONE)
            return false;
    }
    return bpe_merge_symbols(b, *symbols, span.len) == 1 && (*symbols)[0] == id;
}

/* Tokens that may be looked up whole; see encodes_to_itself(). */
static void index_whole(struct bpe *b)
{
    struct strbuf text = STRBUF_INIT;
    uint32_t *symbols = NULL;
    size_t cap = 0;

    for (uint32_t id = 0; id < b->n_ids; id++) {
        if (!encodes_to_itself(b, id, &text, &symbols, &cap))
            continue;
        uint32_t entry = byte_map_add(&b->whole, b->bytes.buf + b->spans[id].at, b->spans[id].len);
        b->whole.entries[entry].value = id;
    }
    free(symbols);
    strbuf_release(&text);
}

void bpe_finish(struct bpe *b)
{
    assert(b->pairs == NULL);
    index_pairs(b);
    index_bytes(b);
    index_whole(b);
}
