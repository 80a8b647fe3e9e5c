/* A strict scan of RFC 8259 text, before cJSON builds its tree: see base/json.h for what is
 * refused. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

struct scan {
    const char *text;
    size_t len;
    size_t pos;
    struct err *err;
};

static int fail(const struct scan *s, int code, const char *what)
{
    size_t line = 1;
    size_t column = 1;
    for (size_t i = 0; i < s->pos && i < s->len; i++) {
        column++;
        if (s->text[i] == '\n') {
            line++;
            column = 1;
        }
    }
    return err_set(s->err, code, "line %zu, column %zu: %s", line, column, what);
}

static int peek(const struct scan *s)
{
    return s->pos < s->len ? (unsigned char)s->text[s->pos] : -1;
}

static void skip_space(struct scan *s)
{
    for (; s->pos < s->len; s->pos++) {
        const char c = s->text[s->pos];
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
            break;
        }
    }
}

static size_t digits(struct scan *s)
{
    size_t start = s->pos;
    while (peek(s) >= '0' && peek(s) <= '9') {
        s->pos++;
    }
    return s->pos - start;
}

static int scan_number(struct scan *s)
{
    size_t start = s->pos;
    if (peek(s) == '-') {
        s->pos++;
    }
    bool zero = peek(s) == '0';
    size_t n = digits(s);
    if (n == 0 || (zero && n > 1)) {
        return fail(s, ERR_SYNTAX, "malformed number");
    }
    if (peek(s) == '.') {
        s->pos++;
        if (digits(s) == 0) {
            return fail(s, ERR_SYNTAX, "malformed number");
        }
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->pos++;
        if (peek(s) == '+' || peek(s) == '-') {
            s->pos++;
        }
        if (digits(s) == 0) {
            return fail(s, ERR_SYNTAX, "malformed number");
        }
    }
    char copy[64];
    size_t width = s->pos - start;
    if (width >= sizeof(copy)) {
        return fail(s, ERR_RANGE, "number of more than 63 characters");
    }
    memcpy(copy, s->text + start, width);
    copy[width] = '\0';
    return isfinite(strtod(copy, NULL))
               ? 0
               : fail(s, ERR_RANGE, "number outside the range of a double");
}

static int hex4(struct scan *s, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        int c = peek(s);
        unsigned v;
        if (c >= '0' && c <= '9') {
            v = (unsigned)(c - '0');
        } else if ((c | 32) >= 'a' && (c | 32) <= 'f') {
            v = (unsigned)((c | 32) - 'a' + 10);
        } else {
            return fail(s, ERR_SYNTAX, "malformed \\u escape");
        }
        *out = *out * 16 + v;
        s->pos++;
    }
    return 0;
}

static int scan_unicode_escape(struct scan *s)
{
    unsigned hi = 0;
    unsigned lo = 0;
    int rc = hex4(s, &hi);
    if (rc != 0) {
        return rc;
    }
    if (hi == 0) {
        return fail(s, ERR_SYNTAX, "\\u0000 in a string");
    }
    if (hi < 0xD800 || hi > 0xDFFF) {
        return 0;
    }
    if (hi > 0xDBFF || peek(s) != '\\' || s->pos + 1 >= s->len || s->text[s->pos + 1] != 'u') {
        return fail(s, ERR_SYNTAX, "lone surrogate");
    }
    s->pos += 2;
    rc = hex4(s, &lo);
    if (rc == 0 && (lo < 0xDC00 || lo > 0xDFFF)) {
        rc = fail(s, ERR_SYNTAX, "lone surrogate");
    }
    return rc;
}

static int scan_escape(struct scan *s)
{
    int c = peek(s);
    if (c < 0 || memchr("\"\\/bfnrtu", c, 9) == NULL) {
        return fail(s, ERR_SYNTAX, "unknown escape in a string");
    }
    s->pos++;
    return c == 'u' ? scan_unicode_escape(s) : 0;
}

/* Over characters that stand for themselves and need no further look. */
static void skip_plain(struct scan *s)
{
    for (; s->pos < s->len; s->pos++) {
        const unsigned char c = (unsigned char)s->text[s->pos];
        if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\') {
            break;
        }
    }
}

static int scan_string(struct scan *s)
{
    s->pos++;
    for (;;) {
        skip_plain(s);
        int c = peek(s);
        if (c < 0) {
            return fail(s, ERR_SYNTAX, "string without an end");
        }
        if (c == '"') {
            s->pos++;
            return 0;
        }
        if (c < 0x20) {
            return fail(s, ERR_SYNTAX, "control character in a string");
        }
        if (c == '\\') {
            s->pos++;
            int rc = scan_escape(s);
            if (rc != 0) {
                return rc;
            }
            continue;
        }
        size_t n = text_utf8_next(s->text + s->pos, s->len - s->pos, NULL);
        if (n == 0) {
            return fail(s, ERR_SYNTAX, "bytes that are not UTF-8");
        }
        s->pos += n;
    }
}

static int scan_word(struct scan *s, const char *word)
{
    size_t n = strlen(word);
    if (s->len - s->pos < n || memcmp(s->text + s->pos, word, n) != 0) {
        return fail(s, ERR_SYNTAX, "expected a JSON value");
    }
    s->pos += n;
    return 0;
}

static int scan_value(struct scan *s, int depth);

/* Object and array alike: `close` ends it, and members of an object have a key. */
static int scan_members(struct scan *s, int depth, char close)
{
    s->pos++;
    skip_space(s);
    if (peek(s) == close) {
        s->pos++;
        return 0;
    }
    for (;;) {
        skip_space(s);
        if (close == '}') {
            if (peek(s) != '"') {
                return fail(s, ERR_SYNTAX, "expected a key in quotes");
            }
            int rc = scan_string(s);
            if (rc != 0) {
                return rc;
            }
            skip_space(s);
            if (peek(s) != ':') {
                return fail(s, ERR_SYNTAX, "expected ':'");
            }
            s->pos++;
        }
        int rc = scan_value(s, depth + 1);
        if (rc != 0) {
            return rc;
        }
        skip_space(s);
        int c = peek(s);
        if (c != ',' && c != close) {
            return fail(s, ERR_SYNTAX,
                        close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
        }
        s->pos++;
        if (c == close) {
            return 0;
        }
    }
}

static int scan_value(struct scan *s, int depth)
{
    if (depth > JSON_DEPTH_MAX) {
        return fail(s, ERR_RANGE, "nested deeper than 64 levels");
    }
    skip_space(s);
    switch (peek(s)) {
    case '{': return scan_members(s, depth, '}');
    case '[': return scan_members(s, depth, ']');
    case '"': return scan_string(s);
    case 't': return scan_word(s, "true");
    case 'f': return scan_word(s, "false");
    case 'n': return scan_word(s, "null");
    case -1: return fail(s, ERR_SYNTAX, "text ends where a value should stand");
    default: return scan_number(s);
    }
}

int json_scan(const char *text, size_t len, struct err *err)
{
    struct scan s = {.text = text, .len = len, .err = err};
    int rc = scan_value(&s, 0);
    if (rc != 0) {
        return rc;
    }
    skip_space(&s);
    return s.pos == len ? 0 : fail(&s, ERR_SYNTAX, "text after the JSON value");
}
