/*
 * Few-shot examples: which ones stand before each item, and the text they make.
 *
 * The examples are drawn for every item of the split in its order from one stream, as
 * lm-evaluation-harness v0.4.3 draws them, also for items that a subset leaves out: an item's
 * prompt does not depend on which others are asked.
 */
#ifndef WORKER_EVAL_PROMPT_H
#define WORKER_EVAL_PROMPT_H

#include <stdint.h>

#include "worker/eval/item.h"

#define PROMPT_SEED 1234

struct prompts {
    const struct item_set *set;
    const struct item_set *pool; /* NULL without examples; the set itself when it has no other */
    size_t shots;
    size_t *picks; /* set->n x shots indices into the pool; SIZE_MAX: none */
};

/* Borrows set and pool. ERR_INVALID when the pool is too small. */
int prompts_init(struct prompts *p, const struct task_def *def, const struct item_set *set,
                 const struct item_set *pool, size_t shots, struct err *err) MUST_CHECK;
void prompts_release(struct prompts *p);

/* Appends description and examples, each of these followed by an empty line. */
void prompts_add_prefix(const struct prompts *p, size_t item, struct strbuf *out);

#endif
