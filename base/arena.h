/*
 * An arena: many small allocations, freed together. For parse trees and requests.
 * Memory is zeroed and aligned for any type; allocation never fails (aborts without memory).
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/err.h"

struct arena_block;

struct arena {
    struct arena_block *head;
};

void arena_init(struct arena *a);
void arena_release(struct arena *a); /* frees everything; leaves it as after init */
/* Frees nothing that the same allocations would ask for again: for work that is done many times.
 */
void arena_clear(struct arena *a);
void *arena_alloc(struct arena *a, size_t size) __attribute__((returns_nonnull));
void *arena_array(struct arena *a, size_t n, size_t size) __attribute__((returns_nonnull));
char *arena_strdup(struct arena *a, const char *s) __attribute__((returns_nonnull));
char *arena_strndup(struct arena *a, const char *s, size_t n) __attribute__((returns_nonnull));
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
