/*
 * Writing a checkpoint while steps go on: the state is copied, and a thread of its own writes the
 * copy. At most one is in flight.
 *
 * The owner starts, asks, and takes the outcome, all from one thread; the writer's thread touches
 * its copy and the disk only, and takes no signals.
 */
#ifndef WORKER_TRAIN_CHECKPOINT_CHECKPOINT_WRITER_H
#define WORKER_TRAIN_CHECKPOINT_CHECKPOINT_WRITER_H

#include <pthread.h>
#include <stdatomic.h>

#include "worker/train/checkpoint/checkpoint.h"

struct checkpoint_writer {
    struct checkpoint_run run;
    struct checkpoint_image image;
    pthread_t thread;
    bool started; /* and its outcome not yet taken */
    atomic_bool ended;
    double stall_seconds; /* of the copy */
    /* By the thread; read after it was joined. */
    int rc;
    struct err err;
    double seconds;     /* of writing */
    double cpu_seconds; /* that writing took from the steps, where no core was idle */
};

void checkpoint_writer_init(struct checkpoint_writer *w);
/* Waits for what is in flight. */
void checkpoint_writer_release(struct checkpoint_writer *w);

/* From a successful start until the outcome was taken. */
bool checkpoint_writer_is_busy(const struct checkpoint_writer *w);
/* Copies t and starts writing. Not while busy. ERR_OTHER without memory or without a thread:
 * nothing was started. */
int checkpoint_writer_start(struct checkpoint_writer *w, const struct trainer *t,
                            const struct checkpoint_run *run, struct err *err) MUST_CHECK;
/* Whether taking would not wait. */
bool checkpoint_writer_has_ended(const struct checkpoint_writer *w);
/* Waits, and says how it went. While busy only. */
int checkpoint_writer_take(struct checkpoint_writer *w, struct err *err) MUST_CHECK;

#endif
