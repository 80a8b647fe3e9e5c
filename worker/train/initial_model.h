/*
 * Where a run starts: the weights of a finished model (init = "<name of the task's data>", or
 * --init by hand) instead of drawn ones. Anything that worker/model/formats/import.h knows will do,
 * as long as it computes what the parameters say; the context may differ, since no weight depends
 * on it.
 */
#ifndef WORKER_TRAIN_INITIAL_MODEL_H
#define WORKER_TRAIN_INITIAL_MODEL_H

#include "worker/train/trainer.h"

/* Every difference between the model's shape and the parameters becomes a fault of "init". An error
 * when no model can be read. Does nothing without init. */
int initial_model_check(const struct worker_task *task, const struct train_options *opt,
                        struct param_faults *faults, struct err *err) MUST_CHECK;

/* Puts the model's numbers into the trainer and the digest of what was read into data->init.
 * ERR_CORRUPT: not what was locked, a number that is not finite (the tensor is named), or of
 * another tokenizer than data's. Does nothing without init. */
int initial_model_load(const struct worker_task *task, struct train_data *data, struct trainer *t,
                       struct err *err) MUST_CHECK;

/* prereg-train --init PATH: as if the task had data "--init" at PATH and named it. ERR_USAGE when
 * it names a start already. */
int initial_model_by_hand(struct worker_task *task, const char *path, struct err *err) MUST_CHECK;

#endif
