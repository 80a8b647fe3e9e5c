/*
 * One pass of a model over B sequences of T tokens, forward and backward. The equations and shapes
 * are in the head comment of worker/model/tensors.h, the operations' formulas in worker/nn.
 *
 * Every buffer is allocated once for the largest pass, nothing per step. In training what a layer's
 * backward pass needs is kept; with RUN_INFER all layers share one set. Logits exist for a chunk of
 * tokens at a time, never for all. Gradients have the layout of weights.params.
 */
#ifndef WORKER_MODEL_RUN_H
#define WORKER_MODEL_RUN_H

#include "worker/model/weights.h"
#include "worker/nn/product/product.h"
#include "worker/nn/router.h"

/* RUN_TRAIN_WHOLE: every pass is all of a step, so the gradient's memory is free until the
 * backward pass comes to it, and activations may be where it will be (run_lend()). */
enum run_mode { RUN_INFER, RUN_TRAIN, RUN_TRAIN_WHOLE };

struct run;
struct pass_clock;

/* Room for passes of up to max_tokens = B T tokens in sequences of up to `context` each. ERR_OTHER
 * without memory. */
int run_create(const struct model_config *cfg, enum run_mode mode, size_t max_tokens,
               struct run **out, struct err *err) MUST_CHECK;
void run_free(struct run *run);
/* RUN_TRAIN_WHOLE: grad, what run_gradient() is going to get, is room for activations. To be called
 * before the first pass, and passes of all kinds overwrite it. */
void run_lend(struct run *run, real *grad);
/* Of the products of the linear layers in the passes that follow, but for the router's; float32 at
 * first. */
void run_set_precision(struct run *run, enum product_precision precision);
/* Books the time of the passes that follow to `clock`; NULL: of none. */
void run_set_clock(struct run *run, struct pass_clock *clock);
/* What run_create would allocate, in bytes. */
double run_bytes(const struct model_config *cfg, enum run_mode mode, size_t max_tokens);
/* What each further thread takes. */
double run_thread_bytes(const struct model_config *cfg);

struct run_batch {
    const uint32_t *tokens;  /* (B, T) */
    const uint32_t *targets; /* (B, T); NULL for run_forward() alone */
    size_t batch;
    size_t length;
};

/* Noise on the routers' logits: sigma times a standard normal number that is a function of (seed,
 * layer, token, expert) alone. */
struct run_noise {
    double sigma; /* 0: none */
    uint64_t seed;
    uint64_t first_token; /* of the pass, counted over the whole run */
};

/* Weights of the parts of the training loss, and what makes routing in training another than in
 * use.
 */
struct run_objective {
    double balance;
    double z;
    double share; /* of the whole batch that this pass is: scales every gradient */
    struct run_noise noise;
    double
        capacity_factor; /* an expert takes at most this times an even share of the pass; 0: all */
};

/* What a pass measured; layers' means for the routers' losses. */
struct run_loss {
    double cross_entropy; /* mean over the tokens */
    double balance;       /* E sum f P, unweighted */
    double z;             /* mean squared logsumexp, unweighted */
};

/* Up to the final norm; hidden states stay in the run until the next pass. stats (one per layer)
 * may be NULL. */
void run_forward(struct run *run, const struct weights *w, const struct run_batch *batch,
                 struct router_stats *stats);

/* The loss alone: loss[i] of each of the B T tokens, in nats. After run_forward(). */
void run_token_losses(struct run *run, const struct weights *w, const struct run_batch *batch,
                      double *loss);

/* Forward and backward of share (cross entropy + balance weight x balance + z weight x z), whose
 * gradient is added to grad; RUN_TRAIN_WHOLE: overwrites grad. Not with RUN_INFER. */
void run_gradient(struct run *run, const struct weights *w, const struct run_batch *batch,
                  const struct run_objective *objective, struct router_stats *stats, real *grad,
                  struct run_loss *loss);

/* Logits (V) of the tokens rows first .. first + n - 1 of the last run_forward(): at most
 * as many as the run computes at a time, which is 256 or all that it has room for. Rows are
 * product_pitch(V) apart. */
const real *run_logits(struct run *run, const struct weights *w, size_t first, size_t n);

/* first[i] is the expert that token i of the last pass chose first in this mixture layer, for all
 * of its n tokens. Not with RUN_INFER, where the layers share one set of buffers. */
void run_first_choices(const struct run *run, int layer, size_t n, uint32_t *first);

#endif
