/* The first piece of text under GPT-2's pattern (SPLIT_GPT2) as far as ASCII decides it; for
 * split.c. */
#ifndef WORKER_DATA_TOKENIZER_SPLIT_GPT2_H
#define WORKER_DATA_TOKENIZER_SPLIT_GPT2_H

#include <stddef.h>

/* Bytes of the first piece; 0 when a character outside ASCII may decide. len > 0. */
size_t split_gpt2_piece(const char *text, size_t len);

#endif
