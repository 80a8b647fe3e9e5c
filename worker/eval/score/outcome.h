/*
 * The outcome of one item: the raw answer of the model, the verdicts that follow from it, and the
 * line of items.jsonl that holds both. The verdicts are always computed from the raw answer, also
 * for lines that an earlier attempt wrote, so a line that says otherwise is not believed.
 */
#ifndef WORKER_EVAL_SCORE_OUTCOME_H
#define WORKER_EVAL_SCORE_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "worker/eval/items/item.h"

#define FAULT_MAX 160

struct judge;

/* The result of one metric for an answer. */
struct item_verdict {
    double value;         /* 0 or 1; of a perplexity the log-likelihood */
    double weight;        /* words or bytes of a perplexity per word or byte; 1 */
    size_t pred;          /* the option chosen */
    struct strbuf answer; /* what the filter found in a generation */
    bool second;          /* whether pred is right under the second key, which has the item */
};

struct item_outcome {
    /* raw */
    char fault[FAULT_MAX]; /* "" or why the item cannot be scored; then nothing else holds */
    bool finite;           /* false: the model answered NaN or infinity; no line is written then */
    size_t n;              /* log-likelihoods: one an option; one of a target or whole text */
    double ll[ITEM_OPTIONS_MAX];
    bool greedy[ITEM_OPTIONS_MAX];     /* every token scored was the likeliest */
    size_t n_tokens[ITEM_OPTIONS_MAX]; /* scored */
    size_t n_cut;                      /* tokens lost at the left, over all requests */
    struct strbuf text;                /* the generation, up to the first stop */
    bool ended;                        /* it ended by itself, not by max_tokens */
    /* judged */
    struct item_verdict verdicts[SPEC_METRICS_MAX]; /* in the order of the spec's metrics */
};

void outcome_init(struct item_outcome *o);
void outcome_clear(struct item_outcome *o); /* as after init, keeps memory */
void outcome_release(struct item_outcome *o);

/* The line of the index-th item of the judge's set, with its line feed. */
void outcome_add_line(const struct item_outcome *o, const struct judge *j, size_t index,
                      struct strbuf *out);
/* Reads such a line (without line feed) back: true when it is, byte for byte, the line that follows
 * from the raw answer in it. */
bool outcome_read_line(struct item_outcome *o, const struct judge *j, size_t index,
                       const char *line, size_t len);

#endif
