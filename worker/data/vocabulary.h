/* `prereg-data tokenizer`: a vocabulary trained on sources of text, as a tokenizer.json. */
#ifndef WORKER_DATA_VOCABULARY_H
#define WORKER_DATA_VOCABULARY_H

#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* paths: ended by NULL. Writes file and says what it holds. ERR_EXISTS rather than write over one,
 * ERR_REFUSED for a shard, whose text is gone. */
int vocabulary_train(char *const *paths, uint32_t vocab, uint32_t min_count, const char *file,
                     FILE *out, struct err *err) MUST_CHECK;

#endif
