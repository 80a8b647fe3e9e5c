/*
 * The header line of items.jsonl: everything its lines follow from. Lines under another header are
 * worth nothing.
 */
#ifndef WORKER_EVAL_CLI_ITEMS_KEY_H
#define WORKER_EVAL_CLI_ITEMS_KEY_H

#include "worker/eval/cli/evaluation.h"

/* Appends the line, without line feed. Options, data, model and tokenizer are known. */
int items_key_make(const struct eval_session *e, struct strbuf *out, struct err *err) MUST_CHECK;
/* Appends the names of the members in which two headers differ. */
void items_key_difference(const struct strbuf *ours, const struct strbuf *theirs,
                          struct strbuf *out);

#endif
