/*
 * Packing text into shards (worker/data/shard.h), and saying what a shard or a source of text
 * holds.
 */
#ifndef WORKER_DATA_PACK_H
#define WORKER_DATA_PACK_H

#include <stdio.h>

#include "base/err.h"
#include "worker/data/tokenizer/tokenizer.h"

#define PACK_SUFFIX ".shard"

/* Reads the file or folder (as worker/data/source.h takes it) into <folder>/<name>.shard, where
 * name is the path's last component without its suffix; prints a line about it. ERR_EXISTS rather
 * than write over a file: two sources of one name would be one shard. */
int pack_source(const char *path, const char *folder, const struct tokenizer *tok, FILE *out,
                struct err *err) MUST_CHECK;

/* Reads everything at path, checking it as training would, and prints what it is. */
int pack_inspect(const char *path, const struct tokenizer *tok, FILE *out,
                 struct err *err) MUST_CHECK;
/* Says what the tokenizer is: size, digest, what it loses. */
void pack_inspect_tokenizer(const struct tokenizer *tok, FILE *out);

#endif
