/*
 * JSON read token by token from text in memory: the one grammar under base/json/json.h, and the
 * reader of what is too long to be held as a tree. Refuses what base/json/json.h says, duplicate
 * keys with their place too; json_scan() is this reader run to the end.
 *
 * The reader borrows the text. A key or string is in `string` until the next call. After an
 * error the reader is only good for json_pull_release().
 */
#ifndef BASE_JSON_JSON_PULL_H
#define BASE_JSON_JSON_PULL_H

#include "base/arena.h"
#include "base/json/json.h"

enum json_token {
    JSON_END, /* of the text */
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_KEY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
};

struct json_pull_level { /* private, as are all others that say nothing */
    bool object;
    size_t first_key;
};

struct json_pull_key {
    size_t start; /* in key_text */
    size_t at;
};

struct json_pull {
    struct strbuf string; /* of JSON_KEY and JSON_STRING: UTF-8 without NUL */
    double number;        /* of JSON_NUMBER; finite */
    size_t at;            /* where the token begins in the text */
    const char *text;
    size_t len;
    size_t pos;
    bool lax;
    int expect;
    size_t depth; /* open objects and arrays */
    struct json_pull_level open[JSON_DEPTH_MAX + 2];
    struct strbuf key_text; /* keys of the open objects, each with a NUL */
    struct json_pull_key *keys;
    size_t n_keys;
    size_t keys_cap;
};

/* lax: what json_parse_lax reads as null is JSON_NULL. */
void json_pull_init(struct json_pull *p, const char *text, size_t len, bool lax);
void json_pull_release(struct json_pull *p);

/* JSON_END comes once the one value of the text is over, and from then on. */
int json_pull_next(struct json_pull *p, enum json_token *out, struct err *err) MUST_CHECK;
/* Skips the rest of the value that begins with `token`, the last one given. */
int json_pull_skip(struct json_pull *p, enum json_token token, struct err *err) MUST_CHECK;
/* The same as a tree that lives in the arena, strings included: never for cJSON_Delete. */
int json_pull_value(struct json_pull *p, enum json_token token, struct arena *arena, cJSON **out,
                    struct err *err) MUST_CHECK;

/* Puts the line and column of text[at] before the message; returns the code. */
int json_pull_wrap(const struct json_pull *p, size_t at, struct err *err);

/* Length of the token at text that Python writes for a value that is not finite; 0 when there is
 * none. */
size_t json_not_finite(const char *text, size_t len);

#endif
