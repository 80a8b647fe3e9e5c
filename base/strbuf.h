/*
 * A growing byte string. Invariants: buf is never NULL after init; buf[len] == '\0'; len < cap once
 * grown. The bytes may hold NULs; `buf` is a C string only if the owner put none in.
 */
#ifndef BASE_STRBUF_H
#define BASE_STRBUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct strbuf {
    char *buf;
    size_t len;
    size_t cap; /* 0: buf points to a shared empty string */
};

extern char strbuf_empty[];
#define STRBUF_INIT                                                                                \
    {                                                                                              \
        strbuf_empty, 0, 0                                                                         \
    }

void strbuf_init(struct strbuf *sb);
void strbuf_release(struct strbuf *sb); /* frees and leaves it as after init */
void strbuf_clear(struct strbuf *sb);   /* empties, keeps the memory */
void strbuf_reserve(struct strbuf *sb, size_t more);
void strbuf_add(struct strbuf *sb, const void *data, size_t len);
void strbuf_adds(struct strbuf *sb, const char *s);
void strbuf_addc(struct strbuf *sb, char c);
void strbuf_addf(struct strbuf *sb, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* "1 task", "2 tasks" */
void strbuf_add_count(struct strbuf *sb, int64_t n, const char *one, const char *many);
/* `word` as one word of a POSIX shell, whatever it holds. */
void strbuf_add_quoted(struct strbuf *sb, const char *word);
/* Hands the heap string to the caller (never NULL) and leaves sb as after init. */
char *strbuf_detach(struct strbuf *sb);

#endif
