/*
 * Asks the model about one item at a time. Every request is one sequence scored by itself, so an
 * outcome depends on model and item alone: not on order, batch, subset or interruption.
 */
#ifndef WORKER_EVAL_SCORER_H
#define WORKER_EVAL_SCORER_H

#include "worker/eval/lm.h"
#include "worker/eval/outcome.h"
#include "worker/eval/prompt.h"
#include "worker/eval/request.h"

struct scorer {
    const struct task_spec *spec;
    const struct prompts *prompts;
    const struct lm *lm;
    size_t max_tokens; /* of a generation */
    struct request request;
    struct request_text text;
    double *logprob; /* context elements */
    bool *is_top;
    float *logits; /* vocab elements */
};

/* Borrows all it is given. ERR_REFUSED when generations of max_tokens do not fit the model. */
int scorer_init(struct scorer *s, const struct task_spec *spec, const struct prompts *prompts,
                const struct lm *lm, size_t max_tokens, struct err *err) MUST_CHECK;
void scorer_release(struct scorer *s);

/* Fills and judges the outcome of the index-th item. What the item itself makes impossible is a
 * fault in the outcome, not an error. */
int scorer_ask(struct scorer *s, size_t index, struct outcome *o, struct err *err) MUST_CHECK;

#endif
