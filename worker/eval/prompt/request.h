/*
 * Requests: what the model is asked, as tokens, cut as lm-evaluation-harness cuts them.
 *
 * White space at the end of a context moves to the continuation; both are tokenised together and
 * the cut falls after as many tokens as the context has by itself; what is too long loses its left
 * end. An empty context is replaced by the prefix token. A text scored as a whole (rolling) falls
 * into windows that overlap in what they read, not in what they score.
 */
#ifndef WORKER_EVAL_PROMPT_REQUEST_H
#define WORKER_EVAL_PROMPT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/data/tokenizer/tokenizer.h"

/* The tokens of the last context, which are the same for all continuations of an item. A zeroed one
 * is empty; it may serve one run only. */
struct context_tokens {
    struct strbuf text;
    struct token_list ids;
    bool is_filled;
};

/* What the requests of a run have in common. */
struct request_rules {
    const struct tokenizer *tok;
    struct context_tokens *kept; /* NULL: every context is encoded */
    size_t max_length;           /* tokens that the model takes */
    bool add_bos; /* the prefix token precedes every text, as some tokenizers put it */
    bool one_bos; /* from v0.4.9.2: but not twice where a text begins with it already */
};

struct request {
    struct token_list tokens;
    size_t first; /* tokens[first ..] are scored; >= 1 */
    size_t n_cut; /* tokens lost at the left */
};

/* Grows; requests beyond n keep their memory for reuse. A zeroed list is empty. */
struct request_list {
    struct request *items;
    size_t n;
    size_t cap;
};

/* A zeroed request may be built and built again. ERR_RANGE says that this request cannot be scored:
 * the context or continuation has no tokens, or the continuation alone is too long. */
int request_build(struct request *r, const struct request_rules *rules, const char *context,
                  const char *continuation, struct err *err) MUST_CHECK;
void request_release(struct request *r);
void context_tokens_init(struct context_tokens *t);
void context_tokens_release(struct context_tokens *t);

/* Appends the windows of a text; none for an empty one. */
int request_add_windows(struct request_list *list, const struct request_rules *rules,
                        const char *text, struct err *err) MUST_CHECK;

/* The prompt of a generation: its last max_length - max_tokens tokens, at least one; the prefix
 * token when it is empty. */
int request_build_prompt(struct request *r, const struct request_rules *rules, const char *prompt,
                         size_t max_tokens, struct err *err) MUST_CHECK;

/* An empty request at the end of the list. */
struct request *request_list_add(struct request_list *list) __attribute__((returns_nonnull));
void request_list_release(struct request_list *list);

#endif
