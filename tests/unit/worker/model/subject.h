/*
 * A small model under test, twice: with its weights as they were and the plain pass over them, and
 * packed with an engine. Built in float and in double.
 */
#ifndef TESTS_UNIT_WORKER_MODEL_SUBJECT_H
#define TESTS_UNIT_WORKER_MODEL_SUBJECT_H

#include "worker/model/engine_private.h"
#include "worker/model/run.h"

#ifdef NN_F64
#define SUM_BOUND 1e-11 /* of sums of up to 40 terms about ln V each */
#else
#define SUM_BOUND 2e-3
#endif

#define N_SHAPES 5

struct shape {
    const char *name;
    struct model_config cfg;
};
/* Widths and vocabularies that fill no tile, no panel and no piece of the head. */
extern const struct shape SHAPES[N_SHAPES];

struct subject {
    struct model_config cfg;
    struct weights plain;
    struct weights packed;
    struct engine *engine;
    struct run *run;
};

/* The same numbers from every opening on. */
uint32_t subject_draw(uint32_t below);
void subject_open(struct subject *s, const struct shape *shape);
void subject_close(struct subject *s);

/* Requests that share beginnings: each goes on somewhere in another. Their tokens are released by
 * subject_release_requests(). */
void subject_draw_requests(const struct subject *s, struct score_request *r, size_t n);
void subject_release_requests(struct score_request *r, size_t n);
/* Sum and greedy of the request by the plain pass. */
void subject_score_plainly(struct subject *s, struct score_request *r);

/* Fails with the error's text. */
void subject_err_none(int rc, const struct err *err);

#endif
