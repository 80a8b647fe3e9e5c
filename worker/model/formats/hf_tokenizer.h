/*
 * A tokenizer as transformers loads it: tokenizer.json beside tokenizer_config.json. "bytes" is
 * written as byte-level BPE without merges: id b is the byte b in GPT-2's alphabet, 256 the
 * end-of-text token. Another tokenizer.json is copied as it is.
 */
#ifndef WORKER_MODEL_FORMATS_HF_TOKENIZER_H
#define WORKER_MODEL_FORMATS_HF_TOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define HF_FILE_TOKENIZER_CONFIG "tokenizer_config.json"
#define HF_END_OF_TEXT           "<|endoftext|>" /* of "bytes" */

/* Writes folder/tokenizer.json of "bytes". */
int hf_tokenizer_write_bytes(const char *folder, struct err *err) MUST_CHECK;
/* tokenizer_config.json, which says how AutoTokenizer is to read it. */
int hf_tokenizer_write_config(const char *folder, const char *end_of_text, int context,
                              struct err *err) MUST_CHECK;
/* Whether the file means what hf_tokenizer_write_bytes() writes, in whatever form: transformers
 * rewrites it when it saves a model. */
bool hf_tokenizer_is_bytes(const char *path);

#endif
