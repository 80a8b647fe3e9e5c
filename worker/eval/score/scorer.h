/*
 * Asks the model about items, in their order, a batch at a time. Which items share a batch changes
 * what it costs and nothing else: the model's answers do not depend on the other requests
 * (worker/model/score.h).
 */
#ifndef WORKER_EVAL_SCORE_SCORER_H
#define WORKER_EVAL_SCORE_SCORER_H

#include "worker/eval/prompt/dclm_request.h"
#include "worker/eval/prompt/prompt.h"
#include "worker/eval/prompt/request.h"
#include "worker/eval/score/judge.h"
#include "worker/eval/score/lm.h"
#include "worker/eval/score/outcome.h"

/* Where a batch ends: after the item that reaches one of these. Tokens are those that the request
 * before does not begin with. */
#define BATCH_TOKENS      4096
#define BATCH_GENERATIONS 16
#define BATCH_ITEMS       1024

struct scorer_setup {
    const struct prompts *prompts;
    const struct judge *judge;
    const struct lm *lm;
    struct request_rules rules;
    size_t max_tokens;   /* of a generation; 0: the task's own */
    bool (*asked)(void); /* to stop; NULL: never */
};

struct scorer {
    struct scorer_setup setup;
    struct request_text text;
    struct dclm_tokens kept;       /* of the item before, for tasks of style dclm */
    struct context_tokens context; /* of the request before, for the others */
    struct request_list requests;  /* of the batch */
    struct item_outcome *outcomes; /* of the batch */
    size_t n_outcomes;             /* initialised */
    size_t cap_outcomes;
};

/* Borrows all it is given. ERR_REFUSED when generations do not fit the model. Always valid to
 * release. */
int scorer_init(struct scorer *s, const struct scorer_setup *setup, struct err *err) MUST_CHECK;
void scorer_release(struct scorer *s);

/* Appends the requests of the index-th item to the list. What makes the item impossible to ask is
 * written into `fault`, and nothing is appended. */
int scorer_build(struct scorer *s, size_t index, struct request_list *list, char fault[FAULT_MAX],
                 struct err *err) MUST_CHECK;

/* Asks about the first of items[0 .. n - 1] as many as make a batch: s->outcomes[0 .. *n_asked - 1]
 * are theirs, judged. What an item makes impossible is a fault in its outcome, not an error.
 * ERR_BUSY: asked to stop, and the batch has no results. */
int scorer_ask(struct scorer *s, const size_t *items, size_t n, size_t *n_asked,
               struct err *err) MUST_CHECK;

#endif
