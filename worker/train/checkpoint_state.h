/* state.json of a checkpoint: all of struct trainer that is neither weights, moments nor history.
 */
#ifndef WORKER_TRAIN_CHECKPOINT_STATE_H
#define WORKER_TRAIN_CHECKPOINT_STATE_H

#include "base/strbuf.h"
#include "worker/train/trainer.h"

/* Replaces what `out` held. */
int checkpoint_state_text(const struct trainer *t, struct strbuf *out, struct err *err) MUST_CHECK;
int checkpoint_state_read(struct trainer *t, const char *path, struct err *err) MUST_CHECK;

#endif
