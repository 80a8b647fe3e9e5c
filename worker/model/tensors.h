/*
 * The one table of tensors. Allocation, initial values, optimiser groups, checkpoints and counting
 * all read it.
 *
 * All parameters lie in one array, tensor after tensor, in table order. What is multiplied together
 * lies together: q, k and v of a layer form one ((H + 2 G) D, C) matrix, gate and up one (2 F, C).
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

/* NULL when the model has none. layer -1 for what lies outside the blocks. */
const struct tensor *tensor_find(const struct tensor_table *table, enum tensor_role role,
                                 int layer);
/* The tensor that holds element i. */
const struct tensor *tensor_holding(const struct tensor_table *table, size_t i);

static inline size_t tensor_size(const struct tensor *t)
{
    return t->rows * t->cols;
}

#endif
