/* The inside of a run, shared by run.c (buffers), run_forward.c, run_backward.c and run_head.c. */
#ifndef WORKER_MODEL_RUN_PRIVATE_H
#define WORKER_MODEL_RUN_PRIVATE_H

#include "worker/model/carve.h"
#include "worker/model/run.h"
#include "worker/nn/attention.h"
#include "worker/nn/moe.h"
#include "worker/nn/pass_clock.h"

/*
 * Elements first .. of the gradient that a layer's backward pass writes, and the end of the last
 * one's: the parts before and after are written by the head and the embedding. Whatever layer l
 * keeps can therefore be before first[l]; logits, gone before the first layer is reached, before
 * first[layers].
 */
struct run_lent {
    real *grad;    /* NULL: not lent yet */
    size_t *first; /* (layers + 1) */
    size_t free;   /* elements before this one are not used yet */
};

/*
 * Buffers of the last layer that are where its gradient will be, and make way for it once the
 * logits are used up: into their place, beside what else is there.
 */
#define RUN_MOVED_MAX 8

struct run_moved {
    real **at; /* where the layer finds it */
    real *early;
    real *late;
    size_t n; /* elements */
};

/*
 * One layer's activations. Rows N = B T; width C, packed W = (H + 2 G) D.
 *
 * Those marked "again" are one buffer for all layers: they are cheap to compute from what is kept,
 * so the backward pass recomputes them, with the same bits. Those with "then its gradient" are used
 * up by the backward pass.
 */
struct layer_kept {
    real *x;          /* (N, C) into the block; again where run_restores_input() */
    real *rstd1;      /* (N) */
    real *xn1;        /* (N, C) again; the same buffer as xn2 */
    real *qkv;        /* (N, W), rotated; then its gradient */
    real *att;        /* (N, C) */
    real *lse;        /* (N, H) */
    real *x_mid;      /* (N, C) after attention */
    real *rstd2;      /* (N) */
    real *xn2;        /* (N, C) again */
    real *gu;         /* (N, 2 F) of the dense block or the shared experts; then its gradient */
    real *h;          /* (N, F) again; then its gradient */
    real *p;          /* (N, E) */
    real *route_lse;  /* (N) */
    uint32_t *chosen; /* (N, K) */
    real *route_w;    /* (N, K) */
    uint32_t *counts; /* (E) */
    struct moe_plan plan;
    struct moe_kept moe; /* xg and h again */
};

/* Gradients of activations: one set, reused by every layer. */
struct run_scratch {
    real *dx; /* (N, C) of the residual stream */
    real *dn; /* (N, C) of a normalised input, or of attention's output */
    real *dw; /* (N, K) */
    real *dr; /* (N, E) */
};

/* What all layers share in a forward pass, and a backward pass recomputes. */
struct run_again {
    real *x;     /* (N, C); not while experts are at work: where xg is */
    real *xn;    /* (N, C) */
    real *h;     /* (N, F) */
    real *xg;    /* (N, C) of one expert */
    real *moe_h; /* (N, Fe) of one expert */
};

struct run {
    struct model_config cfg;
    enum run_mode mode;
    size_t max_tokens;
    char *memory;
    size_t bytes;
    struct layer_kept *layers; /* (L) */
    real *x_last;              /* (N, C) out of the last block */
    real *rstd_last;           /* (N) */
    real *xn_last;             /* (head rows, C) of the rows whose logits are there */
    real *rope;                /* (context, D) */
    real *attention;           /* scratch */
    real *logits;              /* (head rows, V), rows logits_ld apart */
    double *row_loss;          /* (head rows) */
    size_t head_rows;
    size_t logits_ld;
    bool shares_logits; /* what is not needed beside logits is in their place */
    struct carver room; /* shares_logits: what is left of it for buffers to be moved to */
    size_t room_bytes;
    struct run_moved moved[RUN_MOVED_MAX];
    size_t n_moved;
    enum product_precision precision;      /* of the linear layers but the router */
    struct pass_clock *clock;              /* NULL unless the pass is measured */
    const struct run_objective *objective; /* of the gradient under way; NULL in other passes */
    struct run_lent lent;                  /* RUN_TRAIN_WHOLE */
    struct run_again again;
    struct run_scratch grad; /* in training */
};

/* Whether a block's input is a sum that is cheap to repeat: the tokens' embeddings, or what a block
 * of experts alone gave. layer == cfg->layers: the last block's output. */
bool run_restores_input(const struct model_config *cfg, int layer);

/* Moves what makes way for the last layer's gradient; run_move_back() undoes it, contents apart. */
void run_move(struct run *run);
void run_move_back(struct run *run);

/* The dimensions of attention and of a mixture for this pass. */
struct attention_dims run_attention_dims(const struct run *run, const struct run_batch *batch);
struct moe_dims run_moe_dims(const struct run *run, size_t n);

/* The loss and its gradient with respect to the final norm's output (run->grad.dn) and the head. */
double run_head_gradient(struct run *run, const struct weights *w, const struct run_batch *batch,
                         double share, real *grad);

/* The place of a tensor's gradient in `grad`; NULL when the model has no such tensor. */
real *run_grad_at(const struct weights *w, real *grad, enum tensor_role role, int layer);

#endif
