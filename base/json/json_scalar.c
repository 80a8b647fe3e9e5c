/*
 * Numbers and strings of the token reader. Every refusal names the line and column where it was
 * found; these are counted only then, from the beginning of the text.
 */
#include "base/json/json_scalar.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

static void find_place(const struct json_pull *p, size_t at, size_t *line, size_t *column)
{
    *line = 1;
    *column = 1;
    for (size_t i = 0; i < at && i < p->len; i++) {
        ++*column;
        if (p->text[i] == '\n') {
            ++*line;
            *column = 1;
        }
    }
}

int json_pull_fail(const struct json_pull *p, int code, const char *what, struct err *err)
{
    size_t line;
    size_t column;
    find_place(p, p->pos, &line, &column);
    return err_set(err, code, "line %zu, column %zu: %s", line, column, what);
}

int json_pull_wrap(const struct json_pull *p, size_t at, struct err *err)
{
    size_t line;
    size_t column;
    find_place(p, at, &line, &column);
    return err_wrap(err, "line %zu, column %zu", line, column);
}

static size_t digits(struct json_pull *p)
{
    size_t start = p->pos;
    while (json_pull_peek(p) >= '0' && json_pull_peek(p) <= '9') {
        p->pos++;
    }
    return p->pos - start;
}

int json_pull_number(struct json_pull *p, struct err *err)
{
    if (json_pull_peek(p) == '-') {
        p->pos++;
    }
    bool zero = json_pull_peek(p) == '0';
    size_t n = digits(p);
    if (n == 0 || (zero && n > 1)) {
        return json_pull_fail(p, ERR_SYNTAX, "malformed number", err);
    }
    if (json_pull_peek(p) == '.') {
        p->pos++;
        if (digits(p) == 0) {
            return json_pull_fail(p, ERR_SYNTAX, "malformed number", err);
        }
    }
    if (json_pull_peek(p) == 'e' || json_pull_peek(p) == 'E') {
        p->pos++;
        if (json_pull_peek(p) == '+' || json_pull_peek(p) == '-') {
            p->pos++;
        }
        if (digits(p) == 0) {
            return json_pull_fail(p, ERR_SYNTAX, "malformed number", err);
        }
    }
    const size_t width = p->pos - p->at;
    if (width > JSON_NUMBER_READ_MAX) {
        return json_pull_fail(p, ERR_RANGE, "number of more than 63 characters", err);
    }
    p->number = json_number_read(p->text + p->at, width);
    return isfinite(p->number)
               ? 0
               : json_pull_fail(p, ERR_RANGE, "number outside the range of a double", err);
}

static int hex4(struct json_pull *p, unsigned *out, struct err *err)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        int c = json_pull_peek(p);
        unsigned v;
        if (c >= '0' && c <= '9') {
            v = (unsigned)(c - '0');
        } else if ((c | 32) >= 'a' && (c | 32) <= 'f') {
            v = (unsigned)((c | 32) - 'a' + 10);
        } else {
            return json_pull_fail(p, ERR_SYNTAX, "malformed \\u escape", err);
        }
        *out = *out * 16 + v;
        p->pos++;
    }
    return 0;
}

static void add_character(struct strbuf *sb, unsigned c)
{
    if (c < 0x80) {
        strbuf_addc(sb, (char)c);
    } else if (c < 0x800) {
        strbuf_addc(sb, (char)(0xC0U | c >> 6));
        strbuf_addc(sb, (char)(0x80U | (c & 0x3FU)));
    } else {
        if (c < 0x10000) {
            strbuf_addc(sb, (char)(0xE0U | c >> 12));
        } else {
            strbuf_addc(sb, (char)(0xF0U | c >> 18));
            strbuf_addc(sb, (char)(0x80U | (c >> 12 & 0x3FU)));
        }
        strbuf_addc(sb, (char)(0x80U | (c >> 6 & 0x3FU)));
        strbuf_addc(sb, (char)(0x80U | (c & 0x3FU)));
    }
}

static int pull_unicode_escape(struct json_pull *p, struct err *err)
{
    unsigned hi = 0;
    unsigned lo = 0;
    int rc = hex4(p, &hi, err);
    if (rc != 0) {
        return rc;
    }
    if (hi == 0) {
        return json_pull_fail(p, ERR_SYNTAX, "\\u0000 in a string", err);
    }
    if (hi >= 0xD800 && hi <= 0xDFFF) {
        if (hi > 0xDBFF || json_pull_peek(p) != '\\' || p->pos + 1 >= p->len ||
            p->text[p->pos + 1] != 'u') {
            return json_pull_fail(p, ERR_SYNTAX, "lone surrogate", err);
        }
        p->pos += 2;
        rc = hex4(p, &lo, err);
        if (rc == 0 && (lo < 0xDC00 || lo > 0xDFFF)) {
            rc = json_pull_fail(p, ERR_SYNTAX, "lone surrogate", err);
        }
        hi = 0x10000 + ((hi - 0xD800) << 10) + (lo - 0xDC00);
    }
    if (rc == 0) {
        add_character(&p->string, hi);
    }
    return rc;
}

static int pull_escape(struct json_pull *p, struct err *err)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    const int c = json_pull_peek(p);
    if (c == 'u') {
        p->pos++;
        return pull_unicode_escape(p, err);
    }
    const char *found = c <= 0 ? NULL : strchr(letters, c);
    if (found == NULL) {
        return json_pull_fail(p, ERR_SYNTAX, "unknown escape in a string", err);
    }
    p->pos++;
    strbuf_addc(&p->string, meant[found - letters]);
    return 0;
}

/* Appends the bytes up to the next one that needs a look, and gives that; -1 at the end. */
static int pull_plain(struct json_pull *p)
{
    const size_t start = p->pos;
    int c = json_pull_peek(p);
    while (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
        p->pos++;
        c = json_pull_peek(p);
    }
    strbuf_add(&p->string, p->text + start, p->pos - start);
    return c;
}

int json_pull_string(struct json_pull *p, struct err *err)
{
    p->pos++;
    strbuf_clear(&p->string);
    for (;;) {
        const int c = pull_plain(p);
        if (c < 0) {
            return json_pull_fail(p, ERR_SYNTAX, "string without an end", err);
        }
        if (c == '"') {
            p->pos++;
            return 0;
        }
        if (c < 0x20) {
            return json_pull_fail(p, ERR_SYNTAX, "control character in a string", err);
        }
        if (c == '\\') {
            p->pos++;
            int rc = pull_escape(p, err);
            if (rc != 0) {
                return rc;
            }
            continue;
        }
        const size_t n = text_utf8_next(p->text + p->pos, p->len - p->pos, NULL);
        if (n == 0) {
            return json_pull_fail(p, ERR_SYNTAX, "bytes that are not UTF-8", err);
        }
        strbuf_add(&p->string, p->text + p->pos, n);
        p->pos += n;
    }
}
