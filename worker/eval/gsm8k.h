/*
 * GSM8K's answers: the two filters that find a number in a generation, and the comparison with the
 * gold answer, as lm-evaluation-harness has them for task version 3.0.
 */
#ifndef WORKER_EVAL_GSM8K_H
#define WORKER_EVAL_GSM8K_H

#include <stdbool.h>

#include "base/strbuf.h"

#define GSM8K_NO_MATCH "[invalid]"

/* The first match of `#### (\-?[0-9\.\,]+)`, or [invalid]. */
void gsm8k_filter_strict(const char *text, struct strbuf *out);
/* The last match of `(-?[$0-9.,]{2,})|(-?[0-9]+)`, or [invalid]. */
void gsm8k_filter_flexible(const char *text, struct strbuf *out);
/* Both without commas, dollars, everything up to the last "#### " and a final full stop; no case.
 */
bool gsm8k_same(const char *answer, const char *gold);
/* Keeps what precedes the first stop string; true when there was one. */
bool gsm8k_cut(struct strbuf *text);

#endif
