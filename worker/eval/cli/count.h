/*
 * Asks a counter in place of a model: requests are made as a run makes them, in its batches, and
 * counted as the engine would compute them (score_counter).
 */
#ifndef WORKER_EVAL_CLI_COUNT_H
#define WORKER_EVAL_CLI_COUNT_H

#include "worker/eval/score/scorer.h"

struct request_count {
    struct score_counter *counter; /* the caller's */
    struct score_cost cost;
    size_t n_faults;
    size_t n_cut_items;
    double n_cut;   /* tokens */
    double seconds; /* of making the requests, which a run spends too, in processor time */
};

/* Makes `lm` one that counts into c and answers nothing. */
void request_count_answers(struct request_count *c, struct lm *lm);
/* The scorer's lm is such a one. */
int request_count_items(struct request_count *c, struct scorer *scorer, const size_t *items,
                        size_t n, struct err *err) MUST_CHECK;

#endif
