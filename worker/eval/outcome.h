/*
 * What one item came to: the raw answer of the model, the judgement that follows from it, and the
 * line of items.jsonl that holds both. The judgement is always computed from the raw answer, also
 * for lines that an earlier attempt wrote, so a line that says otherwise is not believed.
 */
#ifndef WORKER_EVAL_OUTCOME_H
#define WORKER_EVAL_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "worker/eval/item.h"

#define FAULT_MAX 160

struct outcome {
    /* raw */
    char fault[FAULT_MAX]; /* "" or why the item cannot be scored; then nothing else holds */
    bool finite;           /* false: the model answered NaN or infinity; no line is written then */
    size_t n;              /* log-likelihoods, one an option */
    double ll[ITEM_OPTIONS_MAX];
    bool greedy[ITEM_OPTIONS_MAX]; /* every token of the continuation was the likeliest */
    size_t n_cut;                  /* tokens lost at the left, over all requests */
    struct strbuf text;            /* the generation, up to the first stop */
    bool ended;                    /* it came to an end by itself */
    /* judged, one a metric of the task */
    bool passed[SPEC_METRICS_MAX];
    size_t pred[SPEC_METRICS_MAX];          /* multiple choice */
    struct strbuf answer[SPEC_METRICS_MAX]; /* generation: what the filter found */
};

void outcome_init(struct outcome *o);
void outcome_clear(struct outcome *o); /* as after init, keeps memory */
void outcome_release(struct outcome *o);

void outcome_judge(struct outcome *o, const struct task_spec *spec, const struct item *it);

/* The line of the index-th item of the set, with its line feed. */
void outcome_add_line(const struct outcome *o, const struct task_spec *spec, const struct item *it,
                      size_t index, struct strbuf *out);
/* Reads such a line (without line feed) back: true when it is, byte for byte, the line that follows
 * from the raw answer in it. */
bool outcome_read_line(struct outcome *o, const struct task_spec *spec, const struct item *it,
                       size_t index, const char *line, size_t len);

#endif
