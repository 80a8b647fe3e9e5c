/* One function for each type of member. `n` of the column is the member's offset. */
#include "truthtable/report/sections/row_columns.h"

#include <math.h>

#include "truthtable/report/document/fmt.h"

/* Three states: what is unknown neither holds nor fails. */
struct row_cell row_holds(int flag, const char *unknown)
{
    return flag == 1   ? (struct row_cell){.text = "holds", .tone = TONE_GOOD, .flag = 1}
           : flag == 0 ? (struct row_cell){.text = "FAILS", .tone = TONE_BAD}
                       : (struct row_cell){.text = unknown, .tone = TONE_WARN, .flag = -1};
}

/* The member's address in the row. */
static const void *member_at(const struct doc_slot *s)
{
    return (const char *)s->row + s->column->n;
}

/* A figure as text and datum; 0 or less was not measured. */
static void show_measured(const struct doc_slot *s, const char *text, const char *name, double v)
{
    s->cell->text = v > 0 ? text : FMT_NONE;
    doc_datum(s, name, v > 0 ? v : (double)NAN);
}

void row_cell_text(const struct doc_slot *s)
{
    const char *text = *(const char *const *)member_at(s);
    s->cell->text = text == NULL ? FMT_NONE : text;
}

void row_cell_toned(const struct doc_slot *s)
{
    const struct row_cell *cell = member_at(s);
    s->cell->text = cell->text;
    s->cell->tone = cell->tone;
}

void row_cell_flag(const struct doc_slot *s)
{
    row_cell_toned(s);
    doc_flag(s, s->column->key, ((const struct row_cell *)member_at(s))->flag);
}

void row_cell_value(const struct doc_slot *s)
{
    const struct row_cell *cell = member_at(s);
    doc_number(s, cell->text, cell->value);
}

void row_cell_tally(const struct doc_slot *s)
{
    const size_t n = *(const size_t *)member_at(s);
    doc_number(s, fmt_count(s->arena, (int64_t)n), (double)n);
}

void row_cell_faults(const struct doc_slot *s)
{
    row_cell_tally(s);
    s->cell->tone = *(const size_t *)member_at(s) > 0 ? TONE_WARN : TONE_PLAIN;
}

void row_cell_count(const struct doc_slot *s)
{
    const double v = *(const double *)member_at(s);
    doc_number(s, fmt_whole(s->arena, v), v);
}

void row_cell_number(const struct doc_slot *s)
{
    const double v = *(const double *)member_at(s);
    doc_number(s, fmt_short(s->arena, v, 4), v);
}

void row_cell_span(const struct doc_slot *s)
{
    const double ms = *(const double *)member_at(s);
    show_measured(s, fmt_span(s->arena, ms), "milliseconds", ms);
}

void row_cell_bytes(const struct doc_slot *s)
{
    const double bytes = *(const double *)member_at(s);
    show_measured(s, fmt_bytes(s->arena, bytes), "bytes", bytes);
}
