/*
 * Large buffers on large pages: with 4 KiB pages a pass over hundreds of megabytes spends its time
 * in page faults and table walks.
 */
#ifndef WORKER_NN_PAGES_H
#define WORKER_NN_PAGES_H

#include <stddef.h>

/* At least 64-byte aligned, not cleared; NULL without memory, or when bytes is beyond what can be
 * rounded up. free() it. */
void *pages_alloc(size_t bytes);

#endif
