/*
 * The optimiser of a run: which tensors it updates how, what it keeps between steps, and the update
 * itself.
 *
 *   adamw   every tensor by AdamW
 *   muon    the matrices of the blocks by Muon: q, k, v, o, and gate, up and down of the dense
 *           part, of each expert and of the shared part, each a matrix of its own; the rest
 *           (embedding, head, norms, routers) by AdamW at a rate of its own
 *   sgd     every tensor by gradient descent with momentum
 *
 * Every tensor has a first moment, in the layout of the parameters. Only those that AdamW updates
 * have a second one: they follow one another in the order of the tensor table, so with adamw the
 * layout is that of the parameters, too.
 */
#ifndef WORKER_TRAIN_OPTIMISER_H
#define WORKER_TRAIN_OPTIMISER_H

#include "worker/model/weights.h"
#include "worker/train/options.h"

struct optimiser {
    real *m;         /* (n_params) */
    real *v;         /* (n_second); NULL: none */
    size_t n_second; /* 0 with sgd */
    real *scratch;   /* of Muon; NULL: none */
};

/* What a run of these options allocates, in numbers. */
struct optimiser_size {
    size_t second;  /* moments */
    size_t scratch; /* of the update */
};

struct optimiser_size optimiser_size(const struct train_options *opt);
/* Multiplications and additions of a step's Newton-Schulz products; 0 without Muon. The other
 * operations of an update are a few for each parameter, and not counted. */
double optimiser_flops(const struct train_options *opt);

/* Moments of zero. ERR_OTHER without memory; o is to be released on error too. */
int optimiser_init(struct optimiser *o, const struct train_options *opt,
                   struct err *err) MUST_CHECK;
void optimiser_release(struct optimiser *o);

/* Updates the weights by the gradients, which become zero. rate: the schedule's factor at this
 * step; clip: what gradients are multiplied by; t: the number of the step, from 1. */
struct optimiser_step {
    double rate;
    double clip;
    int64_t t;
};
void optimiser_update(struct optimiser *o, const struct weights *w, real *grad,
                      const struct train_options *opt, const struct optimiser_step *step);
/* An expert's weights were drawn again: its moments become zero. */
void optimiser_forget_expert(struct optimiser *o, const struct weights *w, int layer,
                             size_t expert);

#endif
