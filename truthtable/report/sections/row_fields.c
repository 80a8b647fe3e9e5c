/* One function for each type of member. `digits` of the field is the member's offset. */
#include "truthtable/report/sections/row_fields.h"

#include <math.h>

#include "truthtable/report/document/fmt.h"

/* The member's address in the row. */
static const void *member_at(const void *row, const struct doc_field *field)
{
    return (const char *)row + field->digits;
}

void row_field_text(struct doc *d, struct doc_cell *cell, const void *row,
                    const struct doc_field *field)
{
    (void)d;
    const char *text = *(const char *const *)member_at(row, field);
    cell->text = text == NULL ? FMT_NONE : text;
}

void row_field_tally(struct doc *d, struct doc_cell *cell, const void *row,
                     const struct doc_field *field)
{
    const size_t n = *(const size_t *)member_at(row, field);
    doc_number(d, cell, fmt_count(&d->arena, (int64_t)n), (double)n);
}

void row_field_faults(struct doc *d, struct doc_cell *cell, const void *row,
                      const struct doc_field *field)
{
    row_field_tally(d, cell, row, field);
    cell->tone = *(const size_t *)member_at(row, field) > 0 ? TONE_WARN : TONE_PLAIN;
}

void row_field_span(struct doc *d, struct doc_cell *cell, const void *row,
                    const struct doc_field *field)
{
    const double ms = *(const double *)member_at(row, field);
    cell->text = ms > 0 ? fmt_span(&d->arena, ms) : FMT_NONE;
    doc_datum(d, cell, "milliseconds", ms > 0 ? ms : (double)NAN);
}

void row_field_bytes(struct doc *d, struct doc_cell *cell, const void *row,
                     const struct doc_field *field)
{
    const double bytes = *(const double *)member_at(row, field);
    cell->text = bytes > 0 ? fmt_bytes(&d->arena, bytes) : FMT_NONE;
    doc_datum(d, cell, "bytes", bytes > 0 ? bytes : (double)NAN);
}

void row_field_number(struct doc *d, struct doc_cell *cell, const void *row,
                      const struct doc_field *field)
{
    const double v = *(const double *)member_at(row, field);
    doc_number(d, cell, fmt_short(&d->arena, v, 4), v);
}
