/*
 * Greedy generation: the likeliest token each time (the lowest id of equals), until the end-of-text
 * token, a stop string, or max_tokens. The prompt keeps its last context - max_tokens tokens.
 */
#ifndef WORKER_EVAL_GENERATE_H
#define WORKER_EVAL_GENERATE_H

#include "worker/eval/lm.h"
#include "worker/eval/outcome.h"

/* Fills text, ended, n_cut and finite. `logits` is scratch of lm->vocab elements; max_tokens is
 * less than lm->context. */
int generate_greedy(const struct lm *lm, const char *prompt, size_t max_tokens, float *logits,
                    struct outcome *o, struct err *err) MUST_CHECK;

/* Appends bytes as UTF-8, with U+FFFD for each byte that is not part of a character. */
void generate_add_utf8(const char *bytes, size_t len, struct strbuf *out);

#endif
