/*
 * Builds the document: a list of blocks in an arena. Numbers of sections, tables and figures are
 * assigned in order of appearance, identifiers are made unique here, and texts are formatted into
 * the arena. Only the SVG of figures has memory of its own.
 */
#include "truthtable/report/document/doc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

/* An empty document owns nothing but its arena. */
void doc_init(struct doc *d)
{
    *d = (struct doc){0};
    arena_init(&d->arena);
}

/* Figures have buffers outside of the arena. */
void doc_release(struct doc *d)
{
    for (struct doc_block *b = d->first; b != NULL; b = b->next) {
        if (b->figure != NULL) {
            strbuf_release(&b->figure->svg);
        }
    }
    arena_release(&d->arena);
    *d = (struct doc){0};
}

/* Appends an empty block. */
static struct doc_block *block_add(struct doc *d, enum doc_block_kind kind)
{
    struct doc_block *b = arena_alloc(&d->arena, sizeof(*b));
    b->kind = kind;
    if (d->last == NULL) {
        d->first = b;
    } else {
        d->last->next = b;
    }
    d->last = b;
    return b;
}

static const char *text_format(struct doc *d, const char *fmt, va_list args) PRINTF_LIKE(2, 0);

/* Formats into the arena; without memory it aborts, as all small allocations do. */
static const char *text_format(struct doc *d, const char *fmt, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, fmt, args) < 0) {
        abort();
    }
    const char *kept = arena_strdup(&d->arena, text);
    free(text);
    return kept;
}

/* Identifiers are unique by kind: a table and a section may share one. */
static bool id_is_taken(const struct doc *d, enum doc_block_kind kind, const char *id)
{
    for (const struct doc_block *b = d->first; b != NULL; b = b->next) {
        const char *other = b->kind != kind           ? NULL
                            : b->kind == BLOCK_TABLE  ? b->table->id
                            : b->kind == BLOCK_FIGURE ? b->figure->id
                                                      : b->id;
        if (other != NULL && strcmp(other, id) == 0) {
            return true;
        }
    }
    return false;
}

/* Names of curves may hold anything: what has no place in an identifier becomes a dash. */
static const char *id_make(struct doc *d, enum doc_block_kind kind, const char *base)
{
    char *id = arena_strdup(&d->arena, base);
    for (char *c = id; *c != '\0'; c++) {
        bool fits = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                    (*c >= '0' && *c <= '9') || *c == '_';
        *c = fits ? *c : '-';
    }
    const char *unique = id;
    /* The first keeps the plain identifier, which is the one that readers know. */
    for (unsigned n = 2; id_is_taken(d, kind, unique); n++) {
        unique = arena_printf(&d->arena, "%s-%u", id, n);
    }
    return unique;
}

/* A numbered heading; it also appears in the contents. */
void doc_section(struct doc *d, const char *id, const char *title)
{
    const char *unique = id_make(d, BLOCK_HEADING, id);
    struct doc_block *b = block_add(d, BLOCK_HEADING);
    b->level = 2;
    b->number = ++d->n_sections;
    b->id = unique;
    b->text = title;
}

/* Not numbered and not in the contents. */
void doc_subsection(struct doc *d, const char *title)
{
    struct doc_block *b = block_add(d, BLOCK_HEADING);
    b->level = 3;
    b->text = title;
}

/* Formats, and thereby copies, its text. */
void doc_paragraph(struct doc *d, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = text_format(d, fmt, args);
    va_end(args);
    block_add(d, BLOCK_PARAGRAPH)->text = text;
}

/* A paragraph with a tone, printed in a box. */
void doc_notice(struct doc *d, enum doc_tone tone, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = text_format(d, fmt, args);
    va_end(args);
    struct doc_block *b = block_add(d, BLOCK_NOTICE);
    b->text = text;
    b->tone = tone;
}

/* Items are added with doc_item(). */
struct doc_list *doc_list(struct doc *d)
{
    return &block_add(d, BLOCK_LIST)->list;
}

/* The same block with names. */
struct doc_list *doc_facts(struct doc *d)
{
    return &block_add(d, BLOCK_FACTS)->list;
}

/* Name and text are borrowed. */
struct doc_item *doc_item(struct doc *d, struct doc_list *list, const char *name, const char *text)
{
    struct doc_item *item = arena_alloc(&d->arena, sizeof(*item));
    item->name = name;
    item->text = text;
    if (list->last == NULL) {
        list->first = item;
    } else {
        list->last->next = item;
    }
    list->last = item;
    return item;
}

/* Most items are one sentence. */
void doc_point(struct doc *d, struct doc_list *list, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)doc_item(d, list, NULL, text_format(d, fmt, args));
    va_end(args);
}

/* Tables and their columns live as long as the document. */
struct doc_table *doc_table(struct doc *d, const char *id, const char *caption,
                            const struct doc_column *columns, size_t n_columns)
{
    const char *unique = id_make(d, BLOCK_TABLE, id);
    struct doc_block *b = block_add(d, BLOCK_TABLE);
    struct doc_table *t = arena_alloc(&d->arena, sizeof(*t));
    t->id = unique;
    t->caption = caption;
    t->columns = columns;
    t->n_columns = n_columns;
    b->table = t;
    b->number = ++d->n_tables;
    return t;
}

/* More than doubles the room; what was there before stays in the arena. */
void doc_columns_add(struct doc *d, struct doc_columns *columns, const struct doc_column *more,
                     size_t n)
{
    if (columns->n + n > columns->cap) {
        struct doc_column *old = columns->items;
        columns->cap = 2 * columns->cap + n;
        columns->items = arena_array(&d->arena, columns->cap, sizeof(*old));
        for (size_t i = 0; i < columns->n; i++) {
            columns->items[i] = old[i];
        }
    }
    for (size_t i = 0; i < n; i++) {
        columns->items[columns->n++] = more[i];
    }
}

struct doc_columns doc_columns(struct doc *d, const struct doc_column *first, size_t n)
{
    struct doc_columns columns = {0};
    doc_columns_add(d, &columns, first, n);
    return columns;
}

struct doc_column *doc_column_add(struct doc *d, struct doc_columns *columns, const char *title,
                                  doc_fill_fn *fill)
{
    doc_columns_add(d, columns, &(struct doc_column)COLUMN(title, ALIGN_NUMBER, fill), 1);
    return &columns->items[columns->n - 1];
}

struct doc_row *doc_row(struct doc *d, struct doc_table *t, const void *row)
{
    return doc_row_by(d, t, t->columns, row);
}

/* Every cell starts as an empty text, never as NULL. */
struct doc_row *doc_row_by(struct doc *d, struct doc_table *t, const struct doc_column *columns,
                           const void *row)
{
    struct doc_row *out = arena_alloc(&d->arena, sizeof(*out));
    out->cells = arena_array(&d->arena, t->n_columns, sizeof(*out->cells));
    for (size_t i = 0; i < t->n_columns; i++) {
        out->cells[i].text = "";
        columns[i].fill(&(struct doc_slot){&d->arena, &out->cells[i], row, &columns[i]});
    }
    if (t->last == NULL) {
        t->first = out;
    } else {
        t->last->next = out;
    }
    t->last = out;
    t->n_rows++;
    return out;
}

/* Remarks are often empty; the JSON rendering keeps the column all the same. */
size_t doc_columns_shown(const struct doc_table *t)
{
    if (t->n_columns < 2 || t->columns[t->n_columns - 1].align != ALIGN_TEXT || t->n_rows == 0) {
        return t->n_columns;
    }
    for (const struct doc_row *row = t->first; row != NULL; row = row->next) {
        if (row->cells[t->n_columns - 1].text[0] != '\0') {
            return t->n_columns;
        }
    }
    return t->n_columns - 1;
}

/* Appends, so that data keep the order in which they were added. */
static struct doc_datum *datum_add(const struct doc_slot *s, const char *name)
{
    struct doc_datum **at = &s->cell->data;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = arena_alloc(s->arena, sizeof(**at));
    (*at)->name = name;
    return *at;
}

/* A number for report.json, under the cell's text. */
void doc_datum(const struct doc_slot *s, const char *name, double v)
{
    datum_add(s, name)->number = v;
}

/* A truth for report.json. */
void doc_flag(const struct doc_slot *s, const char *name, int flag)
{
    struct doc_datum *datum = datum_add(s, name);
    datum->kind = DATUM_FLAG;
    datum->flag = flag;
}

/* Most cells are one number. */
void doc_number(const struct doc_slot *s, const char *text, double v)
{
    s->cell->text = text;
    doc_datum(s, "value", v);
}

/* The caller draws into the figure's SVG afterwards. */
struct strbuf *doc_figure(struct doc *d, const char *id, const char *caption,
                          struct plot_head *head)
{
    const char *unique = id_make(d, BLOCK_FIGURE, id);
    struct doc_block *b = block_add(d, BLOCK_FIGURE);
    b->figure = arena_alloc(&d->arena, sizeof(*b->figure));
    b->figure->id = unique;
    b->figure->caption = caption;
    b->figure->summary = head->desc;
    strbuf_init(&b->figure->svg);
    b->number = ++d->n_figures;
    head->id = arena_printf(&d->arena, "figure-%s", unique);
    return &b->figure->svg;
}
