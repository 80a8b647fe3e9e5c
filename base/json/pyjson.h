/*
 * JSON as Python's json.dumps(value, ensure_ascii=False) lays it out, byte for byte: ", " and ": "
 * on one line, or a line an item with `indent`; empty containers are "[]" and "{}"; floats are
 * repr(float), so a whole one keeps its ".0"; integers stay integers of any size. Hashes that other
 * tools compute over such text can be computed over this one.
 *
 * The writer owns nothing; it appends to `out`. Calls must make one well-formed value: that is the
 * caller's to see to, and asserted.
 */
#ifndef BASE_JSON_PYJSON_H
#define BASE_JSON_PYJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

struct pyjson {
    struct strbuf *out;
    int indent; /* 0: one line */
    int depth;
    bool empty;     /* the innermost container has nothing in it yet */
    bool after_key; /* its value comes next */
};

void pyjson_init(struct pyjson *w, struct strbuf *out, int indent);

void pyjson_open(struct pyjson *w, char bracket);  /* '{' or '[' */
void pyjson_close(struct pyjson *w, char bracket); /* '}' or ']' */
void pyjson_key(struct pyjson *w, const char *key);

void pyjson_string(struct pyjson *w, const char *value); /* UTF-8; NULL becomes null */
void pyjson_int(struct pyjson *w, int64_t value);
void pyjson_float(struct pyjson *w, double value); /* NaN and Infinity as Python writes them */
void pyjson_bool(struct pyjson *w, bool value);
void pyjson_null(struct pyjson *w);

/* A value given as JSON text (base/json/json.h says which), as json.loads would read and json.dumps
 * write it: order of members, integers and the length of numbers are Python's. A key that stands
 * twice is written twice. Nothing is appended on error. */
int pyjson_text(struct pyjson *w, const char *text, size_t len, struct err *err) MUST_CHECK;

/* repr(float). */
void pyjson_add_float(struct strbuf *out, double value);

#endif
