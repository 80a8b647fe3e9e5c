/*
 * Kind "bpe": byte-level BPE with added tokens and split patterns, as tokenizer.json of the GPT-2
 * family describes it. For the files that read, write and apply one, and for who makes one from
 * text (worker/data/tokenizer/bpe_train.h).
 *
 * Encoding gives the ids that Hugging Face tokenizers give (add_special_tokens=False, and neither
 * truncation nor padding, whatever the file has of them). Where that library has no answer: bytes
 * that are not UTF-8 are pieces of their own and encoded like any others.
 */
#ifndef WORKER_DATA_TOKENIZER_TOKENIZER_BPE_H
#define WORKER_DATA_TOKENIZER_TOKENIZER_BPE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/files/digest.h"
#include "worker/data/tokenizer/added_tokens.h"
#include "worker/data/tokenizer/bpe.h"
#include "worker/data/tokenizer/split.h"

#define BPE_FILE_MAX ((size_t)256 << 20)

#define BPE_JSON   "tokenizer.json"
#define BPE_VOCAB  "vocab.json"
#define BPE_MERGES "merges.txt"

struct bpe_tokenizer {
    struct bpe bpe;
    struct added added;
    struct split split;
    bool prefix_space; /* text that does not begin with a blank gets one */
    uint32_t vocab;    /* greatest id + 1, added tokens included */
    uint32_t end_of_text;
};

void bpe_tokenizer_init(struct bpe_tokenizer *t);
void bpe_tokenizer_release(struct bpe_tokenizer *t);

/* Reads a tokenizer.json. ERR_SYNTAX: malformed; ERR_REFUSED: it asks for something that this
 * version does not do, by name. t is initialised, and to be released on error too. */
int bpe_read_json(struct bpe_tokenizer *t, const char *text, size_t len,
                  struct err *err) MUST_CHECK;
/* Reads GPT-2's two files. */
int bpe_read_pair(struct bpe_tokenizer *t, const char *vocab, size_t n_vocab, const char *merges,
                  size_t n_merges, struct err *err) MUST_CHECK;
/* After reading or building: the vocabulary's size, the end-of-text token (ERR_REFUSED without one)
 * and the tables for encoding. */
int bpe_tokenizer_finish(struct bpe_tokenizer *t, struct err *err) MUST_CHECK;

/* The same tokenizer as tokenizer.json, which Hugging Face tokenizers read. The caller deletes. */
cJSON *bpe_write_json(const struct bpe_tokenizer *t);
/* Names what it does, however it was written down. */
struct digest bpe_tokenizer_digest(const struct bpe_tokenizer *t);

int bpe_tokenizer_encode(const struct bpe_tokenizer *t, const char *text, size_t len,
                         struct token_list *out, struct err *err) MUST_CHECK;
void bpe_tokenizer_decode(const struct bpe_tokenizer *t, uint32_t id, struct strbuf *out);
/* What is lost on the way to ids and back, in a few words; false when nothing is. */
bool bpe_tokenizer_losses(const struct bpe_tokenizer *t, struct strbuf *out);

#endif
