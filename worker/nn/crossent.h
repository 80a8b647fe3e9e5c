/*
 * Softmax cross-entropy of rows: loss_r = ln sum_v e^(l_rv) - l_(r, target_r).  logits (N, V).
 * d loss_r / d l_rv = softmax(l_r)_v - [v = target_r].
 *
 * Called on chunks of tokens, so that the logits of all tokens never exist at once.
 */
#ifndef WORKER_NN_CROSSENT_H
#define WORKER_NN_CROSSENT_H

#include <stddef.h>
#include <stdint.h>

#include "worker/nn/real.h"

struct crossent_dims {
    size_t n;
    size_t v;
    size_t ld; /* from a row of logits to the next */
};

/* loss (N). logits are left as they were, except that their row maximum may be read from max (N)
 * unless NULL. */
void crossent_forward(double *restrict loss, real *restrict max, const real *restrict logits,
                      const uint32_t *restrict targets, const struct crossent_dims *dims);
/* Also turns logits into scale * their gradient, in place. */
void crossent_forward_backward(double *restrict loss, real *restrict logits, real scale,
                               const uint32_t *restrict targets, const struct crossent_dims *dims);

#endif
