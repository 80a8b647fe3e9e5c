/*
 * The numbers of a model: parameters in the order of the tensor table, and the routers' choice
 * biases, which are not trained by gradient but belong to the model. One allocation each, 64-byte
 * aligned.
 */
#ifndef WORKER_MODEL_WEIGHTS_H
#define WORKER_MODEL_WEIGHTS_H

#include "worker/model/tensors.h"
#include "worker/nn/real.h"

struct weights {
    struct model_config cfg;
    struct tensor_table table;
    real *params;     /* (table.n_params) */
    real *route_bias; /* (layers, E); all zero unless loss-free balancing is on; NULL when dense */
};

/* Zeroed. ERR_OTHER without memory. */
int weights_init(struct weights *w, const struct model_config *cfg, struct err *err) MUST_CHECK;
void weights_release(struct weights *w);

/* Normal(0, sd), o and down divided by sqrt(2 L), norms one; Philox keyed by (seed, tensor,
 * element). */
void weights_randomise(struct weights *w, uint64_t seed, double sd);
/* The same but that few numbers are drawn, and repeated: for models that are only timed. */
void weights_repeat(struct weights *w, double sd);
/* Draws one expert of one layer again; `round` differs each time, so that the numbers do. */
void weights_reset_expert(struct weights *w, int layer, int expert, uint64_t seed, double sd,
                          uint32_t round);

/* The tensor's numbers; NULL when the model has none. */
real *weights_at(const struct weights *w, enum tensor_role role, int layer);
/* Choice biases of a shape: one for each layer and expert. */
size_t weights_n_bias(const struct model_config *cfg);

/* n reals, 64-byte aligned, zeroed; NULL without memory. free() them. */
real *real_alloc(size_t n);

#endif
