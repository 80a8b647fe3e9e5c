/*
 * Helpers of all instruments: reading scores and figures of the verdict's evaluation, writing
 * numbers that may be unknown, and answering the fields that forecasts read. A field that does not
 * exist for the kind, or has the other type, is a bug and asserted: the list of fields is closed.
 */
#include "truthtable/instruments/instrument_work.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/json/json.h"

/* The answer of a field by its name. */
static struct instrument_answer *field_of(struct instrument_entry *t, const char *field,
                                          bool is_truth)
{
    size_t n = 0;
    const struct instrument_field *known = instrument_fields(t->kind, &n);
    size_t i = 0;
    while (i < n && strcmp(known[i].name, field) != 0) {
        i++;
    }
    assert(i < n && known[i].is_truth == is_truth);
    return &t->fields[i];
}

/* The reason is stored in the number, which has room for one. */
void entry_truth(struct instrument_entry *t, const char *field, enum truth v, const char *why)
{
    struct instrument_answer *a = field_of(t, field, true);
    a->truth = v;
    a->number = number_unknown(why != NULL ? why : "undetermined");
}

/* NaN and infinity are unknown; the reason should say why. */
void entry_number(struct instrument_entry *t, const char *field, double v, const char *why)
{
    struct instrument_answer *a = field_of(t, field, false);
    a->truth = TRUTH_UNKNOWN;
    a->number = isfinite(v) ? number_point(v) : number_unknown(why != NULL ? why : "undetermined");
}

/* Every entry says what it is and how it reads. */
void entry_words(cJSON *out, const char *what, const char *reading)
{
    json_put_string(out, "what", what);
    json_put_string(out, "reading", reading);
}

/* The declared measures, or the counted ones without a declaration. */
struct measure_list work_measures(const struct work *w, const cJSON *spec, const char *key)
{
    struct measure_list list = {arena_array(w->arena, w->p->n_measures + 1, sizeof(size_t)), 0};
    const cJSON *names = json_member(spec, key);
    const cJSON *name = NULL;
    cJSON_ArrayForEach(name, names)
    {
        size_t m = program_find_measure(w->p, name->valuestring);
        if (m != INDEX_NONE && list.n < w->p->n_measures) {
            list.items[list.n++] = m;
        }
    }
    for (size_t m = 0; names == NULL && m < w->p->n_measures; m++) {
        if (w->p->measures[m].counted) {
            list.items[list.n++] = m;
        }
    }
    return list;
}

const struct score *work_score(const struct work *w, size_t measure, size_t cell)
{
    return &w->ev->reading->scores[measure * w->p->n_cells + cell];
}

const struct figure *work_figure(const struct work *w, size_t contrast, size_t measure)
{
    return &w->ev->per_measure[contrast * w->p->n_measures + measure];
}

/* Adds a value. One that is not finite makes the extremes unknown for good, with the first
 * reason. */
void spread_add(struct spread *s, double v, const char *why)
{
    if (!isfinite(v)) {
        s->why = s->why != NULL ? s->why : (why != NULL ? why : "undetermined");
        return;
    }
    s->lo = s->n == 0 ? v : fmin(s->lo, v);
    s->hi = s->n == 0 ? v : fmax(s->hi, v);
    s->n++;
}

/* Unknown as soon as one value is: a minimum over a part would be a claim about all. */
double spread_low(const struct spread *s)
{
    return s->why != NULL || s->n == 0 ? (double)NAN : s->lo;
}

double spread_high(const struct spread *s)
{
    return s->why != NULL || s->n == 0 ? (double)NAN : s->hi;
}

const char *spread_why(const struct spread *s)
{
    return s->why != NULL ? s->why : "there is none";
}

/* Joins names for a sentence. */
const char *work_join(struct arena *a, const char *const *names, size_t n)
{
    const char *text = n == 0 ? "nothing" : names[0];
    for (size_t i = 1; i < n; i++) {
        text = arena_printf(a, "%s%s%s", text, i + 1 == n ? " and " : ", ", names[i]);
    }
    return text;
}

/* true, false, or null. */
void put_truth(cJSON *o, const char *key, enum truth t)
{
    if (t == TRUTH_UNKNOWN) {
        json_put_null(o, key);
    } else {
        json_put_bool(o, key, t == TRUTH_TRUE);
    }
}

double point_or_nan(const struct number *x)
{
    return number_is_point(x) ? x->lo : (double)NAN;
}

/* NULL for a point; ranges have no reason of their own. */
const char *point_why(const struct number *x)
{
    if (number_is_point(x)) {
        return NULL;
    }
    return x->known ? "known only within bounds" : x->why;
}

void put_point(cJSON *o, const char *key, const struct number *x)
{
    json_put_number(o, key, point_or_nan(x));
}
