/*
 * Several buffers in one allocation. A layout function takes every buffer in turn from a carver; it
 * runs once with `memory` NULL, which only adds up the size, and once with memory of that size. So
 * counting and allocation cannot disagree, and a new buffer is one line of the layout. The layouts
 * are lay_out() of run.c (training) and of engine.c (scoring).
 *
 * Invariant: pieces do not overlap, and each begins on a cache line, as AVX-512 loads want.
 */
#ifndef WORKER_MODEL_CARVE_H
#define WORKER_MODEL_CARVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/nn/real.h"

#define CARVE_ALIGN ((size_t)64)

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define CARVE_GAP CARVE_ALIGN /* poisoned, so that a buffer's overrun is found */
#else
#define CARVE_GAP ((size_t)0)
#endif

struct carver {
    char *memory;
    size_t used;   /* bytes */
    bool overlaid; /* other buffers are in the same place: without gaps */
};

/* The next n elements; NULL while counting. */
static inline void *carve(struct carver *c, size_t n, size_t size)
{
    char *p = c->memory == NULL ? NULL : c->memory + c->used;

    c->used += (n * size + CARVE_ALIGN - 1) / CARVE_ALIGN * CARVE_ALIGN;
    if (!c->overlaid)
        c->used += CARVE_GAP;
#ifdef __SANITIZE_ADDRESS__
    if (p != NULL && !c->overlaid)
        ASAN_POISON_MEMORY_REGION(p + n * size, (size_t)(c->memory + c->used - p) - n * size);
#endif
    return p;
}

static inline real *carve_real(struct carver *c, size_t n)
{
    return carve(c, n, sizeof(real));
}

static inline uint32_t *carve_u32(struct carver *c, size_t n)
{
    return carve(c, n, sizeof(uint32_t));
}

static inline size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

#endif
