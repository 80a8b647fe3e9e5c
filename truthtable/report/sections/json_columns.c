/* One function for each kind of column: reads a member of the row's object and leaves text and data
 * in the cell. */
#include "truthtable/report/sections/json_columns.h"

#include <math.h>

#include "base/math/elementary.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/report_model.h"
#include "truthtable/report/verdict_words.h"

/* The column's member as a number. */
static double number_of(const struct doc_slot *s)
{
    return member_number(json_of(s), s->column->key);
}

void json_rows(struct doc *d, struct doc_table *t, const cJSON *list)
{
    const cJSON *of = NULL;
    cJSON_ArrayForEach(of, list)
    {
        doc_row(d, t, &(struct json_row){.of = of});
    }
}

/* Two digits of the standard error, in four to six decimals. */
static int decimals_for(double value, double se)
{
    if (fabs(value) >= 100) {
        return 1;
    }
    double digits = se > 0 ? ceil(-elementary_log10(se)) + 1 : 4;
    return (int)fmin(fmax(digits, 4), 6);
}

/* The value and its error to the same place. */
void show_estimate(const struct doc_slot *s, double value, double se)
{
    int decimals = decimals_for(value, se);
    const char *text = fmt_signed(s->arena, value, decimals);
    if (isfinite(value) && isfinite(se)) {
        text = arena_printf(s->arena, "%s \xc2\xb1 %s", text, fmt_fixed(s->arena, se, decimals));
    }
    doc_number(s, text, value);
    doc_datum(s, "se", se);
}

/* The number of decimals follows from the width. */
void show_interval(const struct doc_slot *s, const cJSON *obj)
{
    double low = member_number(obj, "ci_low");
    double high = member_number(obj, "ci_high");
    int decimals = decimals_for(fmax(fabs(low), fabs(high)), (high - low) / 4);
    s->cell->text = isfinite(low) && isfinite(high)
                        ? arena_printf(s->arena, "[%s, %s]", fmt_signed(s->arena, low, decimals),
                                       fmt_signed(s->arena, high, decimals))
                        : FMT_NONE;
    doc_datum(s, "low", low);
    doc_datum(s, "high", high);
}

/* Text and value of one member. */
void show_short(const struct doc_slot *s, const cJSON *obj, const char *key, int digits)
{
    const double v = member_number(obj, key);
    doc_number(s, fmt_short(s->arena, v, digits), v);
}

/* Three words, and the flag as data. */
void show_flag(const struct doc_slot *s, const cJSON *obj, const char *key,
               const struct show_words *words)
{
    const int flag = json_flag(member(obj, key));
    s->cell->text = flag == 1 ? words->yes : flag == 0 ? words->no : words->unknown;
    doc_flag(s, "value", flag);
}

void json_cell_label(const struct doc_slot *s)
{
    s->cell->text = ((const struct json_row *)s->row)->label;
}

void json_cell_text(const struct doc_slot *s)
{
    s->cell->text = words_member(json_of(s), s->column->key);
}

void json_cell_words(const struct doc_slot *s)
{
    s->cell->text = words_or_empty(json_of(s), s->column->key);
}

void json_cell_count(const struct doc_slot *s)
{
    doc_number(s, fmt_whole(s->arena, number_of(s)), number_of(s));
}

void json_cell_sigma(const struct doc_slot *s)
{
    doc_number(s, fmt_sigma(s->arena, number_of(s), 2), number_of(s));
}

void json_cell_short(const struct doc_slot *s)
{
    show_short(s, json_of(s), s->column->key, s->column->n);
}

void json_cell_fixed(const struct doc_slot *s)
{
    doc_number(s, fmt_fixed(s->arena, number_of(s), s->column->n), number_of(s));
}

void json_cell_signed(const struct doc_slot *s)
{
    doc_number(s, fmt_signed(s->arena, number_of(s), s->column->n), number_of(s));
}

void json_cell_value(const struct doc_slot *s)
{
    show_estimate(s, number_of(s), (double)NAN);
}

void json_cell_estimate(const struct doc_slot *s)
{
    show_estimate(s, number_of(s), member_number(json_of(s), "se"));
}

void json_cell_interval(const struct doc_slot *s)
{
    show_interval(s, json_of(s));
}

void json_cell_flag(const struct doc_slot *s)
{
    show_flag(s, json_of(s), s->column->key, s->column->of);
}
