/*
 * Training a byte-level BPE vocabulary: count pretokens, then merge the most frequent pair of
 * neighbours again and again.
 *
 * The same merges in the same order as BpeTrainer of Hugging Face tokenizers finds on the same
 * documents (byte-level alphabet, GPT-2's pattern): of pairs that are equally frequent the one with
 * the lower ids comes first. The result depends on the documents alone, not on their order.
 */
#ifndef WORKER_DATA_TOKENIZER_BPE_TRAIN_H
#define WORKER_DATA_TOKENIZER_BPE_TRAIN_H

#include "worker/data/progress.h"
#include "worker/data/tokenizer/byte_map.h"
#include "worker/data/tokenizer/tokenizer_bpe.h"

#define BPE_TRAIN_VOCAB_MIN 257u /* end-of-text and the bytes */
#define BPE_TRAIN_VOCAB_MAX 1000000u
#define BPE_TRAIN_MIN_COUNT 2u /* pairs seen less often are left apart */

/* Adds the pretokens of a document: their values are how often each occurs. */
int bpe_count_document(struct byte_map *counts, const struct split *split,
                       struct split_scratch *scratch, const char *text, size_t len,
                       struct err *err) MUST_CHECK;

/* Ids: 0 is <|endoftext|>, then the 256 bytes in the order of their characters, then the merges.
 * Fewer than `vocab` when no pair comes min_count times any more. t is initialised; progress may be
 * NULL. t is to be released on error too. */
int bpe_train(const struct byte_map *counts, uint32_t vocab, uint32_t min_count,
              struct progress *progress, struct bpe_tokenizer *t, struct err *err) MUST_CHECK;

#endif
