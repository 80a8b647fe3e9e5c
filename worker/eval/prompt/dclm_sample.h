/*
 * Which examples precede an item of DCLM's CORE, in which order.
 *
 * llm-foundry draws them for every record of a file in turn from one stream: a sample; when the
 * record itself is in it, that one is removed and another is drawn. The sample is a Python set, and
 * the examples follow the set's own order, which is that of its hash table. So this has CPython's
 * set (3.7 to 3.13) as far as a set of small whole numbers with one removal needs it: the hash is
 * the number, the table grows when three fifths of it are full, a search probes ten neighbours
 * before it jumps, and a removed entry's place is reused.
 */
#ifndef WORKER_EVAL_PROMPT_DCLM_SAMPLE_H
#define WORKER_EVAL_PROMPT_DCLM_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "worker/eval/prompt/pyrandom.h"

/* How many examples an item of n records gets when k are wanted: an item is not its own. */
static inline uint32_t dclm_sample_size(uint32_t n, uint32_t k)
{
    return k < n ? k : n == 0 ? 0 : n - 1;
}

/* The examples of record `own` of n, in order, into out[0 .. dclm_sample_size(n, k)). To be called
 * for own = 0, 1, 2 .. of one stream. Without examples nothing is drawn. */
void dclm_sample(struct pyrandom *r, uint32_t n, uint32_t k, uint32_t own, uint32_t *out);

#endif
