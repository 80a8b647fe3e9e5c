/*
 * A bound on the number of values in an untrusted JSON text: 2^20 and one in 12 bytes. A value
 * takes 64 bytes of memory or more; what preregd writes has one in 20 bytes or fewer.
 */
#ifndef CTL_RECEIPT_NODES_H
#define CTL_RECEIPT_NODES_H

#include <stddef.h>

#include "base/err.h"

/* ERR_RANGE when the text has more values than that; it need not be JSON. */
int nodes_check(const char *text, size_t len, struct err *err) MUST_CHECK;

#endif
