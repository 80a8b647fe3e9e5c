/*
 * The report as a document: blocks in reading order, independent of how they are rendered. Built
 * once from the model (sections.h), rendered as Markdown, HTML and JSON from the same blocks, so
 * that no two of them can say different things.
 *
 * Everything lives in the document's arena; texts given are borrowed unless said otherwise, and are
 * raw: the renderers escape. A tone is never the only carrier of a meaning: the text beside it says
 * the same. Sections, tables and figures have identifiers that stay the same from report to report
 * (docs/report.md): what a program reads of a report it finds by them.
 */
#ifndef TRUTHTABLE_REPORT_DOCUMENT_DOC_H
#define TRUTHTABLE_REPORT_DOCUMENT_DOC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "truthtable/report/document/plot.h"

enum doc_tone { TONE_PLAIN, TONE_LIT, TONE_GOOD, TONE_WARN, TONE_BAD, TONE_MUTED, TONE_NR };
enum doc_align { ALIGN_TEXT, ALIGN_NUMBER, ALIGN_MARK };
enum doc_block_kind {
    BLOCK_HEADING,
    BLOCK_PARAGRAPH,
    BLOCK_NOTICE, /* a paragraph that must not be missed */
    BLOCK_LIST,
    BLOCK_FACTS, /* name and value pairs */
    BLOCK_TABLE,
    BLOCK_FIGURE,
};

struct doc;

/* A value that a cell's text words: for report.json, where a reader wants it whole. */
struct doc_datum {
    const char *name;
    enum { DATUM_NUMBER, DATUM_FLAG } kind;
    double number; /* not finite: null */
    int flag;      /* 1, 0, -1: unknown */
    struct doc_datum *next;
};

struct doc_cell {
    const char *text;
    enum doc_tone tone;
    struct doc_datum *data; /* or NULL */
};

struct doc_column;

/* A cell that its column fills from a row. */
struct doc_slot {
    struct arena *arena; /* the document's */
    struct doc_cell *cell;
    const void *row;
    const struct doc_column *column;
};
typedef void doc_fill_fn(const struct doc_slot *s);

/* A column: its head, and what its cells show of a row. A table is declared as an array of these.
 */
struct doc_column {
    const char *title;
    enum doc_align align;
    doc_fill_fn *fill;
    const char *key; /* for `fill`, as are the rest: the member that it shows */
    int n;           /* digits, an offset or an index */
    const void *of;  /* what the column is about: the words of a flag, a measure, a fit */
};

#define COLUMN(title, align, fill)                                                                 \
    {                                                                                              \
        title, align, fill, NULL, 0, NULL                                                          \
    }

struct doc_columns { /* of a matrix */
    struct doc_column *items;
    size_t n;
    size_t cap;
};

struct doc_row {
    struct doc_cell *cells; /* n_columns; the first heads the row */
    enum doc_tone tone;
    struct doc_row *next;
};

struct doc_table {
    const char *id;
    const char *caption;
    const struct doc_column *columns;
    size_t n_columns;
    struct doc_row *first;
    struct doc_row *last;
    size_t n_rows;
};

struct doc_item {     /* of a list, or a fact */
    const char *name; /* facts only */
    const char *text;
    bool code; /* a digest, path or command: fixed pitch */
    enum doc_tone tone;
    struct doc_item *next;
};

struct doc_list {
    struct doc_item *first;
    struct doc_item *last;
};

struct doc_figure {
    const char *id;
    const char *caption;
    const char *summary; /* what it shows, in words: all that Markdown prints */
    struct strbuf svg;   /* released with the document */
};

struct doc_block {
    enum doc_block_kind kind;
    unsigned level;   /* heading: 2 or 3 */
    unsigned number;  /* heading of level 2, table, figure: counted from 1 by kind */
    const char *id;   /* heading of level 2 */
    const char *text; /* heading, paragraph, notice */
    enum doc_tone tone;
    struct doc_list list;
    struct doc_table *table;
    struct doc_figure *figure;
    struct doc_block *next;
};

/* The head of the report, before any section. */
struct doc_banner {
    const char *label; /* precedes everything else: "IMPORTED RECORDS"; or NULL */
    const char *program;
    const char *root; /* of the lock; head: with its amendments */
    const char *head;
    const char *question;
    const char *kind;    /* "bound", "INDETERMINATE", "VOID" */
    const char *outcome; /* "O4", or the kind again */
    const char *title;
    const char *lead; /* one sentence in plain words */
    enum doc_tone tone;
    struct doc_list errors;  /* where no outcome binds: what prevents it */
    struct doc_list effects; /* what the inputs read, a line each */
    struct doc_list figures; /* the few numbers that matter */
};

struct doc {
    struct arena arena;
    struct doc_banner banner;
    struct doc_block *first;
    struct doc_block *last;
    unsigned n_sections;
    unsigned n_tables;
    unsigned n_figures;
};

void doc_init(struct doc *d);
void doc_release(struct doc *d);

/* An identifier that is taken gets "-2", "-3", ... */
void doc_section(struct doc *d, const char *id, const char *title);
void doc_subsection(struct doc *d, const char *title);
void doc_paragraph(struct doc *d, const char *fmt, ...) PRINTF_LIKE(2, 3); /* copies */
void doc_notice(struct doc *d, enum doc_tone tone, const char *fmt, ...) PRINTF_LIKE(3, 4);
struct doc_list *doc_list(struct doc *d);
struct doc_list *doc_facts(struct doc *d);
/* Adds a plain item to a list; copies. */
void doc_point(struct doc *d, struct doc_list *list, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* name NULL for a list's item; returns the item so that `code` and `tone` can be set. */
struct doc_item *doc_item(struct doc *d, struct doc_list *list, const char *name, const char *text);

/* Declares a table; the columns are borrowed. */
struct doc_table *doc_table(struct doc *d, const char *id, const char *caption,
                            const struct doc_column *columns, size_t n_columns);
/* Columns of a matrix, whose number depends on the data: first those declared. One of numbers is
 * added for the caller to set `key`, `n` or `of`, by which its `fill` tells it from the others. */
struct doc_columns doc_columns(struct doc *d, const struct doc_column *first, size_t n);
struct doc_column *doc_column_add(struct doc *d, struct doc_columns *columns, const char *title,
                                  doc_fill_fn *fill);
void doc_columns_add(struct doc *d, struct doc_columns *columns, const struct doc_column *more,
                     size_t n);
/* Adds a row whose cells are filled from `row`, which is not kept; or by as many other columns. */
struct doc_row *doc_row(struct doc *d, struct doc_table *t, const void *row);
struct doc_row *doc_row_by(struct doc *d, struct doc_table *t, const struct doc_column *columns,
                           const void *row);
/* Without a last column of remarks that is empty throughout: pages leave it out. */
size_t doc_columns_shown(const struct doc_table *t);
/* For `fill`: add a value to the cell under a name of its own; its text, and "value". */
void doc_datum(const struct doc_slot *s, const char *name, double v);
void doc_flag(const struct doc_slot *s, const char *name, int flag);
void doc_number(const struct doc_slot *s, const char *text, double v);

/* Adds a figure that shows `head->desc` in words, sets `head->id` to its identifier on the page,
 * and returns the buffer to draw into. */
struct strbuf *doc_figure(struct doc *d, const char *id, const char *caption,
                          struct plot_head *head);

#endif
