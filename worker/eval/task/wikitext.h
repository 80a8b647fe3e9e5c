/*
 * WikiText's tokens turned back into text, as lm-evaluation-harness does it before it scores a page
 * (tasks/wikitext/preprocess_wikitext.py), its slips kept: one of its rules puts "[0-9]" where a
 * digit was.
 */
#ifndef WORKER_EVAL_TASK_WIKITEXT_H
#define WORKER_EVAL_TASK_WIKITEXT_H

#include "base/strbuf.h"

/* Appends to out; `page` is valid UTF-8. */
void wikitext_add_detokenized(const char *page, struct strbuf *out);

#endif
