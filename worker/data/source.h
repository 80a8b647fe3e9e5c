/*
 * A source of documents: a file, or a folder whose files are read in sorted order (folders inside
 * it likewise). The kinds of files:
 *   begins with the shard magic   a packed shard (its tokenizer must be ours)
 *   *.jsonl                       one JSON object a line, the document in its string field "text"
 *   anything else                 UTF-8 text, documents separated by lines that are exactly
 *                                 <|endoftext|>; without one: cut at the first blank line after
 *                                 every SOURCE_CUT_BYTES
 * Documents are trimmed of leading and trailing line ends; empty ones are skipped.
 */
#ifndef WORKER_DATA_SOURCE_H
#define WORKER_DATA_SOURCE_H

#include <stddef.h>

#include "base/err.h"
#include "worker/data/progress.h"
#include "worker/data/shard.h"
#include "worker/data/tokenizer/tokenizer.h"

#define SOURCE_SEPARATOR "<|endoftext|>"
#define SOURCE_CUT_BYTES 4096u
#define SOURCE_FILE_MAX  ((size_t)8 << 30)

#define SOURCE_SAMPLE_BYTES ((size_t)1 << 18)
#define SOURCE_SAMPLES      4

/* The receiver of documents; embedded as the first member of a larger struct. */
struct source_sink {
    int (*document)(struct source_sink *sink, const char *text, size_t len, struct err *err);
    int (*shard)(struct source_sink *sink, const char *path, struct err *err); /* NULL: refused */
    struct progress *progress;                                                 /* or NULL */
    uint64_t n_read; /* bytes of files read so far */
};

/* Hands every document of path to the sink. ERR_NOT_FOUND, ERR_SYNTAX (file and line named), and
 * what the sink says. */
int source_visit(const char *path, struct source_sink *sink, struct err *err) MUST_CHECK;
/* Calls file() for a file, or in sorted order for each file below a folder, until one returns an
 * error. ERR_NOT_FOUND for what is neither. */
int source_each_file(const char *path,
                     int (*file)(void *ctx, const char *path, int64_t size, struct err *err),
                     void *ctx, struct err *err) MUST_CHECK;
/* Bytes of the files that source_visit() would read; 0 when there are none. */
int64_t source_bytes(const char *path);

/* Whether every shard at a path was packed with tok, by the headers alone
 * (shard_check_tokenizer()). ERR_CORRUPT for one that was not; errors as source_each_file()'s. */
int source_check_tokenizer(const char *path, const struct tokenizer *tok,
                           struct err *err) MUST_CHECK;

/* Tokens of all documents at a path, found without reading it whole: of shards what their headers
 * say; of text the first SOURCE_SAMPLE_BYTES of a file, of SOURCE_SAMPLES files at most, tokenised,
 * and the rest taken to be like them. NaN where nothing could be sampled. Without tok the samples
 * are read, for errors alone. Errors as source_visit()'s. */
int source_estimate(const char *path, const struct tokenizer *tok, double *n_tokens,
                    struct err *err) MUST_CHECK;

/* Appends every document of path to c. ERR_NOT_FOUND, ERR_SYNTAX (file and line named), ERR_CORRUPT
 * ... */
int source_read(const char *path, const struct tokenizer *tok, struct corpus *c,
                struct err *err) MUST_CHECK;
/* The same, telling how far it is in bytes of files. */
int source_read_watched(const char *path, const struct tokenizer *tok, struct progress *progress,
                        struct corpus *c, struct err *err) MUST_CHECK;

#endif
