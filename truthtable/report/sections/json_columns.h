/*
 * Columns of tables over JSON objects (document/doc.h), such as those of instruments.json. All
 * accept a member that is missing or of another type and print an em dash, or nothing in a remark.
 */
#ifndef TRUTHTABLE_REPORT_SECTIONS_JSON_COLUMNS_H
#define TRUTHTABLE_REPORT_SECTIONS_JSON_COLUMNS_H

#include <cjson/cJSON.h>

#include "truthtable/report/document/doc.h"

/* What the columns of a row read. A table may put it first in a larger struct of its own. */
struct json_row {
    const char *label; /* for the first column, where no member has it */
    const cJSON *of;
    const cJSON *part; /* a second object, for columns that a table defines itself; or NULL */
};

static inline const cJSON *json_of(const struct doc_slot *s)
{
    return ((const struct json_row *)s->row)->of;
}

static inline const cJSON *json_part(const struct doc_slot *s)
{
    return ((const struct json_row *)s->row)->part;
}

/* A member that is true or false: 1, 0; else -1. */
static inline int json_flag(const cJSON *v)
{
    return cJSON_IsTrue(v) ? 1 : cJSON_IsFalse(v) ? 0 : -1;
}

doc_fill_fn json_cell_label;
doc_fill_fn json_cell_text;
doc_fill_fn json_cell_words;    /* a text; nothing where there is none */
doc_fill_fn json_cell_count;    /* a whole number */
doc_fill_fn json_cell_sigma;    /* a multiple of a standard error */
doc_fill_fn json_cell_short;    /* up to `n` significant digits */
doc_fill_fn json_cell_fixed;    /* `n` decimals */
doc_fill_fn json_cell_signed;   /* the same with a sign */
doc_fill_fn json_cell_value;    /* an estimate without an error */
doc_fill_fn json_cell_estimate; /* `key` with the error "se" */
doc_fill_fn json_cell_interval; /* of ci_low and ci_high */
doc_fill_fn json_cell_flag;     /* in the words `of`, a struct show_words */

#define JSON_COLUMN(title, align, fill, key, n, of)                                                \
    {                                                                                              \
        title, align, fill, key, n, of                                                             \
    }
#define JSON_LABEL(title)          COLUMN(title, ALIGN_TEXT, json_cell_label)
#define JSON_TEXT(title, key)      JSON_COLUMN(title, ALIGN_TEXT, json_cell_text, key, 0, NULL)
#define JSON_COUNT(title, key)     JSON_COLUMN(title, ALIGN_NUMBER, json_cell_count, key, 0, NULL)
#define JSON_SIGMA(title, key)     JSON_COLUMN(title, ALIGN_NUMBER, json_cell_sigma, key, 0, NULL)
#define JSON_SHORT(title, key, n)  JSON_COLUMN(title, ALIGN_NUMBER, json_cell_short, key, n, NULL)
#define JSON_FIXED(title, key, n)  JSON_COLUMN(title, ALIGN_NUMBER, json_cell_fixed, key, n, NULL)
#define JSON_SIGNED(title, key, n) JSON_COLUMN(title, ALIGN_NUMBER, json_cell_signed, key, n, NULL)
#define JSON_ESTIMATE(title, key)  JSON_COLUMN(title, ALIGN_NUMBER, json_cell_estimate, key, 0, NULL)
#define JSON_FLAG(title, key, of)  JSON_COLUMN(title, ALIGN_TEXT, json_cell_flag, key, 0, of)
#define JSON_INTERVAL(title)       COLUMN(title, ALIGN_NUMBER, json_cell_interval)
#define JSON_REMARK                JSON_COLUMN("Remark", ALIGN_TEXT, json_cell_words, "why", 0, NULL)

/* Adds a row of {.of = element} for every element of a list. */
void json_rows(struct doc *d, struct doc_table *t, const cJSON *list);

/* For columns that a table defines itself: "+0.0123 +- 0.0045", with both as data. */
void show_estimate(const struct doc_slot *s, double value, double se);
/* "[-0.01, +0.03]" of members ci_low and ci_high. */
void show_interval(const struct doc_slot *s, const cJSON *obj);
/* A member with up to `digits` significant digits. */
void show_short(const struct doc_slot *s, const cJSON *obj, const char *key, int digits);
/* yes, no, or unknown of a member, with the words given. */
struct show_words {
    const char *yes;
    const char *no;
    const char *unknown;
};
void show_flag(const struct doc_slot *s, const cJSON *obj, const char *key,
               const struct show_words *words);

#endif
