/*
 * Generated tokens as text: decoded as transformers decodes them, without special tokens, and ended
 * by the first stop string. Stop strings are searched with special tokens included as well, as the
 * harness does while it generates.
 */
#ifndef WORKER_EVAL_SCORE_GENERATE_H
#define WORKER_EVAL_SCORE_GENERATE_H

#include <stdbool.h>

#include "worker/eval/score/lm.h"
#include "worker/eval/task/spec.h"

/* Replaces what is in `out`; *stopped: a stop string was there. */
int generate_text(const struct lm *lm, const struct task_spec *spec,
                  const struct token_list *tokens, struct strbuf *out, bool *stopped,
                  struct err *err) MUST_CHECK;

/* Appends bytes as UTF-8, with one U+FFFD for each longest beginning of a character that is not
 * whole, as Rust and Python put it. */
void generate_add_utf8(const char *bytes, size_t len, struct strbuf *out);
/* What clean_up_tokenization does: takes the space away before . ? ! , and before n't 'm 's 've
 * 're, and around a lone apostrophe. Appends. */
void generate_tidy_spaces(const char *text, struct strbuf *out);

#endif
