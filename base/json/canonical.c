/* Writers of base/json/json.h: RFC 8785 canonical, one line, pretty. One walk, three styles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_arena.h"
#include "base/text.h"
#include "base/xalloc.h"

enum canonical_style { STYLE_CANONICAL, STYLE_LINE, STYLE_PRETTY };

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

struct writer {
    enum canonical_style style;
    struct strbuf *out;
    const struct json_list *lists;
    size_t n_lists;
};

static void indent(const struct writer *w, int depth)
{
    char line[1 + 2 * (JSON_DEPTH_MAX + 1)];
    if (w->style == STYLE_PRETTY) {
        line[0] = '\n';
        memset(line + 1, ' ', 2 * (size_t)depth);
        strbuf_add(w->out, line, 1 + 2 * (size_t)depth);
    }
}

static int write_value(const struct writer *w, const cJSON *v, int depth, struct err *err);

/* An element of an array may still have the key of the object that it was in. */
static int write_member(const struct writer *w, bool of_object, const cJSON *m, int depth,
                        struct err *err)
{
    indent(w, depth);
    if (of_object) {
        if (!text_is_utf8(m->string, strlen(m->string))) {
            return err_set(err, ERR_SYNTAX, "a key is not UTF-8");
        }
        json_add_string(w->out, m->string);
        strbuf_adds(w->out, w->style == STYLE_PRETTY ? ": " : ":");
    }
    return write_value(w, m, depth, err);
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

static int write_sorted(const struct writer *w, const cJSON *v, int depth, struct err *err)
{
    size_t n = 0;
    const cJSON **members = sorted_members(v, &n);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (i > 0) {
            strbuf_addc(w->out, ',');
        }
        rc = write_member(w, true, members[i], depth, err);
    }
    free(members);
    return rc;
}

static int write_in_order(const struct writer *w, const cJSON *v, int depth, struct err *err)
{
    int rc = 0;
    for (const cJSON *m = v->child; rc == 0 && m != NULL; m = m->next) {
        if (m != v->child) {
            strbuf_addc(w->out, ',');
        }
        rc = write_member(w, cJSON_IsObject(v), m, depth, err);
    }
    return rc;
}

static const struct json_list *list_at(const struct writer *w, const cJSON *v)
{
    for (size_t i = 0; i < w->n_lists; i++) {
        if (w->lists[i].place == v) {
            return &w->lists[i];
        }
    }
    return NULL;
}

static int write_list(const struct writer *w, const struct json_list *list, int depth,
                      struct err *err)
{
    struct arena arena;
    int rc = 0;
    arena_init(&arena);
    for (size_t i = 0; rc == 0 && i < list->n; i++) {
        arena_clear(&arena);
        if (i > 0) {
            strbuf_addc(w->out, ',');
        }
        rc = write_member(w, false, list->element(list->ctx, i, &arena), depth, err);
    }
    arena_release(&arena);
    return rc;
}

static int write_members(const struct writer *w, const cJSON *v, int depth, struct err *err)
{
    const bool object = cJSON_IsObject(v);
    const struct json_list *list = list_at(w, v);
    int rc = 0;
    strbuf_addc(w->out, object ? '{' : '[');
    if (list != NULL) {
        rc = write_list(w, list, depth + 1, err);
    } else if (object && w->style == STYLE_CANONICAL && !is_sorted(v)) {
        rc = write_sorted(w, v, depth + 1, err);
    } else {
        rc = write_in_order(w, v, depth + 1, err);
    }
    if (v->child != NULL || (list != NULL && list->n > 0)) {
        indent(w, depth);
    }
    strbuf_addc(w->out, object ? '}' : ']');
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

static int write_value(const struct writer *w, const cJSON *v, int depth, struct err *err)
{
    if (depth > JSON_DEPTH_MAX) {
        return err_set(err, ERR_RANGE, "nested deeper than %d levels", JSON_DEPTH_MAX);
    }
    if (cJSON_IsObject(v) || cJSON_IsArray(v)) {
        return write_members(w, v, depth, err);
    }
    if (cJSON_IsNumber(v)) {
        return write_number(v->valuedouble, w->out, err);
    }
    if (cJSON_IsString(v)) {
        if (!text_is_utf8(v->valuestring, strlen(v->valuestring))) {
            return err_set(err, ERR_SYNTAX, "a string is not UTF-8");
        }
        json_add_string(w->out, v->valuestring);
        return 0;
    }
    strbuf_adds(w->out, cJSON_IsNull(v) ? "null" : (cJSON_IsTrue(v) ? "true" : "false"));
    return 0;
}

static int write_styled(const cJSON *v, enum canonical_style style, struct strbuf *out,
                        struct err *err)
{
    const struct writer w = {.style = style, .out = out};
    return write_value(&w, v, 0, err);
}

int json_canonical(const cJSON *v, struct strbuf *out, struct err *err)
{
    return write_styled(v, STYLE_CANONICAL, out, err);
}

int json_pretty(const cJSON *v, struct strbuf *out, struct err *err)
{
    return write_styled(v, STYLE_PRETTY, out, err);
}

int json_line(const cJSON *v, struct strbuf *out, struct err *err)
{
    return write_styled(v, STYLE_LINE, out, err);
}

int json_pretty_lists(const cJSON *v, const struct json_list *lists, size_t n_lists,
                      struct strbuf *out, struct err *err)
{
    const struct writer w = {.style = STYLE_PRETTY, .out = out, .lists = lists, .n_lists = n_lists};
    return write_value(&w, v, 0, err);
}
