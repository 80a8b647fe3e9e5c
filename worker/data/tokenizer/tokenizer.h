/*
 * Text to token ids and back. Kinds: "bytes", where id b < 256 is the byte b and 256 ends a
 * document; byte-level BPE (worker/data/tokenizer/tokenizer_bpe.h); llama2.c's tokenizer.bin.
 *
 * A tokenizer is immutable after opening and may be shared by threads. Its digest names it: shards
 * and models carry the digest and refuse another.
 */
#ifndef WORKER_DATA_TOKENIZER_TOKENIZER_H
#define WORKER_DATA_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/files/digest.h"
#include "base/strbuf.h"

#define TOKENIZER_BYTES       "bytes"
#define TOKENIZER_BYTES_VOCAB 257u

#define TOKENIZER_FILE_LLAMA2C "tokenizer.bin" /* as which tokenizer_save() writes llama2.c's */

struct tokenizer;

/* A growing array of ids. */
struct token_list {
    uint32_t *ids;
    size_t n;
    size_t cap;
};

/* spec is "bytes"; or the path of a tokenizer.json (worker/data/tokenizer/tokenizer_bpe.h), of a
 * folder with one or with GPT-2's vocab.json and merges.txt, or of llama2.c's tokenizer.bin.
 * ERR_NOT_FOUND, ERR_SYNTAX; ERR_REFUSED for what this version does not do. */
int tokenizer_open(const char *spec, struct tokenizer **out, struct err *err) MUST_CHECK;
void tokenizer_free(struct tokenizer *tok);

const char *tokenizer_spec(const struct tokenizer *tok);
uint32_t tokenizer_vocab(const struct tokenizer *tok);       /* ids are 0 .. vocab - 1 */
uint32_t tokenizer_end_of_text(const struct tokenizer *tok); /* the id that ends a document */
struct digest tokenizer_digest(const struct tokenizer *tok);
/* Whether encoding puts a space before the text, so that what is generated begins with one. */
bool tokenizer_adds_space(const struct tokenizer *tok);
/* Whether those who made the tokenizer put end-of-text before every text, as SentencePiece's <s>.
 * Encoding does not. */
bool tokenizer_begins_texts(const struct tokenizer *tok);

const char *tokenizer_kind_name(const struct tokenizer *tok); /* for people */
/* Appends what is lost on the way to ids and back, in a few words; false: nothing is, decoding what
 * was encoded gives every byte string back. */
bool tokenizer_losses(const struct tokenizer *tok, struct strbuf *out);
/* "tokenizer.json", "tokenizer.bin"; NULL where the spec says it all. */
const char *tokenizer_file_name(const struct tokenizer *tok);
/* Writes what opens as the same tokenizer into a folder that is there. *name:
 * tokenizer_file_name(). */
int tokenizer_save(const struct tokenizer *tok, const char *folder, const char **name,
                   struct err *err) MUST_CHECK;

/* Appends the ids of text; the end-of-text id where the text spells it and it is an added token. */
int tokenizer_encode(const struct tokenizer *tok, const char *text, size_t len,
                     struct token_list *out, struct err *err) MUST_CHECK;
/* Appends the bytes of ids; of end-of-text its spelling, where it has one. ERR_RANGE for an id
 * outside the vocabulary. */
int tokenizer_decode(const struct tokenizer *tok, const uint32_t *ids, size_t n, struct strbuf *out,
                     struct err *err) MUST_CHECK;

/* Whether it is left out where only text is wanted (skip_special_tokens): no word of the text. */
bool tokenizer_is_special(const struct tokenizer *tok, uint32_t id);

void token_list_release(struct token_list *list);
void token_list_add(struct token_list *list, uint32_t id);

#endif
