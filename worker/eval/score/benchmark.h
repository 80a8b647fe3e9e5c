/*
 * A benchmark as the parameters ask for it: items, examples, and which items are asked.
 */
#ifndef WORKER_EVAL_SCORE_BENCHMARK_H
#define WORKER_EVAL_SCORE_BENCHMARK_H

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
    double bytes;          /* of all requests' texts */
    double distinct_bytes; /* of these, not what a request begins with as the one before */
    size_t longest;        /* bytes of the longest request */
    size_t longest_item;   /* where that is */
    size_t longest_option;
};

/* Where items are, read as the parameters say. */
struct item_source benchmark_source(const struct eval_options *o, const char *path,
                                    const char *split);
/* Always valid to release. */
int benchmark_load(struct benchmark *b, const struct eval_options *o, struct err *err) MUST_CHECK;
void benchmark_release(struct benchmark *b);
/* Over the selected items; builds the text of every request. */
void benchmark_measure(const struct benchmark *b, struct benchmark_size *size);

#endif
