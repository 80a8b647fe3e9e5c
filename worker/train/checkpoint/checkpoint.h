/*
 * Checkpoints: folders checkpoint/step-NNNNNN in the attempt's own folder (invariant 7).
 *
 *   weights.bin    parameters and choice biases, float32
 *   moment1.bin, moment2.bin   the optimiser's (optimiser.h); the second one is empty with sgd
 *   history.bin    (loss, seconds) of every step, float32
 *   router.bin     samples of the routers (router_log.h), float32
 *   state.json     the rest of the trainer
 *   manifest.json  written last: step, key, BLAS, threads, parameters and digests of the data, and
 *                  every file's size and SHA-256
 *
 * A folder is filled under another name and renamed when all of it is on the disk. One without a
 * manifest whose digests all hold is torn, and skipped. The previous checkpoint stays until the
 * next one is whole. The key is the digest of the task's parameters and of the data that was read:
 * another key is another run.
 */
#ifndef WORKER_TRAIN_CHECKPOINT_CHECKPOINT_H
#define WORKER_TRAIN_CHECKPOINT_CHECKPOINT_H

#include "worker/report/events.h"
#include "worker/report/task.h"
#include "worker/train/checkpoint/checkpoint_image.h"

#define CHECKPOINT_MANIFEST "manifest.json"
#define CHECKPOINT_STATE    "state.json"
/* Member of the manifest, and its two. */
#define CHECKPOINT_IDENTITY     "run"
#define CHECKPOINT_RUN_PARAMS   "params"
#define CHECKPOINT_RUN_DATA     "data"
#define CHECKPOINT_MANIFEST_MAX (1u << 20)
#define CHECKPOINT_STATE_MAX    (256u << 20)
#define CHECKPOINT_VERSION      4

/* What a run is, for the manifest. */
struct checkpoint_run {
    struct digest key;
    int threads;          /* 0 where they do not show in the result */
    const char *products; /* product_text() */
    cJSON *identity;      /* earlier_run_identity(); outlives what writes */
};

/* What a checkpoint must agree on to be resumed. */
struct digest checkpoint_key(const struct worker_task *task, const struct train_data *data);

/* Writes checkpoint/step-<img->step> in the working directory and removes all but it and the one
 * before. Without globals: fit for a thread. After an error nothing half written is left, and those
 * before stay. ERR_NO_SPACE, ERR_IO; ERR_REFUSED when a number in it is not finite. */
int checkpoint_write(const struct checkpoint_image *img, const struct checkpoint_run *run,
                     struct err *err) MUST_CHECK;
/* The same into `folder`, which must not exist; older ones stay. */
int checkpoint_write_to(const struct checkpoint_image *img, const struct checkpoint_run *run,
                        const char *folder, struct err *err) MUST_CHECK;
/* Name of the folder of a step, relative to the working directory; and the step of a name, or -1.
 */
void checkpoint_path(int64_t step, char *out, size_t size);
int64_t checkpoint_step_of_name(const char *name);

/* Resumes from the newest whole checkpoint among the task's resume folders: *found says whether
 * there was one. What is skipped is reported as notes. ERR_OTHER when it was written with
 * other products (of OpenBLAS: build, core or thread count) and the program does not allow that;
 * ERR_REFUSED when its weights are not finite. */
int checkpoint_resume(struct trainer *t, const struct worker_task *task,
                      const struct checkpoint_run *run, struct events *ev, bool *found,
                      struct err *err) MUST_CHECK;

/* Loads the checkpoint in `folder`, which another run wrote and t's run continues: state that is
 * about the earlier run's end is left behind. weights_only: nothing else is loaded. ERR_CORRUPT:
 * torn, or of other data. Else as checkpoint_resume(). */
int checkpoint_continue(struct trainer *t, const char *folder, const struct checkpoint_run *run,
                        bool weights_only, struct err *err) MUST_CHECK;

/* Seconds of work between checkpoints by Daly's first-order optimum sqrt(2 cost M) - cost, M the
 * mean time between failures: (seconds worked in all attempts + one hour) / (failures + 1), so that
 * one failure an hour is assumed until more is known. At least ten times the cost. */
double checkpoint_interval(double cost_seconds, double worked_seconds, int64_t failures);

#endif
