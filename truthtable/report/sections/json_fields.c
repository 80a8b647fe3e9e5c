/* One function for each kind of field: reads a member of the row and leaves text and data in the
 * cell. The formats are those of instrument_blocks.h. */
#include "truthtable/report/sections/json_fields.h"

#include <math.h>

#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/instrument_blocks.h"
#include "truthtable/report/verdict_words.h"

static const cJSON *object_of(const void *row)
{
    return ((const struct json_row *)row)->of;
}

void json_field_label(struct doc *d, struct doc_cell *cell, const void *row,
                      const struct doc_field *field)
{
    (void)d;
    (void)field;
    cell->text = ((const struct json_row *)row)->label;
}

void json_field_text(struct doc *d, struct doc_cell *cell, const void *row,
                     const struct doc_field *field)
{
    (void)d;
    const char *text = member_text(object_of(row), field->key);
    cell->text = text == NULL ? FMT_NONE : text;
}

void json_field_words(struct doc *d, struct doc_cell *cell, const void *row,
                      const struct doc_field *field)
{
    (void)d;
    const char *text = member_text(object_of(row), field->key);
    cell->text = text == NULL ? "" : text;
}

void json_field_count(struct doc *d, struct doc_cell *cell, const void *row,
                      const struct doc_field *field)
{
    const cJSON *of = object_of(row);
    doc_number(d, cell, words_count(&d->arena, of, field->key), member_number(of, field->key));
}

void json_field_sigma(struct doc *d, struct doc_cell *cell, const void *row,
                      const struct doc_field *field)
{
    struct arena *a = &d->arena;
    const double v = member_number(object_of(row), field->key);
    doc_number(d, cell, isfinite(v) ? arena_printf(a, "%s\xcf\x83", fmt_signed(a, v, 2)) : FMT_NONE,
               v);
}

void json_field_short(struct doc *d, struct doc_cell *cell, const void *row,
                      const struct doc_field *field)
{
    show_short(d, cell, object_of(row), field->key, field->digits);
}

void json_field_fixed(struct doc *d, struct doc_cell *cell, const void *row,
                      const struct doc_field *field)
{
    const double v = member_number(object_of(row), field->key);
    doc_number(d, cell, fmt_fixed(&d->arena, v, field->digits), v);
}

void json_field_signed(struct doc *d, struct doc_cell *cell, const void *row,
                       const struct doc_field *field)
{
    const double v = member_number(object_of(row), field->key);
    doc_number(d, cell, fmt_signed(&d->arena, v, field->digits), v);
}

void json_field_value(struct doc *d, struct doc_cell *cell, const void *row,
                      const struct doc_field *field)
{
    show_estimate(d, cell, member_number(object_of(row), field->key), (double)NAN);
}

void json_field_estimate(struct doc *d, struct doc_cell *cell, const void *row,
                         const struct doc_field *field)
{
    show_estimate(d, cell, member_number(object_of(row), field->key),
                  member_number(object_of(row), "se"));
}

void json_field_interval(struct doc *d, struct doc_cell *cell, const void *row,
                         const struct doc_field *field)
{
    (void)field;
    show_interval(d, cell, object_of(row));
}

void json_field_flag(struct doc *d, struct doc_cell *cell, const void *row,
                     const struct doc_field *field)
{
    show_flag(d, cell, object_of(row), field->key, field->words);
}

void json_field_why(struct doc *d, struct doc_cell *cell, const void *row,
                    const struct doc_field *field)
{
    (void)d;
    (void)field;
    cell->text = show_why(object_of(row));
}
