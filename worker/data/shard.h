/*
 * A shard: tokenised documents of one source in one file, little-endian.
 *
 *   offset size
 *        0    8  magic "PREREGSH"
 *        8    4  version (1)
 *       12    4  bytes per token: 2 (vocabulary up to 65,536) or 4
 *       16    8  n_tokens, the end-of-text of each document included
 *       24    8  n_documents
 *       32    8  n_bytes of text in them
 *       40    4  vocabulary
 *       44    4  zero
 *       48   32  tokenizer digest
 *       80   32  SHA-256 of everything after the header
 *      112   80  source name, NUL-padded
 *      192       documents: n_documents x { u64 n_tokens, u64 n_bytes, u64 hash }
 *                tokens: n_tokens x 2 or 4 bytes
 *
 * A document's hash is document_hash() of its text, whatever the tokenizer, so the same documents
 * are held out under every tokenizer. Invariants checked on opening: sizes agree, the digest holds,
 * every token is inside the vocabulary, every document has at least its end-of-text.
 */
#ifndef WORKER_DATA_SHARD_H
#define WORKER_DATA_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/files/digest.h"
#include "worker/data/tokenizer/tokenizer.h"

#define SHARD_MAGIC       "PREREGSH"
#define SHARD_VERSION     1u
#define SHARD_HEADER_SIZE 192u
#define SHARD_SOURCE_MAX  79u
#define SHARD_BYTES_MAX   ((int64_t)64 << 30)

struct shard_document {
    uint64_t n_tokens;
    uint64_t n_bytes;
    uint64_t hash;
};

/* Documents in memory: what a shard holds, and what the trainer reads text into. */
struct corpus {
    uint32_t *tokens; /* documents one after the other, each ended by end-of-text */
    size_t n_tokens;
    size_t cap_tokens;
    struct shard_document *documents;
    size_t n_documents;
    size_t cap_documents;
    uint64_t n_bytes;
};

/* The first 8 bytes of SHA-256 of the text, big-endian. */
uint64_t document_hash(const char *text, size_t len);

void corpus_init(struct corpus *c);
void corpus_release(struct corpus *c);
/* Tokenises one document and appends it with its end-of-text. */
int corpus_add(struct corpus *c, const struct tokenizer *tok, const char *text, size_t len,
               struct err *err) MUST_CHECK;

/* Writes atomically. ERR_RANGE for a source name over SHARD_SOURCE_MAX bytes. */
int shard_write(const char *path, const struct corpus *c, const struct tokenizer *tok,
                const char *source, struct err *err) MUST_CHECK;
/* Appends the shard's documents to c. ERR_VERSION; ERR_CORRUPT, also for a shard of another
 * tokenizer. On error c has the documents it had. */
int shard_read(const char *path, const struct tokenizer *tok, struct corpus *c,
               struct err *err) MUST_CHECK;

/* Whether the file is a shard; *n_tokens is then what its header says, at most what the file has
 * room for. Nothing else is checked. */
bool shard_count(const char *path, double *n_tokens);
/* Whether a shard was packed with tok, by its header alone; also 0 for what is not a shard or
 * cannot be read. ERR_CORRUPT naming both digests. */
int shard_check_tokenizer(const char *path, const struct tokenizer *tok,
                          struct err *err) MUST_CHECK;

/* What shard.c needs of corpus.c beyond shard.h. */

/* Room for `more` tokens at c->tokens + c->n_tokens. ERR_OTHER without memory. */
int corpus_reserve_tokens(struct corpus *c, size_t more, struct err *err) MUST_CHECK;
/* Appends the entry of a document whose tokens are there already; adds up n_bytes, not n_tokens. */
void corpus_push_document(struct corpus *c, const struct shard_document *doc);

#endif
