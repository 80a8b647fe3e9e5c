/*
 * Checkpoints: folders checkpoint/step-NNNNNN in the attempt's own folder (invariant 7).
 *
 *   weights.bin    parameters and choice biases, float32        moment1.bin, moment2.bin   AdamW's
 *   history.bin    (loss, seconds) of every step, float32       state.json                 the rest
 * of the trainer manifest.json  written last: step, key, BLAS, threads, and every file's size and
 * SHA-256
 *
 * A folder without a manifest whose digests all hold is torn, and skipped. The previous checkpoint
 * stays until the next one is whole. The key is the digest of the task's parameters and of the data
 * that was read: another key is another run.
 */
#ifndef WORKER_TRAIN_CHECKPOINT_H
#define WORKER_TRAIN_CHECKPOINT_H

#include "worker/report/events.h"
#include "worker/report/task.h"
#include "worker/train/trainer.h"

#define CHECKPOINT_FOLDER  "checkpoint"
#define CHECKPOINT_VERSION 1

/* What a run of this task is, for the manifest. */
struct digest checkpoint_key(const struct task *task, const struct train_data *data);

/* Writes checkpoint/step-<t->step> in the working directory and removes all but it and the one
 * before. */
int checkpoint_write(const struct trainer *t, const struct digest *key, int threads,
                     struct err *err) MUST_CHECK;
/* Name of the folder of a step, relative to the working directory. */
void checkpoint_path(int64_t step, char *out, size_t size);

/* Takes up the newest whole checkpoint among the task's resume folders: *found says whether there
 * was one. What is skipped is said as notes. ERR_OTHER when it was written on another BLAS build,
 * core or thread count and the program does not allow that. */
int checkpoint_resume(struct trainer *t, const struct task *task, const struct digest *key,
                      struct events *ev, bool *found, struct err *err) MUST_CHECK;

/* Seconds of work between checkpoints by Daly's first-order optimum sqrt(2 cost M) - cost, M the
 * mean time between failures: (seconds worked + one hour) / (failures + 1), so that one failure an
 * hour is assumed until more is known. */
double checkpoint_interval(double cost_seconds, double worked_seconds, int64_t failures);

#endif
