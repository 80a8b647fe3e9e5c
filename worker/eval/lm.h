/*
 * What scoring asks of a language model. run.c puts the trained model behind it; unit tests put
 * models whose answers can be worked out by hand.
 */
#ifndef WORKER_EVAL_LM_H
#define WORKER_EVAL_LM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "worker/data/tokenizer.h"

struct lm {
    void *self;
    const struct tokenizer *tok;
    size_t context; /* tokens it takes at most */
    size_t vocab;   /* logits it gives */
    /* As model_score() and model_next_logits() (worker/model/model.h). */
    int (*score)(void *self, const uint32_t *tokens, size_t n, size_t first, double *logprob,
                 bool *is_top, struct err *err);
    int (*next_logits)(void *self, const uint32_t *tokens, size_t n, float *logits,
                       struct err *err);
};

#endif
