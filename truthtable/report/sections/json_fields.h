/*
 * Fields of tables over JSON objects (document/doc.h), such as those of instruments.json. All
 * accept a member that is missing or of another type and print an em dash, or nothing in a remark.
 */
#ifndef TRUTHTABLE_REPORT_SECTIONS_JSON_FIELDS_H
#define TRUTHTABLE_REPORT_SECTIONS_JSON_FIELDS_H

#include <cjson/cJSON.h>

#include "truthtable/report/document/doc.h"

/* What the fields of a row read. */
struct json_row {
    const char *label; /* for the first column, where no member has it */
    const cJSON *of;
    const cJSON *part; /* a second object, for fields that a table defines itself; or NULL */
};

typedef void json_field_fn(struct doc *d, struct doc_cell *cell, const void *row,
                           const struct doc_field *field);

json_field_fn json_field_label;
json_field_fn json_field_text;
json_field_fn json_field_words;    /* a text; nothing where there is none */
json_field_fn json_field_count;    /* a whole number */
json_field_fn json_field_sigma;    /* a multiple of a standard error */
json_field_fn json_field_short;    /* `digits` significant digits */
json_field_fn json_field_fixed;    /* `digits` decimals */
json_field_fn json_field_signed;   /* the same with a sign */
json_field_fn json_field_value;    /* an estimate without an error */
json_field_fn json_field_estimate; /* `key` with the error "se" */
json_field_fn json_field_interval; /* of ci_low and ci_high */
json_field_fn json_field_flag;     /* in `words`, a struct show_words */
json_field_fn json_field_why;

#define FIELD_LABEL(title)                                                                         \
    {                                                                                              \
        title, ALIGN_TEXT, json_field_label, NULL, 0, NULL                                         \
    }
#define FIELD_TEXT(title, key)                                                                     \
    {                                                                                              \
        title, ALIGN_TEXT, json_field_text, key, 0, NULL                                           \
    }
#define FIELD_COUNT(title, key)                                                                    \
    {                                                                                              \
        title, ALIGN_NUMBER, json_field_count, key, 0, NULL                                        \
    }
#define FIELD_SIGMA(title, key)                                                                    \
    {                                                                                              \
        title, ALIGN_NUMBER, json_field_sigma, key, 0, NULL                                        \
    }
#define FIELD_SHORT(title, key, digits)                                                            \
    {                                                                                              \
        title, ALIGN_NUMBER, json_field_short, key, digits, NULL                                   \
    }
#define FIELD_FIXED(title, key, digits)                                                            \
    {                                                                                              \
        title, ALIGN_NUMBER, json_field_fixed, key, digits, NULL                                   \
    }
#define FIELD_SIGNED(title, key, digits)                                                           \
    {                                                                                              \
        title, ALIGN_NUMBER, json_field_signed, key, digits, NULL                                  \
    }
#define FIELD_FLAG(title, key, words)                                                              \
    {                                                                                              \
        title, ALIGN_TEXT, json_field_flag, key, 0, words                                          \
    }
#define FIELD_INTERVAL(title)                                                                      \
    {                                                                                              \
        title, ALIGN_NUMBER, json_field_interval, NULL, 0, NULL                                    \
    }
#define FIELD_REMARK                                                                               \
    {                                                                                              \
        "Remark", ALIGN_TEXT, json_field_why, NULL, 0, NULL                                        \
    }
/* A cell that the table's own function fills. */
#define FIELD_OWN(title, align, fill)                                                              \
    {                                                                                              \
        title, align, fill, NULL, 0, NULL                                                          \
    }

#endif
