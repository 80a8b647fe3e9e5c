/* What shard.c needs of corpus.c beyond shard.h. */
#ifndef WORKER_DATA_CORPUS_H
#define WORKER_DATA_CORPUS_H

#include "worker/data/shard.h"

/* Room for `more` tokens at c->tokens + c->n_tokens. ERR_OTHER without memory. */
int corpus_reserve_tokens(struct corpus *c, size_t more, struct err *err) MUST_CHECK;
/* Appends the entry of a document whose tokens are there already; adds up n_bytes, not n_tokens. */
void corpus_push_document(struct corpus *c, const struct shard_document *doc);

#endif
