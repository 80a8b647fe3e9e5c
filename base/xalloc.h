/* Small allocations: they abort when memory runs out, so callers never see NULL. Large ones
 * (tensors, maps, file bodies over a limit) are made with malloc by their owner, capped and checked
 * there. */
#ifndef BASE_XALLOC_H
#define BASE_XALLOC_H

#include <stdarg.h>
#include <stddef.h>

#include "base/err.h"

void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
/* Zeroed; aborts when n * size overflows. */
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
/* An array of n elements of `size` bytes; aborts when the product overflows. */
void *xreallocarray(void *old, size_t n, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) __attribute__((malloc, returns_nonnull)) PRINTF_LIKE(1, 2);

/* A NULL-terminated list of texts and each of them; NULL is fine. */
void xfree_list(char **list);

struct text_list {
    char **items; /* NULL-terminated only by a NULL that was added; for xfree_list() */
    size_t n;
    size_t cap;
};
/* Takes the text over. */
void text_list_add(struct text_list *list, char *text);

/* Room for one more element in a growing array: doubles `cap` when len == cap. */
#define ARRAY_GROW(ptr, len, cap)                                                                  \
    do {                                                                                           \
        if ((len) == (cap)) {                                                                      \
            (cap) = (cap) == 0 ? 8 : (cap)*2;                                                      \
            (ptr) = xreallocarray((ptr), (cap), sizeof(*(ptr)));                                   \
        }                                                                                          \
    } while (0)

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
