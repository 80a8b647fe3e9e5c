/*
 * ln sum_v e^(x_v) of a row that arrives in pieces, with its greatest element. Each piece is read
 * while it is in the cache and need not be kept.
 *
 * A piece is summed in float lanes against the greatest so far, the pieces in double; the result
 * depends on the row and on where the pieces begin.
 */
#ifndef WORKER_NN_LOGSUM_H
#define WORKER_NN_LOGSUM_H

#include <stddef.h>
#include <stdint.h>

#include "worker/nn/real.h"

struct logsum {
    real max;
    uint32_t top; /* the lowest index of the greatest */
    double sum;   /* of e^(x - max) */
    real poison;  /* 0, or NaN once an element was not finite */
};

void logsum_init(struct logsum *s);
/* Elements first .. first + n - 1 of the row. */
void logsum_add(struct logsum *s, const real *restrict x, size_t n, size_t first);
/* NaN when any element was infinite or NaN. */
double logsum_value(const struct logsum *s);

#endif
