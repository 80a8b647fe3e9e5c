/*
 * The memory that a run needs, computed before any of it is allocated.
 *
 * A run that cannot fit is refused with both amounts; one that fits but for the copy of its state
 * writes its checkpoints between steps (checkpoint_schedule.h).
 */
#ifndef WORKER_TRAIN_MEMORY_H
#define WORKER_TRAIN_MEMORY_H

#include "worker/report/params.h"
#include "worker/train/options.h"

struct train_data;

struct memory_need {
    double
        trainer; /* parameters, gradients, moments, activations, history, and the process itself */
    double corpus;  /* tokens */
    double saving;  /* the second set of parameters while the model is written */
    double copying; /* the copy of the state while a checkpoint is written */
};

/* Bytes of the sources' tokens: estimated from the sizes of the files (a file that cannot be
 * inspected counts nothing; reading it will report why), and as loaded. */
double memory_corpus_of_files(const struct worker_task *task, const struct train_options *opt);
double memory_corpus_of_data(const struct train_data *data);

/* Options are without faults. */
void memory_need_of(const struct train_options *opt, double corpus, int threads,
                    struct memory_need *out);
/* Bytes without which the run cannot end. */
double memory_least(const struct memory_need *need);
/* Bytes with checkpoints beside the steps. */
double memory_most(const struct memory_need *need);

/* Bytes of memory that this machine has; 0: not known. */
double memory_of_machine(void);
/* Bytes that the task may use, else that this machine has; 0: not known. */
double memory_allowed(const struct worker_task *task);
/* A fault when the least is more than `allowed` (0: no limit). */
void memory_check(const struct memory_need *need, double allowed, const struct train_options *opt,
                  struct param_faults *faults);

#endif
