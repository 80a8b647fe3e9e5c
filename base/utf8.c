/* UTF-8: reading characters, mending what is not UTF-8, making one line of a text. Nothing here
 * makes an error, so that err.c can use it. */
#include "base/text.h"

#include <assert.h>
#include <string.h>

size_t text_utf8_next(const char *s, size_t len, uint32_t *cp)
{
    const unsigned char *p = (const unsigned char *)s;
    if (len == 0) {
        return 0;
    }
    size_t n;
    uint32_t v;
    uint32_t min;
    if (p[0] < 0x80) {
        n = 1;
        v = p[0];
        min = 0;
    } else if ((p[0] & 0xE0U) == 0xC0U) {
        n = 2;
        v = p[0] & 0x1FU;
        min = 0x80;
    } else if ((p[0] & 0xF0U) == 0xE0U) {
        n = 3;
        v = p[0] & 0x0FU;
        min = 0x800;
    } else if ((p[0] & 0xF8U) == 0xF0U) {
        n = 4;
        v = p[0] & 0x07U;
        min = 0x10000;
    } else {
        return 0;
    }
    if (len < n) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0U) != 0x80U) {
            return 0;
        }
        v = (v << 6) | (p[i] & 0x3FU);
    }
    if (v < min || v > 0x10FFFF || (v >= 0xD800 && v <= 0xDFFF)) {
        return 0;
    }
    if (cp != NULL) {
        *cp = v;
    }
    return n;
}

bool text_is_utf8(const char *s, size_t len)
{
    size_t i = 0;
    for (;;) {
        while (i < len && (unsigned char)s[i] < 0x80) {
            i++;
        }
        if (i == len) {
            return true;
        }
        size_t n = text_utf8_next(s + i, len - i, NULL);
        if (n == 0) {
            return false;
        }
        i += n;
    }
}

void text_make_utf8(char *s)
{
    size_t len = strlen(s);
    for (size_t i = 0; i < len;) {
        size_t n = text_utf8_next(s + i, len - i, NULL);
        if (n == 0) {
            s[i] = '?';
            n = 1;
        }
        i += n;
    }
}

static bool is_plain(uint32_t cp)
{
    bool control = cp < 0x20 || (cp >= 0x7F && cp < 0xA0) || cp == 0x2028 || cp == 0x2029;
    bool turns = (cp >= 0x202A && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069);
    return !control && !turns;
}

void text_make_line(char *s)
{
    size_t len = strlen(s);
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        size_t n = text_utf8_next(s + i, len - i, &cp);
        if (n == 0 || !is_plain(cp)) {
            n = n == 0 ? 1 : n;
            memset(s + i, cp == '\n' || cp == '\r' || cp == '\t' ? ' ' : '?', n);
        }
        i += n;
    }
}

void text_copy_line(char *to, size_t size, const char *text)
{
    assert(size > 0);
    const size_t n = strlen(text);
    const size_t kept = n < size ? n : text_whole_chars(text, size - 1);
    memcpy(to, text, kept);
    to[kept] = '\0';
    text_make_line(to);
}

size_t text_whole_chars(const char *s, size_t len)
{
    size_t start = len;
    while (start > 0 && len - start < 3 && ((unsigned char)s[start - 1] & 0xC0U) == 0x80U) {
        start--;
    }
    if (start == 0 || ((unsigned char)s[start - 1] & 0xC0U) != 0xC0U) {
        return len; /* ends in a character of one byte, or in none at all */
    }
    return text_is_utf8(s + start - 1, len - start + 1) ? len : start - 1;
}

bool text_is_plain(const char *s)
{
    size_t left = strlen(s);
    while (left > 0) {
        uint32_t cp = 0;
        size_t n = text_utf8_next(s, left, &cp);
        if (n == 0 || !is_plain(cp)) {
            return false;
        }
        s += n;
        left -= n;
    }
    return true;
}
