/* How much of a long test a sanitized build runs: $PREREGD_SPARSE, which ops/check sets. */
#ifndef TESTS_UNIT_SPARSE_H
#define TESTS_UNIT_SPARSE_H

#include <stddef.h>

/* Returns n: a test makes an n-th part of its cases, or takes every n-th. 1 when it is not set;
 * what is not a number from 1 to 100 ends the process with 2. */
size_t sparse_part(void);

#endif
