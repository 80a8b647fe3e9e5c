/*
 * The transformer, and the one table of its tensors. Allocation, initial values, optimiser groups,
 * checkpoints and counting all read the table.
 *
 * The model in the symbols of this folder: N rows of tokens, width C, H query heads in G groups of
 * dimension D = C / H, feed-forward width F, E experts of width Fe of which K are chosen for a
 * token, S shared experts, V tokens of vocabulary. A linear layer's weight is (out, in).
 *
 *   x  = Embed[token]                                        (N, C)
 *   for each of the L blocks:
 *     a  = rmsnorm(x; n1)                                    (N, C)
 *     q, k, v = a Wq^T, a Wk^T, a Wv^T                       (N, H D), (N, G D), (N, G D)
 *     x' = x + attention(rope(q), rope(k), v) Wo^T           (N, C)
 *     b  = rmsnorm(x'; n2)                                   (N, C)
 *     x  = x' + ffn(b)                                       (N, C)
 *   logits = rmsnorm(x; n3) Whead^T                          (N, V), Whead = Embed when tied
 *
 *   ffn of a dense block:    swiglu(b Wg^T, b Wu^T) Wd^T     (N, F) in between
 *   ffn of a mixture block:  sum over the K chosen experts e of w_e expert_e(b), plus the shared
 *                            ones; w = router(b Wr^T), and an expert is a dense ffn of width Fe
 *
 * The same equations are computed three times: run_forward.c for whole sequences, run_backward.c
 * for the gradients (each operation's derivative is in its header in worker/nn), and engine_pass.c
 * for tokens that follow a cached prefix. docs/models.md states them for users.
 *
 * All parameters are in one array, tensor after tensor, in table order. What is multiplied together
 * is adjacent: q, k and v of a layer form one ((H + 2 G) D, C) matrix, gate and up one (2 F, C).
 * Experts are stacked: gate_up is (E, 2 Fe, C), per expert the gate's rows, then up's; down is (E,
 * C, Fe). S shared experts are one SwiGLU of width S Fe, which is their sum. Invariant: offsets are
 * contiguous, and n_params == model_config_total().
 */
#ifndef WORKER_MODEL_TENSORS_H
#define WORKER_MODEL_TENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/model/config.h"

enum tensor_role {
    TENSOR_EMBED,
    TENSOR_NORM_ATTENTION,
    TENSOR_Q,
    TENSOR_K,
    TENSOR_V,
    TENSOR_O,
    TENSOR_NORM_FFN,
    TENSOR_GATE,
    TENSOR_UP,
    TENSOR_DOWN,
    TENSOR_ROUTER,
    TENSOR_EXPERT_GATE_UP,
    TENSOR_EXPERT_DOWN,
    TENSOR_SHARED_GATE,
    TENSOR_SHARED_UP,
    TENSOR_SHARED_DOWN,
    TENSOR_NORM_FINAL,
    TENSOR_HEAD,
    TENSOR_ROLE_NR
};

#define TENSOR_NAME_SIZE 64

struct tensor {
    char name[TENSOR_NAME_SIZE]; /* Hugging Face's where it has one */
    enum tensor_role role;
    int layer; /* -1 outside the blocks */
    size_t offset;
    size_t rows;   /* of all stacked experts */
    size_t cols;   /* 1 for norms */
    bool decays;   /* matrices do, norms do not */
    bool ones;     /* initial value one; else normal */
    bool residual; /* written onto the residual stream: initial sd is divided by sqrt(2 L) */
};

struct tensor_table {
    struct tensor *items;
    size_t n;
    size_t n_params;
    size_t *index; /* (layers + 1) x TENSOR_ROLE_NR: table position + 1, 0 absent; row 0: outside
                      the blocks */
    int layers;
};

void tensor_table_init(struct tensor_table *table, const struct model_config *cfg);
void tensor_table_release(struct tensor_table *table);

/* NULL when the model has none. layer -1 for the tensors outside the blocks. */
const struct tensor *tensor_find(const struct tensor_table *table, enum tensor_role role,
                                 int layer);
/* The tensor that holds element i. */
const struct tensor *tensor_holding(const struct tensor_table *table, size_t i);

static inline size_t tensor_size(const struct tensor *t)
{
    return t->rows * t->cols;
}

#endif
