/*
 * What a model is trained and judged on: the sources of the mix, tokenised and split.
 *
 * A document is held out when its hash / 2^64 is under val_fraction; of a source where that leaves
 * none, the document with the smallest hash is. So the split depends on the text alone: not on
 * seed, tokenizer or order of files. With a validation text of its own (options.h), every document
 * of the sources is trained on and every one of that text is held out.
 *
 * Order: training sequence number `slot` (step x sequences a step + index) is a function of the
 * seed and slot alone. Slots come in blocks of MIX_BLOCK, in which each source has its exact share,
 * in a keyed permutation; the k-th sequence of a source is window permute(k mod n) of its epoch k /
 * n, whose windows begin at a keyed offset.
 */
#ifndef WORKER_TRAIN_DATA_H
#define WORKER_TRAIN_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "worker/data/order.h"
#include "worker/data/tokenizer/tokenizer.h"
#include "worker/report/task.h"
#include "worker/train/options.h"

#define MIX_BLOCK ORDER_BLOCK

struct token_stream {
    uint32_t *ids;
    size_t n;
    uint64_t n_bytes; /* of the documents in it */
    uint64_t n_documents;
};

struct train_source {
    const char *name;
    double weight;
    struct digest read; /* of the file or folder at its path */
    struct token_stream train;
    struct token_stream val;
    uint64_t n_windows;  /* training sequences an epoch */
    uint32_t block_part; /* of MIX_BLOCK slots */
};

struct train_data {
    struct tokenizer *tokenizer;
    struct digest tokenizer_read; /* of the file or folder at its path; zero: "bytes" */
    struct train_source sources[MIX_MAX];
    size_t n_sources;
    struct train_source validation; /* a text of its own, all of it in `val`; name NULL: none */
    struct digest init;             /* of the model that the run starts from; zero: none */
    uint64_t seed;
    size_t context;
};

/* Verifies, reads, tokenises and splits every source. ERR_CORRUPT, ERR_NOT_FOUND, ERR_SYNTAX: bad
 * data; ERR_REFUSED: a tokenizer that asks for what this version does not do; ERR_INVALID: one with
 * more tokens than the model. data is to be released on error too. */
int train_data_load(const struct worker_task *task, const struct train_options *opt,
                    struct train_data *data, struct err *err) MUST_CHECK;
/* The tokenizer that the options name, without verifying its digest; NULL where it is not there. A
 * fault, too, where it would not do. The caller frees it. */
struct tokenizer *train_data_tokenizer(const struct worker_task *task,
                                       const struct train_options *opt,
                                       struct param_faults *faults);
/* Shards that were packed with another tokenizer than tok become faults, by their headers alone,
 * and so do lines that are not documents, by samples; what cannot be read is left to the run. */
void train_data_check_sources(const struct worker_task *task, const struct train_options *opt,
                              const struct tokenizer *tok, struct param_faults *faults);
void train_data_release(struct train_data *data);

/* What a validation measures, part by part, as train_options_validated() names it. */
static inline size_t train_data_n_validated(const struct train_data *data)
{
    return data->validation.name != NULL ? 1 : data->n_sources;
}

static inline const struct train_source *train_data_validated(const struct train_data *data,
                                                              size_t i)
{
    return data->validation.name != NULL ? &data->validation : &data->sources[i];
}

/* The context tokens of training sequence `slot` and what follows each. */
void train_data_sequence(const struct train_data *data, uint64_t slot, uint32_t *tokens,
                         uint32_t *targets);

#endif
