/* Writers of base/json.h: RFC 8785 canonical, one line, pretty. One walk, three styles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/xalloc.h"

enum style { STYLE_CANONICAL, STYLE_LINE, STYLE_PRETTY };

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
