/*
 * Columns of tables over structs (document/doc.h): each shows the member at the offset that it was
 * declared with.
 */
#ifndef TRUTHTABLE_REPORT_SECTIONS_ROW_COLUMNS_H
#define TRUTHTABLE_REPORT_SECTIONS_ROW_COLUMNS_H

#include <stddef.h>

#include "truthtable/report/document/doc.h"

/* A member that is a whole cell, of which a column shows what it is declared for. */
struct row_cell {
    const char *text;
    enum doc_tone tone;
    int flag; /* 1, 0, -1: unknown */
    double value;
};

/* "holds", "FAILS", or the words for what is unknown, in their tones. */
struct row_cell row_holds(int flag, const char *unknown);

doc_fill_fn row_cell_text;   /* const char *; NULL is an em dash */
doc_fill_fn row_cell_toned;  /* struct row_cell: text and tone */
doc_fill_fn row_cell_flag;   /* the same with the flag, as `key` */
doc_fill_fn row_cell_value;  /* struct row_cell: text and value */
doc_fill_fn row_cell_tally;  /* size_t */
doc_fill_fn row_cell_faults; /* size_t; a warning when it is not 0 */
doc_fill_fn row_cell_count;  /* double, a whole number */
doc_fill_fn row_cell_number; /* double, four significant digits */
doc_fill_fn row_cell_span;   /* double, milliseconds; 0 or less was not measured */
doc_fill_fn row_cell_bytes;  /* double, likewise */

/* `fill` is one of the above, or a table's own. */
#define ROW_COLUMN(title, align, fill, key, type, member)                                          \
    {                                                                                              \
        title, align, fill, key, (int)offsetof(type, member), NULL                                 \
    }
#define ROW_TEXT(title, type, member)                                                              \
    ROW_COLUMN(title, ALIGN_TEXT, row_cell_text, NULL, type, member)
#define ROW_TONED(title, type, member)                                                             \
    ROW_COLUMN(title, ALIGN_TEXT, row_cell_toned, NULL, type, member)
#define ROW_FLAG(title, key, type, member)                                                         \
    ROW_COLUMN(title, ALIGN_TEXT, row_cell_flag, key, type, member)
/* At the right. */
#define ROW_FIGURE(title, fill, type, member)                                                      \
    ROW_COLUMN(title, ALIGN_NUMBER, fill, NULL, type, member)
#define ROW_VALUE(title, type, member) ROW_FIGURE(title, row_cell_value, type, member)

#endif
