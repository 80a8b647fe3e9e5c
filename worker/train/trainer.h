/*
 * Everything a training run is made of, and one step of it.
 *
 * What the next step depends on, and nothing else, is what a checkpoint holds: parameters, choice
 * biases, the optimiser's moments, the step number, the router health sums, the marks, target, best
 * loss and snapshots so far, and the histories of losses, step times and routers.
 */
#ifndef WORKER_TRAIN_TRAINER_H
#define WORKER_TRAIN_TRAINER_H

#include <stddef.h>
#include <stdint.h>

#include "worker/model/run.h"
#include "worker/nn/pass_clock.h"
#include "worker/train/data.h"
#include "worker/train/health.h"
#include "worker/train/optimiser.h"
#include "worker/train/options.h"
#include "worker/train/router_log.h"

/* A validation: nats per token. n < 0: not measured yet. */
struct val_loss {
    double loss;
    double se;
    int64_t n;
};

/* Of all sources and of each. */
struct train_evaluation {
    struct val_loss whole;
    struct val_loss source[MIX_MAX];
};

/* One step, as kept for the result: eight bytes. */
struct step_record {
    float loss;
    float seconds;
};

struct trainer {
    const struct train_options *opt;
    const struct train_data *data;
    struct weights w;
    real *grad; /* zeros between steps */
    struct optimiser optimiser;
    struct run *run;
    struct pass_clock *clock; /* NULL unless steps are measured; the run books to it too */
    struct health health;
    struct router_log router;
    uint32_t *tokens; /* (micro_batch, context) */
    uint32_t *targets;
    struct step_record *history; /* (steps) */
    int64_t step;                /* steps done */
    struct train_evaluation marks[MARKS_MAX];
    struct digest snapshots[MARKS_MAX]; /* of the models at marks; zero: none */
    struct val_loss best;               /* the lowest of all evaluations, the first of equals */
    int64_t best_step;                  /* -1: nothing was evaluated */
    int64_t target_step;                /* -1: not reached */
    int64_t evaluated_step;             /* the last step that was evaluated; -1: none */
    char *made_by; /* the BLAS builds, cores and thread counts that made it so far */
};

/* Fresh weights. ERR_OTHER without memory. trainer is to be released on error too. */
int trainer_init(struct trainer *t, const struct train_options *opt, const struct train_data *data,
                 struct err *err) MUST_CHECK;
/* Also after a failed trainer_init(). */
void trainer_release(struct trainer *t);

/* One optimiser step over batch_tokens. ERR_REFUSED when the loss or a gradient is not finite,
 * naming step and tensor. */
int trainer_step(struct trainer *t, double *loss, struct err *err) MUST_CHECK;

/* ERR_REFUSED naming the first tensor that holds a number that is not finite; 0 when all are. */
int trainer_check_finite(const struct trainer *t, const char *what, struct err *err) MUST_CHECK;

/* Bytes of parameters, gradients, the optimiser's moments and scratch, and activations. */
double trainer_bytes(const struct train_options *opt);

#endif
