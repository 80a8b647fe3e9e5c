/*
 * A log-likelihood request as tokens, as llm-foundry 0.9.0 makes them for DCLM's CORE.
 *
 * Examples, context and answer are tokenised each by itself. The examples get the special token
 * that the tokenizer puts before a text, when it does; the answer gets a space in front where the
 * tokenizer has " a" as one token. What is too long loses its left end, so that context and answer
 * together have no more tokens than the model takes, and no more than 2,048.
 */
#ifndef WORKER_EVAL_PROMPT_DCLM_REQUEST_H
#define WORKER_EVAL_PROMPT_DCLM_REQUEST_H

#include "worker/eval/prompt/prompt.h"
#include "worker/eval/prompt/request.h"

#define DCLM_LENGTH_MAX 2048

/* Keeps the tokens of the last examples and context, which are the same for all choices of an item.
 * A zeroed one is empty. */
struct dclm_tokens {
    struct strbuf examples;
    struct strbuf context;
    struct token_list ids; /* of both */
    size_t n_examples;     /* of them */
    bool is_filled;
};

void dclm_tokens_init(struct dclm_tokens *t);
void dclm_tokens_release(struct dclm_tokens *t);

/* The tokens that an item's request may have, for a model that takes max_length. */
static inline size_t dclm_length(size_t max_length)
{
    return max_length < DCLM_LENGTH_MAX ? max_length : DCLM_LENGTH_MAX;
}

/* Like request_build(), and with its errors; the texts are those of prompt_request(). */
int dclm_request_build(struct request *r, const struct request_rules *rules, struct dclm_tokens *t,
                       const struct request_text *text, struct err *err) MUST_CHECK;

#endif
