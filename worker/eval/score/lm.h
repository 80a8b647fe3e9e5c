/*
 * What scoring asks of a language model. run.c puts the trained model behind it; unit tests put
 * models whose answers can be computed by hand.
 */
#ifndef WORKER_EVAL_SCORE_LM_H
#define WORKER_EVAL_SCORE_LM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "worker/data/tokenizer/tokenizer.h"
#include "worker/model/score.h"

struct lm {
    void *self;
    const struct tokenizer *tok;
    size_t context;     /* tokens it takes at most */
    bool tidies_spaces; /* its tokenizer takes spaces away before punctuation when it decodes */
    /* As model_score_all() and model_generate_all() (worker/model/score.h). */
    int (*score)(void *self, struct score_request *r, size_t n, bool (*asked)(void),
                 struct err *err);
    int (*generate)(void *self, struct score_generation *g, size_t n, const struct score_stop *stop,
                    struct err *err);
};

#endif
