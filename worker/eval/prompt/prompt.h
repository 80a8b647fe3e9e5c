/*
 * Prompts: which examples precede each item, and THE one place that says which texts are sent to
 * the model.
 *
 * The examples are drawn for every item of the split in its order, one stream a group, as
 * lm-evaluation-harness draws them, also for items that a subset leaves out: an item's prompt does
 * not depend on which others are asked.
 */
#ifndef WORKER_EVAL_PROMPT_PROMPT_H
#define WORKER_EVAL_PROMPT_PROMPT_H

#include <stdint.h>

#include "worker/eval/items/item.h"

#define PROMPT_NO_PICK SIZE_MAX

struct prompts {
    const struct item_set *set;
    const struct item_set *pool; /* NULL without examples; the set itself when it has no other */
    size_t shots;                /* the most of any group */
    size_t *picks;               /* set->n x shots indices into the pool, or PROMPT_NO_PICK */
};

struct prompt_rules {
    int shots;                          /* for every task; -1: each its own */
    bool drops_equals_only_of_one_more; /* worker/eval/task/harness_version.h */
};

/* The texts of one request. The harness tokenises preamble and context as one string. */
struct request_text {
    struct strbuf preamble;     /* description and examples, each with its end */
    struct strbuf context;      /* empty for TASK_ROLLING */
    struct strbuf continuation; /* with its delimiter; empty for TASK_GENERATE */
};

/* Borrows set and pool, whose groups are matched by name. ERR_INVALID when the pool has too few. */
int prompts_init(struct prompts *p, const struct item_set *set, const struct item_set *pool,
                 const struct prompt_rules *rules, struct err *err) MUST_CHECK;
void prompts_release(struct prompts *p);

/* How many requests an item makes: one an option, else 1. */
size_t prompt_requests(const struct item *it);
void request_text_init(struct request_text *text);
void request_text_release(struct request_text *text);
/* Replaces what is in `out`. */
void prompt_request(const struct prompts *p, size_t item, size_t option, struct request_text *out);

#endif
