/* Numbers and strings of the reader of base/json/json_pull.h; private to it. */
#ifndef BASE_JSON_JSON_SCALAR_H
#define BASE_JSON_JSON_SCALAR_H

#include "base/json/json_pull.h"

/* Each begins at pos, which is `at`, and leaves pos behind the last character. */
int json_pull_number(struct json_pull *p, struct err *err) MUST_CHECK;
int json_pull_string(struct json_pull *p, struct err *err) MUST_CHECK;

/* The message names the place of pos. */
int json_pull_fail(const struct json_pull *p, int code, const char *what, struct err *err);

/* -1 at the end */
static inline int json_pull_peek(const struct json_pull *p)
{
    return p->pos < p->len ? (unsigned char)p->text[p->pos] : -1;
}

#endif
