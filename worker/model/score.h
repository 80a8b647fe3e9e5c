/*
 * Many requests to a model at once: log-likelihoods of given tokens, and greedy generations.
 *
 * What requests have in common is computed once: a call's requests are ordered by their prefix
 * tree, and the keys and values of the current path stay in one cache, from call to call. So a call
 * costs its distinct tokens. A result depends on its own request and on the weights alone:
 * not on what else is in the call, on order, on earlier calls, nor on OpenBLAS, threads or the
 * instruction set, because every product is computed row by row (worker/nn/product/tile.h).
 *
 * The caller owns requests and their tokens; nothing of them is kept but the current path's ids.
 */
#ifndef WORKER_MODEL_SCORE_H
#define WORKER_MODEL_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "worker/data/tokenizer/tokenizer.h"

struct model;
struct model_config;

/* One log-likelihood request: the model reads tokens[0 .. n - 2], tokens[first .. n - 1] are
 * scored. 1 <= first < n, n - 1 <= context. */
struct score_request {
    const uint32_t *tokens;
    size_t n;
    size_t first;
    double sum;  /* out: ln p of the scored tokens, float64 over float32 logits, added left to
                    right; NaN when one of the logits was not finite */
    bool greedy; /* out: each scored token was the likeliest; of equals the lowest id */
};

/* One greedy generation. 1 <= n, 1 <= max_tokens, n + max_tokens <= context + 1: the last token is
 * not read. */
struct score_generation {
    const uint32_t *prompt;
    size_t n;
    size_t max_tokens;
    struct token_list out; /* out: what was generated, without the end-of-text token; emptied first,
                              released by the caller */
    bool ended;            /* out: by the end-of-text token or by `over`, not by max_tokens */
    bool finite;           /* out: false: ended by a logit that was not finite */
};

/* When generations stop. */
struct score_stop {
    uint32_t end_of_text;
    /* Asked after every new token of generation `index`; true: it is over. NULL: never. */
    bool (*over)(void *self, size_t index, const struct token_list *out);
    void *self;
    /* true: the whole call stops with ERR_BUSY, its results void. NULL: never. */
    bool (*asked)(void);
};

/* Asked between two chunks of tokens, `asked` (may be NULL) stops the call with ERR_BUSY, all its
 * results void.
 * ERR_RANGE, naming the request, before anything is computed: a request outside its bounds, or a
 * token outside the vocabulary. */
int model_score_all(struct model *m, struct score_request *r, size_t n, bool (*asked)(void),
                    struct err *err) MUST_CHECK;
/* Prompts are read through the path; then every generation continues in a slot with its own keys
 * and values, as many at once as SCORE_SLOT_BYTES holds, at least one, at most SCORE_SLOTS. */
int model_generate_all(struct model *m, struct score_generation *g, size_t n,
                       const struct score_stop *stop, struct err *err) MUST_CHECK;

#define SCORE_SLOTS      32
#define SCORE_THREADS    1 /* that compute, whatever a task's `threads` says */
#define SCORE_SLOT_BYTES ((size_t)256 << 20)

/* The logits after tokens[0 .. n - 1], n <= context: logits has `vocab` elements. */
int model_logits(struct model *m, const uint32_t *tokens, size_t n, float *logits,
                 struct err *err) MUST_CHECK;

/* What calls cost, counted with the code that orders them. */
struct score_cost {
    double requests;
    double tokens;          /* that requests have the model read */
    double distinct_tokens; /* of these, computed */
    double keys;            /* attended by the distinct tokens */
    double unread;          /* distinct tokens of which the last layer computes keys and values */
    double unread_keys;     /* that these would attend to there */
    double head_rows;       /* rows of logits, of requests */
    double generated;       /* tokens generated, at most: max_tokens each */
    double generated_keys;  /* attended by them */
    double steps;           /* that generate them, a token for every slot in use */
};

/* Seconds a unit, on this machine, for one model. */
struct score_rates {
    double distinct_token;
    double key;
    double head_row;
    double unread; /* what one saves */
    double unread_key;
    double generated; /* beside the others of its step */
    double generated_key;
    double step;
};

/* A dry run: counts calls one after the other as a model of this shape would make them, keeping the
 * path between them as it does. */
struct score_counter;

struct score_counter *score_counter_create(const struct model_config *cfg);
void score_counter_free(struct score_counter *c);
/* Adds to *cost. Requests are taken to be within their bounds. */
void score_counter_score(struct score_counter *c, const struct score_request *r, size_t n,
                         struct score_cost *cost);
void score_counter_generate(struct score_counter *c, const struct score_generation *g, size_t n,
                            struct score_cost *cost);

/* In processor time; takes about a second. Leaves the model's path empty. ERR_OTHER without memory.
 */
int model_measure_rates(struct model *m, struct score_rates *rates, struct err *err) MUST_CHECK;
/* The same of a model of this shape, which is made of zeros for it. */
int model_shape_rates(const struct model_config *cfg, struct score_rates *rates,
                      struct err *err) MUST_CHECK;
/* What the latter takes at most: bytes of memory, and floating-point operations. */
double model_shape_bytes(const struct model_config *cfg);
double model_shape_flops(const struct model_config *cfg);
/* Seconds that the cost takes at these rates. */
double score_seconds(const struct score_cost *cost, const struct score_rates *rates);

#endif
