/*
 * What an answer is worth: the metrics of a task applied to the model's raw answer, as
 * lm-evaluation-harness applies them. Nothing but the raw answer and the item goes in.
 */
#ifndef WORKER_EVAL_SCORE_JUDGE_H
#define WORKER_EVAL_SCORE_JUDGE_H

#include "worker/eval/items/item.h"
#include "worker/eval/items/second_key.h"
#include "worker/eval/score/outcome.h"

#define JUDGE_NO_MATCH "[invalid]" /* what a filter gives that found nothing */

struct judge_task; /* a spec with its expressions compiled */

struct judge {
    const struct item_set *set;
    const struct second_key *second; /* NULL: none */
    struct judge_task *tasks;        /* one a spec */
    size_t n_tasks;
    size_t *task_of; /* of each group */
};

/* Borrows the set and the second key. ERR_SYNTAX names the invalid expression. Always valid to
 * release. */
int judge_init(struct judge *j, const struct item_set *set, const struct second_key *second,
               struct err *err) MUST_CHECK;
void judge_release(struct judge *j);

/* Fills the verdicts about the index-th item. An expression that gives up on the text becomes the
 * outcome's fault. */
void judge_item(const struct judge *j, size_t index, struct item_outcome *o);

/* Pieces that Python's re.split(r"\s+", text) gives. */
size_t judge_count_words(const char *text);

#endif
