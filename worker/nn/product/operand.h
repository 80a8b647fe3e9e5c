/* An operand of a product: a piece of a matrix in memory, or its transpose. */
#ifndef WORKER_NN_PRODUCT_OPERAND_H
#define WORKER_NN_PRODUCT_OPERAND_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/nn/real.h"

/* Rows in memory are ld apart; transposed: the operand is the transpose of what is in memory. */
struct operand {
    const real *at;
    size_t ld;
    bool transposed;
};

static inline struct operand operand_plain(const real *at, size_t ld)
{
    return (struct operand){at, ld, false};
}

static inline struct operand operand_turned(const real *at, size_t ld)
{
    return (struct operand){at, ld, true};
}

/* The operand without its first i rows and j columns. */
static inline struct operand operand_from(struct operand m, size_t i, size_t j)
{
    m.at += m.transposed ? j * m.ld + i : i * m.ld + j;
    return m;
}

#endif
