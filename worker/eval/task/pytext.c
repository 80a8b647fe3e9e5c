/*
 * Python's string functions over UTF-8 bytes. White space is str.isspace()'s set, which includes
 * U+001C to U+001F and is neither C's nor PCRE2's. Searching backwards steps over continuation
 * bytes, which is safe because the input is valid UTF-8.
 */
#include "worker/eval/task/pytext.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "worker/eval/task/pycase.h"

/* str.isspace of Python 3. */
static bool is_space(uint32_t cp)
{
    if (cp < 0x80)
        return (cp >= 0x09 && cp <= 0x0d) || (cp >= 0x1c && cp <= 0x20);
    return cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

size_t pytext_lstrip(const char *s, size_t len)
{
    size_t at = 0;
    uint32_t cp = 0;
    size_t n;
    while ((n = text_utf8_next(s + at, len - at, &cp)) > 0 && is_space(cp))
        at += n;
    return at;
}

size_t pytext_rstrip(const char *s, size_t len)
{
    while (len > 0) {
        size_t start = len - 1;
        while (start > 0 && ((unsigned char)s[start] & 0xc0) == 0x80)
            start--;
        uint32_t cp = 0;
        if (text_utf8_next(s + start, len - start, &cp) == 0 || !is_space(cp))
            break;
        len = start;
    }
    return len;
}

size_t pytext_length(const char *s, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

/* s[at..] in lower case. */
static void add_lower(const char *s, size_t at, struct strbuf *out)
{
    const size_t len = strlen(s);
    size_t n;
    while ((n = pycase_add_lower(s, len, at, out)) > 0)
        at += n;
}

void pytext_capitalize(const char *s, struct strbuf *out)
{
    add_lower(s, pycase_add_title(s, strlen(s), 0, out), out);
}

void pytext_lower(const char *s, struct strbuf *out)
{
    add_lower(s, 0, out);
}

void pytext_lower_first(const char *s, struct strbuf *out)
{
    uint32_t cp = 0;
    const size_t n = text_utf8_next(s, strlen(s), &cp);
    (void)pycase_add_lower(s, n, 0, out);
    strbuf_adds(out, s + n);
}

void pytext_replace(const char *s, size_t len, const char *from, const char *to, struct strbuf *out)
{
    const size_t n_from = strlen(from);
    const char *end = s + len, *found;
    while ((found = memmem(s, (size_t)(end - s), from, n_from)) != NULL) {
        strbuf_add(out, s, (size_t)(found - s));
        strbuf_adds(out, to);
        s = found + n_from;
    }
    strbuf_add(out, s, (size_t)(end - s));
}

/* The regular expression \[.*?\] where . matches anything but a line feed. */
static void add_without_brackets(const char *s, size_t len, struct strbuf *out)
{
    size_t copied = 0; /* s[copied, at) is still to be copied */
    for (size_t at = 0; at < len; at++) {
        size_t end = at;
        if (s[at] == '[')
            while (end < len && s[end] != ']' && s[end] != '\n')
                end++;
        if (s[at] == '[' && end < len && s[end] == ']') {
            strbuf_add(out, s + copied, at - copied);
            copied = end + 1;
            at = end;
        }
    }
    strbuf_add(out, s + copied, len - copied);
}

void pytext_clean_hellaswag(const char *s, struct strbuf *out)
{
    struct strbuf titled = STRBUF_INIT;
    struct strbuf bare = STRBUF_INIT;
    size_t len = strlen(s);
    size_t start = pytext_lstrip(s, len);
    size_t end = start + pytext_rstrip(s + start, len - start);
    pytext_replace(s + start, end - start, " [title]", ". ", &titled);
    add_without_brackets(titled.buf, titled.len, &bare);
    pytext_replace(bare.buf, bare.len, "  ", " ", out);
    strbuf_release(&titled);
    strbuf_release(&bare);
}
