/*
 * One pass over the text: sequences of our own are let through where `styles` allows, all else
 * that a terminal would obey becomes a question mark.
 */
#include "base/terminal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "base/xalloc.h"

#define CLEAR_SCREEN "\033[H\033[J"

/* The length of a sequence of our own at `text`, or 0. */
static size_t style_length(const char *text, size_t len, bool first)
{
    static const char *const own[] = {"\033[0m",  "\033[1m",  "\033[2m",  "\033[31m",
                                      "\033[32m", "\033[33m", "\033[36m", CLEAR_SCREEN};
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        size_t n = strlen(own[i]);
        if (n <= len && memcmp(text, own[i], n) == 0 &&
            (first || strcmp(own[i], CLEAR_SCREEN) != 0)) {
            return n;
        }
    }
    return 0;
}

/* Appends the character at `text` as it is shown; returns its length. */
static size_t add_character(struct strbuf *out, const char *text, size_t len)
{
    char one[5] = "";
    size_t n = text_utf8_next(text, len, NULL);
    if (n > 0) {
        memcpy(one, text, n);
    }
    if (n > 0 && text_is_plain(one)) {
        strbuf_add(out, text, n);
        return n;
    }
    strbuf_addc(out, '?');
    return n > 0 ? n : 1;
}

void terminal_text(FILE *to, const char *text, size_t len, bool styles)
{
    struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < len;) {
        size_t n = styles ? style_length(text + i, len - i, i == 0) : 0;
        if (n > 0) {
            strbuf_add(&out, text + i, n);
        } else if (text[i] == '\r') {
            n = 1;
            if (i + 1 == len || text[i + 1] != '\n') {
                strbuf_addc(&out, '\n');
            }
        } else if (text[i] == '\n' || text[i] == '\t') {
            n = 1;
            strbuf_addc(&out, text[i]);
        } else {
            n = add_character(&out, text + i, len - i);
        }
        i += n;
    }
    (void)fwrite(out.buf, 1, out.len, to);
    strbuf_release(&out);
}

void terminal_data(FILE *to, const char *data, size_t len)
{
    if (isatty(fileno(to)) == 1) { /* a stream in memory has no descriptor: not one */
        terminal_text(to, data, len, false);
    } else {
        (void)fwrite(data, 1, len, to);
    }
}

void terminal_printf(FILE *to, const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n >= 0) {
        terminal_text(to, text, (size_t)n, false);
        free(text);
    }
}
