/*
 * Writes JSON byte for byte as CPython's json.dumps() does, and relays a text that json_scan() has
 * passed in that form. Containers are tracked in the writer; nesting is limited by the reader.
 */
#include "base/json/pyjson.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"

#define DIGITS_MAX 24

void pyjson_init(struct pyjson *w, struct strbuf *out, int indent)
{
    *w = (struct pyjson){.out = out, .indent = indent, .empty = true};
}

static void new_line(struct pyjson *w)
{
    if (w->indent > 0) {
        strbuf_addf(w->out, "\n%*s", w->indent * w->depth, "");
    }
}

/* Writes the separator before the next item of the innermost container. */
static void separate(struct pyjson *w)
{
    if (w->depth == 0) {
        return;
    }
    if (!w->empty) {
        strbuf_adds(w->out, w->indent > 0 ? "," : ", ");
    }
    new_line(w);
    w->empty = false;
}

static void before_value(struct pyjson *w)
{
    if (w->after_key) {
        w->after_key = false;
    } else {
        separate(w);
    }
}

void pyjson_open(struct pyjson *w, char bracket)
{
    assert(bracket == '{' || bracket == '[');
    before_value(w);
    strbuf_addc(w->out, bracket);
    w->depth++;
    w->empty = true;
}

void pyjson_close(struct pyjson *w, char bracket)
{
    assert(w->depth > 0 && !w->after_key && (bracket == '}' || bracket == ']'));
    w->depth--;
    if (!w->empty) {
        new_line(w);
    }
    strbuf_addc(w->out, bracket);
    w->empty = false;
}

void pyjson_key(struct pyjson *w, const char *key)
{
    assert(w->depth > 0 && !w->after_key);
    separate(w);
    json_add_string(w->out, key);
    strbuf_adds(w->out, ": ");
    w->after_key = true;
}

void pyjson_string(struct pyjson *w, const char *value)
{
    before_value(w);
    if (value == NULL) {
        strbuf_adds(w->out, "null");
    } else {
        json_add_string(w->out, value);
    }
}

void pyjson_int(struct pyjson *w, int64_t value)
{
    before_value(w);
    strbuf_addf(w->out, "%lld", (long long)value);
}

void pyjson_float(struct pyjson *w, double value)
{
    before_value(w);
    if (isnan(value)) {
        strbuf_adds(w->out, "NaN");
    } else if (isinf(value)) {
        strbuf_adds(w->out, value < 0 ? "-Infinity" : "Infinity");
    } else {
        pyjson_add_float(w->out, value);
    }
}

void pyjson_bool(struct pyjson *w, bool value)
{
    before_value(w);
    strbuf_adds(w->out, value ? "true" : "false");
}

void pyjson_null(struct pyjson *w)
{
    pyjson_string(w, NULL);
}

/* The digits of a number in ECMAScript's form without sign, point and zeros at either end, and how
 * many places the point is behind the first of them. */
static size_t split_number(const char *text, char digits[DIGITS_MAX], int *point)
{
    size_t n = 0;
    bool fraction = false;
    *point = 0;
    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text == '.') {
            fraction = true;
        } else if (n == 0 && *text == '0') {
            *point -= fraction;
        } else {
            assert(n < DIGITS_MAX);
            digits[n++] = *text;
            *point += !fraction;
        }
    }
    if (*text == 'e') {
        *point += (int)strtol(text + 1, NULL, 10);
    }
    while (n > 1 && digits[n - 1] == '0') {
        n--;
    }
    return n;
}

/* CPython, float_repr_style "short": an exponent of two digits or more where the point would stand
 * before the fourth zero behind it or after the sixteenth digit. */
static void add_finite(struct strbuf *out, double value)
{
    char text[JSON_NUMBER_MAX];
    char digits[DIGITS_MAX];
    int point;
    json_number_text(value, text);
    size_t n = split_number(text, digits, &point);
    if (point <= -4 || point > 16) {
        strbuf_addc(out, digits[0]);
        if (n > 1) {
            strbuf_addc(out, '.');
            strbuf_add(out, digits + 1, n - 1);
        }
        strbuf_addf(out, "e%+03d", point - 1);
        return;
    }
    if (point <= 0) {
        strbuf_adds(out, "0.");
    }
    for (int i = point; i < 0; i++) {
        strbuf_addc(out, '0');
    }
    for (int i = 0; i < (int)n || i <= point; i++) {
        if (i == point && i > 0) {
            strbuf_addc(out, '.');
        }
        strbuf_addc(out, i < (int)n ? digits[i] : '0');
    }
}

void pyjson_add_float(struct strbuf *out, double value)
{
    if (isnan(value)) {
        strbuf_adds(out, "nan");
        return;
    }
    if (signbit(value)) {
        strbuf_addc(out, '-');
    }
    if (isinf(value)) {
        strbuf_adds(out, "inf");
    } else if (value == 0) {
        strbuf_adds(out, "0.0");
    } else {
        add_finite(out, fabs(value));
    }
}

static unsigned hex4(const char *at)
{
    char copy[5] = {at[0], at[1], at[2], at[3], '\0'};
    return (unsigned)strtoul(copy, NULL, 16);
}

static void add_utf8(struct strbuf *out, unsigned cp)
{
    if (cp < 0x80) {
        strbuf_addc(out, (char)cp);
        return;
    }
    const int tails = cp < 0x800 ? 1 : (cp < 0x10000 ? 2 : 3);
    static const unsigned lead[] = {0, 0xC0, 0xE0, 0xF0};
    strbuf_addc(out, (char)(lead[tails] | cp >> (6 * tails)));
    for (int i = tails - 1; i >= 0; i--) {
        strbuf_addc(out, (char)(0x80U | ((cp >> (6 * i)) & 0x3FU)));
    }
}

/* The escape at `at` (which is on the backslash), decoded; how many bytes it takes. */
static size_t add_escape(struct strbuf *out, const char *at)
{
    static const char plain[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    if (at[1] != 'u') {
        for (const char *p = plain; *p != '\0'; p += 2) {
            if (*p == at[1]) {
                strbuf_addc(out, p[1]);
            }
        }
        return 2;
    }
    unsigned cp = hex4(at + 2);
    if (cp < 0xD800 || cp > 0xDFFF) {
        add_utf8(out, cp);
        return 6;
    }
    add_utf8(out, 0x10000 + ((cp & 0x3FFU) << 10) + (hex4(at + 8) & 0x3FFU));
    return 12;
}

/* A walk over text that json_scan() has passed. */
struct relay {
    struct pyjson *w;
    const char *at;
    const char *end;
    struct strbuf string;
};

static void skip_space(struct relay *r)
{
    while (r->at < r->end && memchr(" \t\r\n", *r->at, 4) != NULL) {
        r->at++;
    }
}

static const char *take_string(struct relay *r)
{
    strbuf_clear(&r->string);
    for (r->at++; *r->at != '"';) {
        const char *stop = r->at;
        while (*stop != '"' && *stop != '\\') {
            stop++;
        }
        strbuf_add(&r->string, r->at, (size_t)(stop - r->at));
        r->at = stop;
        if (*stop == '\\') {
            r->at += add_escape(&r->string, stop);
        }
    }
    r->at++;
    return r->string.buf;
}

static void relay_number(struct relay *r)
{
    const char *start = r->at;
    char copy[64];
    while (r->at < r->end && memchr("+-.0123456789eE", *r->at, 15) != NULL) {
        r->at++;
    }
    const size_t len = (size_t)(r->at - start);
    assert(len < sizeof(copy));
    memcpy(copy, start, len);
    copy[len] = '\0';
    before_value(r->w);
    if (strpbrk(copy, ".eE") != NULL) {
        pyjson_add_float(r->w->out, strtod(copy, NULL));
    } else {
        strbuf_adds(r->w->out, strcmp(copy, "-0") == 0 ? "0" : copy);
    }
}

static void relay_word(struct relay *r)
{
    before_value(r->w);
    const size_t len = *r->at == 'f' ? 5 : 4;
    strbuf_add(r->w->out, r->at, len);
    r->at += len;
}

/* Iterative: one round takes a bracket, a comma, a key or a plain value. */
static void relay_values(struct relay *r)
{
    const int depth = r->w->depth;
    do {
        skip_space(r);
        switch (*r->at) {
        case '{':
        case '[': pyjson_open(r->w, *r->at++); break;
        case '}':
        case ']': pyjson_close(r->w, *r->at++); break;
        case ',': r->at++; continue;
        case 't':
        case 'f':
        case 'n': relay_word(r); break;
        case '"':
            (void)take_string(r);
            skip_space(r);
            if (r->at < r->end && *r->at == ':') {
                r->at++;
                pyjson_key(r->w, r->string.buf);
                continue;
            }
            pyjson_string(r->w, r->string.buf);
            break;
        default: relay_number(r); break;
        }
    } while (r->w->depth > depth || r->w->after_key);
}

int pyjson_text(struct pyjson *w, const char *text, size_t len, struct err *err)
{
    int rc = json_scan(text, len, err);
    if (rc != 0) {
        return rc;
    }
    struct relay r = {.w = w, .at = text, .end = text + len, .string = STRBUF_INIT};
    relay_values(&r);
    strbuf_release(&r.string);
    return 0;
}
