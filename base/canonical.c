/* Writers of base/json.h: RFC 8785 canonical, one line, pretty. One walk, three styles. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/xalloc.h"

enum style { STYLE_CANONICAL, STYLE_LINE, STYLE_PRETTY };

/* v rounded to `n` digits as an integer, and the exponent of its first digit. */
static uint64_t rounded_digits(double v, int n, int *exponent)
{
    char text[40];
    uint64_t m = 0;
    (void)snprintf(text, sizeof(text), "%.*e", n - 1, v);
    const char *p = text;
    for (; *p != '\0' && *p != 'e'; p++) {
        if (*p != '.') {
            m = m * 10 + (uint64_t)(*p - '0');
        }
    }
    *exponent = (int)strtol(p + 1, NULL, 10);
    return m;
}

/* Whether m * 10^exponent is v once rounded to a double. */
static bool reads_back(uint64_t m, int exponent, double v)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    char text[40];
    if (m <= (uint64_t)JSON_INT_MAX && abs(exponent) < (int)ARRAY_LEN(powers)) {
        /* Both operands are exact, so that one operation rounds as reading does. */
        double whole = (double)m;
        return (exponent < 0 ? whole / powers[-exponent] : whole * powers[exponent]) == v;
    }
    (void)snprintf(text, sizeof(text), "%llue%d", (unsigned long long)m, exponent);
    return strtod(text, NULL) == v;
}

/* The shortest digits of v > 0 that read back as v: digits without a point, and the exponent of the
 * first one. Of n digits the nearest decimal comes first; at a power of two doubles lie twice as
 * far apart above as below, so the one above may read back where the nearest, below, does not.
 *
 * Where doubles are normal, at most one decimal of DBL_DIG digits reads back as v, and it is the
 * nearest; a shorter one is the same with zeros at its end. So the search begins there. */
static void shortest_digits(double v, char digits[24], int *exponent)
{
    uint64_t m = 0;
    int n = v >= DBL_MIN ? DBL_DIG - 1 : 0;
    bool found = false;
    while (!found) {
        m = rounded_digits(v, ++n, exponent);
        found = n == DBL_DECIMAL_DIG || reads_back(m, *exponent - n + 1, v);
        if (!found && reads_back(m + 1, *exponent - n + 1, v)) {
            m++;
            found = true;
        }
    }
    (void)snprintf(digits, 24, "%llu", (unsigned long long)m);
    int len = (int)strlen(digits);
    *exponent += len - n; /* 99 and one more */
    while (len > 1 && digits[len - 1] == '0') {
        digits[--len] = '\0';
    }
}

void json_number_text(double v, char text[JSON_NUMBER_MAX])
{
    assert(isfinite(v));
    if (v == 0) {
        (void)snprintf(text, JSON_NUMBER_MAX, "0");
        return;
    }
    if (floor(v) == v && fabs(v) < 1e15) {
        (void)snprintf(text, JSON_NUMBER_MAX, "%lld", (long long)v);
        return;
    }
    char digits[24];
    int e = 0;
    shortest_digits(fabs(v), digits, &e);
    const char *sign = v < 0 ? "-" : "";
    int k = (int)strlen(digits);
    if (e >= 0 && e < 21 && k <= e + 1) {
        (void)snprintf(text, JSON_NUMBER_MAX, "%s%s%0*d", sign, digits, e + 1 - k, 0);
        if (k == e + 1) {
            (void)snprintf(text, JSON_NUMBER_MAX, "%s%s", sign, digits);
        }
    } else if (e >= 0 && e < 21) {
        (void)snprintf(text, JSON_NUMBER_MAX, "%s%.*s.%s", sign, e + 1, digits, digits + e + 1);
    } else if (e < 0 && e >= -6) {
        (void)snprintf(text, JSON_NUMBER_MAX, "%s0.%.*s%s", sign, -e - 1, "00000", digits);
    } else {
        (void)snprintf(text, JSON_NUMBER_MAX, "%s%.1s%s%se%+d", sign, digits, k > 1 ? "." : "",
                       digits + 1, e);
    }
}

/* The letter behind the backslash; 0 when c has none of its own. */
static char escape_letter(unsigned char c)
{
    switch (c) {
    case '"':
    case '\\': return (char)c;
    case '\b': return 'b';
    case '\f': return 'f';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    default: return 0;
    }
}

void json_add_string(struct strbuf *out, const char *s)
{
    static const char hex[] = "0123456789abcdef";
    const char *plain = s; /* not yet appended */
    strbuf_addc(out, '"');
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        if (c >= 0x20 && c != '"' && c != '\\') {
            continue;
        }
        strbuf_add(out, plain, (size_t)(s - plain));
        plain = s + 1;
        char letter = escape_letter(c);
        strbuf_addc(out, '\\');
        if (letter != 0) {
            strbuf_addc(out, letter);
        } else {
            strbuf_adds(out, "u00");
            strbuf_addc(out, hex[c >> 4]);
            strbuf_addc(out, hex[c & 15U]);
        }
    }
    strbuf_add(out, plain, (size_t)(s - plain));
    strbuf_addc(out, '"');
}

/* RFC 8785 sorts keys by UTF-16 code units: code points above U+FFFF (surrogates, D800..) before
 * E000..FFFF. */
static int order_utf16(const char *x, const char *y)
{
    while (*x != '\0' && *x == *y) {
        x++;
        y++;
    }
    unsigned char cx = (unsigned char)*x;
    unsigned char cy = (unsigned char)*y;
    if (cx >= 0xEE && cy >= 0xEE && (cx >= 0xF0) != (cy >= 0xF0)) {
        return cx >= 0xF0 ? -1 : 1;
    }
    return cx < cy ? -1 : (cx > cy ? 1 : 0);
}

static int by_utf16(const void *a, const void *b)
{
    return order_utf16((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

static bool is_sorted(const cJSON *v)
{
    for (const cJSON *m = v->child; m != NULL && m->next != NULL; m = m->next) {
        if (order_utf16(m->string, m->next->string) > 0) {
            return false;
        }
    }
    return true;
}

static void indent(struct strbuf *out, enum style style, int depth)
{
    char line[1 + 2 * (JSON_DEPTH_MAX + 1)];
    if (style == STYLE_PRETTY) {
        line[0] = '\n';
        memset(line + 1, ' ', 2 * (size_t)depth);
        strbuf_add(out, line, 1 + 2 * (size_t)depth);
    }
}

static int write_value(const cJSON *v, enum style style, int depth, struct strbuf *out,
                       struct err *err);

static int write_member(const cJSON *m, enum style style, int depth, struct strbuf *out,
                        struct err *err)
{
    indent(out, style, depth);
    if (m->string != NULL) {
        if (!text_is_utf8(m->string, strlen(m->string))) {
            return err_set(err, ERR_SYNTAX, "a key is not UTF-8");
        }
        json_add_string(out, m->string);
        strbuf_adds(out, style == STYLE_PRETTY ? ": " : ":");
    }
    return write_value(m, style, depth, out, err);
}

/* The members of an object by key; the caller frees them. */
static const cJSON **sorted_members(const cJSON *v, size_t *n)
{
    *n = 0;
    for (const cJSON *m = v->child; m != NULL; m = m->next) {
        (*n)++;
    }
    const cJSON **members = xcalloc(*n, sizeof(*members));
    size_t i = 0;
    for (const cJSON *m = v->child; m != NULL; m = m->next) {
        members[i++] = m;
    }
    if (*n > 1) {
        qsort(members, *n, sizeof(*members), by_utf16);
    }
    return members;
}

static int write_sorted(const cJSON *v, int depth, struct strbuf *out, struct err *err)
{
    size_t n = 0;
    const cJSON **members = sorted_members(v, &n);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (i > 0) {
            strbuf_addc(out, ',');
        }
        rc = write_member(members[i], STYLE_CANONICAL, depth, out, err);
    }
    free(members);
    return rc;
}

static int write_in_order(const cJSON *v, enum style style, int depth, struct strbuf *out,
                          struct err *err)
{
    int rc = 0;
    for (const cJSON *m = v->child; rc == 0 && m != NULL; m = m->next) {
        if (m != v->child) {
            strbuf_addc(out, ',');
        }
        rc = write_member(m, style, depth, out, err);
    }
    return rc;
}

static int write_members(const cJSON *v, enum style style, int depth, struct strbuf *out,
                         struct err *err)
{
    bool object = cJSON_IsObject(v);
    strbuf_addc(out, object ? '{' : '[');
    /* What was written in canonical form before is read in its order. */
    int rc = object && style == STYLE_CANONICAL && !is_sorted(v)
                 ? write_sorted(v, depth + 1, out, err)
                 : write_in_order(v, style, depth + 1, out, err);
    if (v->child != NULL) {
        indent(out, style, depth);
    }
    strbuf_addc(out, object ? '}' : ']');
    return rc;
}

static int write_number(double v, struct strbuf *out, struct err *err)
{
    if (!isfinite(v)) {
        return err_set(err, ERR_RANGE, "a number is not finite");
    }
    char text[JSON_NUMBER_MAX];
    json_number_text(v, text);
    strbuf_adds(out, text);
    return 0;
}

static int write_value(const cJSON *v, enum style style, int depth, struct strbuf *out,
                       struct err *err)
{
    if (depth > JSON_DEPTH_MAX) {
        return err_set(err, ERR_RANGE, "nested deeper than %d levels", JSON_DEPTH_MAX);
    }
    if (cJSON_IsObject(v) || cJSON_IsArray(v)) {
        return write_members(v, style, depth, out, err);
    }
    if (cJSON_IsNumber(v)) {
        return write_number(v->valuedouble, out, err);
    }
    if (cJSON_IsString(v)) {
        if (!text_is_utf8(v->valuestring, strlen(v->valuestring))) {
            return err_set(err, ERR_SYNTAX, "a string is not UTF-8");
        }
        json_add_string(out, v->valuestring);
        return 0;
    }
    strbuf_adds(out, cJSON_IsNull(v) ? "null" : (cJSON_IsTrue(v) ? "true" : "false"));
    return 0;
}

int json_canonical(const cJSON *v, struct strbuf *out, struct err *err)
{
    return write_value(v, STYLE_CANONICAL, 0, out, err);
}

int json_pretty(const cJSON *v, struct strbuf *out, struct err *err)
{
    return write_value(v, STYLE_PRETTY, 0, out, err);
}

int json_line(const cJSON *v, struct strbuf *out, struct err *err)
{
    return write_value(v, STYLE_LINE, 0, out, err);
}
