/* state.json of a checkpoint: all of struct trainer that is neither weights, moments nor history.
 */
#ifndef WORKER_TRAIN_CHECKPOINT_STATE_H
#define WORKER_TRAIN_CHECKPOINT_STATE_H

#include "worker/train/trainer.h"

int checkpoint_state_write(const struct trainer *t, const char *path, struct err *err) MUST_CHECK;
int checkpoint_state_read(struct trainer *t, const char *path, struct err *err) MUST_CHECK;

#endif
