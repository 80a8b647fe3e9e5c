/*
 * A benchmark as the parameters ask for it: items, examples, and which items are asked.
 */
#ifndef WORKER_EVAL_SCORE_BENCHMARK_H
#define WORKER_EVAL_SCORE_BENCHMARK_H

#include "worker/data/tokenizer/tokenizer.h"
#include "worker/eval/items/item.h"
#include "worker/eval/prompt/prompt.h"
#include "worker/eval/score/options.h"

struct benchmark {
    struct item_set set;
    struct item_set fewshot; /* empty when examples come from the set itself */
    struct prompts prompts;
    size_t *selected; /* indices into the set, rising */
    size_t n_selected;
};

/* What a run over the selected items takes, for --describe. */
struct benchmark_size {
    double requests;
    double bytes;          /* of all requests' texts, as cut */
    double distinct_bytes; /* of these, not what a request begins with as the one before */
    size_t longest;        /* bytes of the longest request, uncut */
    size_t longest_item;   /* where that is */
    size_t longest_option;
};

/* Where items are, read as the parameters say. */
struct item_source benchmark_source(const struct eval_options *o, const char *path,
                                    const char *split);
/* Always valid to release. */
int benchmark_load(struct benchmark *b, const struct eval_options *o, struct err *err) MUST_CHECK;
void benchmark_release(struct benchmark *b);
/* The most bytes of a request's text that a model of this context reads, by the tokens of some
 * requests; SIZE_MAX where texts fall into windows. */
int benchmark_find_most(const struct benchmark *b, const struct eval_options *o,
                        const struct tokenizer *tok, size_t context, size_t *most,
                        struct err *err) MUST_CHECK;
/* Over the selected items; builds the text of every request. What a request has beyond `most` bytes
 * is cut at its left end before it is counted or compared. */
void benchmark_measure(const struct benchmark *b, size_t most, struct benchmark_size *size);
/* Keeps at most n of the selected items: evenly spread runs of neighbours, which share examples. */
void benchmark_thin(struct benchmark *b, size_t n);

#endif
