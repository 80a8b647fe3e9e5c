/*
 * The engine behind worker/model/score.h, for callers that have weights in memory and no folder:
 * the same calls on an engine. What it computes: the head comment of worker/model/tensors.h.
 *
 * An engine owns the cache of one path, the buffers of one chunk of tokens, and slots once
 * something is generated. It packs the weights it is given (worker/nn/rowwise/packed.h): they are
 * its working form from then on, and of no use to worker/model/run.h.
 */
#ifndef WORKER_MODEL_ENGINE_H
#define WORKER_MODEL_ENGINE_H

#include "worker/model/score.h"
#include "worker/model/weights.h"

struct engine;

/* `weights` stays the caller's and outlives the engine; its cfg.context is the most that a request
 * may read. ERR_OTHER without memory. */
int engine_create(struct weights *weights, struct engine **out, struct err *err) MUST_CHECK;
void engine_free(struct engine *e);
/* What engine_create() allocates beside the weights, and what the slots of generations take at
 * most, however long they are. */
double engine_bytes(const struct model_config *cfg);
double engine_slots_bytes(const struct model_config *cfg);

/* The calls of worker/model/score.h with the same contracts. */
int engine_score(struct engine *e, struct score_request *r, size_t n, bool (*asked)(void),
                 struct err *err) MUST_CHECK;
int engine_generate(struct engine *e, struct score_generation *g, size_t n,
                    const struct score_stop *stop, struct err *err) MUST_CHECK;
int engine_logits(struct engine *e, const uint32_t *tokens, size_t n, real *logits,
                  struct err *err) MUST_CHECK;
/* Tokens that engine_measure() computes at least, where each part of it takes long. */
double engine_measure_tokens(void);
int engine_measure(struct engine *e, struct score_rates *rates, struct err *err) MUST_CHECK;

#endif
