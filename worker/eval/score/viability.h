/*
 * Whether a model can be asked for answers at all. One that cannot generate does not have a score
 * of 0, it has none. So the first generations of a run are classified:
 *
 *   empty               nothing but white space
 *   endless repetition  it did not end by itself, and its second half repeats the text before it
 *                       with a period of at most a quarter of the whole
 *   answered            it ended by itself, and some filter found an answer in it, right or wrong
 *
 * No score goes in, and none can be inferred from the result.
 */
#ifndef WORKER_EVAL_SCORE_VIABILITY_H
#define WORKER_EVAL_SCORE_VIABILITY_H

#include <cjson/cJSON.h>

#include "worker/eval/score/judge.h"

#define VIABILITY_FILE     "viability.json"
#define VIABILITY_EXAMPLES 3

struct viability_rules {
    int items;         /* how many generations are classified, from the first; 0: none */
    int least;         /* how many must be answered */
    double degenerate; /* at most this share may be empty or endless repetition */
};

struct viability {
    struct viability_rules rules;
    size_t n; /* classified */
    size_t n_empty;
    size_t n_repeating;
    size_t n_answered;
    cJSON *examples; /* of what is empty, repeating or not answered; owned */
};

void viability_init(struct viability *v, const struct viability_rules *rules);
void viability_release(struct viability *v);
/* Classifies the outcome of a generation, as long as it is one of the first. A faulty one is
 * skipped. */
void viability_add(struct viability *v, const struct judge *j, size_t index,
                   const struct item_outcome *o);
/* Asked when `n_done` of the run's `n_items` are done. ERR_REFUSED with the counts when the model
 * does not generate. */
int viability_check(const struct viability *v, size_t n_done, size_t n_items,
                    struct err *err) MUST_CHECK;
/* The evidence: rules, counts, examples. Into VIABILITY_FILE of the working directory. */
int viability_write(const struct viability *v, struct err *err) MUST_CHECK;

/* The two tests on a text. */
bool viability_is_empty(const char *text);
bool viability_repeats(const char *text);

#endif
