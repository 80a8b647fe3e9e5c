/*
 * The requests of an evaluation task, text and tokens, without a model: what the oracle tests hold
 * against lm-evaluation-harness item by item, and the golden digests are of.
 */
#ifndef TESTS_ORACLE_REQUESTS_H
#define TESTS_ORACLE_REQUESTS_H

#include "worker/eval/score/benchmark.h"
#include "worker/eval/score/judge.h"
#include "worker/eval/score/scorer.h"
#include "worker/report/task.h"

struct asker {
    struct worker_task task;
    struct eval_options options;
    struct benchmark bench;
    struct judge judge;
    struct lm lm;
    struct scorer scorer;
    struct request_list list;
    struct request_text text;
};

/* One request as the scorer makes it. */
struct asked {
    size_t item;
    size_t option;
    const char *group;
    const char *context; /* with what stands before it */
    const char *continuation;
    const struct request *requests; /* one; of a rolling text its windows */
    size_t n;
};

/* Takes the task over. `tok` is borrowed; `context` counts unless the task has one. Always valid to
 * release. */
int asker_open(struct asker *a, cJSON *task, const struct tokenizer *tok, size_t context,
               struct err *err) MUST_CHECK;
void asker_release(struct asker *a);

/* Calls `each` for every request of every selected item, in order. */
int asker_walk(struct asker *a, void (*each)(void *self, const struct asked *one), void *self,
               struct err *err) MUST_CHECK;

/* For asker_walk, self a struct digest_stream: both texts and a NUL each; then as little-endian
 * uint32 of every request the number of tokens, that of the first scored, that of cut ones, the
 * tokens. */
void asked_digest(void *stream, const struct asked *one);

#endif
