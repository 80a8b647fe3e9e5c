/*
 * The buffer always ends in a NUL that `len` does not count; an empty one shares a static NUL and
 * owns nothing.
 */
#include "base/strbuf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"

char strbuf_empty[1];

void strbuf_init(struct strbuf *sb)
{
    sb->buf = strbuf_empty;
    sb->len = 0;
    sb->cap = 0;
}

void strbuf_release(struct strbuf *sb)
{
    if (sb->cap != 0) {
        free(sb->buf);
    }
    strbuf_init(sb);
}

void strbuf_clear(struct strbuf *sb)
{
    sb->len = 0;
    if (sb->cap != 0) {
        sb->buf[0] = '\0';
    }
}

void strbuf_reserve(struct strbuf *sb, size_t more)
{
    if (more >= SIZE_MAX / 4 - sb->len) {
        abort();
    }
    size_t need = sb->len + more + 1;
    if (need <= sb->cap) {
        return;
    }
    size_t cap = sb->cap == 0 ? 64 : sb->cap;
    while (cap < need) {
        cap += cap / 2 + 16;
    }
    char *old = sb->cap == 0 ? NULL : sb->buf;
    sb->buf = xreallocarray(old, cap, 1);
    sb->cap = cap;
    sb->buf[sb->len] = '\0';
}

void strbuf_add(struct strbuf *sb, const void *data, size_t len)
{
    if (len == 0) {
        return;
    }
    strbuf_reserve(sb, len);
    memcpy(sb->buf + sb->len, data, len);
    sb->len += len;
    sb->buf[sb->len] = '\0';
}

void strbuf_adds(struct strbuf *sb, const char *s)
{
    strbuf_add(sb, s, strlen(s));
}

void strbuf_addc(struct strbuf *sb, char c)
{
    strbuf_add(sb, &c, 1);
}

void strbuf_addf(struct strbuf *sb, const char *fmt, ...)
{
    char small[256];
    va_list ap;
    va_list again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (n > 0 && (size_t)n < sizeof(small)) {
        strbuf_add(sb, small, (size_t)n);
    } else if (n > 0) {
        strbuf_reserve(sb, (size_t)n);
        (void)vsnprintf(sb->buf + sb->len, (size_t)n + 1, fmt, again);
        sb->len += (size_t)n;
    }
    va_end(again);
}

void strbuf_add_count(struct strbuf *sb, int64_t n, const char *one, const char *many)
{
    strbuf_addf(sb, "%lld %s", (long long)n, text_plural(n, one, many));
}

/* In single quotes: a shell takes everything between them as it is. */
void strbuf_add_quoted(struct strbuf *sb, const char *word)
{
    strbuf_addc(sb, '\'');
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            strbuf_adds(sb, "'\\''");
        } else {
            strbuf_addc(sb, *word);
        }
    }
    strbuf_addc(sb, '\'');
}

char *strbuf_detach(struct strbuf *sb)
{
    char *out = sb->cap == 0 ? xstrdup("") : sb->buf;
    strbuf_init(sb);
    return out;
}
