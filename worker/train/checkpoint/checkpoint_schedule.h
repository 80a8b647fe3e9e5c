/*
 * Decides when a checkpoint is due and has it written: beside the steps where memory allows a copy
 * of the state, between them where it does not.
 *
 * A checkpoint that cannot be written (a full disk, a device that fails) is given up with a note:
 * the one before it stays, the steps go on, and the next one is tried when it is due. Only
 * checkpoint_schedule_stop() returns such an error, because there the work would be lost silently.
 */
#ifndef WORKER_TRAIN_CHECKPOINT_CHECKPOINT_SCHEDULE_H
#define WORKER_TRAIN_CHECKPOINT_CHECKPOINT_SCHEDULE_H

#include "worker/train/checkpoint/checkpoint_writer.h"

struct checkpoint_schedule {
    const struct worker_task *task;
    const struct trainer *trainer;
    struct events *events;
    struct checkpoint_run run;
    struct checkpoint_writer writer;
    bool copies; /* the copy fits */
    double cost; /* seconds that a checkpoint takes from the steps; a guess until one was written */
    int64_t due_ns; /* when the interval to the next one began: after the copy, or the sync write */
    double earlier; /* seconds of the steps that were resumed from earlier attempts */
    int64_t begin_ns;  /* of this attempt's steps */
    int64_t last_step; /* the newest that is whole; -1: none of this attempt's */
};

/* copies: whether the task's memory holds a copy of the state. All pointers outlive the schedule.
 */
void checkpoint_schedule_init(struct checkpoint_schedule *k, const struct worker_task *task,
                              const struct trainer *t, struct events *events, bool copies);
/* Before the first step, after the trainer was resumed or left fresh. */
void checkpoint_schedule_begin(struct checkpoint_schedule *k);
void checkpoint_schedule_release(
    struct checkpoint_schedule *k); /* finishes first; also fine on a zeroed struct */

/* Between two steps: collects a finished write, and starts the next checkpoint when it is due. */
void checkpoint_schedule_look(struct checkpoint_schedule *k);
/* Asked to stop: returns when the present step is on the disk. A checkpoint of this very step is
 * not written again, nor is one of step 0. */
int checkpoint_schedule_stop(struct checkpoint_schedule *k, struct err *err) MUST_CHECK;
/* Waits for what is in flight. */
void checkpoint_schedule_finish(struct checkpoint_schedule *k);

#endif
