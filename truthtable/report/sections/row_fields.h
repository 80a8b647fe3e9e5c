/*
 * Fields of tables over structs (document/doc.h): each shows the member at the offset that it was
 * declared with.
 */
#ifndef TRUTHTABLE_REPORT_SECTIONS_ROW_FIELDS_H
#define TRUTHTABLE_REPORT_SECTIONS_ROW_FIELDS_H

#include <stddef.h>

#include "truthtable/report/document/doc.h"

typedef void row_field_fn(struct doc *d, struct doc_cell *cell, const void *row,
                          const struct doc_field *field);

row_field_fn row_field_text;   /* const char *; NULL is an em dash */
row_field_fn row_field_tally;  /* size_t */
row_field_fn row_field_faults; /* size_t; a warning when it is not 0 */
row_field_fn row_field_span;   /* double, milliseconds; 0 or less was not measured */
row_field_fn row_field_bytes;  /* double, likewise */
row_field_fn row_field_number; /* double, four significant digits */

#define ROW_TEXT(title, type, member)                                                              \
    {                                                                                              \
        title, ALIGN_TEXT, row_field_text, NULL, (int)offsetof(type, member), NULL                 \
    }
/* A field at the right: `fill` is one of the others above. */
#define ROW_FIGURE(title, fill, type, member)                                                      \
    {                                                                                              \
        title, ALIGN_NUMBER, fill, NULL, (int)offsetof(type, member), NULL                         \
    }

#endif
