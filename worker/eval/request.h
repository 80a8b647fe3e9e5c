/*
 * A log-likelihood request: context and continuation as tokens, cut as lm-evaluation-harness cuts
 * them.
 *
 * White space at the end of the context moves to the continuation; both are tokenised together and
 * the cut falls after as many tokens as the context has by itself; what is too long loses its left
 * end. An empty context is replaced by the end-of-text token.
 */
#ifndef WORKER_EVAL_REQUEST_H
#define WORKER_EVAL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/data/tokenizer.h"

struct request {
    struct token_list tokens;
    size_t first; /* tokens[first ..] are the continuation; >= 1 */
    size_t n_cut; /* tokens lost at the left */
};

/* A zeroed request may be built and built again. ERR_RANGE says that this request cannot be scored:
 * the context or continuation has no tokens, or the continuation alone is too long. */
int request_build(struct request *r, const struct tokenizer *tok, const char *context,
                  const char *continuation, size_t max_length, struct err *err) MUST_CHECK;
void request_release(struct request *r);

#endif
