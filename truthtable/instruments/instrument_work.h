/*
 * What the evaluators share; private to truthtable/instruments. A struct work is one program with
 * its evidence, evaluated; a struct instrument_entry is one instrument on its way into
 * instruments.json, with the fields that forecasts may read. Texts live in the work's arena.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_INSTRUMENT_WORK_H
#define TRUTHTABLE_INSTRUMENTS_INSTRUMENT_WORK_H

#include <cjson/cJSON.h>

#include "prereg/program/instrument.h"
#include "truthtable/evaluate/evaluation.h"
#include "truthtable/instruments/instruments.h"

struct work {
    const struct instruments_input *in;
    const struct plan_program *p;
    const struct evidence *e;
    const struct coverage *coverage;
    const struct table_evaluation *ev;
    struct arena *arena;
};

struct instrument_entry {
    const struct work *w;
    const struct plan_instrument *spec;
    enum instrument_kind kind;
    struct instrument_answer *fields; /* one for each of instrument_fields() */
    cJSON *json;
};

/* The kinds: each adds its members to t->json, says what it is and how it reads, and answers every
 * field. */
void instrument_bayes(struct instrument_entry *t);
void instrument_mixed(struct instrument_entry *t);
void instrument_connector(struct instrument_entry *t);
void instrument_items(struct instrument_entry *t);
void instrument_router(struct instrument_entry *t);
void instrument_anchors(struct instrument_entry *t);
void instrument_course(struct instrument_entry *t);
/* Those that need no declaration, as members of an entry. */
void instrument_margins(const struct work *w, cJSON *out);
void instrument_dispersion(const struct work *w, cJSON *out);
void instrument_detectable(const struct work *w, cJSON *out);
void instrument_apparatus(const struct work *w, cJSON *out);

/* How a child that computed instruments was ended by a signal; false when it was not. */
bool instruments_ended_words(int status, char *why, size_t size);

/* A field of this kind by its name; `why` is taken when the value is unknown (NaN). */
void entry_truth(struct instrument_entry *t, const char *field, enum truth v, const char *why);
void entry_number(struct instrument_entry *t, const char *field, double v, const char *why);
/* Adds what the entry is and how it reads, a sentence each. */
void entry_words(cJSON *out, const char *what, const char *reading);

/* Measures as indices: those the key lists, else the counted ones. */
struct measure_list {
    size_t *items;
    size_t n;
};
struct measure_list work_measures(const struct work *w, const cJSON *spec, const char *key);
/* The verdict's own score of a cell, and figure of a contrast in a measure. */
const struct score *work_score(const struct work *w, size_t measure, size_t cell);
const struct figure *work_figure(const struct work *w, size_t contrast, size_t measure);

/* The smallest and greatest of numbers, unknown as soon as one is. */
struct spread {
    double lo, hi;
    size_t n;
    const char *why; /* the first unknown's reason, or NULL */
};
void spread_add(struct spread *s, double v, const char *why);
double spread_low(const struct spread *s); /* NaN when unknown or without numbers */
double spread_high(const struct spread *s);
const char *spread_why(const struct spread *s);

/* "a, b and c"; "nothing" for none. */
const char *work_join(struct arena *a, const char *const *names, size_t n);

void put_truth(cJSON *o, const char *key, enum truth t);
/* A point as a number, all else as null. */
void put_point(cJSON *o, const char *key, const struct number *x);
double point_or_nan(const struct number *x);
/* Why it is not a point; NULL when it is. */
const char *point_why(const struct number *x);

#endif
