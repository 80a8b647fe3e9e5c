/* See base/json/json_pull.h; base/json/json.h says what is refused. */
#include "base/json/json_pull.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_scalar.h"
#include "base/xalloc.h"

/* More keys than these in one object are compared when it ends. */
#define KEYS_AT_ONCE 16

enum expect {
    EXPECT_VALUE, /* and nothing else */
    EXPECT_FIRST, /* of an object or array, or its end */
    EXPECT_NEXT,  /* a comma, or the end of what is open */
};

void json_pull_init(struct json_pull *p, const char *text, size_t len, bool lax)
{
    assert(text != NULL || len == 0);
    *p = (struct json_pull){.text = text, .len = len, .lax = lax, .expect = EXPECT_VALUE};
    strbuf_init(&p->string);
    strbuf_init(&p->key_text);
}

void json_pull_release(struct json_pull *p)
{
    strbuf_release(&p->string);
    strbuf_release(&p->key_text);
    free(p->keys);
    *p = (struct json_pull){0};
}

static void skip_space(struct json_pull *p)
{
    int c = json_pull_peek(p);
    while (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        p->pos++;
        c = json_pull_peek(p);
    }
}

/* ---- keys ---- */

static int fail_twice(const struct json_pull *p, const char *key, size_t at, struct err *err)
{
    (void)err_set(err, ERR_SYNTAX, "key \"%.80s\" is duplicated in one object", key);
    return json_pull_wrap(p, at, err);
}

/* Keeps the key of `string`; it is compared with those before it, unless there are many. */
static int keep_key(struct json_pull *p, struct err *err)
{
    const size_t first = p->open[p->depth - 1].first_key;
    if (p->n_keys - first < KEYS_AT_ONCE) {
        for (size_t i = first; i < p->n_keys; i++) {
            if (strcmp(p->key_text.buf + p->keys[i].start, p->string.buf) == 0) {
                return fail_twice(p, p->string.buf, p->at, err);
            }
        }
    }
    ARRAY_GROW(p->keys, p->n_keys, p->keys_cap);
    p->keys[p->n_keys++] = (struct json_pull_key){.start = p->key_text.len, .at = p->at};
    strbuf_add(&p->key_text, p->string.buf, p->string.len + 1);
    return 0;
}

struct kept_key {
    const char *text;
    size_t at;
};

static int by_text_and_place(const void *a, const void *b)
{
    const struct kept_key *x = a;
    const struct kept_key *y = b;
    const int c = strcmp(x->text, y->text);
    return c != 0 ? c : (x->at > y->at) - (x->at < y->at);
}

static int compare_many(const struct json_pull *p, size_t first, struct err *err)
{
    const size_t n = p->n_keys - first;
    struct kept_key *sorted = xcalloc(n, sizeof(*sorted));
    int rc = 0;
    for (size_t i = 0; i < n; i++) {
        const struct json_pull_key *k = &p->keys[first + i];
        sorted[i] = (struct kept_key){.text = p->key_text.buf + k->start, .at = k->at};
    }
    qsort(sorted, n, sizeof(*sorted), by_text_and_place);
    for (size_t i = 1; rc == 0 && i < n; i++) {
        if (strcmp(sorted[i - 1].text, sorted[i].text) == 0) {
            rc = fail_twice(p, sorted[i].text, sorted[i].at, err);
        }
    }
    free(sorted);
    return rc;
}

/* The keys of the object that ends. */
static int drop_keys(struct json_pull *p, struct err *err)
{
    const size_t first = p->open[p->depth - 1].first_key;
    int rc = p->n_keys - first > KEYS_AT_ONCE ? compare_many(p, first, err) : 0;
    if (p->n_keys > first) {
        p->key_text.len = p->keys[first].start;
        p->n_keys = first;
    }
    return rc;
}

/* ---- tokens ---- */

static int pull_word(struct json_pull *p, const char *word, struct err *err)
{
    const size_t n = strlen(word);
    if (p->len - p->pos < n || memcmp(p->text + p->pos, word, n) != 0) {
        return json_pull_fail(p, ERR_SYNTAX, "expected a JSON value", err);
    }
    p->pos += n;
    return 0;
}

static void open_level(struct json_pull *p, bool object)
{
    p->pos++;
    p->open[p->depth++] = (struct json_pull_level){.object = object, .first_key = p->n_keys};
    p->expect = EXPECT_FIRST;
}

static int close_level(struct json_pull *p, enum json_token *out, struct err *err)
{
    const bool object = p->open[p->depth - 1].object;
    p->pos++;
    int rc = object ? drop_keys(p, err) : 0;
    p->depth--;
    p->expect = EXPECT_NEXT;
    *out = object ? JSON_OBJECT_END : JSON_ARRAY_END;
    return rc;
}

static int pull_scalar(struct json_pull *p, enum json_token *out, struct err *err)
{
    const size_t n = p->lax ? json_not_finite(p->text + p->pos, p->len - p->pos) : 0;
    if (n > 0) {
        p->pos += n;
        *out = JSON_NULL;
        return 0;
    }
    switch (json_pull_peek(p)) {
    case '"': *out = JSON_STRING; return json_pull_string(p, err);
    case 't': *out = JSON_TRUE; return pull_word(p, "true", err);
    case 'f': *out = JSON_FALSE; return pull_word(p, "false", err);
    case 'n': *out = JSON_NULL; return pull_word(p, "null", err);
    case -1: return json_pull_fail(p, ERR_SYNTAX, "text ends where a value should stand", err);
    default: *out = JSON_NUMBER; return json_pull_number(p, err);
    }
}

static int pull_any(struct json_pull *p, enum json_token *out, struct err *err)
{
    if (p->depth > JSON_DEPTH_MAX) {
        return json_pull_fail(p, ERR_RANGE, "nested deeper than 64 levels", err);
    }
    skip_space(p);
    p->at = p->pos;
    const int c = json_pull_peek(p);
    if (c == '{' || c == '[') {
        *out = c == '{' ? JSON_OBJECT : JSON_ARRAY;
        open_level(p, c == '{');
        return 0;
    }
    p->expect = EXPECT_NEXT;
    return pull_scalar(p, out, err);
}

static int pull_key(struct json_pull *p, enum json_token *out, struct err *err)
{
    skip_space(p);
    p->at = p->pos;
    if (json_pull_peek(p) != '"') {
        return json_pull_fail(p, ERR_SYNTAX, "expected a key in quotes", err);
    }
    int rc = 0;
    if ((rc = json_pull_string(p, err)) != 0 || (rc = keep_key(p, err)) != 0) {
        return rc;
    }
    skip_space(p);
    if (json_pull_peek(p) != ':') {
        return json_pull_fail(p, ERR_SYNTAX, "expected ':'", err);
    }
    p->pos++;
    p->expect = EXPECT_VALUE;
    *out = JSON_KEY;
    return 0;
}

static int pull_end(struct json_pull *p, enum json_token *out, struct err *err)
{
    *out = JSON_END;
    return p->pos == p->len ? 0 : json_pull_fail(p, ERR_SYNTAX, "text after the JSON value", err);
}

int json_pull_next(struct json_pull *p, enum json_token *out, struct err *err)
{
    if (p->expect == EXPECT_VALUE) {
        return pull_any(p, out, err);
    }
    skip_space(p);
    p->at = p->pos;
    if (p->depth == 0) {
        return pull_end(p, out, err);
    }
    const bool object = p->open[p->depth - 1].object;
    if (json_pull_peek(p) == (object ? '}' : ']')) {
        return close_level(p, out, err);
    }
    if (p->expect == EXPECT_NEXT) {
        if (json_pull_peek(p) != ',') {
            return json_pull_fail(p, ERR_SYNTAX,
                                  object ? "expected ',' or '}'" : "expected ',' or ']'", err);
        }
        p->pos++;
    }
    return object ? pull_key(p, out, err) : pull_any(p, out, err);
}

int json_pull_skip(struct json_pull *p, enum json_token token, struct err *err)
{
    assert(token != JSON_OBJECT || p->depth > 0); /* it is still open */
    int rc = 0;
    if (token != JSON_OBJECT && token != JSON_ARRAY) {
        return 0;
    }
    for (const size_t outside = p->depth - 1; rc == 0 && p->depth > outside;) {
        rc = json_pull_next(p, &token, err);
    }
    return rc;
}

int json_scan(const char *text, size_t len, struct err *err)
{
    struct json_pull p;
    enum json_token token = JSON_NULL;
    int rc = 0;
    json_pull_init(&p, text, len, false);
    while (rc == 0 && token != JSON_END) {
        rc = json_pull_next(&p, &token, err);
    }
    json_pull_release(&p);
    return rc;
}

size_t json_not_finite(const char *text, size_t len)
{
    static const char *const tokens[] = {"NaN", "-NaN", "Infinity", "-Infinity"};
    if (len == 0 || (text[0] != 'N' && text[0] != 'I' && text[0] != '-')) {
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        size_t n = strlen(tokens[i]);
        bool ends = n == len || (n < len && memchr(",]} \t\r\n", text[n], 7) != NULL);
        if (n <= len && ends && memcmp(text, tokens[i], n) == 0) {
            return n;
        }
    }
    return 0;
}
