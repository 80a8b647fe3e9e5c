/*
 * Continuing a run that horizon.stop ended: init = { run = "NAME" }, NAME of the task's data being
 * the folder "run" that it left, any checkpoint of it, or the attempt's folder that holds "run".
 *
 * The two runs are one in two pieces: every parameter and every byte of data that has a part in
 * weights or metrics is the same, and what the second run leaves from there on is what an
 * uninterrupted one leaves. Parameters may differ in `init`, `horizon.stop`, `marks` and
 * `resume_any_core` alone, and marks before the beginning must be those of the earlier run, whose
 * evaluations its lowest loss and its target's step count already.
 */
#ifndef WORKER_TRAIN_CHECKPOINT_EARLIER_RUN_H
#define WORKER_TRAIN_CHECKPOINT_EARLIER_RUN_H

#include "worker/report/result.h"
#include "worker/train/checkpoint/checkpoint.h"

#define EARLIER_RUN_FOLDER "run"

/* What must be equal: {"params":{…},"data":{NAME:sha256}}, without data where that is NULL. The
 * caller's. */
cJSON *earlier_run_identity(const struct worker_task *task, const struct train_options *opt,
                            const struct train_data *data);

/* Compares the earlier run's parameters with this one's, and its step with this one's end; every
 * difference becomes a fault. Sets opt->first_step. Reads no data. An error without a run to
 * read. Does nothing without init.run. */
int earlier_run_check(const struct worker_task *task, struct train_options *opt,
                      struct param_faults *faults, struct err *err) MUST_CHECK;
/* Hashes the run's folder into data->init; ERR_CORRUPT when that is not what was locked. */
int earlier_run_verify(const struct worker_task *task, const struct train_options *opt,
                       struct train_data *data, struct err *err) MUST_CHECK;
/* Continues from it, in the place of a resumed checkpoint. A try takes its weights alone. */
int earlier_run_load(struct trainer *t, const struct worker_task *task,
                     const struct checkpoint_run *run, struct err *err) MUST_CHECK;

/* Writes the present state as the folder "run" of this attempt. */
int earlier_run_write(const struct trainer *t, const struct checkpoint_run *run,
                      struct err *err) MUST_CHECK;
/* Names what was written that is the same bytes in every execution. */
int earlier_run_artifacts(struct worker_result *r, struct err *err) MUST_CHECK;

#endif
