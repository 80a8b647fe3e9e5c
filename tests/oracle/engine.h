/*
 * The training engine as outside references see it: the very options, data, trainer and step that
 * prereg-train has, opened from a task.json, without attempts, events and checkpoints around them.
 *
 * Built twice, with `real` as float and as double. An engine owns all it holds; engine_close() is
 * to be called on error too. Steps are taken with trainer_step() of engine.trainer.
 */
#ifndef TESTS_ORACLE_ENGINE_H
#define TESTS_ORACLE_ENGINE_H

#include "worker/train/trainer.h"

struct engine {
    struct worker_task task;
    struct train_options opt;
    struct train_data data;
    struct trainer trainer;
};

/* Reads the task, its data, and makes the initial weights. */
int engine_open(struct engine *e, const char *task_path, struct err *err) MUST_CHECK;
void engine_close(struct engine *e);

/* Sequences of one step, and of the whole run. */
size_t engine_step_sequences(const struct engine *e);

/* The logits of a step's tokens (N, V) under the present weights; NULL without memory. free() them.
 */
real *engine_logits(struct engine *e, int64_t step);

/* The gradient of the first step (n_params), under the present weights; NULL without memory. free()
 * it. */
real *engine_gradient(struct engine *e);

/* Writes a text of words drawn by a small generator: the corpus of the kept cases. */
int engine_write_corpus(const char *path, struct err *err) MUST_CHECK;

#endif
