/*
 * Snapshots: the model at fractions of the horizon, as artifacts of the task in the form of a
 * finished model (worker/model/store.h), in the folder snapshot/FRACTION of the attempt.
 *
 * It has the weights, the tokenizer (unless its spec says it all) and, written last, model.json. An
 * attempt that resumes behind a snapshot copies it from the folder of an earlier attempt, where all
 * of it must be whole: the weights by the digest in the checkpoint, the tokenizer by that of the
 * run's own. If no attempt has a whole one, the checkpoint does not count.
 */
#ifndef WORKER_TRAIN_CHECKPOINT_SNAPSHOT_H
#define WORKER_TRAIN_CHECKPOINT_SNAPSHOT_H

#include "worker/report/result.h"
#include "worker/report/task.h"
#include "worker/train/trainer.h"

/* Whether the trainer is at a snapshot's step, and it is not written yet. */
bool snapshot_is_due(const struct trainer *t);
/* Writes all that are due, and notes their digests in the trainer. */
int snapshot_write(struct trainer *t, struct err *err) MUST_CHECK;
/* Copies every snapshot of t's options that the checkpoint in `folder` has into this attempt,
 * unless it is there. ERR_CORRUPT: one is not whole in any earlier attempt. */
int snapshot_adopt(const struct trainer *t, const struct worker_task *task, const char *folder,
                   struct err *err) MUST_CHECK;
/* Names those that were written or adopted. */
int snapshot_artifacts(const struct trainer *t, struct worker_result *r,
                       struct err *err) MUST_CHECK;

#endif
