/*
 * What a run takes of memory, worked out before any of it is asked for.
 *
 * A run that cannot fit is refused with both amounts; one that fits but for the copy of its state
 * writes its checkpoints between steps (keeper.h).
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

/* Bytes of the sources' tokens: as far as the sizes of the files tell (what cannot be looked at
 * counts nothing: reading it says why), and as they are. */
double memory_corpus_of_files(const struct worker_task *task, const struct train_options *opt);
double memory_corpus_of_data(const struct train_data *data);

/* Options are without faults. */
void memory_need_of(const struct train_options *opt, double corpus, int threads,
                    struct memory_need *out);
/* Bytes without which the run cannot end. */
double memory_least(const struct memory_need *need);
/* Bytes with checkpoints beside the steps. */
double memory_most(const struct memory_need *need);

/* What this machine has; 0: nobody knows. */
double memory_of_machine(void);
/* What the task may use, or this machine has; 0: nobody knows. */
double memory_allowed(const struct worker_task *task);
/* A fault when the least is more than `allowed` (0: no limit). */
void memory_check(const struct memory_need *need, double allowed, const struct train_options *opt,
                  struct param_faults *faults);

#endif
