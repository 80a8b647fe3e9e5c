/*
 * Blocks are linked newest first and grow geometrically; clearing leaves one block that holds as
 * much as all of them did, so that a loop that clears allocates once.
 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define BLOCK_BYTES     ((size_t)16 * 1024)
#define BLOCK_BYTES_MAX ((size_t)1024 * 1024) /* blocks double up to here: a large tree has few */

struct arena_block {
    struct arena_block *next;
    size_t used;
    size_t size;
    alignas(max_align_t) unsigned char data[];
};

void arena_init(struct arena *a)
{
    a->head = NULL;
}

void arena_release(struct arena *a)
{
    struct arena_block *b = a->head;
    while (b != NULL) {
        struct arena_block *next = b->next;
        free(b);
        b = next;
    }
    a->head = NULL;
}

static size_t next_block_bytes(const struct arena *a)
{
    size_t doubled = a->head == NULL ? BLOCK_BYTES : 2 * a->head->size;
    return doubled < BLOCK_BYTES_MAX ? doubled : BLOCK_BYTES_MAX;
}

static struct arena_block *block_new(struct arena *a, size_t size)
{
    bool oversized = size > next_block_bytes(a);
    struct arena_block *b = xcalloc(1, sizeof(*b) + size);
    b->size = size;
    /* An over-sized block goes behind the head, so that the head's free room stays in use. */
    if (a->head != NULL && oversized) {
        b->next = a->head->next;
        a->head->next = b;
    } else {
        b->next = a->head;
        a->head = b;
    }
    return b;
}

/* One block that holds as much as all of them did. */
void arena_clear(struct arena *a)
{
    struct arena_block *b = a->head;
    size_t total = 0;
    for (const struct arena_block *i = b; i != NULL; i = i->next) {
        total += i->used;
    }
    if (b != NULL && b->next == NULL) {
        memset(b->data, 0, b->used);
        b->used = 0;
    } else if (b != NULL) {
        arena_release(a);
        (void)block_new(a, total);
    }
}

void *arena_alloc(struct arena *a, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > SIZE_MAX / 4) {
        abort();
    }
    size = (size + align - 1) / align * align;
    struct arena_block *b = a->head;
    if (b == NULL || b->size - b->used < size) {
        size_t regular = next_block_bytes(a);
        b = block_new(a, size > regular ? size : regular);
    }
    void *out = b->data + b->used;
    b->used += size;
    return out;
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
    if (size != 0 && n > SIZE_MAX / size) {
        abort();
    }
    return arena_alloc(a, n * size);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *out = arena_alloc(a, len + 1);
    memcpy(out, s, len);
    return out;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_list again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *out = arena_alloc(a, (size_t)(n < 0 ? 0 : n) + 1);
    (void)vsnprintf(out, (size_t)(n < 0 ? 0 : n) + 1, fmt, again);
    va_end(again);
    return out;
}
