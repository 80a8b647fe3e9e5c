/*
 * A byte-level BPE model: vocabulary and ranked merges, and the ids of one pretoken.
 *
 * The result is that of repeatedly merging the adjacent pair of lowest rank, leftmost first, until
 * no pair is in the table, as Hugging Face tokenizers' BPE does; two short cuts do not change it:
 * pretokens that are a token and merge to it are looked up whole, and long ones go through a heap,
 * so that the work is n log n in the length of the pretoken.
 *
 * Built by bpe_add_token() for all tokens, then bpe_add_merge() in order of rank, then
 * bpe_finish(); from then on nothing changes and threads may share it.
 */
#ifndef WORKER_DATA_TOKENIZER_BPE_H
#define WORKER_DATA_TOKENIZER_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "worker/data/tokenizer/byte_map.h"
#include "worker/data/tokenizer/tokenizer.h"

#define BPE_NONE   UINT32_MAX
#define BPE_ID_MAX ((1u << 24) - 1) /* ids are 0 .. BPE_ID_MAX */

struct bpe_merge {
    uint32_t left;
    uint32_t right;
    uint32_t id; /* of the merged token */
};

/* left and right -> rank: index into merges; empty slots have rank BPE_NONE. */
struct bpe_pair_slot {
    uint64_t pair;
    uint32_t rank;
    uint32_t id;
};

/* The place of a token's bytes in bpe.bytes. */
struct bpe_span {
    uint32_t at;
    uint32_t len;
};

struct bpe {
    struct byte_map vocab;  /* token as written -> id */
    struct byte_map whole;  /* bytes -> id, of the tokens that these bytes are encoded to */
    struct strbuf bytes;    /* of all tokens */
    struct bpe_span *spans; /* by id; bytes of an id that no token has: none */
    uint32_t *texts;        /* by id: index into vocab, or BPE_NONE */
    uint32_t n_ids;         /* greatest id + 1 */
    uint32_t cap_ids;
    struct bpe_merge *merges;
    uint32_t n_merges;
    uint32_t cap_merges;
    struct bpe_pair_slot *pairs;
    uint32_t n_pairs; /* slots, a power of two */
    uint32_t byte_ids[256];
    uint32_t unk;       /* replaces bytes outside the vocabulary; BPE_NONE: they are dropped */
    bool fuse_unk;      /* adjacent unknown bytes give one token */
    bool ignore_merges; /* a pretoken that is a token is that token, whatever the merges say */
};

void bpe_init(struct bpe *b);
void bpe_release(struct bpe *b);

/* text: as written in a vocabulary, of the byte-level alphabet (or not: then no text gives this
 * token). ERR_SYNTAX for a token or an id that is there already, ERR_RANGE for an id too great. */
int bpe_add_token(struct bpe *b, const char *text, size_t len, uint32_t id,
                  struct err *err) MUST_CHECK;
/* left and right as written; the merged token is the one written left right. ERR_SYNTAX when one of
 * the three is not in the vocabulary. Of a pair given twice, the later rank counts. */
int bpe_add_merge(struct bpe *b, const char *left, size_t n_left, const char *right, size_t n_right,
                  struct err *err) MUST_CHECK;
/* Makes the tables for encoding. Once, after the last merge. */
void bpe_finish(struct bpe *b);

/* BPE_NONE when absent. */
uint32_t bpe_find(const struct bpe *b, const char *text, size_t len);
/* The token as written; NULL and *len 0 for an id that no token has. */
const char *bpe_text(const struct bpe *b, uint32_t id, size_t *len);
/* Of a merge; BPE_NONE when there is none. */
uint32_t bpe_rank(const struct bpe *b, uint32_t left, uint32_t right);
/* The number of bytes that have no token of their own. */
unsigned bpe_missing_bytes(const struct bpe *b);

/* Appends the ids of one pretoken. ERR_RANGE for one of 2^31 bytes or more. */
int bpe_encode(const struct bpe *b, const char *text, size_t len, struct token_list *out,
               struct err *err) MUST_CHECK;

#endif
