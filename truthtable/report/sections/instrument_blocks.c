/*
 * Cells that several instruments have in common: short numbers, estimates with errors, intervals,
 * flags and reasons. All of them accept a missing member and print an em dash.
 */
#include "truthtable/report/sections/instrument_blocks.h"

#include <math.h>
#include <string.h>

#include "truthtable/report/document/fmt.h"
#include "truthtable/report/verdict_words.h"

/* The first instrument of a kind. */
const cJSON *show_find(const struct report_model *m, const char *kind)
{
    const cJSON *instrument = NULL;
    cJSON_ArrayForEach(instrument, member(m->instruments, "instruments"))
    {
        if (strcmp(words_member(instrument, "kind"), kind) == 0) {
            return instrument;
        }
    }
    return NULL;
}

/* Text and value of one member. */
void show_short(struct doc *d, struct doc_cell *cell, const cJSON *obj, const char *key, int digits)
{
    double v = member_number(obj, key);
    doc_number(d, cell, fmt_short(&d->arena, v, digits), v);
}

/* Two digits of the standard error, in four to six decimals. */
static int decimals_for(double value, double se)
{
    if (fabs(value) >= 100) {
        return 1;
    }
    double digits = se > 0 ? ceil(-log10(se)) + 1 : 4;
    return (int)fmin(fmax(digits, 4), 6);
}

/* The value and its error to the same place. */
void show_estimate(struct doc *d, struct doc_cell *cell, double value, double se)
{
    struct arena *a = &d->arena;
    int decimals = decimals_for(value, se);
    const char *text = fmt_signed(a, value, decimals);
    if (isfinite(value) && isfinite(se)) {
        text = arena_printf(a, "%s \xc2\xb1 %s", text, fmt_fixed(a, se, decimals));
    }
    doc_number(d, cell, text, value);
    doc_datum(d, cell, "se", se);
}

/* The number of decimals follows from the width. */
void show_interval(struct doc *d, struct doc_cell *cell, const cJSON *obj)
{
    double low = member_number(obj, "ci_low");
    double high = member_number(obj, "ci_high");
    int decimals = decimals_for(fmax(fabs(low), fabs(high)), (high - low) / 4);
    cell->text = isfinite(low) && isfinite(high)
                     ? arena_printf(&d->arena, "[%s, %s]", fmt_signed(&d->arena, low, decimals),
                                    fmt_signed(&d->arena, high, decimals))
                     : FMT_NONE;
    doc_datum(d, cell, "low", low);
    doc_datum(d, cell, "high", high);
}

/* Three words, and the flag as data. */
void show_flag(struct doc *d, struct doc_cell *cell, const cJSON *obj, const char *key,
               const struct show_words *words)
{
    const cJSON *v = member(obj, key);
    int flag = cJSON_IsTrue(v) ? 1 : cJSON_IsFalse(v) ? 0 : -1;
    cell->text = flag == 1 ? words->yes : flag == 0 ? words->no : words->unknown;
    doc_flag(d, cell, "value", flag);
}

/* A reason, for a column of remarks. */
const char *show_why(const cJSON *obj)
{
    const char *why = member_text(obj, "why");
    return why == NULL ? "" : why;
}

/* Identifiers begin with the instrument's name, which is unique. */
const char *show_id(struct doc *d, const cJSON *instrument, const char *what)
{
    const char *name = words_member(instrument, "name");
    return arena_printf(&d->arena, "%s%s%s", name, what[0] == '\0' ? "" : "-", what);
}
